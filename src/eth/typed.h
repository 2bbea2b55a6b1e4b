/*
 * Typed data (EIP-712), from the JSON of eth_signTypedData_v4 to the digest that is signed.
 *
 * Wallets differ about malformed documents, and a signature is worth money, so that only what all of them
 * read in one way is accepted: every member of a struct is there and no other, the domain's type is the one
 * that its members make, integers are whole and (as JSON numbers) at most 2^53 - 1, `uint` and `int` have
 * their size, a fixed array has its length.
 */
#pragma once

#include "address.h"
#include "json.h"
#include "sig.h"

#define TYPED_JSON_MAX (64u * 1024)
#define TYPED_STRUCTS  64
#define TYPED_FIELDS   64 /* of one */

struct typed {
	struct view primary;   /* the name of its type */
	struct view signature; /* of the primary type, with those that it refers to: "Mail(…)Person(…)" */
	const struct json *domain, *message;
	bool has_chain, has_contract;
	uint64_t chain;
	uint8_t contract[ADDRESS_SIZE];
	struct view name; /* of the domain; "" */
	uint8_t domain_hash[SIG_HASH], struct_hash[SIG_HASH], digest[SIG_HASH];
};

/* ERR_INVALID, or what json_parse says. Everything lives in the arena. */
int typed_parse(struct arena *a, struct view text, struct typed *ret, struct err *e) _must_check_;
/* Of a value that typed_parse checked: an unsigned integer as JSON's number or text. */
int typed_uint(const struct json *j, struct u256 *ret) _must_check_;
