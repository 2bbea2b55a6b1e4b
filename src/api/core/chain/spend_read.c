/*
 * Answers of nodes: see spend_read.h.
 */
#include "spend_read.h"

#include <errno.h>

#include "spend_moves.h"
#include "text.h"
#include "poison.h"

#define GAS_PLAIN 21000
/* A contract can do so much in a simulation that it cannot be looked at: that is no reason to do without. */
#define UNREADABLE "its simulation shows more than can be checked"

int spend_read_u256(const struct json *j, struct u256 *ret)
{
	return j && j->type == JSON_STRING ? u256_parse_hex(j->text, ret) : -EINVAL;
}

int spend_read_u64(const struct json *j, uint64_t *ret)
{
	struct u256 v;

	if (spend_read_u256(j, &v) < 0)
		return -EINVAL;
	if (!u256_fits_u64(&v))
		return -ERANGE;
	*ret = v.w[0];
	return 0;
}

static int read_bytes(const struct json *j, void *ret, size_t n)
{
	if (!j || j->type != JSON_STRING || !view_starts(j->text, "0x"))
		return -EINVAL;
	return text_unhex(view_skip(j->text, 2), ret, n);
}

int spend_read_hash(const struct json *j, uint8_t ret[SPEND_HASH])
{
	return read_bytes(j, ret, SPEND_HASH);
}

int spend_read_block(const struct json *j, struct spend_block *ret)
{
	const struct json *base = json_get(j, "baseFeePerGas");

	*ret = (struct spend_block){ 0 };
	if (!j || j->type != JSON_OBJECT || spend_read_u64(json_get(j, "number"), &ret->number) < 0 ||
	    spend_read_u64(json_get(j, "gasLimit"), &ret->gas_limit) < 0 ||
	    spend_read_hash(json_get(j, "hash"), ret->hash) < 0)
		return -EINVAL;
	if (!base || base->type == JSON_NULL)
		return 0;
	ret->has_base = true;
	return spend_read_u256(base, &ret->base);
}

int spend_read_receipt(struct arena *a, const struct json *j, const uint8_t hash[SPEND_HASH],
		       const uint8_t account[ADDRESS_SIZE], struct spend_receipt *ret)
{
	uint8_t said[SPEND_HASH];
	uint64_t status;

	*ret = (struct spend_receipt){ 0 };
	if (!j || j->type == JSON_NULL)
		return 0;
	/* Some nodes show what is in no block yet. */
	const struct json *block = json_get(j, "blockNumber");
	if (j->type == JSON_OBJECT && block && block->type == JSON_NULL)
		return 0;
	if (j->type != JSON_OBJECT || spend_read_hash(json_get(j, "transactionHash"), said) < 0 ||
	    memcmp(said, hash, SPEND_HASH) != 0 || spend_read_u64(block, &ret->block) < 0 ||
	    spend_read_hash(json_get(j, "blockHash"), ret->block_hash) < 0 ||
	    spend_read_u64(json_get(j, "status"), &status) < 0 || status > 1)
		return -EINVAL;
	ret->failed = status == 0;
	struct spend_moves m = { .arena = a, .account = account };
	/* It happened, however much a contract has written about it: the first moves show the difference. */
	const int r = spend_moves_logs(&m, json_get(j, "logs"));
	if (r < 0 && r != -E2BIG)
		return -EINVAL;
	ret->moves = m.items;
	ret->n_moves = m.n;
	return 1;
}

/* ---- fees ---- */

static struct view amount(struct arena *a, const struct u256 *v)
{
	char *p = arena_alloc(a, U256_BYTES);

	if (!p)
		return VIEW_NONE;
	u256_store(v, p);
	return (struct view){ p, U256_BYTES };
}

/* The middle of the newest block's. */
static int read_history(const struct ethrpc_result *r, struct u256 *ret)
{
	const struct json *all = r->result ? json_get(r->result, "reward") : NULL;

	if (!all || all->type != JSON_ARRAY || all->n == 0)
		return -EINVAL;
	const struct json *newest = &all->items[all->n - 1];
	return newest->type == JSON_ARRAY && newest->n == 1 ? spend_read_u256(&newest->items[0], ret)
							    : -EINVAL;
}

static int read_fees(struct arena *a, const struct spend_read_from *from, const struct spend_block *b,
		     struct sgn_facts *ret, struct err *e)
{
	const struct ethrpc_result *said = from->said;
	struct u256 max, priority;

