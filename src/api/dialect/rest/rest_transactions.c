/*
 * /v1/transactions: what agents ask for, and people's decisions. The signer decides what may be spent and
 * keeps everything (docs/design/spending.md); an answer comes when it has stored the decision.
 */
#include "address.h"
#include "card.h"
#include "rulejson.h"
#include "num.h"
#include "rest_impl.h"
#include "rest_spend.h"
#include "text.h"
#include "poison.h"

#define PAGE_MOST   500
#define PAGE_USUAL  100
#define EXPORT_MOST 10000

/* ---- list ---- */

struct listing {
	struct spend_filter filter;
	uint8_t asset[ADDRESS_SIZE];
	bool by_asset, csv, more;
	uint32_t left;
	char after[SPEND_ID * 2 + 1], last[SPEND_ID * 2 + 1];
	struct buf out; /* of CSV */
};

static void ask_page(struct request *r);

static bool spends(const struct sgn_item *i, const uint8_t *asset)
{
	for (size_t k = 0; k < i->effects.n; k++)
		if (i->effects.items[k].asset.n == ADDRESS_SIZE &&
		    !memcmp(i->effects.items[k].asset.p, asset, ADDRESS_SIZE))
			return true;
	return false;
}

static void finish(struct request *r)
{
	struct listing *l = r->own;

	if (l->csv) {
		struct err e = { 0 };
		if (l->out.bad) {
			err_set(&e, ERR_TOO_LARGE, "the answer is too large: ask for fewer, or for JSON");
			answer_fail(r, &e);
			return;
		}
		/* A table has no place of its own for it, and nobody should take a part for the whole. */
		const struct http_header next = { VIEW("paddock-next"), view_of(l->last) };
		answer_plain_with(r, 200, "text/csv; charset=utf-8", buf_view(&l->out), &next, l->more);
		return;
	}
	json_out_end(&r->json, ']');
	json_out_kz(&r->json, "next", l->more ? l->last : NULL);
	json_out_end(&r->json, '}');
	answer_send(r, 200);
}

static void take(struct request *r, struct listing *l, const struct spend_view *v)
{
	if (l->by_asset && !spends(v->item, l->asset))
		return;
	if (!l->left) {
		l->more = true;
		return;
	}
	l->left--;
	(void)!view_to_str(v->item->id, l->last, sizeof(l->last));
	if (l->csv)
		rest_csv_put(&l->out, v);
	else
		card_put(&r->json, r->core, v, false);
}

static void on_page(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct listing *l = r->own;
	const struct spend_page *p = result;

	if (!answer_ended(r, e))
		return;
	for (size_t i = 0; i < p->n && !l->more; i++)
		take(r, l, &p->items[i]);
	if (p->n)
		(void)!view_to_str(p->items[p->n - 1].item->id, l->after, sizeof(l->after));
	if (l->more || !p->more || !p->n) {
		finish(r);
	} else if (!l->left && !l->by_asset) {
		l->more = true;
		finish(r);
	} else {
		ask_page(r);
	}
}

static void ask_page(struct request *r)
{
	struct listing *l = r->own;
	struct err e = { 0 };

	l->filter.after = view_of(l->after);
	l->filter.max = l->by_asset ? PAGE_MOST : MIN(l->left, (uint32_t)PAGE_MOST);
	answer_await(r, spend_list(r->core, &r->actor, &l->filter, on_page, r, &e), &e);
}

