/*
 * Shared by the files of the policy: see policy.h.
 */
#pragma once

#include "policy.h"

#define POLICY_AMOUNT 200

struct policy_run {
	const struct policy_input *in;
	struct policy_decision *d;
};

/* One line of the trace; false if it did not pass. */
bool policy_check(struct policy_run *p, uint8_t step, const char *name, bool passed, const char *fmt, ...)
	_printf_(5, 6);
/* The sentence for the agent; returns false, so that a check can end with it. */
bool policy_refuse(struct policy_run *p, const char *fmt, ...) _printf_(2, 3);
/* Of an asset: "0.5 (native)", "500 of 0x…", or, where the rules have a name for it, "5 USDC of 0x…". */
void policy_amount_text(const struct policy_rules *r, uint64_t chain, const uint8_t *asset,
			const struct u256 *amount, char out[static POLICY_AMOUNT]);
static inline bool in_first(const struct policy_input *in, unsigned effect)
{
	return in->first >> effect & 1;
}

/* policy.c: by the agent's rules or the wallet's */
bool policy_denies(const struct policy_run *p, const uint8_t *address);

/* policy_limits.c */
bool policy_count(struct policy_run *p);      /* what the request says, as one amount for each asset */
bool policy_allowances(struct policy_run *p); /* step 9 */
bool policy_windows(struct policy_run *p);    /* steps 10 and 11 */
bool policy_fees(struct policy_run *p);       /* step 12 */
bool policy_simulation(struct policy_run *p); /* step 13: counts again with what was seen */
