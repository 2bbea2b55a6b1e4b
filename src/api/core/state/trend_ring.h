/*
 * The samples of trend.c, for the core itself.
 */
#pragma once

#include "core.h"

struct trend {
	struct core *core;
	struct trend_sample samples[TREND_SAMPLES];
	size_t n, head;
	struct loop_timer timer;
};

void trend_start(struct core *c); /* everything is loaded */
void trend_stop(struct core *c);
