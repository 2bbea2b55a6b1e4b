/*
 * /v1/wallets/connect and /v1/wallets/sessions: wallets elsewhere, by WalletConnect.
 */
#include "walletconnect.h"

#include "rest_impl.h"
#include "poison.h"

#define AT(f) .offset = offsetof(struct walletconnect_body, f)
struct walletconnect_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct json_strlist chains;
	struct view label;
};
static const struct json_field body_fields[] = {
	{ "chains", JSON_F_STRLIST, AT(chains), .max = 64, .nullable = true },
	{ "label", JSON_F_STRING, AT(label), .max = WALLETCONNECT_LABEL_MAX, .nullable = true },
};
#undef AT
static const struct json_schema body_schema = { body_fields, ELEMS(body_fields) };

/* Rows of 0 and 1, so that whoever shows it needs no encoder. */
static void put_qr(struct json_out *o, const struct qr *qr)
{
	char row[QR_SIZE_MAX];

	json_out_key(o, "qr");
	json_out_array(o);
	for (unsigned y = 0; y < qr->size; y++) {
		for (unsigned x = 0; x < qr->size; x++)
			row[x] = qr->dark[y][x] ? '1' : '0';
		json_out_str(o, (struct view){ row, qr->size });
	}
	json_out_end(o, ']');
}

static void on_paired(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);
	const struct walletconnect_pairing *p = result;

	if (!o)
		return;
	json_out_object(o);
	json_out_kz(o, "id", p->id);
	json_out_kstr(o, "uri", p->uri);
	answer_put_time(o, "expires_at", p->expires_ms);
	put_qr(o, p->qr);
	json_out_end(o, '}');
	answer_send(r, 201);
}

static void connect_wallet(struct request *r)
{
	struct walletconnect_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &body_schema, &body) < 0)
		return;
	const struct walletconnect_wish w = { .chains = body.chains, .label = body.label };
	answer_await(r, walletconnect_connect(r->core, &r->actor, &w, on_paired, r, &e), &e);
}

static void put_account(void *arg, struct view account)
{
	json_out_str(arg, account);
}

static void put_session(void *arg, const struct walletconnect_session *s)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kz(o, "id", s->id);
	json_out_kstr_any(o, "name", view_of(s->name));
	json_out_kstr_any(o, "url", view_of(s->url));
	json_out_key(o, "accounts");
	json_out_array(o);
	s->each_account(s, put_account, o);
	json_out_end(o, ']');
	answer_put_time(o, "created_at", s->created_ms);
	answer_put_time(o, "expires_at", s->expires_ms);
	json_out_end(o, '}');
}

static void list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "sessions");

	if (walletconnect_each(r->core, &r->actor, put_session, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void end_session(struct request *r)
{
	struct err e = { 0 };

	answer_await(r, walletconnect_end(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

const struct route rest_walletconnect_routes[] = {
	{ "POST", "/v1/wallets/connect", connect_wallet, .body = ROUTE_JSON, .audit = "wallet.connect" },
	{ "GET", "/v1/wallets/sessions", list },
	{ "DELETE", "/v1/wallets/sessions/{id}", end_session, .audit = "wallet.disconnect" },
	{ 0 },
};
