/*
 * Transactions: reading and writing them as bytes, their hashes, their signatures.
 *
 *   type 0  legacy, with the chain in v (EIP-155) or, of old, without
 *   type 1  access list (EIP-2930)
 *   type 2  base fee (EIP-1559)
 *   type 4  sets code (EIP-7702): read, so that it can be told what it is; never written or signed
 *
 * Type 3 (blobs) and all others are refused. Reading is strict: there is one way to write a transaction.
 */
#pragma once

#include "buf.h"
#include "sig.h"

#define TX_DATA_MAX  (128u * 1024)
#define TX_RAW_MAX   (192u * 1024)
#define TX_CHAIN_MAX (UINT64_MAX / 4) /* so that v has room for it */

enum { TX_LEGACY = 0, TX_ACCESS_LIST = 1, TX_BASE_FEE = 2, TX_SET_CODE = 4 };

struct tx {
	uint8_t type;
	bool unprotected; /* legacy without a chain */
	bool creation;    /* there is no `to` */
	bool is_signed;
	uint64_t chain, nonce, gas;
	struct u256 price;    /* types 0 and 1: of gas; else the highest one (max fee) */
	struct u256 priority; /* types 2 and 4 */
	uint8_t to[ADDRESS_SIZE];
	struct u256 value;
	struct view data;
	struct view access;         /* encoded: the items of the list; "" for none */
	struct view authorizations; /* the same, type 4 */
	struct sig sig;
};

/* Views point into `raw`. Signed, or as it is hashed for signing. -EBADMSG, -EOPNOTSUPP (its type). */
int tx_decode(struct view raw, struct tx *ret) _must_check_;
/* Signed when it is. -EINVAL for one that cannot be written (type 4, a chain without a number), or the buf's
 * error. */
int tx_encode(const struct tx *t, struct buf *out) _must_check_;
int tx_sign_hash(const struct tx *t, uint8_t ret[SIG_HASH]) _must_check_;
/* Refuses type 4 and unprotected ones: -EINVAL. */
int tx_sign(struct tx *t, const uint8_t key[SIG_KEY]) _must_check_;
int tx_hash(const struct tx *t, uint8_t ret[SIG_HASH]) _must_check_; /* of a signed one */
int tx_sender(const struct tx *t, uint8_t ret[ADDRESS_SIZE]) _must_check_;
/* What it can cost beyond its value: gas × the highest price. -EOVERFLOW. */
int tx_fee(const struct tx *t, struct u256 *ret) _must_check_;
