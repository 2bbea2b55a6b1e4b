/*
 * A rate limit: a burst, and a number of further events each second.
 */
#pragma once

#include "defs.h"

struct rate {
	uint32_t burst, per_s;
	uint32_t left;
	uint64_t at_ms;
};

#define RATE(n, each_second) ((struct rate){ .burst = (n), .per_s = (each_second), .left = (n) })

/* False: nothing is left. */
static inline bool rate_spend(struct rate *b, uint64_t now_ms)
{
	uint64_t back = (now_ms - b->at_ms) * b->per_s / 1000;

	if (back) {
		b->left = (uint32_t)MIN(b->left + back, (uint64_t)b->burst);
		b->at_ms = now_ms;
	}
	if (b->left == 0)
		return false;
	b->left--;
	return true;
}
