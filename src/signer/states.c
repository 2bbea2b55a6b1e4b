/*
 * The states of a request: docs/design/signer.md. The table has what follows what; who may ask for a step is
 * decided where it is asked for.
 */
#include "signer.h"

#include "poison.h"

#define S(name)   SGN_STATE_##name
#define BIT(name) (1u << S(name))

static const uint32_t next[] = {
	[S(PENDING)] = BIT(REJECTED) | BIT(EXPIRED) | BIT(CANCELLED) | BIT(APPROVED) | BIT(DENIED),
	[S(APPROVED)] = BIT(SIGNED) | BIT(AWAITING_WALLET) | BIT(CANCELLED) | BIT(EXPIRED) | BIT(FAILED) |
			BIT(REJECTED),
	[S(SIGNED)] = BIT(BROADCAST) | BIT(FAILED) | BIT(DROPPED),
	[S(BROADCAST)] = BIT(INCLUDED) | BIT(REPLACED) | BIT(DROPPED) | BIT(MISMATCH),
	[S(INCLUDED)] = BIT(CONFIRMED) | BIT(REVERTED) | BIT(BROADCAST),
	[S(CONFIRMED)] = BIT(FINAL) | BIT(BROADCAST),
	[S(DROPPED)] = BIT(BROADCAST) | BIT(REPLACED),
	/* A reorganisation takes away the block that ended it. */
	[S(REVERTED)] = BIT(BROADCAST),
	[S(REPLACED)] = BIT(BROADCAST),
	[S(FAILED)] = BIT(BROADCAST),
	[S(AWAITING_WALLET)] = BIT(BROADCAST) | BIT(WALLET_REJECTED) | BIT(WALLET_TIMEOUT) | BIT(MISMATCH),
	/* A wallet that answers late may have sent it all the same. */
	[S(WALLET_TIMEOUT)] = BIT(BROADCAST) | BIT(WALLET_REJECTED),
	[S(MISMATCH)] = 0,
};

static_assert(ELEMS(next) == S(MISMATCH) + 1, "every state has a line");

bool states_may(int32_t from, int32_t to)
{
	return from >= 0 && (size_t)from < ELEMS(next) && to >= 0 && (size_t)to < ELEMS(next) &&
	       (next[from] & 1u << to);
}

bool states_unsigned(int32_t s)
{
	return s == S(REJECTED) || s == S(EXPIRED) || s == S(CANCELLED) || s == S(DENIED);
}

/* Before the signature; and a wallet of somebody else's that was told no. */
bool states_releases(int32_t s)
{
	return states_unsigned(s) || s == S(WALLET_REJECTED);
}

/* What the owner may have settled meanwhile: it counts again. */
bool states_revives(int32_t from, int32_t to)
{
	return to == S(BROADCAST) &&
	       (from == S(WALLET_TIMEOUT) || from == S(DROPPED) || states_ended_in_block(from));
}

bool states_ended_in_block(int32_t s)
{
	return s == S(REVERTED) || s == S(REPLACED) || s == S(FAILED);
}
