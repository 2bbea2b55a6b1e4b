/*
 * What boxes use of models: accounts of boxes and tenants (budget.h), and a row for each
 * day, box, provider and model. A call is reserved before it is sent and settled after
 * it, in memory and in the store; what a crash leaves reserved is taken for spent.
 */
#pragma once

#include "budget.h"
#include "list.h"
#include "map.h"
#include "meter.h"
#include "store_usage.h"

struct box;
struct core;
struct actor;
struct tenant;

#define USAGE_DAYS 400 /* that rows are kept */

struct usage_row {
	struct map_node node;
	struct list order;
	struct store_usage u; /* its views point behind the row */
};

struct usage {
	struct map accounts; /* by "b:ID" of a box, "t:ID" of a tenant */
	struct map rows;
	struct list order;
	uint64_t last_call;
};

/* A call that is under way. */
struct usage_call {
	uint64_t id;
	struct budget_claim claim;
	int64_t began_ms;
	bool bounded; /* there is a budget */
	const char *endpoint;
	char tenant[48], box[24], provider[16], model[132];
};

void usage_init(struct core *c);
void usage_done(struct core *c);
int usage_load(struct core *c, const struct store_usage *row) _must_check_;
int usage_load_log(struct core *c, const struct store_ai_log *row) _must_check_; /* before the calls */
int usage_load_call(struct core *c, const struct store_ai_call *row) _must_check_;
void usage_start(struct core *c); /* everything is loaded */

struct usage_wish {
	const struct box *box;
	const char *provider, *endpoint; /* the endpoint: a constant */
	struct view model;
	struct budget_claim claim;
};
/* Checked and counted in one step, against what holds for the box and its tenant at this moment
 * (allowances.h). ERR_RATE (*ret_wait: seconds) or ERR_FORBIDDEN: the budget. */
int usage_reserve(struct core *c, const struct usage_wish *w, struct usage_call *ret, unsigned *ret_wait,
		  struct err *e) _must_check_;
/* How it ended. */
struct usage_end {
	struct meter_usage used;
	int64_t cost;
	bool estimated;
	int status;
	struct store_ai_bodies bodies;
	const char *finish; /* "complete", "error", "client", "broken", "timeout", "budget" */
};
void usage_settle(struct core *c, const struct usage_call *k, const struct usage_end *end);
/* What the client of this call should hear of its budgets; false: nothing. */
#define USAGE_NOTICE 256
bool usage_notice(struct core *c, const struct usage_call *k, char ret[USAGE_NOTICE]);
void usage_give_back(struct core *c, const struct usage_call *k);

/* Nano-dollars of the window that is now; reserved: for calls that are under way. */
struct usage_spent {
	int64_t windows[BUDGET_WINDOWS], reserved;
	uint64_t parallel;
};
void usage_spent(struct core *c, const struct box *b, struct usage_spent *ret);
void usage_spent_tenant(struct core *c, const struct tenant *t, struct usage_spent *ret);

/* Rows that the actor may see, from a day on; of one box where it is given. */
struct usage_filter {
	int64_t from, to;
	struct view box, model, provider;
};
int usage_each(struct core *c, const struct actor *a, const struct usage_filter *f,
	       void (*each)(void *arg, const struct store_usage *u), void *arg, struct err *e) _must_check_;
