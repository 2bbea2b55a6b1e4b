/*
 * The contract ABI: call data and its arguments, read by a list of types such as
 * "address,(uint256,bytes)[],string".
 *
 * Reading is strict: only what an encoder writes is accepted. Tails stand behind the heads in order,
 * without gaps, overlaps or bytes behind the end; padding is zero; a bool is 0 or 1; the upper bytes of
 * an address and of a small integer are zero (or the sign). Contracts accept more than that, so what is
 * refused here is not decodable and must be treated as unknown.
 */
#pragma once

#include "arena.h"
#include "u256.h"

#define ABI_DEPTH  8    /* tuples and arrays within each other */
#define ABI_VALUES 4096 /* of one call */

enum abi_kind { ABI_WORD, ABI_BYTES, ABI_LIST };

struct abi {
	enum abi_kind kind;
	struct view bytes; /* WORD: its 32 bytes; BYTES: of bytes and string */
	size_t n;          /* LIST: of arrays and tuples */
	struct abi *items;
};

/* -EBADMSG: not encoded so; -ENOMEM: too much; -EINVAL: the types make no sense. The result is a LIST of the
 * arguments, in the arena, with views into `data`. */
int abi_decode(struct arena *a, const char *types, struct view data, struct abi *ret) _must_check_;

/* Of a WORD that is known to be an address; 20 bytes within it. */
static inline const uint8_t *abi_address(const struct abi *v)
{
	return (const uint8_t *)v->bytes.p + 12;
}
static inline struct u256 abi_u256(const struct abi *v)
{
	return u256_load(v->bytes.p);
}
