/*
 * From the approval to the chain: fresh facts, the signature, the bytes to a node. See spends.h.
 *
 * The signer has stored the bytes before they are known here, and they are all that is ever sent: whatever is
 * interrupted is done again with the same bytes.
 */
#include "spends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "log.h"
#include "text.h"
#include "poison.h"

bool spend_ready(struct spend_entry *x)
{
	struct err e = { 0 };

	if (!x->node)
		x->node = spend_node_get(x->core, view_of(x->agent), x->chain, &e);
	if (x->node && !x->work) {
		x->work = calloc(1, sizeof(*x->work));
		if (x->work)
			x->work->entry = x;
		else
			err_sys(&e, ERR_INTERNAL, ENOMEM, "a transaction");
	}
	if (!x->work)
		spend_later(x, e.msg);
	return x->work != NULL;
}

/* ---- signing ---- */

static void on_withdrawn(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item_reply *m = reply;

	x->busy = false;
	x->look = true;
	if (!e && m->item) {
		x->look = false;
		x = spend_learn(x->core, m->item);
	}
	if (x)
		spend_drive(x);
}

/* The policy refuses what it allowed before: it is not tried again, and what was reserved is free. */
static void withdraw(struct spend_entry *x, const char *why)
{
	struct sgn_cancel m = { .id = view_of(x->id), .by = VIEW("paddock") };
	struct err e = { 0 };

	x->refused = true;
	spend_note(x, why);
	x->busy = true;
	if (signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_CANCEL, &sgn_cancel_msg, &m, &sgn_item_reply_msg,
			on_withdrawn, &e) < 0)
		spend_later(x, e.msg);
}

static void on_signed(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item_reply *m = reply;

	spend_facts_done(&x->work->facts);
	x->busy = false;
	if (e && e->code == ERR_UNSUPPORTED) { /* the key is elsewhere */
		x->external = true;
		spend_report(x, &(struct sgn_report){ .state = SGN_STATE_AWAITING_WALLET });
		return;
	}
	if (e && e->code == ERR_FORBIDDEN) {
		withdraw(x, e->msg);
		return;
	}
	if (e || !m->item) {
		x->look = true;
		spend_later(x, e ? e->msg : "the signer's answer makes no sense");
		return;
	}
	x = spend_learn(x->core, m->item);
	if (x)
		spend_drive(x);
}

static void on_sign_facts(struct spend_facts *f, const struct err *e)
{
	struct spend_entry *x = CONTAINER(f, struct spend_work, facts)->entry;
	struct sgn_sign m = { .id = view_of(x->id), .facts = &f->facts };
	struct err failed = { 0 };

	if (!e && signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_SIGN, &sgn_sign_msg, &m, &sgn_item_reply_msg,
			      on_signed, &failed) >= 0)
		return;
	char why[192];
	snprintf(why, sizeof(why), "%s", e ? e->msg : failed.msg);
	spend_facts_done(f);
	spend_later(x, why);
}

/* Of what it was asked for: a GET has it all. */
static void on_whole(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;

	x->busy = false;
	if (!i) {
		x->look = true;
		if (e && e->code != ERR_UNAVAILABLE)
			spend_later(x, e->msg);
		return;
	}
	if (i->state != SGN_STATE_APPROVED) {
		x = spend_learn(x->core, i);
		if (x)
			spend_drive(x);
		return;
	}
	x->busy = true;
	spend_facts_get(&x->work->facts, x->node,
			&(struct spend_meaning){ x->account, i->kind, i->to, i->value, i->data },
			on_sign_facts);
}

void spend_sign(struct spend_entry *x)
{
	struct err e = { 0 };

	if (!spend_ready(x))
		return;
	x->busy = true;
	if (signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(x->id) }, &sgn_item_reply_msg, on_whole, &e) < 0)
		spend_later(x, e.msg);
}

/* ---- sending ---- */

