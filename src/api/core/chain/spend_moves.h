/*
 * What moves between accounts, out of the logs and traces that a node gives. Pure.
 */
#pragma once

#include "address.h"
#include "arena.h"
#include "json.h"
#include "signer_gen.h"

/* Those that touch the account are kept. */
struct spend_moves {
	struct arena *arena;
	const uint8_t *account;
	struct sgn_move *items;
	size_t n;
};
/* An array of logs; transfers of the native asset are logs of 0xeeee…. -EINVAL: not such an array; -E2BIG:
 * more than SPEND_MOVES_MAX. A log that is of no known event is left out. */
int spend_moves_logs(struct spend_moves *m, const struct json *logs) _must_check_;
/* A frame of callTracer, with those within it. */
int spend_moves_trace(struct spend_moves *m, const struct json *frame) _must_check_;
/* Why something failed, in plain ASCII: Error(string) and Panic(uint256) decoded. Never empty but for want of
 * memory. */
struct view spend_read_failure(struct arena *a, struct view message, const struct json *data);
/* What a transaction spends that is not the one that was approved, as far as it can be read. */
struct sgn_effect *spend_read_actual(struct arena *a, const struct json *tx,
				     const uint8_t account[ADDRESS_SIZE], size_t *ret_n);

#define SPEND_ALLOWANCES 8 /* of one request, that are read */
/* Somebody is to be allowed to take an ERC-20 token. */
struct spend_approval {
	uint8_t asset[ADDRESS_SIZE], spender[ADDRESS_SIZE];
};
/* Those in a transaction or typed data that are the token's own; what Permit2 and wrappers allow is kept
 * elsewhere than in the token. */
size_t spend_moves_approvals(int32_t kind, const uint8_t account[ADDRESS_SIZE], struct view to,
			     struct view data, struct spend_approval ret[SPEND_ALLOWANCES]);
/* What a request lets others take of its account. */
struct spend_given {
	uint8_t asset[ADDRESS_SIZE], spender[ADDRESS_SIZE];
	uint8_t keeper[ADDRESS_SIZE]; /* the token, or Permit2 */
};
/* Those that can be taken back. 0 with why: there are none. */
size_t spend_moves_given(const struct sgn_item *i, struct spend_given ret[SPEND_ALLOWANCES],
			 const char **ret_why);
