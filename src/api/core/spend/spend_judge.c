/*
 * What follows from what a node shows of a transaction. Pure: see spends.h.
 */
#include "spends.h"

#include "poison.h"

static uint64_t confirmations(const struct spend_seen *s)
{
	return s->mined && s->head >= s->block ? s->head - s->block + 1 : 0;
}

static bool was_in_block(const struct spend_seen *s)
{
	return s->state == SGN_STATE_INCLUDED || s->state == SGN_STATE_CONFIRMED;
}

static enum spend_next judge_mined(const struct spend_seen *s)
{
	const bool enough = confirmations(s) >= s->needed;

	/* A receipt whose block is not the one at its height is of a fork. */
	if (!s->same_block)
		return was_in_block(s) ? SPEND_NEXT_REORG : SPEND_NEXT_WAIT;
	if (s->cancels)
		return was_in_block(s) ? SPEND_NEXT_REORG : enough ? SPEND_NEXT_REPLACED : SPEND_NEXT_WAIT;
	if (s->state == SGN_STATE_BROADCAST)
		return SPEND_NEXT_INCLUDED;
	if (s->state == SGN_STATE_INCLUDED && enough)
		return s->failed ? SPEND_NEXT_REVERTED : SPEND_NEXT_CONFIRMED;
	if (s->state == SGN_STATE_CONFIRMED && s->finalized && s->block <= s->finalized)
		return SPEND_NEXT_FINAL;
	return SPEND_NEXT_WAIT;
}

bool spend_ended_in_block(int32_t state)
{
	return state == SGN_STATE_REPLACED || state == SGN_STATE_REVERTED || state == SGN_STATE_FAILED;
}

/* A reorganisation may take away what ended it, and then it can be mined after all: until the block is final,
 * or, where no block is ever called so, deep below others. */
static enum spend_next judge_ended(const struct spend_seen *s)
{
	if (s->mined && !s->same_block)
		return SPEND_NEXT_WAIT;
	if (s->mined && !s->cancels && !(s->failed && s->state == SGN_STATE_REVERTED))
		return SPEND_NEXT_BACK;
	bool sure;
	if (s->mined) {
		sure = s->finalized ? s->block <= s->finalized : confirmations(s) >= s->needed + SPEND_DEEP;
	} else if (s->no_nonce) {
		return s->known ? SPEND_NEXT_BACK : SPEND_NEXT_WAIT;
	} else if (s->used) {
		sure = s->used_final ||
		       (s->n_used >= 2 && (s->finalized ? s->finalized >= s->used_head + s->needed
							: s->head >= s->used_head + s->needed + SPEND_DEEP));
	} else {
		return s->n_free >= 2 ? SPEND_NEXT_BACK : SPEND_NEXT_WAIT;
	}
	return sure ? SPEND_NEXT_SURE : SPEND_NEXT_WAIT;
}

enum spend_next spend_judge(const struct spend_seen *s)
{
	if (spend_ended_in_block(s->state))
		return judge_ended(s);
	if (s->mined)
		return judge_mined(s);
	if (was_in_block(s))
		return SPEND_NEXT_REORG;
	/* A node may answer the parts of one question at different heads: once is no proof. */
	if (s->used)
		return s->n_used >= 2 && s->head + 1 >= s->used_head + s->needed ? SPEND_NEXT_REPLACED
										 : SPEND_NEXT_WAIT;
	return s->known ? SPEND_NEXT_WAIT : SPEND_NEXT_RESEND;
}
