/*
 * The policy of agents' JSON-RPC: see ethrpc.h.
 */
#include "ethrpc.h"

#include "num.h"
#include "poison.h"

#define LOGS_BLOCKS 10000u /* of one eth_getLogs whose range is known */

static const struct {
	const char *name;
	enum ethrpc_class class;
} methods[] = {
	{ "web3_clientVersion", ETHRPC_PASS },
	{ "net_version", ETHRPC_NET_VERSION },
	{ "eth_chainId", ETHRPC_CHAIN_ID },
	{ "eth_accounts", ETHRPC_ACCOUNTS },
	{ "eth_requestAccounts", ETHRPC_ACCOUNTS },
	{ "eth_blockNumber", ETHRPC_PASS },
	{ "eth_syncing", ETHRPC_PASS },
	{ "eth_gasPrice", ETHRPC_PASS },
	{ "eth_maxPriorityFeePerGas", ETHRPC_PASS },
	{ "eth_feeHistory", ETHRPC_PASS },
	{ "eth_blobBaseFee", ETHRPC_PASS },
	{ "eth_getBalance", ETHRPC_PASS },
	{ "eth_getCode", ETHRPC_PASS },
	{ "eth_getStorageAt", ETHRPC_PASS },
	{ "eth_getTransactionCount", ETHRPC_PASS },
	{ "eth_getProof", ETHRPC_PASS },
	{ "eth_call", ETHRPC_PASS },
	{ "eth_estimateGas", ETHRPC_PASS },
	{ "eth_createAccessList", ETHRPC_PASS },
	{ "eth_simulateV1", ETHRPC_PASS },
	{ "eth_getBlockByNumber", ETHRPC_PASS },
	{ "eth_getBlockByHash", ETHRPC_PASS },
	{ "eth_getBlockReceipts", ETHRPC_PASS },
	{ "eth_getBlockTransactionCountByHash", ETHRPC_PASS },
	{ "eth_getBlockTransactionCountByNumber", ETHRPC_PASS },
	{ "eth_getTransactionByHash", ETHRPC_PASS },
	{ "eth_getTransactionByBlockHashAndIndex", ETHRPC_PASS },
	{ "eth_getTransactionByBlockNumberAndIndex", ETHRPC_PASS },
	{ "eth_getTransactionReceipt", ETHRPC_PASS },
	{ "eth_getLogs", ETHRPC_LOGS },
	{ "eth_newFilter", ETHRPC_FILTER_NEW },
	{ "eth_newBlockFilter", ETHRPC_FILTER_NEW },
	{ "eth_getFilterChanges", ETHRPC_FILTER_USE },
	{ "eth_getFilterLogs", ETHRPC_FILTER_USE },
	{ "eth_uninstallFilter", ETHRPC_FILTER_USE },
	{ "eth_sendTransaction", ETHRPC_SEND },
	{ "personal_sign", ETHRPC_SIGN },
	{ "eth_signTypedData_v4", ETHRPC_SIGN },
};

enum ethrpc_class ethrpc_classify(struct view method)
{
	for (size_t i = 0; i < ELEMS(methods); i++)
		if (view_is(method, methods[i].name))
			return methods[i].class;
	return ETHRPC_REFUSED;
}

static bool is_method(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return v.n > 0 && v.n <= 64;
}

int ethrpc_make(struct view method, const struct json *params, struct ethrpc_request *ret, struct err *e)
{
	if (!is_method(method))
		return err_set(e, ERR_INVALID, "method must be the name of a method");
	if (params && params->type != JSON_ARRAY)
		return err_set(e, ERR_INVALID, "params must be an array");
	ret->method = method;
	ret->params = params;
	ret->class = ethrpc_classify(method);
	return 0;
}

int ethrpc_read(const struct json *j, struct ethrpc_request *ret, struct err *e)
{
	static const char *const keys[] = { "jsonrpc", "id", "method", "params" };
	const struct json *version = json_get(j, "jsonrpc"), *id = json_get(j, "id"),
			  *method = json_get(j, "method"), *params = json_get(j, "params");

	*ret = (struct ethrpc_request){ 0 };
	if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "a request must be an object");
	if (id && (id->type == JSON_STRING || id->type == JSON_NUMBER || id->type == JSON_NULL))
		ret->id = id;
	for (size_t i = 0; i < j->n; i++) {
		bool known = false;
		for (size_t k = 0; k < ELEMS(keys); k++)
			known |= view_is(j->members[i].key, keys[k]);
		if (!known)
			return err_set(e, ERR_INVALID, "a request has jsonrpc, id, method and params only");
	}
	if (!version || version->type != JSON_STRING || !view_is(version->text, "2.0"))
		return err_set(e, ERR_INVALID, "jsonrpc must be \"2.0\"");
	if (!ret->id)
		return err_set(e, ERR_INVALID, "id must be a string or a number");
	if (!method || method->type != JSON_STRING)
		return err_set(e, ERR_INVALID, "method must be a string");
	return ethrpc_make(method->text, params, ret, e);
}

