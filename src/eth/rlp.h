/*
 * RLP, Ethereum's encoding of bytes and lists. The reader takes the one canonical form and refuses
 * every other: long forms of short lengths, a single byte below 0x80 with a prefix, lengths with
 * leading zeros, bytes behind the end.
 */
#pragma once

#include "buf.h"
#include "u256.h"

#define RLP_DEPTH 16

struct rlp {
	bool list;
	struct view body;  /* of a list: its items, one behind the other */
	struct view whole; /* with the prefix */
};

/* All of `v` is one item. */
int rlp_only(struct view v, struct rlp *ret) _must_check_;
/* All of `v` is one item, and every item in it is canonical; lists nest at most RLP_DEPTH times. */
int rlp_check(struct view v) _must_check_;

/* The next item is … : each takes it off `rest`. */
int rlp_bytes(struct view *rest, struct view *ret) _must_check_;
int rlp_fixed(struct view *rest, void *ret, size_t n) _must_check_; /* exactly n bytes */
int rlp_list(struct view *rest, struct view *ret) _must_check_;
int rlp_u64(struct view *rest, uint64_t *ret) _must_check_; /* no leading zeros */
int rlp_u256(struct view *rest, struct u256 *ret) _must_check_;

/* Errors stick in the buf. */
void rlp_put_bytes(struct buf *out, struct view v);
void rlp_put_u64(struct buf *out, uint64_t v);
void rlp_put_u256(struct buf *out, const struct u256 *v);
void rlp_put_list(struct buf *out, struct view items); /* that are encoded already */
