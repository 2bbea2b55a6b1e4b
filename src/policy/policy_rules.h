/*
 * The rules of an agent or a wallet, as the policy reads them. The zero value of each forbids.
 */
#pragma once

#include "ledger.h"
#include "rule_fields.h"

struct policy_amount {
	bool set;
	struct u256 v;
};

struct policy_limit {
	uint64_t chain;
	uint8_t asset[ADDRESS_SIZE];
	struct u256 per_tx;
	struct policy_amount window[LEDGER_WINDOWS], lifetime;
	bool unlimited_approvals;
	unsigned decimals; /* for people's eyes */
	struct view symbol;
};

struct policy_address {
	uint64_t chain; /* 0: every one */
	uint8_t address[ADDRESS_SIZE];
	bool deny, call;
};

struct policy_typed {
	uint64_t chain;
	uint8_t contract[ADDRESS_SIZE];
	struct view primary;
};

struct policy_window {
	uint32_t days, from, to;
};

struct policy_rules {
	const struct policy_limit
		*limits; /* an agent needs one for each asset; a wallet's absent one does not limit */
	const struct policy_address *addresses;
	const struct policy_typed *typed;
	const struct policy_window *windows;
	size_t n_limits, n_addresses, n_typed, n_windows;
	/* Of a wallet, where an absent one allows no fees; an agent's may be absent, and then do not limit.
	 */
	struct policy_amount fee_per_tx, fee_day;
	struct policy_amount auto_below;
#define FLAG(name, ...)  bool name;
#define COUNT(name, ...) uint32_t name;
#include "rule_fields.def"
#undef FLAG
#undef COUNT
};
