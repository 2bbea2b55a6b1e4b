/*
 * Assegai's routes about chains: JSON-RPC, queries, the wallet's address, transactions. See assegai.h.
 */
#include "assegai_impl.h"

#include "spend.h"
#include "text.h"
#include "poison.h"

/* ---- JSON-RPC ---- */

struct rpc_wait {
	struct agent_rpc rpc;
	struct request *r;
	struct view chain;
	bool over;
};

static void on_rpc(struct agent_rpc *rpc, int status, struct view body, const char *message, unsigned wait)
{
	struct rpc_wait *w = CONTAINER(rpc, struct rpc_wait, rpc);

	w->over = true;
	if (status == 200)
		answer_plain(w->r, 200, "application/json", body);
	else
		assegai_refuse(w->r, status, message, wait);
}

static void release(struct request *r)
{
	struct rpc_wait *w = r->own;

	if (!w->over)
		agents_rpc_cancel(&w->rpc);
}

static struct rpc_wait *begin(struct request *r)
{
	struct rpc_wait *w = request_own(r, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct rpc_wait){ .rpc = { .done = on_rpc }, .r = r };
	r->x->eof_aborts = true; /* what a person decides may take minutes: it is known who still waits */
	r->release = release;
	return w;
}

/* "eip155:1", with the colon as it is or escaped; p == NULL: the answer is sent. */
static struct view chain_of(struct request *r)
{
	struct buf b = BUF_INIT(256);
	struct view v = VIEW_NONE;

	if (text_unpercent(&b, r->params[0], false) >= 0)
		v = arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	if (!v.p)
		assegai_refuse(r, 400, "the path must name a chain, such as eip155:1", 0);
	return v;
}

static void rpc(struct request *r)
{
	struct view chain = chain_of(r);
	struct agent *a = chain.p ? assegai_agent(r) : NULL;
	struct rpc_wait *w = a ? begin(r) : NULL;

	if (w)
		agents_rpc(a, chain, buf_view(&r->body), &w->rpc);
}

struct query_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view chain, method;
	const struct json *params;
};

#define AT(f) .offset = offsetof(struct query_body, f)
static const struct json_field query_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), .min = 1, .max = 64, .required = true },
	{ "method", JSON_F_STRING, AT(method), .min = 1, .max = 64, .required = true },
	{ "params", JSON_F_ANY, AT(params), .nullable = true },
};
#undef AT
static const struct json_schema query_schema = { query_fields, ELEMS(query_fields) };

static void query(struct request *r)
{
	struct query_body body = { 0 };

	if (request_read(r, &query_schema, &body) < 0)
		return;
	struct agent *a = assegai_agent(r);
	struct rpc_wait *w = a ? begin(r) : NULL;
	if (w)
		agents_rpc_one(a, body.chain, body.method, body.params, &w->rpc);
}

/* ---- the wallet ---- */

static void on_account(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kz(o, "address", result);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void address(struct request *r)
{
	struct view chain = chain_of(r);
	struct agent *a = chain.p ? assegai_agent(r) : NULL;
	struct agent_view v;
	struct err e = { 0 };

	if (!a)
		return;
	agents_show(a, &v);
	if (!manifest_has_chain(v.manifest, chain)) {
		err_set(&e, ERR_FORBIDDEN, "Chain %.*s is not whitelisted for this agent",
			VIEW_ARG(view_head(chain, 48)));
		answer_fail(r, &e);
		return;
	}
	answer_await(r, spend_account(a, chain, on_account, r, &e), &e);
}

/* ---- transactions ---- */

struct transaction_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view chain, to, value, data, gas, reason;
};