	ret->legacy = !b->has_base;
	if (ret->legacy) {
		if (spend_read_u256(said[SPEND_SAY_PRICE].result, &max) < 0)
			return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node says no price of gas");
		priority = max;
	} else {
		if (spend_read_u256(said[SPEND_SAY_PRIORITY].result, &priority) < 0 &&
		    read_history(&said[SPEND_SAY_HISTORY], &priority) < 0)
			return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node says no priority fee");
		if (u256_add(&b->base, &b->base, &max) < 0 || u256_add(&max, &priority, &max) < 0)
			return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node's fees make no sense");
	}
	if (!u256_is_zero(&from->max_fee) && u256_cmp(&max, &from->max_fee) > 0) {
		max = from->max_fee;
		if (b->has_base && u256_cmp(&b->base, &max) > 0)
			return err_set(e, ERR_UNAVAILABLE,
				       "RPC Error: the chain's fees are above max_fee_gwei");
		priority = u256_cmp(&priority, &max) > 0 ? max : priority;
	}
	ret->max_fee = amount(a, &max);
	ret->priority_fee = amount(a, &priority);
	return ret->max_fee.p && ret->priority_fee.p ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "facts");
}

/* ---- the facts ---- */

static int read_code(const struct json *j, bool *ret_any, bool *ret_delegated)
{
	if (!j || j->type != JSON_STRING || !view_starts(j->text, "0x"))
		return -EINVAL;
	*ret_any = j->text.n > 2;
	*ret_delegated =
		j->text.n >= 8 && view_eq_nocase(view_head(view_skip(j->text, 2), 6), VIEW("ef0100"));
	return 0;
}

static int read_estimate(struct arena *a, const struct ethrpc_result *r, const struct spend_block *b,
			 struct sgn_facts *ret, struct err *e)
{
	if (r->error) {
		ret->gas = GAS_PLAIN; /* so that the failure is what is talked about */
		ret->failure = spend_read_failure(a, r->message, json_get(r->error, "data"));
		return ret->failure.n ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "facts");
	}
	if (spend_read_u64(r->result, &ret->gas) < 0 || ret->gas == 0)
		return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node's estimate is no number");
	if (ret->gas > b->gas_limit)
		ret->failure = VIEW("it needs more gas than a block has");
	return 0;
}

/* Nodes that do not have the method say so in many ways; a node that has it and fails says what failed. */
static int read_simulation(struct arena *a, const struct spend_read_from *from, struct sgn_facts *ret,
			   bool *ret_trace)
{
	const struct ethrpc_result *r = &from->said[SPEND_SAY_SIMULATE];
	const struct json *block = r->result && r->result->type == JSON_ARRAY && r->result->n == 1
					   ? &r->result->items[0]
					   : NULL,
			  *calls = json_get(block, "calls"),
			  *one = calls && calls->type == JSON_ARRAY && calls->n == 1 ? &calls->items[0]
										     : NULL;
	struct spend_moves m = { .arena = a, .account = from->account };
	uint64_t status;

	*ret_trace = !one || spend_read_u64(json_get(one, "status"), &status) < 0 || status > 1;
	if (*ret_trace)
		return 0;
	ret->method = SGN_SIM_METHOD_SIMULATE_V1;
	if (spend_moves_logs(&m, json_get(one, "logs")) < 0 && !ret->failure.n)
		ret->failure = VIEW(UNREADABLE);
	ret->moves.items = m.items;
	ret->moves.n = m.n;
	if (status == 0 && !ret->failure.n) {
		const struct json *error = json_get(one, "error"), *data = json_get(error, "data"),
				  *text = json_get(error, "message");
		ret->failure = spend_read_failure(
			a, text && text->type == JSON_STRING ? text->text : VIEW("execution reverted"),
			data ? data : json_get(one, "returnData"));
		return ret->failure.n ? 0 : -ENOMEM;
	}
	return 0;
}