static int read_filter(struct request *r, struct listing *l, struct err *e)
{
	const struct view state = request_query(r, "state"), chain = request_query(r, "chain"),
			  asset = request_query(r, "asset"), after = request_query(r, "after"),
			  format = request_query(r, "format");

	l->filter.agent = request_query(r, "agent");
	l->csv = format.p && view_is(format, "csv");
	if (format.p && !l->csv && !view_is(format, "json"))
		return err_set(e, ERR_INVALID, "format must be json or csv");
	if (state.p && !sgn_state_named(state, &l->filter.state))
		return err_set(e, ERR_INVALID, "state must be pending, final, … (docs/approvals.md)");
	if (chain.p && rulejson_chain(chain, &l->filter.chain, e) < 0)
		return -1;
	if (asset.p && rulejson_asset(asset, l->asset, e) < 0)
		return -1;
	l->by_asset = asset.p != NULL;
	if (after.p && view_to_str(after, l->after, sizeof(l->after)) < 0)
		return err_set(e, ERR_INVALID, "after must be the next of the page before");
	l->left = l->csv ? EXPORT_MOST : PAGE_USUAL;
	return request_query_limit(r, l->csv ? EXPORT_MOST : PAGE_MOST, &l->left, e);
}

static void release_listing(struct request *r)
{
	struct listing *l = r->own;
	buf_done(&l->out);
}

static void list(struct request *r)
{
	struct listing *l = request_own(r, sizeof(*l));
	struct err e = { 0 };

	if (!l)
		return;
	buf_init(&l->out, 64u * 1024 * 1024);
	r->release = release_listing;
	if (read_filter(r, l, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (l->csv)
		rest_csv_head(&l->out);
	else
		(void)answer_json_list(r, "transactions");
	ask_page(r);
}

/* ---- one ---- */

static void on_one(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	card_put(o, r->core, result, true);
	answer_send(r, 200);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, spend_get(r->core, &r->actor, r->params[0], on_one, r, &e), &e);
}

/* ---- decisions ---- */

struct approve_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view digest;
};
static const struct json_field approve_fields[] = {
	{ "digest", JSON_F_STRING, offsetof(struct approve_body, digest), .min = 66, .max = 66,
	  .required = true },
};
static const struct json_schema approve_schema = { approve_fields, ELEMS(approve_fields) };

struct note_body {
	bool unused;
	struct view note;
};
static const struct json_field note_fields[] = {
	{ "note", JSON_F_STRING, offsetof(struct note_body, note), .max = SPEND_NOTE_MAX, .nullable = true },
};
static const struct json_schema note_schema = { note_fields, ELEMS(note_fields) };

struct answer_body {
	bool unused;
	struct view hash, signature;
	bool rejected, has_rejected;
};
#define AT(f) .offset = offsetof(struct answer_body, f)
static const struct json_field answer_fields[] = {
	{ "hash", JSON_F_STRING, AT(hash), .min = 66, .max = 66, .nullable = true },
	{ "signature", JSON_F_STRING, AT(signature), .min = 4, .max = 16384, .nullable = true },
	{ "rejected", JSON_F_BOOL, AT(rejected), .has = offsetof(struct answer_body, has_rejected),
	  .nullable = true },
};
#undef AT
static const struct json_schema answer_schema = { answer_fields, ELEMS(answer_fields) };

int rest_spend_somebody(struct request *r, struct err *e)
{
	if (request_is_anonymous(r))
		return err_set(e, ERR_FORBIDDEN, "a decision needs a key, so that it is known who made it");
	return 0;
}

static int unhex(struct view text, const char *what, uint8_t ret[32], struct err *e)
{
	if (!view_starts(text, "0x") || text_unhex(view_skip(text, 2), ret, 32) < 0)
		return err_set(e, ERR_INVALID, "%s must be 0x and 64 hexadecimal digits", what);
	return 0;
}

static void approve(struct request *r)
{
	struct approve_body body = { 0 };
	struct err e = { 0 };
	uint8_t digest[32];

	if (request_read(r, &approve_schema, &body) < 0)
		return;
	if (rest_spend_somebody(r, &e) < 0 || unhex(body.digest, "digest", digest, &e) < 0)
		answer_fail(r, &e);
	else
		answer_await(r, spend_approve(r->core, &r->actor, r->params[0], digest, on_one, r, &e), &e);
}

