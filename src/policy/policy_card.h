/*
 * What a person is shown of a decision: the limits that it counts against, and what is risky about it. It
 * decides nothing.
 */
#pragma once

#include "address.h"
#include "u256.h"

#define POLICY_LINES  48
#define POLICY_RISKS  16
#define POLICY_ALIKES 4
#define POLICY_SYMBOL 16

enum policy_scope { POLICY_AGENT, POLICY_WALLET };
enum policy_span { POLICY_PER_TX, POLICY_DAY, POLICY_WEEK, POLICY_MONTH, POLICY_LIFETIME };

struct policy_line {
	enum policy_scope scope;
	enum policy_span span;
	uint8_t asset[ADDRESS_SIZE];
	struct u256 before, after, limit; /* without and with the request */
};

enum policy_level { POLICY_NOTE = 1, POLICY_WARNING, POLICY_DANGER };

struct policy_risk {
	enum policy_level level;
	const char *name;
	char text[256];
	bool alike; /* `address` looks like `known` */
	uint8_t address[ADDRESS_SIZE], known[ADDRESS_SIZE];
};

/* An address of the request that has the ends of one that the wallet knows, and is another. */
struct policy_alike {
	uint8_t address[ADDRESS_SIZE], known[ADDRESS_SIZE];
};

/* Both begin and end with the same four hexadecimal digits, which is what people compare. */
bool policy_looks_like(const uint8_t *a, const uint8_t *b);

struct policy_input;
struct policy_decision;
/* After policy_decide, also of a refusal. The worst first. */
unsigned policy_risks(const struct policy_input *in, const struct policy_decision *d,
		      struct policy_risk ret[static POLICY_RISKS]);
