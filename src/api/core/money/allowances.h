/*
 * Allowances for the core itself: see money.h.
 */
#pragma once

#include "allowance.h"
#include "job.h"
#include "map.h"
#include "money.h"
#include "store_usage.h"

struct box;
struct core;
struct tenant;

/* With the memory that it lives in. */
struct allowance_doc {
	struct arena arena;
	struct view text; /* its one form in JSON */
	struct allowance said;
};

struct allowances {
	struct map by_tenant;
	uint64_t box[ALLOWANCE_PARTS], tenant[ALLOWANCE_PARTS],
		max[ALLOWANCE_PARTS]; /* of the configuration */
};

/* Takes spec.ai over, which was checked when it was wished or is the store's. */
extern const struct box_part allowances_part;

void allowances_init(struct core *c);
int allowances_load(struct core *c, const struct store_ai_limits *row) _must_check_; /* -errno */
void allowances_done(struct core *c);