/* The others; false: the answer was sent. */
static bool read_note(struct request *r, struct note_body *ret)
{
	struct err e = { 0 };

	if (request_read(r, &note_schema, ret) < 0)
		return false;
	if (rest_spend_somebody(r, &e) == 0)
		return true;
	answer_fail(r, &e);
	return false;
}

static void reject(struct request *r)
{
	struct note_body body = { 0 };
	struct err e = { 0 };

	if (read_note(r, &body))
		answer_await(r, spend_reject(r->core, &r->actor, r->params[0], body.note, on_one, r, &e), &e);
}

static void cancel(struct request *r)
{
	struct note_body body = { 0 };
	struct err e = { 0 };

	if (read_note(r, &body))
		answer_await(r, spend_cancel(r->core, &r->actor, r->params[0], on_one, r, &e), &e);
}

static void speed_up(struct request *r)
{
	struct note_body body = { 0 };
	struct err e = { 0 };

	if (read_note(r, &body))
		answer_await(r, spend_speed_up(r->core, &r->actor, r->params[0], on_one, r, &e), &e);
}

static void revoke(struct request *r)
{
	struct note_body body = { 0 };
	struct err e = { 0 };

	if (read_note(r, &body))
		answer_await(r, spend_allowance_revoke(r->core, &r->actor, r->params[0], on_one, r, &e), &e);
}

static int read_answer(struct request *r, const struct answer_body *b, struct spend_answer *ret,
		       struct err *e)
{
	uint8_t *raw;

	if (b->has_rejected && !b->rejected)
		return err_set(e, ERR_INVALID, "rejected must be true");
	if ((b->hash.n > 0) + (b->signature.n > 0) + b->rejected != 1)
		return err_set(e, ERR_INVALID, "exactly one of hash, signature and rejected must be given");
	if (b->hash.n) {
		ret->kind = SPEND_SENT;
		return unhex(b->hash, "hash", ret->hash, e);
	}
	if (b->rejected) {
		ret->kind = SPEND_REFUSED;
		return 0;
	}
	const size_t n = (b->signature.n - 2) / 2;
	raw = arena_alloc(&r->arena, n);
	if (!raw || !view_starts(b->signature, "0x") || text_unhex(view_skip(b->signature, 2), raw, n) < 0)
		return err_set(e, ERR_INVALID, "signature must be 0x and hexadecimal digits");
	ret->kind = SPEND_SIGNED;
	ret->signature = (struct view){ (const char *)raw, n };
	return 0;
}

static void wallet(struct request *r)
{
	struct answer_body body = { 0 };
	struct spend_answer answer = { 0 };
	struct err e = { 0 };

	if (request_read(r, &answer_schema, &body) < 0)
		return;
	if (rest_spend_somebody(r, &e) < 0 || read_answer(r, &body, &answer, &e) < 0)
		answer_fail(r, &e);
	else
		answer_await(r, spend_wallet_answer(r->core, &r->actor, r->params[0], &answer, on_one, r, &e),
			     &e);
}

const struct route rest_transactions_routes[] = {
	{ "GET", "/v1/transactions", list, .query = "agent state chain asset limit after format" },
	{ "GET", "/v1/transactions/{id}", get },
	{ "POST", "/v1/transactions/{id}/approve", approve, .body = ROUTE_JSON,
	  .audit = "transaction.approve", .audit_body = true },
	{ "POST", "/v1/transactions/{id}/reject", reject, .body = ROUTE_JSON, .audit = "transaction.reject",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/cancel", cancel, .body = ROUTE_JSON, .audit = "transaction.cancel",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/speed-up", speed_up, .body = ROUTE_JSON,
	  .audit = "transaction.speed_up", .audit_body = true },
	{ "POST", "/v1/transactions/{id}/revoke", revoke, .body = ROUTE_JSON, .audit = "transaction.revoke",
	  .audit_body = true },
	{ "POST", "/v1/transactions/{id}/wallet", wallet, .body = ROUTE_JSON, .audit = "transaction.wallet",
	  .audit_body = true },
	{ 0 },
};
