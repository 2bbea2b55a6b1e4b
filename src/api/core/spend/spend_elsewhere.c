/*
 * Wallets elsewhere: a request that was approved here is given to whoever has its account, and what comes
 * back is compared with what was approved. See spends.h.
 */
#include "spends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "spend_moves.h"
#include "text.h"
#include "poison.h"

#define MEMORY (1u * 1024 * 1024)

void spend_elsewhere_add(struct core *c, struct spend_elsewhere *b)
{
	list_append(&c->spends->elsewhere, &b->link);
}

void spend_elsewhere_end(struct spend_entry *x)
{
	struct spend_elsewhere *b = TAKE_PTR(x->elsewhere);

	if (b)
		b->take_back(b, &x->errand);
}

static void report_answered(struct spend_entry *x, const char *note);

/* ---- the errand ---- */

static void put_hex(struct json_out *o, const char *key, struct view v)
{
	struct buf b = BUF_INIT(2 * 1024 * 1024);
	char *p;

	buf_puts(&b, "0x");
	p = buf_reserve(&b, 2 * v.n + 1);
	if (p) {
		text_hex(v.p, v.n, p);
		buf_commit(&b, 2 * v.n);
	}
	if (key)
		json_out_kstr(o, key, buf_view(&b));
	else
		json_out_str(o, buf_view(&b));
	buf_done(&b);
}

static void put_params(struct spend_entry *x, const struct sgn_item *i)
{
	char account[ADDRESS_TEXT], digits[2 * U256_BYTES + 1], value[2 * U256_BYTES + 3];
	struct json_out o;
	size_t skip = 0;

	address_text(x->account, account);
	buf_clear(&x->params);
	json_out_init(&o, &x->params);
	json_out_array(&o);
	if (i->kind == SGN_REQUEST_KIND_TX) {
		text_hex(i->value.p, MIN(i->value.n, (size_t)U256_BYTES), digits);
		while (digits[skip] == '0')
			skip++;
		snprintf(value, sizeof(value), "0x%s", digits[skip] ? digits + skip : "0");
		json_out_object(&o);
		json_out_kz(&o, "from", account);
		if (i->to.n)
			put_hex(&o, "to", i->to);
		json_out_kz(&o, "value", value);
		put_hex(&o, "data", i->data);
		json_out_end(&o, '}');
	} else if (i->kind == SGN_REQUEST_KIND_MESSAGE) {
		put_hex(&o, NULL, i->data);
		json_out_str(&o, view_of(account));
	} else {
		json_out_str(&o, view_of(account));
		json_out_str(&o, i->data);
	}
	json_out_end(&o, ']');
}

static const char *method_of(int32_t kind)
{
	return kind == SGN_REQUEST_KIND_TX      ? "eth_sendTransaction"
	       : kind == SGN_REQUEST_KIND_TYPED ? "eth_signTypedData_v4"
						: "personal_sign";
}

static void offer(struct spend_entry *x)
{
	LIST_EACH (it, &x->core->spends->elsewhere) {
		struct spend_elsewhere *b = CONTAINER(it, struct spend_elsewhere, link);
		if (!b->has(b, x->account, x->chain))
			continue;
		x->errand = (struct spend_errand){ .id = x->id,
						   .chain = x->chain,
						   .method = method_of(x->kind),
						   .params = buf_view(&x->params),
						   .until_ms = x->expires_ms,
						   .again = x->elsewhere_before };
		memcpy(x->errand.account, x->account, ADDRESS_SIZE);
		memcpy(x->errand.digest, x->digest, SPEND_HASH);
		x->elsewhere = b;
		x->elsewhere_before = true;
		b->send(b, &x->errand);
		return;
	}
}

static void on_whole(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;

	x->busy = false;
	if (!i) {
		x->look = true;
		return;
	}
	if (i->state != SGN_STATE_AWAITING_WALLET) {
		x = spend_learn(x->core, i);
		if (x)
			spend_drive(x);
		return;
	}
	put_params(x, i);
	if (i->kind != SGN_REQUEST_KIND_TX && spend_proof_digest(i, x->digest) < 0) {
		spend_later(x, "what is to be signed cannot be read");
		return;
	}
	if (!x->params.bad)
		offer(x);
}

static void spend_elsewhere_take(struct spend_entry *x, const struct spend_answer *w)
{
	x->external = true;
	loop_timer_stop(&x->timer);
	x->answered = *w;
	x->answered.note = NULL;
	x->answered.signature = VIEW_NONE;
	if (w->kind == SPEND_SIGNED) {
		buf_clear(&x->raw);
		(void)!buf_add(&x->raw, w->signature);
	}
	report_answered(x, w->note);
}

