/*
 * A person takes back what an agent's transaction allowed somebody to take: a new request of the same agent,
 * approve(spender, 0) of the token, which goes the way of all others. See spend.h.
 */
#include "spends.h"

#include <stdio.h>

#include "core_state.h"
#include "text.h"
#include "poison.h"

#define WORD      (2 * (size_t)U256_BYTES) /* as digits */
#define ASK_TIMES 64                       /* revocations of one transaction that came to nothing */

struct taking {
	struct spend_op op;
	struct spend_call call;
	char agent[AGENT_ID + 1], account[ADDRESS_TEXT], token[ADDRESS_TEXT], chain[MANIFEST_CHAIN_MAX + 1];
	char own[2 * ADDRESS_SIZE + 1], spender[2 * ADDRESS_SIZE + 1];
	uint64_t number; /* of the chain */
	bool in_block;
	unsigned times;
};

static void ask(struct taking *t);

static void end(struct taking *t, const struct err *e)
{
	spend_op_end(&t->op, NULL, e);
}

static bool is_in_block(int32_t state)
{
	return state == SGN_STATE_INCLUDED || state == SGN_STATE_CONFIRMED || state == SGN_STATE_FINAL;
}

/* It may still do what it is for. */
static bool is_under_way(int32_t state)
{
	return state == SGN_STATE_PENDING || state == SGN_STATE_APPROVED || state == SGN_STATE_SIGNED ||
	       state == SGN_STATE_BROADCAST || state == SGN_STATE_AWAITING_WALLET;
}

/* ---- the request ---- */

static void on_asked(void *arg, const void *result, const struct err *e)
{
	struct taking *t = arg;
	const struct sgn_item *i = e ? NULL : ((const struct spend_said *)result)->item;
	struct err why = e ? *e : (struct err){ 0 };
	struct spend_view v;

	t->op.inner = NULL;
	if (i && i->attached && !is_under_way(i->state)) {
		/* An earlier one came to nothing, or the allowance was given anew since. */
		t->times++;
		ask(t);
		return;
	}
	if (i && i->state == SGN_STATE_DENIED)
		err_set(&why, ERR_FORBIDDEN, "%.*s", VIEW_ARG(view_head(i->error, 180)));
	else if (!i && !why.code)
		err_set(&why, ERR_INTERNAL, "the signer's answer makes no sense");
	if (why.code) {
		end(t, &why);
		return;
	}
	spend_view_of(t->op.core, i, &v);
	spend_op_end(&t->op, &v, NULL);
}

static void ask(struct taking *t)
{
	char data[160], key[64], reason[64];
	struct err e = { 0 };
	struct agent *a = agents_find(t->op.core, &t->op.actor, ACT_AGENT_CHANGE, view_of(t->agent), &e);

	snprintf(data, sizeof(data), "0x095ea7b3%024d%s%064d", 0, t->spender, 0); /* approve(spender, 0) */
	snprintf(reason, sizeof(reason), "revoke %s", t->op.id);
	/* No header can have a line break: an agent cannot use this key before. */
	snprintf(key, sizeof(key), "revoke\n%s\n%u", t->op.id, t->times);
	const struct agent_ask m = { .kind = AGENT_ASK_TRANSACTION,
				     .chain = view_of(t->chain),
				     .to = view_of(t->token),
				     .value = VIEW("0"),
				     .data = view_of(data),
				     .from = view_of(t->account),
				     .key = view_of(key),
				     .reason = view_of(reason),
				     .by = view_of(t->op.by),
				     .revokes = true };
	if (!a)
		err_set(&e, ERR_STATE, "the agent is gone");
	else if (t->times >= ASK_TIMES)
		err_set(&e, ERR_STATE, "%d revocations of this transaction came to nothing", ASK_TIMES);
	else
		t->op.inner = spend_ask(a, &m, true, on_asked, t, &e);
	if (!t->op.inner)
		end(t, &e);
}

/* ---- what the spender may take now ---- */

static void on_allowance(struct spend_call *k, const struct err *e)
{
	struct taking *t = CONTAINER(k, struct taking, call);
	const struct json *r = e ? NULL : k->said[1].result;
	struct err why = { 0 };
	struct u256 now = U256_ZERO;

	/* ERC-721 has the same approve(), of a token's number: there, 0 would allow something. */
	if (!e && (!r || r->type != JSON_STRING || r->text.n != 2 + WORD || spend_read_u256(r, &now) < 0))
		err_set(&why, ERR_STATE, "%s does not say what the spender may take: it is no ERC-20 token",
			t->token);
	else if (!e && t->in_block && u256_is_zero(&now))
		err_set(&why, ERR_STATE, "the allowance is 0 already");
	if (why.code)
		end(t, &why);
	else
		ask(t);
}

static void look(struct taking *t)
{
	struct err e = { 0 };
	struct spend_node *n = spend_node_get(t->op.core, view_of(t->agent), t->number, &e);

	if (!n) {
		end(t, &e);
		return;
	}
	spend_call_init(&t->call, n);
	spend_call_add(&t->call, "eth_call", /* allowance(address,address) */
		       "[{\"to\":\"%s\",\"data\":\"0xdd62ed3e%024d%s%024d%s\"},\"latest\"]", t->token, 0,
		       t->own, 0, t->spender);
	spend_call_go(&t->call, on_allowance);
}

static void release(struct spend_op *op)
{
	spend_call_done(&CONTAINER(op, struct taking, op)->call);
}

/* Never from within the call that began it: a node's answer may be there at once. */
static void on_item(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct taking *t = CONTAINER(a, struct taking, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err why = e ? *e : (struct err){ 0 };
	struct spend_approval given;

	if (!i && !e)
		err_set(&why, ERR_INTERNAL, "the signer's answer makes no sense");
	else if (i && i->state != SGN_STATE_SIGNED && i->state != SGN_STATE_BROADCAST &&
		 !is_in_block(i->state))
		err_set(&why, ERR_STATE, "the request is %s: it has allowed nothing",
			spend_state_name(i->state));
	else if (i && !spend_moves_allowance(i, &given))
		err_set(&why, ERR_STATE, "the transaction gives no allowance of a token");
	else if (i && view_to_str(i->agent, t->agent, sizeof(t->agent)) < 0)
		err_set(&why, ERR_STATE, "the agent is gone");
	if (why.code) {
		end(t, &why);
		return;
	}
	t->in_block = is_in_block(i->state);
	t->number = i->chain;
	snprintf(t->chain, sizeof(t->chain), "eip155:%llu", (unsigned long long)i->chain);
	address_text((const uint8_t *)i->from.p, t->account);
	address_text((const uint8_t *)i->to.p, t->token);
	text_hex(i->from.p, ADDRESS_SIZE, t->own);
	text_hex(given.spender, ADDRESS_SIZE, t->spender);
	look(t);
}

struct job *spend_allowance(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			    struct err *e)
{
	struct taking *t = spend_op_new(c, sizeof(*t), a, done, arg, e);

	if (!t)
		return NULL;
	t->op.release = release;
	if (view_to_str(id, t->op.id, sizeof(t->op.id)) < 0)
		err_set(e, ERR_NOT_FOUND, "no such transaction");
	else if (signer_call(c, &t->op.ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg, &(struct sgn_get){ .id = id },
			     &sgn_item_reply_msg, on_item, e) == 0)
		return &t->op.job;
	job_abandon(&t->op.job);
	end(t, e);
	return NULL;
}