static bool is_definite(struct view message)
{
	static const char *const texts[] = { "insufficient funds", "intrinsic gas too low", "gas limit",
					     "oversized data" };

	for (size_t i = 0; i < ELEMS(texts); i++)
		for (size_t k = 0, n = strlen(texts[i]); k + n <= message.n; k++)
			if (view_eq_nocase((struct view){ message.p + k, n }, view_of(texts[i])))
				return true;
	return false;
}

static void sent_well(struct spend_entry *x)
{
	spend_call_done(&x->work->call);
	x->resend = false;
	x->failures = 0;
	x->note[0] = 0;
	if (x->state == SGN_STATE_SIGNED)
		spend_report(x, &(struct sgn_report){ .state = SGN_STATE_BROADCAST,
						      .hash = { (const char *)x->tried[x->n_tried - 1].hash,
								SPEND_HASH } });
	else
		spend_step_over(x);
}

/* Its nonce is used: by one of its own, or by something else. */
static void on_checked(struct spend_call *k, const struct err *e)
{
	struct spend_entry *x = CONTAINER(k, struct spend_work, call)->entry;
	bool there = false;
	char why[SPEND_NOTE];

	snprintf(why, sizeof(why), "%s", e ? e->msg : "");
	for (size_t i = 1; !e && i < k->n; i++)
		there |= k->said[i].result && k->said[i].result->type == JSON_OBJECT;
	if (there) {
		sent_well(x);
		return;
	}
	spend_call_done(k);
	if (e) {
		spend_later(x, why);
		return;
	}
	x->resend = false;
	if (x->state == SGN_STATE_SIGNED) {
		spend_note(x, "RPC Error: the nonce is used by another transaction");
		x->refused = true;
		spend_report(x, &(struct sgn_report){ .state = SGN_STATE_FAILED,
						      .note = VIEW("another transaction has its nonce") });
		return;
	}
	spend_step_over(x); /* following it tells what has its nonce */
}

static void check_used(struct spend_entry *x)
{
	char hash[2 * SPEND_HASH + 1];

	spend_call_done(&x->work->call);
	spend_call_init(&x->work->call, x->node);
	for (size_t i = 0; i < x->n_tried; i++) {
		text_hex(x->tried[i].hash, SPEND_HASH, hash);
		spend_call_add(&x->work->call, "eth_getTransactionByHash", "[\"0x%s\"]", hash);
	}
	spend_call_go(&x->work->call, on_checked);
}

static void on_filled(void *arg, const void *result, const struct err *e)
{
	(void)arg;
	(void)result;
	if (e && e->code != ERR_UNAVAILABLE)
		log_warn("the place of a refused transaction could not be filled: %s", e->msg);
}

/* No node will ever take it, and what comes after it waits for its nonce: nothing takes its place. */
static void fill(struct spend_entry *x)
{
	struct err e = { 0 };

	x->refused = true;
	spend_tell_agents(x, NULL);
	if (x->n_tried && x->tried[x->n_tried - 1].cancels)
		return; /* that was it, and it is not taken either: again later */
	loop_timer_stop(&x->timer);
	if (!spend_again(x->core, x, SGN_SIGN_MODE_CANCEL, on_filled, NULL, &e))
		spend_later(x, x->note);
}

static void on_sent(struct spend_call *k, const struct err *e)
{
	struct spend_entry *x = CONTAINER(k, struct spend_work, call)->entry;
	char why[SPEND_NOTE];

	if (e) {
		snprintf(why, sizeof(why), "%s", e->msg);
		spend_call_done(k);
		spend_later(x, why);
		return;
	}
	const struct ethrpc_result *r = &k->said[1];
	uint8_t hash[SPEND_HASH];
	switch (spend_read_sent(r)) {
	case SPEND_SENT_OK:
		if (r->result && (spend_read_hash(r->result, hash) < 0 ||
				  memcmp(hash, x->tried[x->n_tried - 1].hash, SPEND_HASH) != 0))
			log_warn("transaction %s: the node says that it has another hash", x->id);
		sent_well(x);
		return;
	case SPEND_SENT_USED:
		check_used(x);
		return;
	case SPEND_SENT_NOT:
	case SPEND_SENT_REFUSED:
		break;
	}
	const bool definite = x->state == SGN_STATE_SIGNED && is_definite(r->message);
	snprintf(why, sizeof(why), "RPC Error: %.*s", VIEW_ARG(view_head(r->message, 120)));
	spend_call_done(k);
	spend_later(x, why);
	if (definite)
		fill(x);
}

