/*
 * What a transaction or a signature would spend: its class, and the effects that count against limits.
 *
 * A selector of four bytes is a guess, since collisions are cheap to make. A known one must never relax
 * anything: it adds effects to those of the plain value, and a call that is not exactly what an encoder
 * writes for it is unknown.
 */
#pragma once

#include "address.h"
#include "arena.h"
#include "buf.h"
#include "u256.h"

#define CALL_EFFECTS 64
#define CALL_DEPTH   4 /* wrappers within wrappers */

/* From harmless to dangerous: a wrapper has the class of its worst part. */
enum call_class {
	CALL_NATIVE,         /* value alone */
	CALL_ERC20_TRANSFER, /* also out of our account by transferFrom */
	CALL_APPROVAL,       /* allowances, permits */
	CALL_NFT,
	CALL_WRAPPED, /* wrappers of known calls; wrapping and unwrapping of the native asset */
	CALL_MESSAGE, /* personal_sign */
	CALL_UNKNOWN,
	CALL_CREATION,
	CALL_DANGEROUS, /* operators, ownership, upgrades, delegated calls */
};

struct call_effect {
	uint8_t asset[ADDRESS_SIZE];
	struct u256 amount;
	uint8_t to[ADDRESS_SIZE]; /* recipient or spender */
	bool approval;
	/* `to` is called within a wrapper, or is given control: it is judged also where the amount is 0. */
	bool target;
	bool opaque;    /* a target whose call cannot be read */
	bool unlimited; /* an approval of 2^255 and more, or up to a date */
	/* of an approval */
	uint8_t keeper[ADDRESS_SIZE]; /* the contract that keeps it: the token, or Permit2 */
	bool others; /* it is not our account's, but that of the wrapper that calls the token */
	bool once;   /* for one transfer: no contract keeps it */
};

struct call {
	enum call_class class;
	bool erc20;    /* the outermost call is one of an ERC-20 token, which takes no value */
	bool has_data; /* `to` must be a contract */
	bool crowded;  /* there are effects that have no place, so that nobody can judge it */
	unsigned n;
	struct call_effect effects[CALL_EFFECTS];
	struct buf tree; /* what was decoded, a line for each call, indented; the caller's to free */
};

struct call_input {
	const uint8_t *account; /* ours */
	const uint8_t *to;      /* NULL: a creation */
	struct u256 value;
	struct view data;
};

/* Never fails: what cannot be read is CALL_UNKNOWN. The effects hold the native value, too; those that spend
 * or allow something come first. */
void call_read(const struct call_input *in, struct call *ret);
const char *call_class_name(enum call_class c);
/* An approval of nothing takes one back, which is allowed of anybody. */
static inline bool call_reaches(const struct call_effect *e)
{
	return e->target || !u256_is_zero(&e->amount);
}

/* For call_typed.c. False: there are too many, and the class is CALL_UNKNOWN. */
bool call_add(struct call *c, const struct call_effect *e);

struct typed;
/* The same for typed data. */
void call_read_typed(const struct typed *t, const uint8_t *account, struct call *ret);

struct call_selector {
	uint8_t bytes[4];
	const char *name, *types;
};
/* The table, for the tests: NULL past its end. */
const struct call_selector *call_selector_at(size_t i);
