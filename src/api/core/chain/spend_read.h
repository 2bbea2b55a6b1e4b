/*
 * What nodes say, read for spending. Pure: no I/O, no state.
 *
 * A node may lie, and the signer counts with that. Here it is only seen to that an answer of the wrong form
 * is an error, and that nothing that is missing is taken for something harmless.
 */
#pragma once

#include "address.h"
#include "ethrpc.h"
#include "signer_gen.h"
#include "u256.h"

#define SPEND_MOVES_MAX 256 /* of one transaction, that touch the account */
#define SPEND_HASH      32

/* What is asked for the facts of a request, in this order. Of a message only the first SPEND_SAY_SHORT. */
enum spend_say {
	SPEND_SAY_CHAIN,
	SPEND_SAY_BLOCK,
	SPEND_SAY_OWN_CODE,
	SPEND_SAY_SHORT,
	SPEND_SAY_NONCE = SPEND_SAY_SHORT,
	SPEND_SAY_BALANCE,
	SPEND_SAY_CODE,
	SPEND_SAY_PRIORITY,
	SPEND_SAY_HISTORY,
	SPEND_SAY_PRICE,
	SPEND_SAY_ESTIMATE,
	SPEND_SAY_SIMULATE,
	SPEND_SAY_ALL,
};

struct spend_block {
	uint64_t number, gas_limit;
	uint8_t hash[SPEND_HASH];
	bool has_base;
	struct u256 base;
};
struct spend_receipt {
	bool failed; /* status 0 */
	uint64_t block;
	uint8_t block_hash[SPEND_HASH];
	struct sgn_move *moves; /* that touch the account */
	size_t n_moves;
};

/* "0x1f". -EINVAL, -ERANGE. */
int spend_read_u256(const struct json *j, struct u256 *ret) _must_check_;
int spend_read_u64(const struct json *j, uint64_t *ret) _must_check_;
int spend_read_hash(const struct json *j, uint8_t ret[SPEND_HASH]) _must_check_;
int spend_read_block(const struct json *j, struct spend_block *ret) _must_check_;
/* 0: there is none; 1: this is it. Of another transaction: -EINVAL. */
int spend_read_receipt(struct arena *a, const struct json *j, const uint8_t hash[SPEND_HASH],
		       const uint8_t account[ADDRESS_SIZE], struct spend_receipt *ret) _must_check_;

/* The facts, all but the moves of a trace. `max_fee`: 0: no ceiling. ERR_UNAVAILABLE: the node is of no use,
 * and another one may be asked. `*ret_trace`: eth_simulateV1 is not there. */
struct spend_read_from {
	const struct ethrpc_result *said; /* SPEND_SAY_ALL of them, or SPEND_SAY_SHORT */
	bool tx, loopback;
	uint8_t account[ADDRESS_SIZE];
	struct u256 max_fee;
};
int spend_read_facts(struct arena *a, const struct spend_read_from *from, struct sgn_facts *ret,
		     bool *ret_trace, struct err *e) _must_check_;
/* debug_traceCall with callTracer and logs. False: it is not there either, and the facts are as they were. */
bool spend_read_trace(struct arena *a, const struct ethrpc_result *r, const uint8_t account[ADDRESS_SIZE],
		      struct sgn_facts *facts);

/* What a node answers to eth_sendRawTransaction. */
enum spend_sent {
	SPEND_SENT_NOT,  /* nobody knows */
	SPEND_SENT_OK,   /* or it had it already */
	SPEND_SENT_USED, /* the nonce is used */
	SPEND_SENT_REFUSED,
};
enum spend_sent spend_read_sent(const struct ethrpc_result *r);

/* The same transaction as was approved; for what a wallet elsewhere has sent. 0: the node does not know it;
 * 1: the same; -1: another. */
int spend_read_same(const struct json *j, const struct sgn_item *item);
