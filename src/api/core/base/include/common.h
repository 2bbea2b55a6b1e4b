/*
 * What every room of the core may need: the configuration, what this machine can isolate with, and figures.
 */
#pragma once

#include "arena.h"
#include "config.h"
#include "loop.h"
#include "store.h"

struct core;

const struct config *core_config(const struct core *c);
struct store_stats core_store_stats(const struct core *c);

/* Figures that the rooms count and core_stats shows. */
struct core_stats {
	uint64_t boxes[6]; /* by enum box_status */
	uint64_t creates, create_failures, execs, exec_failures, file_calls;
	uint64_t keeper_calls;
	uint64_t ai_calls, ai_refused, ai_input, ai_output,
		ai_nano;                                      /* usage.c; ai_nano: billionths of a dollar */
	uint64_t egress_allowed, egress_denied;               /* verdicts of the gate */
	uint64_t storage_size, storage_free, storage_beneath; /* bytes, as the keeper said last */
	bool storage_wrong;
	uint64_t create_us_sum;
	uint64_t create_buckets[12]; /* cumulative counts, see create_bounds_us */
};

/* What the keeper said about this machine's walls when it was last asked. */
struct core_posture_part {
	struct view name, detail;
	bool ok, required;
};
/* One kind of walls. */
struct backend {
	struct view name;
	struct core_posture_part *parts;
	size_t n;
	struct view *can; /* names such as "pause": src/box/walls.h */
	size_t n_can;
	bool ok; /* every required part is */
};
struct core_posture {
	struct arena arena;
	struct backend *backends; /* the first is the default */
	size_t n;
	bool known;
};
const struct core_posture *core_posture(const struct core *c);
/* NULL and ERR_INVALID with the names that there are; an empty name is the default. */
const struct backend *core_backend(const struct core *c, struct view name, struct err *e);
bool core_backend_can(const struct backend *b, const char *what);