void spend_elsewhere_begin(struct spend_entry *x)
{
	struct err e = { 0 };

	x->external = true;
	if (x->elsewhere)
		return;
	if (x->answered.kind) { /* the signer was away: it must not get lost */
		report_answered(x, NULL);
		return;
	}
	if (clock_wall_ms() >= x->expires_ms) {
		spend_elsewhere_take(x, &(struct spend_answer){ .kind = SPEND_TIMEOUT });
		return;
	}
	if (buf_len(&x->params)) {
		offer(x);
		return;
	}
	x->busy = true;
	if (signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(x->id) }, &sgn_item_reply_msg, on_whole, &e) < 0)
		spend_later(x, e.msg);
}

void spend_elsewhere_changed(struct core *c)
{
	for (struct map_node *n = map_first(&c->spends->by_id), *next; n; n = next) {
		struct spend_entry *x = CONTAINER(n, struct spend_entry, by_id);
		next = map_next(&c->spends->by_id, n);
		if (x->state == SGN_STATE_AWAITING_WALLET && !x->elsewhere && !x->busy)
			spend_elsewhere_begin(x);
	}
}

/* ---- the answer ---- */

static int32_t state_after(enum spend_answer_kind kind)
{
	switch (kind) {
	case SPEND_SENT:
	case SPEND_SIGNED:
		return SGN_STATE_BROADCAST;
	case SPEND_REFUSED:
		return SGN_STATE_WALLET_REJECTED;
	case SPEND_FOREIGN:
		return SGN_STATE_MISMATCH;
	case SPEND_TIMEOUT:
	case SPEND_NO_ANSWER:
		break;
	}
	return SGN_STATE_WALLET_TIMEOUT;
}

static void report_answered(struct spend_entry *x, const char *note)
{
	const enum spend_answer_kind kind = x->answered.kind;
	struct sgn_report r = { .state = state_after(kind), .note = note ? view_of(note) : VIEW("") };

	if (kind == SPEND_SENT)
		r.hash = (struct view){ (const char *)x->answered.hash, SPEND_HASH };
	if (kind == SPEND_SIGNED)
		r.signature = buf_view(&x->raw);
	r.note = view_head(r.note, 200);
	if (x->busy) { /* a look at it is under way: this is more */
		signer_cancel(&x->ask);
		x->busy = false;
	}
	spend_report(x, &r);
}

void spend_elsewhere_answer(struct core *c, struct spend_errand *q, const struct spend_answer *w)
{
	struct spend_entry *x = CONTAINER(q, struct spend_entry, errand);

	(void)c;
	x->elsewhere = NULL;
	spend_elsewhere_take(x, w);
}

/* ---- what it has sent ---- */

static void report_mismatch(struct spend_entry *x, const struct json *tx)
{
	struct arena a = ARENA_INIT(MEMORY);
	struct sgn_report r = { .state = SGN_STATE_MISMATCH, .note = VIEW("the wallet sent something else") };

	r.actual.items = spend_read_actual(&a, tx, x->account, &r.actual.n);
	log_warn("transaction %s: the wallet sent something else than was approved", x->id);
	spend_report(x, &r);
	arena_done(&a);
}

static void on_compare(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_entry *x = CONTAINER(a, struct spend_entry, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	const struct json *tx = x->work->call.said[1].result;
	const int same = i ? spend_read_same(tx, i) : 0;

	x->busy = false;
	if (same < 0) {
		report_mismatch(x, tx);
	} else if (same > 0) {
		x->verified = true;
		x->has_nonce = spend_read_u64(json_get(tx, "nonce"), &x->nonce) == 0;
	} else {
		x->look = true;
	}
	spend_call_done(&x->work->call);
	if (same >= 0)
		spend_drive(x);
}

static void on_shown(struct spend_call *k, const struct err *e)
{
	struct spend_entry *x = CONTAINER(k, struct spend_work, call)->entry;
	const bool known = !e && k->said[1].result && k->said[1].result->type == JSON_OBJECT;
	struct err failed = { 0 };
	char why[SPEND_NOTE];

	if (known && signer_call(x->core, &x->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
				 &(struct sgn_get){ .id = view_of(x->id) }, &sgn_item_reply_msg, on_compare,
				 &failed) >= 0)
		return;
	snprintf(why, sizeof(why), "%s",
		 e       ? e->msg
		 : known ? failed.msg
			 : "the node does not know what the wallet has sent");
	spend_call_done(k);
	spend_later(x, why);
	if (!e && !known && spend_is_lost(x)) {
		loop_timer_stop(&x->timer);
		spend_report(x, &(struct sgn_report){ .state = SGN_STATE_DROPPED,
						      .note = VIEW("no node knows it") });
	}
}

void spend_verify(struct spend_entry *x)
{
	char hash[2 * SPEND_HASH + 1];

	if (!spend_ready(x))
		return;
	text_hex(x->tried[x->n_tried - 1].hash, SPEND_HASH, hash);
	x->busy = true;
	spend_call_init(&x->work->call, x->node);
	spend_call_add(&x->work->call, "eth_getTransactionByHash", "[\"0x%s\"]", hash);
	spend_call_go(&x->work->call, on_shown);
}
