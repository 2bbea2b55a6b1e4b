/*
 * Assegai's routes about chains: JSON-RPC, queries, the wallet's address, transactions. See assegai.h.
 */
#include "assegai_impl.h"

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

static void address(struct request *r)
{
	struct view chain = chain_of(r);
	struct agent *a = chain.p ? assegai_agent(r) : NULL;
	struct agent_view v;
	char account[43];
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
	if (agents_account(a, chain, account, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kz(o, "address", account);
	json_out_end(o, '}');
	answer_send(r, 200);
}

struct transaction_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view chain, to, value, data, gas;
};

#define AT(f) .offset = offsetof(struct transaction_body, f)
static const struct json_field transaction_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), .min = 1, .max = 64, .required = true },
	{ "to", JSON_F_STRING, AT(to), .max = 64, .required = true },
	{ "value", JSON_F_STRING, AT(value), .min = 1, .max = 80, .required = true },
	{ "data", JSON_F_STRING, AT(data), .nullable = true },
	{ "gasLimit", JSON_F_STRING, AT(gas), .max = 80, .nullable = true },
};
#undef AT
static const struct json_schema transaction_schema = { transaction_fields, ELEMS(transaction_fields) };

static void on_sent(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_kstr(o, "txHash", *(const struct view *)result);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void transact(struct request *r)
{
	struct transaction_body body = { .data = VIEW("0x"), .gas = VIEW("21000") };
	struct err e = { 0 };

	if (request_read(r, &transaction_schema, &body) < 0)
		return;
	struct agent *a = assegai_agent(r);
	if (!a)
		return;
	const struct agent_ask ask = { .kind = AGENT_ASK_TRANSACTION,
				       .chain = body.chain,
				       .to = body.to,
				       .value = body.value,
				       .data = body.data,
				       .gas = body.gas };
	struct job *j =
		agents_check_transaction(a, &ask, &e) < 0 ? NULL : agents_ask_signer(a, &ask, on_sent, r, &e);
	answer_await(r, j, &e);
}

const struct route assegai_chain_routes[] = {
	{ "POST", "/agent/request-transaction", transact, .body = ROUTE_JSON, .body_max = 512u * 1024 },
	{ "POST", "/agent/query-chain", query, .body = ROUTE_JSON, .body_max = AGENT_RPC_BODY },
	{ "GET", "/agent/wallet-address/{chain}", address },
	{ "POST", "/rpc/{chain}", rpc, .body = ROUTE_WHOLE, .body_max = AGENT_RPC_BODY },
	{ 0 },
};
