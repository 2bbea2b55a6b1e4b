/*
 * Accounts of models for the core itself: see money.h.
 */
#pragma once

#include "budget.h"
#include "list.h"
#include "map.h"
#include "meter.h"
#include "money.h"
#include "store_usage.h"

struct box;
struct core;
struct actor;
struct tenant;

#define USAGE_DAYS 400 /* that rows are kept */

struct usage_row {
	struct map_node node;
	struct list order;
	struct store_usage u; /* its views point behind the row, but for the agent */
	char agent[24];
};

struct usage {
	/* A budget is used up or will be soon: of what `scope` says, for this box. */
	void (*on_budget)(struct core *c, bool exceeded, const struct box *b, const char *scope,
			  const struct budget_notice *n);
	/* The id of the agent that runs in this box; empty: none. */
	struct view (*agent_of)(const struct core *c, struct view box);
	struct map accounts; /* by "b:ID" of a box, "t:ID" of a tenant */
	struct map rows;
	struct list order;
	uint64_t last_call;
};

void usage_init(struct core *c);
void usage_done(struct core *c);
int usage_load(struct core *c, const struct store_usage *row) _must_check_;
int usage_load_log(struct core *c, const struct store_ai_log *row) _must_check_; /* before the calls */
int usage_load_call(struct core *c, const struct store_ai_call *row) _must_check_;
void usage_start(struct core *c); /* everything is loaded */
