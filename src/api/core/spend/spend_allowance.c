/*
 * A person takes back what a request of an agent allowed somebody to take: a new request of the same agent,
 * approve(spender, 0) of the token, or approve(token, spender, 0, 0) of Permit2, which goes the way of all
 * others. What allowed several is taken back one by one: the first of which a node says that it is not 0. See
 * spend.h.
 */
#include "spends.h"

#include <stdio.h>

#include "agents.h"
#include "core_base.h"
#include "text.h"
#include "poison.h"

#define WORD      (2 * (size_t)U256_BYTES) /* as digits */
#define ASK_TIMES 64                       /* revocations of one transaction that came to nothing */

struct taking {
	struct spend_op op;
	struct spend_call call;
	char agent[AGENT_ID + 1], account[ADDRESS_TEXT], chain[CHAIN_ID_MAX + 1];
	char own[2 * ADDRESS_SIZE + 1];
	struct spend_given given[SPEND_ALLOWANCES];
	size_t n, at;    /* of them; which is taken back */
	uint64_t number; /* of the chain */
	bool in_block, is_signature;
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

static bool by_permit2(const struct spend_given *g)
{
	return !address_eq(g->asset, g->keeper);
}

/* ---- the request ---- */

static void make_call(const struct spend_given *g, char *ret, size_t size)
{
	char token[2 * ADDRESS_SIZE + 1], spender[2 * ADDRESS_SIZE + 1];

	text_hex(g->asset, ADDRESS_SIZE, token);
	text_hex(g->spender, ADDRESS_SIZE, spender);
	if (by_permit2(g)) /* approve(token, spender, 0, 0) */
		snprintf(ret, size, "0x87517c45%024d%s%024d%s%0128d", 0, token, 0, spender, 0);
	else /* approve(spender, 0) */
		snprintf(ret, size, "0x095ea7b3%024d%s%064d", 0, spender, 0);
}

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
	const struct spend_given *g = &t->given[t->at];
	char data[300], key[80], reason[64], keeper[ADDRESS_TEXT];
	struct err e = { 0 };
	struct agent *a = agents_find(t->op.core, &t->op.actor, ACT_AGENT_CHANGE, view_of(t->agent), &e);

	make_call(g, data, sizeof(data));
	address_text(g->keeper, keeper);
	snprintf(reason, sizeof(reason), "revoke %s", t->op.id);
	/* No header can have a line break: an agent cannot use this key before. */
	snprintf(key, sizeof(key), "revoke\n%s\n%zu\n%u", t->op.id, t->at, t->times);
	const struct agent_ask m = { .kind = AGENT_ASK_TRANSACTION,
				     .chain = view_of(t->chain),
				     .to = view_of(keeper),
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

/* ERC-721 has the same approve(), of a token's number: there, 0 would allow something. Permit2 says an
 * amount, until when, and a number. False: it is no such answer. */
static bool read_allowance(const struct spend_given *g, const struct json *r, struct u256 *ret)
{
	const struct view word = r && r->type == JSON_STRING ? view_head(r->text, 2 + WORD) : VIEW_NONE;

	return r && r->type == JSON_STRING && r->text.n == 2 + (by_permit2(g) ? 3 : 1) * WORD &&
	       spend_read_u256(&(struct json){ .type = JSON_STRING, .text = word }, ret) == 0;
}

/* The one that is taken back; -1 with why. */
static int choose(struct taking *t, const struct spend_call *k, struct err *why)
{
	bool readable = false;
	char keeper[ADDRESS_TEXT];

	for (size_t i = 0; i < t->n; i++) {
		struct u256 now = U256_ZERO;
		if (!read_allowance(&t->given[i], k->said[1 + i].result, &now))
			continue;
		readable = true;
		if (!u256_is_zero(&now) || (!t->in_block && !t->is_signature))
			return (int)i;
	}
	address_text(t->given[0].keeper, keeper);
	if (!readable)
		return err_set(why, ERR_STATE, "%s does not say what the spender may take: it is %s", keeper,
			       by_permit2(&t->given[0]) ? "not Permit2" : "no ERC-20 token");
	if (t->is_signature)
		return err_set(
			why, ERR_STATE,
			"the allowance is 0: the signature was not used, or it was taken back. Whoever has "
			"it can use it until its deadline");
	return err_set(why, ERR_STATE, "the allowance is 0 already");
}

static void on_allowance(struct spend_call *k, const struct err *e)
{
	struct taking *t = CONTAINER(k, struct taking, call);
	struct err why = { 0 };
	int at = 0;

	/* A node that does not answer hinders nothing where it is known what there is to do. */
	if (e && (t->is_signature || t->n > 1))
		why = *e;
	else if (!e)
		at = choose(t, k, &why);
	if (why.code) {
		end(t, &why);
		return;
	}
	t->at = (size_t)at;
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
	for (size_t i = 0; i < t->n; i++) {
		const struct spend_given *g = &t->given[i];
		char keeper[ADDRESS_TEXT], token[2 * ADDRESS_SIZE + 1], spender[2 * ADDRESS_SIZE + 1];
		address_text(g->keeper, keeper);
		text_hex(g->asset, ADDRESS_SIZE, token);
		text_hex(g->spender, ADDRESS_SIZE, spender);
		if (by_permit2(g)) /* allowance(address,address,address) */
			spend_call_add(
				&t->call, "eth_call",
				"[{\"to\":\"%s\",\"data\":\"0x927da105%024d%s%024d%s%024d%s\"},\"latest\"]",
				keeper, 0, t->own, 0, token, 0, spender);
		else /* allowance(address,address) */
			spend_call_add(&t->call, "eth_call",
				       "[{\"to\":\"%s\",\"data\":\"0xdd62ed3e%024d%s%024d%s\"},\"latest\"]",
				       keeper, 0, t->own, 0, spender);
	}
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
	const char *none = "";

	if (!i && !e)
		err_set(&why, ERR_INTERNAL, "the signer's answer makes no sense");
	else if (i && i->state != SGN_STATE_SIGNED && i->state != SGN_STATE_BROADCAST &&
		 !is_in_block(i->state))
		err_set(&why, ERR_STATE, "the request is %s: it has allowed nothing",
			sgn_state_name(i->state));
	else if (i && (t->n = spend_moves_given(i, t->given, &none)) == 0)
		err_set(&why, ERR_STATE, "%s", none);
	else if (i && view_to_str(i->agent, t->agent, sizeof(t->agent)) < 0)
		err_set(&why, ERR_STATE, "the agent is gone");
	if (why.code) {
		end(t, &why);
		return;
	}
	t->in_block = is_in_block(i->state);
	t->is_signature = i->kind != SGN_REQUEST_KIND_TX;
	t->number = i->chain;
	snprintf(t->chain, sizeof(t->chain), "eip155:%llu", (unsigned long long)i->chain);
	address_text((const uint8_t *)i->from.p, t->account);
	text_hex(i->from.p, ADDRESS_SIZE, t->own);
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
