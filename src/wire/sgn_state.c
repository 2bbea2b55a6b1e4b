/*
 * See sgn_state.h. "none" is the state of no request: nobody can ask for it by its name.
 */
#include "sgn_state.h"

#include "poison.h"

static const char *const names[] = {
	[SGN_STATE_NONE] = "none",
	[SGN_STATE_DENIED] = "denied",
	[SGN_STATE_PENDING] = "pending",
	[SGN_STATE_REJECTED] = "rejected",
	[SGN_STATE_EXPIRED] = "expired",
	[SGN_STATE_CANCELLED] = "cancelled",
	[SGN_STATE_APPROVED] = "approved",
	[SGN_STATE_SIGNED] = "signed",
	[SGN_STATE_BROADCAST] = "broadcast",
	[SGN_STATE_INCLUDED] = "included",
	[SGN_STATE_CONFIRMED] = "confirmed",
	[SGN_STATE_FINAL] = "final",
	[SGN_STATE_REVERTED] = "reverted",
	[SGN_STATE_REPLACED] = "replaced",
	[SGN_STATE_DROPPED] = "dropped",
	[SGN_STATE_FAILED] = "failed",
	[SGN_STATE_AWAITING_WALLET] = "awaiting_wallet",
	[SGN_STATE_WALLET_REJECTED] = "wallet_rejected",
	[SGN_STATE_WALLET_TIMEOUT] = "wallet_timeout",
	[SGN_STATE_MISMATCH] = "mismatch",
};
static_assert(ELEMS(names) == SGN_STATE_MISMATCH + 1, "every state has a name");

const char *sgn_state_name(int32_t state)
{
	return state >= 0 && (size_t)state < ELEMS(names) ? names[state] : "unknown";
}

bool sgn_state_named(struct view name, int32_t *ret)
{
	for (size_t i = SGN_STATE_NONE + 1; i < ELEMS(names); i++)
		if (view_is(name, names[i])) {
			*ret = (int32_t)i;
			return true;
		}
	return false;
}