int spend_read_facts(struct arena *a, const struct spend_read_from *from, struct sgn_facts *ret,
		     bool *ret_trace, struct err *e)
{
	const struct ethrpc_result *said = from->said;
	struct spend_block b;
	struct u256 balance;
	bool any, delegated;

	*ret = (struct sgn_facts){ .loopback = from->loopback };
	*ret_trace = false;
	if (spend_read_u64(said[SPEND_SAY_CHAIN].result, &ret->chain_id) < 0 ||
	    spend_read_block(said[SPEND_SAY_BLOCK].result, &b) < 0 ||
	    read_code(said[SPEND_SAY_OWN_CODE].result, &any, &ret->account_delegated) < 0)
		return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node's answer makes no sense");
	ret->block = b.number;
	ret->block_hash = arena_view(a, (struct view){ (const char *)b.hash, sizeof(b.hash) });
	if (!from->tx)
		return 0;
	if (spend_read_u64(said[SPEND_SAY_NONCE].result, &ret->nonce) < 0 ||
	    spend_read_u256(said[SPEND_SAY_BALANCE].result, &balance) < 0 ||
	    read_code(said[SPEND_SAY_CODE].result, &ret->to_has_code, &delegated) < 0)
		return err_set(e, ERR_UNAVAILABLE, "RPC Error: the node's answer makes no sense");
	ret->balance = amount(a, &balance);
	if (read_fees(a, from, &b, ret, e) < 0 || read_estimate(a, &said[SPEND_SAY_ESTIMATE], &b, ret, e) < 0)
		return -1;
	ret->method = SGN_SIM_METHOD_ESTIMATE;
	return read_simulation(a, from, ret, ret_trace) < 0 || !ret->balance.p || !ret->block_hash.p
		       ? err_sys(e, ERR_INTERNAL, ENOMEM, "facts")
		       : 0;
}

bool spend_read_trace(struct arena *a, const struct ethrpc_result *r, const uint8_t account[ADDRESS_SIZE],
		      struct sgn_facts *facts)
{
	struct spend_moves m = { .arena = a, .account = account };
	const struct json *error = json_get(r->result, "error"), *why = json_get(r->result, "revertReason");

	if (!r->result || r->result->type != JSON_OBJECT)
		return false;
	facts->method = SGN_SIM_METHOD_TRACE;
	if (spend_moves_trace(&m, r->result) < 0 && !facts->failure.n)
		facts->failure = VIEW(UNREADABLE);
	facts->moves.items = m.items;
	facts->moves.n = m.n;
	if (error && error->type == JSON_STRING && !facts->failure.n)
		facts->failure =
			spend_read_failure(a, why && why->type == JSON_STRING ? why->text : error->text,
					   json_get(r->result, "output"));
	return true;
}

/* ---- sending ---- */

static bool says(struct view text, const char *what)
{
	for (size_t i = 0, n = strlen(what); i + n <= text.n; i++)
		if (view_eq_nocase((struct view){ text.p + i, n }, view_of(what)))
			return true;
	return false;
}

enum spend_sent spend_read_sent(const struct ethrpc_result *r)
{
	static const char *const known[] = { "already known", "already imported", "known transaction",
					     "alreadyknown",  "already exists",   "already in mempool" };

	if (r->result)
		return SPEND_SENT_OK;
	for (size_t i = 0; i < ELEMS(known); i++)
		if (says(r->message, known[i]))
			return SPEND_SENT_OK;
	if (says(r->message, "nonce too low") || says(r->message, "nonce is too low") ||
	    says(r->message, "oldnonce"))
		return SPEND_SENT_USED;
	return SPEND_SENT_REFUSED;
}

int spend_read_same(const struct json *j, const struct sgn_item *item)
{
	uint8_t from[ADDRESS_SIZE], to[ADDRESS_SIZE];
	struct u256 value, meant;
	const struct json *input = json_get(j, "input"), *chain = json_get(j, "chainId");
	uint64_t id = item->chain;

	if (!j || j->type == JSON_NULL)
		return 0;
	if (read_bytes(json_get(j, "from"), from, sizeof(from)) < 0 || item->from.n != sizeof(from) ||
	    memcmp(from, item->from.p, sizeof(from)) != 0 ||
	    spend_read_u256(json_get(j, "value"), &value) < 0 || u256_load_view(item->value, &meant) < 0 ||
	    u256_cmp(&value, &meant) != 0 || !input || input->type != JSON_STRING ||
	    input->text.n != 2 + 2 * item->data.n ||
	    (chain && chain->type != JSON_NULL && spend_read_u64(chain, &id) < 0) || id != item->chain)
		return -1;
	const struct json *target = json_get(j, "to");
	if (item->to.n ? read_bytes(target, to, sizeof(to)) < 0 || memcmp(to, item->to.p, item->to.n) != 0
		       : target && target->type != JSON_NULL)
		return -1;
	for (size_t i = 0; i < item->data.n; i++) {
		uint8_t byte;
		if (text_unhex((struct view){ input->text.p + 2 + 2 * i, 2 }, &byte, 1) < 0 ||
		    byte != (uint8_t)item->data.p[i])
			return -1;
	}
	return 1;
}
