/*
 * The last ten minutes of the installation as a whole, for charts that show the past at once: a sample
 * every TREND_MS, the newest TREND_SAMPLES of them, in memory.
 */
#pragma once

#include "core.h"

#define TREND_MS      5000
#define TREND_SAMPLES 121

struct trend_sample {
	int64_t at_ms;
	struct core_stats stats;
	double cpu;            /* cores that all sandboxes use */
	uint64_t memory_bytes; /* of all sandboxes */
};

/* The oldest first. For who may see the metrics. */
int trend_each(const struct core *c, const struct actor *a,
	       void (*each)(void *arg, const struct trend_sample *s), void *arg, struct err *e) _must_check_;
