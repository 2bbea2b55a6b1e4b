/*
 * Amounts, chains and assets as people write them. An amount is never a double: "0.1" is exactly a tenth.
 */
#pragma once

#include "address.h"
#include "arena.h"
#include "err.h"
#include "signer_gen.h"
#include "u256.h"

#define AMOUNT_NATIVE 18 /* decimals */

/* "0.1" of something with these decimals. With AMOUNT_NATIVE also "100gwei", "5wei", "0.1eth". */
int amount_parse(struct view v, unsigned decimals, struct u256 *ret, struct err *e) _must_check_;
/* The same as 32 bytes in the arena. */
int amount_bytes(struct arena *a, struct view v, unsigned decimals, struct view *ret,
		 struct err *e) _must_check_;
/* "PER_TX[/DAY[/WEEK[/MONTH[/LIFETIME]]]]" into the amounts of a limit; an empty part is not limited. */
int amount_limit(struct arena *a, struct view v, unsigned decimals, struct sgn_limit *ret,
		 struct err *e) _must_check_;
/* "eip155:1", or "1" */
int amount_chain(struct view v, uint64_t *ret, struct err *e) _must_check_;
/* 20 bytes in the arena. */
int amount_address(struct arena *a, struct view v, struct view *ret, struct err *e) _must_check_;
/* "[CHAIN@]ADDRESS[:DECIMALS[:SYMBOL]]=AMOUNTS"; chain 0: none was named. */
int amount_token(struct arena *a, const char *text, struct sgn_limit *ret, struct err *e) _must_check_;

/* 32 bytes as "0.1"; "" where they are absent. */
void amount_text(struct view v, unsigned decimals, char out[U256_UNITS]);
bool amount_is_native(struct view asset);
unsigned amount_decimals(const struct sgn_limit *l);