#define AT(f) .offset = offsetof(struct transaction_body, f)
static const struct json_field transaction_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), .min = 1, .max = 64, .required = true },
	{ "to", JSON_F_STRING, AT(to), .max = 64, .required = true },
	{ "value", JSON_F_STRING, AT(value), .min = 1, .max = 80, .required = true },
	{ "data", JSON_F_STRING, AT(data), .nullable = true },
	{ "gasLimit", JSON_F_STRING, AT(gas), .max = 80, .nullable = true },
	{ "reason", JSON_F_STRING, AT(reason), .max = SPEND_NOTE_MAX, .nullable = true },
};
#undef AT
static const struct json_schema transaction_schema = { transaction_fields, ELEMS(transaction_fields) };

/* {"success", "txHash"}, or the error with the words that its clients look for. */
static void on_sent(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct spend_said *said = result;

	if (e) {
		answer_fail(r, e);
		return;
	}
	if (said->error) {
		assegai_refuse(r, said->status, said->error, 0);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	if (said->text.n) {
		json_out_kbool(o, "success", true);
		json_out_kstr(o, "txHash", said->text);
	} else {
		json_out_kstr(o, "id", said->item->id);
		json_out_kz(o, "status", sgn_state_name(said->item->state));
	}
	json_out_end(o, '}');
	answer_send(r, said->text.n ? 200 : 202);
}

static void on_status(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct spend_said *said = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kstr(o, "id", said->item->id);
	json_out_kz(o, "status", sgn_state_name(said->item->state));
	json_out_kstr_any(o, said->item->kind == SGN_REQUEST_KIND_TX ? "txHash" : "signature", said->text);
	json_out_kz(o, "error", said->error);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* RFC 7240: one of the preferences, which may have others beside it. */
static bool wants_async(const struct http_exchange *x)
{
	struct view all = http_get_header(x, "prefer"), one;

	while (all.p) {
		one = view_trim(view_split(all, ',', &all));
		if (view_eq_nocase(view_trim(view_split(one, ';', &one)), VIEW("respond-async")))
			return true;
	}
	return false;
}

static void transact(struct request *r)
{
	struct transaction_body body = { .data = VIEW("0x"), .gas = VIEW("21000"), .reason = VIEW("") };
	struct view key = http_get_header(r->x, "idempotency-key");
	struct err e = { 0 };

	if (request_read(r, &transaction_schema, &body) < 0)
		return;
	struct agent *a = assegai_agent(r);
	if (!a)
		return;
	r->x->eof_aborts = true;
	const struct agent_ask ask = { .kind = AGENT_ASK_TRANSACTION,
				       .chain = body.chain,
				       .to = body.to,
				       .value = body.value,
				       .data = body.data,
				       .gas = body.gas,
				       .key = key.p ? key : VIEW(""),
				       .reason = body.reason };
	struct job *j = agents_check_transaction(a, &ask, &e) < 0
				? NULL
				: spend_ask(a, &ask, wants_async(r->x), on_sent, r, &e);
	answer_await(r, j, &e);
}

static void status(struct request *r)
{
	struct agent *a = assegai_agent(r);
	struct err e = { 0 };

	if (a)
		answer_await(r, spend_ask_status(a, r->params[0], on_status, r, &e), &e);
}

static void cancel(struct request *r)
{
	struct agent *a = assegai_agent(r);
	struct err e = { 0 };

	if (a)
		answer_await(r, spend_ask_cancel(a, r->params[0], on_status, r, &e), &e);
}

const struct route assegai_chain_routes[] = {
	{ "POST", "/agent/request-transaction", transact, .body = ROUTE_JSON, .body_max = 512u * 1024 },
	{ "GET", "/agent/transactions/{id}", status },
	{ "POST", "/agent/transactions/{id}/cancel", cancel },
	{ "POST", "/agent/query-chain", query, .body = ROUTE_JSON, .body_max = AGENT_RPC_BODY },
	{ "GET", "/agent/wallet-address/{chain}", address },
	{ "POST", "/rpc/{chain}", rpc, .body = ROUTE_WHOLE, .body_max = AGENT_RPC_BODY },
	{ 0 },
};
