/*
 * An answer of a wallet elsewhere to a request that nobody waits for any more: see spend_late.h. What was
 * sent is followed and compared like every transaction, so it ends as final or as a mismatch.
 */
#include "spend_late.h"

#include "core_base.h"
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

static void report(struct spend_late *l, const struct sgn_report *what)
{
	struct sgn_report r = *what;
	struct err e = { 0 };

	r.id = view_of(l->id);
	r.note = VIEW("the wallet answered late");
	if (signer_call(l->core, &l->ask, SGN_SIGNER_TYPE_REPORT, &sgn_report_msg, &r, &sgn_item_reply_msg,
			on_reported, &e) < 0)
		end(l, &e);
}

static void on_proof(void *arg, const struct err *e)
{
	struct spend_late *l = arg;

	l->proof = NULL;
	if (!e) {
		report(l, &(struct sgn_report){ .state = SGN_STATE_BROADCAST,
						.signature = l->answer.signature });
		return;
	}
	log_warn("transaction %s: a late signature of its wallet: %s", l->id, e->msg);
	end(l, e);
}

static void prove(struct spend_late *l, const struct sgn_item *i)
{
	uint8_t digest[SPEND_HASH];

	if (i->from.n != ADDRESS_SIZE || spend_proof_digest(i, digest) < 0) {
		log_warn("transaction %s: a late signature of what cannot be read", l->id);
		end(l, NULL);
		return;
	}
	struct spend_proof *p = spend_proof_start(
		&(struct spend_prover){ l->core, i->agent, i->chain, (const uint8_t *)i->from.p }, digest,
		l->answer.signature, on_proof, l);
	if (p) /* else it is over, and may be gone */
		l->proof = p;
}

static void on_looked(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct spend_late *l = CONTAINER(a, struct spend_late, ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	const bool waits = i && i->state == SGN_STATE_WALLET_TIMEOUT;

	if (!i)
		end(l, e);
	else if (i->state == SGN_STATE_AWAITING_WALLET || i->state == SGN_STATE_APPROVED)
		l->done(l, SPEND_LATE_AWAITED);
	else if (waits && l->answer.kind == SPEND_REFUSED)
		report(l, &(struct sgn_report){ .state = SGN_STATE_WALLET_REJECTED });
	else if (waits && i->kind != SGN_REQUEST_KIND_TX && l->answer.signature.n)
		prove(l, i);
	else if (waits && i->kind == SGN_REQUEST_KIND_TX && l->answer.kind == SPEND_SENT)
		report(l, &(struct sgn_report){ .state = SGN_STATE_BROADCAST,
						.hash = { (const char *)l->answer.hash, SPEND_HASH } });
	else
		end(l, NULL); /* it says nothing that counts */
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
	spend_proof_cancel(l->proof);
	l->proof = NULL;
}