/* ---- parameters ---- */

/* A block by its number; false: by a name, or not at all. */
static bool block_number(const struct json *j, uint64_t *ret)
{
	return j && j->type == JSON_STRING && view_starts(j->text, "0x") &&
	       num_hex(view_skip(j->text, 2), ret) >= 0;
}

/* Ranges whose ends are numbers are bounded here. Of others the node knows how long they are. */
static int check_logs(const struct json *params, struct err *e)
{
	const struct json *f = params && params->n == 1 ? &params->items[0] : NULL;
	uint64_t from, to;

	if (!f || f->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "eth_getLogs takes one filter, an object");
	if (block_number(json_get(f, "fromBlock"), &from) && block_number(json_get(f, "toBlock"), &to) &&
	    to > from && to - from > LOGS_BLOCKS)
		return err_set(e, ERR_INVALID, "eth_getLogs takes at most %u blocks at once", LOGS_BLOCKS);
	return 0;
}

int ethrpc_check(const struct ethrpc_request *r, struct err *e)
{
	const struct json *p = r->params;

	if (r->class == ETHRPC_LOGS)
		return check_logs(p, e);
	if (r->class == ETHRPC_FILTER_USE && (!p || p->n != 1 || p->items[0].type != JSON_STRING))
		return err_set(e, ERR_INVALID, "%.*s takes the id of a filter", VIEW_ARG(r->method));
	return 0;
}

void ethrpc_put(struct json_out *o, const struct ethrpc_request *r, uint64_t id)
{
	json_out_object(o);
	json_out_kz(o, "jsonrpc", "2.0");
	json_out_ku64(o, "id", id);
	json_out_kstr(o, "method", r->method);
	json_out_key(o, "params");
	if (r->params) {
		json_out_value(o, r->params);
	} else {
		json_out_array(o);
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

/* ---- answers ---- */

static int bad_answer(struct err *e)
{
	return err_set(e, ERR_UNAVAILABLE, "the node's answer is not proper JSON-RPC");
}

static int read_answer(const struct json *j, uint64_t first, size_t n, struct ethrpc_result *ret,
		       struct err *e)
{
	const struct json *id = json_get(j, "id"), *result = json_get(j, "result"),
			  *error = json_get(j, "error");
	uint64_t number;

	if (!id || id->type != JSON_NUMBER || json_to_u64(id, &number) < 0 || number < first ||
	    number - first >= n)
		return bad_answer(e);
	struct ethrpc_result *r = &ret[number - first];
	if (error && error->type == JSON_NULL)
		error = NULL;
	if (r->result || r->error || (!error && !result))
		return bad_answer(e);
	if (!error) {
		r->result = result;
		return 0;
	}
	const struct json *code = json_get(error, "code"), *message = json_get(error, "message");
	r->error = error;
	r->code = ETHRPC_E_INTERNAL;
	if (code && code->type == JSON_NUMBER)
		(void)!json_to_i64(code, &r->code);
	r->message = message && message->type == JSON_STRING ? message->text : VIEW("the node failed");
	return 0;
}

int ethrpc_answers(struct arena *a, struct view body, uint64_t first, size_t n, bool batch,
		   struct ethrpc_result *ret, struct err *e)
{
	struct err why = { 0 };
	struct json *doc;

	memset(ret, 0, n * sizeof(*ret));
	if (json_parse(a, body, &doc, &why) < 0)
		return bad_answer(e);
	if (!batch)
		return doc->type == JSON_OBJECT ? read_answer(doc, first, n, ret, e) : bad_answer(e);
	if (doc->type != JSON_ARRAY || doc->n != n)
		return bad_answer(e);
	for (size_t i = 0; i < n; i++)
		if (read_answer(&doc->items[i], first, n, ret, e) < 0)
			return -1;
	return 0;
}
