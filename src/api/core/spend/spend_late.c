/*
 * An answer of a wallet elsewhere to a request that nobody waits for any more: see spend_late.h. What was
 * sent is followed and compared like every transaction, so it ends as final or as a mismatch.
 */
#include "spend_late.h"

#include "core_state.h"
#include "log.h"
#include "spends.h"
#include "poison.h"

static void end(struct spend_late *l, const struct err *e)
{
	l->done(l, e && e->code == ERR_UNAVAILABLE ? SPEND_LATE_AGAIN : SPEND_LATE_DONE);
}

static void on_reported(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_late *l = CONTAINER(a, struct spend_late, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct core *c = l->core;

	if (e && e->code != ERR_UNAVAILABLE)
		log_warn("transaction %s: a late answer of its wallet: %s", l->id, e->msg);
	struct spend_entry *x = i ? spend_learn(c, i) : NULL;
	end(l, e);
	if (x)
		spend_drive(x);
}

static void report(struct spend_late *l)
{
	const bool sent = l->answer.kind == SPEND_SENT;
	const struct sgn_report r = { .id = view_of(l->id),
				      .state = sent ? SGN_STATE_BROADCAST : SGN_STATE_WALLET_REJECTED,
				      .hash = { (const char *)l->answer.hash, sent ? SPEND_HASH : 0 },
				      .note = VIEW("the wallet answered late") };
	struct err e = { 0 };

	if (signer_call(l->core, &l->ask, SGN_SIGNER_TYPE_REPORT, &sgn_report_msg, &r, &sgn_item_reply_msg,
			on_reported, &e) < 0)
		end(l, &e);
}

static void on_looked(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_late *l = CONTAINER(a, struct spend_late, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;

	if (!i)
		end(l, e);
	else if (i->state == SGN_STATE_AWAITING_WALLET || i->state == SGN_STATE_APPROVED)
		l->done(l, SPEND_LATE_AWAITED);
	else if (i->state == SGN_STATE_WALLET_TIMEOUT &&
		 (l->answer.kind == SPEND_REFUSED ||
		  (l->answer.kind == SPEND_SENT && i->kind == SGN_REQUEST_KIND_TX)))
		report(l);
	else
		end(l, NULL); /* a signature that comes late is nobody's */
}

void spend_late_start(struct spend_late *l)
{
	struct err e = { 0 };

	if (signer_call(l->core, &l->ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(l->id) }, &sgn_item_reply_msg, on_looked, &e) < 0)
		end(l, &e);
}

void spend_late_stop(struct spend_late *l)
{
	signer_cancel(&l->ask);
}