void spend_send(struct spend_entry *x)
{
	if (!spend_ready(x))
		return;
	struct view raw = buf_view(&x->raw);
	char *hex = raw.n && x->n_tried ? malloc(2 * raw.n + 1) : NULL;
	if (!hex) {
		x->resend = false;
		if (x->state == SGN_STATE_SIGNED)
			spend_later(x, "the signed bytes are not there");
		return;
	}
	text_hex(raw.p, raw.n, hex);
	x->busy = true;
	spend_call_init(&x->work->call, x->node);
	spend_call_add(&x->work->call, "eth_sendRawTransaction", "[\"0x%s\"]", hex);
	free(hex);
	spend_call_go(&x->work->call, on_sent);
}

/* ---- further generations ---- */

struct again {
	struct spend_op op;
	int32_t mode;
	uint32_t generation; /* that is replaced */
};

static void on_again(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct again *g = CONTAINER(a, struct again, op.ask);
	struct core *c = g->op.core;
	const struct sgn_item *item = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct spend_view v;
	struct err failed = { 0 };

	if (!item) {
		err_set(&failed, ERR_INTERNAL, "the signer's answer makes no sense");
		spend_op_end(&g->op, NULL, e ? e : &failed);
		return;
	}
	struct spend_entry *x = spend_learn(c, item);
	if (x) {
		x->resend = true;
		x->stuck = false;
		x->since_head = 0;
		loop_timer_stop(&x->timer);
	}
	spend_view_of(c, item, &v);
	spend_op_end(&g->op, &v, NULL);
	if (x)
		spend_drive(x);
}

static void on_again_facts(struct spend_facts *f, const struct err *e)
{
	struct again *g = CONTAINER(f, struct again, op.facts);
	struct sgn_sign m = {
		.id = view_of(g->op.id), .facts = &f->facts, .mode = g->mode, .generation = g->generation
	};
	struct err failed = { 0 };

	if (e || signer_call(g->op.core, &g->op.ask, SGN_SIGNER_TYPE_SIGN, &sgn_sign_msg, &m,
			     &sgn_item_reply_msg, on_again, &failed) < 0) {
		struct err why = e ? *e : failed;
		spend_op_end(&g->op, NULL, &why);
	}
}

static void on_again_item(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct again *g = CONTAINER(a, struct again, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct spend_node *n = NULL;
	struct err why = { 0 };

	if (e)
		why = *e;
	else if (!i || i->from.n != ADDRESS_SIZE)
		err_set(&why, ERR_INTERNAL, "the signer's answer makes no sense");
	else
		n = spend_node_get(g->op.core, i->agent, i->chain, &why);
	if (!n) {
		spend_op_end(&g->op, NULL, &why);
		return;
	}
	g->generation = i->generation;
	/* Facts about the fees; what it does has been approved. */
	const struct spend_meaning own = { (const uint8_t *)i->from.p, i->kind, i->from, VIEW_NONE,
					   VIEW_NONE };
	spend_facts_get(&g->op.facts, n, &own, on_again_facts);
}

struct job *spend_again(struct core *c, struct spend_entry *x, int32_t mode, job_done *done, void *arg,
			struct err *e)
{
	struct again *g = spend_op_new(c, sizeof(*g), NULL, done, arg, e);

	if (!g)
		return NULL;
	g->mode = mode;
	memcpy(g->op.id, x->id, sizeof(g->op.id));
	if (signer_call(c, &g->op.ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(x->id) }, &sgn_item_reply_msg, on_again_item,
			e) < 0) {
		job_abandon(&g->op.job);
		spend_op_end(&g->op, NULL, e);
		return NULL;
	}
	return &g->op.job;
}
