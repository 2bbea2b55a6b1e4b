/*
 * Unsigned numbers of 256 bits: amounts. Arithmetic is checked, and an overflow is an error that
 * the caller must look at. Text is strict: digits alone, no sign, no exponent, no spaces.
 */
#pragma once

#include "view.h"

#define U256_BYTES     32
#define U256_TEXT      80  /* of decimal digits, with the NUL */
#define U256_UNITS_MAX 36  /* decimals that a token may have here */
#define U256_UNITS     120 /* of u256_units, with the NUL */

struct u256 {
	uint64_t w[4]; /* the lowest first */
};

#define U256_ZERO ((struct u256){ { 0 } })
#define U256_MAX  ((struct u256){ { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX } })

static inline struct u256 u256_of(uint64_t v)
{
	return (struct u256){ { v, 0, 0, 0 } };
}

struct u256 u256_load(const void *be32); /* 32 bytes, big-endian */
void u256_store(const struct u256 *v, void *be32);
int u256_load_view(struct view v, struct u256 *ret) _must_check_; /* at most 32 bytes; -EINVAL */
int u256_cmp(const struct u256 *a, const struct u256 *b);         /* as memcmp */
bool u256_is_zero(const struct u256 *a);
bool u256_fits_u64(const struct u256 *a);
unsigned u256_bits(const struct u256 *a); /* 0 for 0 */

/* -EOVERFLOW, with *ret untouched. `ret` may be one of the operands. */
int u256_add(const struct u256 *a, const struct u256 *b, struct u256 *ret) _must_check_;
int u256_sub(const struct u256 *a, const struct u256 *b, struct u256 *ret) _must_check_;
int u256_mul(const struct u256 *a, const struct u256 *b, struct u256 *ret) _must_check_;
/* a + b, or the highest number: for sums that are compared with a limit. */
struct u256 u256_add_sat(const struct u256 *a, const struct u256 *b);
/* The remainder is returned; d is not 0. */
uint64_t u256_divmod(struct u256 *a, uint64_t d);

/* [0-9]+ without leading zeros but for "0"; -EINVAL, -EOVERFLOW. */
int u256_parse(struct view v, struct u256 *ret) _must_check_;
/* 0x and 1 to 64 hex digits. */
int u256_parse_hex(struct view v, struct u256 *ret) _must_check_;
/* "0.1" of something with 18 decimals: 10^17. -EINVAL also for more decimals than there are. */
int u256_parse_units(struct view v, unsigned decimals, struct u256 *ret) _must_check_;
void u256_text(const struct u256 *v, char out[U256_TEXT]);
/* The same the other way, without zeros at the end: "0.1", "12". */
void u256_units(const struct u256 *v, unsigned decimals, char out[U256_UNITS]);
