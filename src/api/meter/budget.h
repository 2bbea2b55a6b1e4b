/*
 * The limits of one box or one tenant for models: calls and tokens per minute, parallel calls, money
 * per day, week and month (in UTC; weeks begin on Monday). Checked and counted in one step: the
 * amounts reserved for calls in progress count as spent.
 */
#pragma once

#include "err.h"
#include "view.h"

/* 0: no limit. Money in nano-dollars. */
struct budget_limits {
	uint64_t requests_per_minute, tokens_per_minute, parallel;
	int64_t day, week, month;
	uint64_t warn; /* millionths of a budget at which to warn */
};

enum budget_window { BUDGET_DAY, BUDGET_WEEK, BUDGET_MONTH, BUDGET_WINDOWS };

#define BUDGET_SLOTS 60

struct budget {
	struct {
		int64_t number; /* of the day, week or month that `spent` belongs to */
		int64_t spent;
		int64_t warned; /* the sum that was warned of in it */
		bool untold;    /* and no client has been told */
	} windows[BUDGET_WINDOWS];
	int64_t reserved;
	int64_t refused_ms, refused_limit; /* when somebody was last told of a refusal, and of which */
	uint64_t parallel;
	struct {
		int64_t second;
		uint32_t requests;
		uint64_t tokens;
	} slots[BUDGET_SLOTS]; /* of the last minute */
};

/* What a call is expected to take. */
struct budget_claim {
	uint64_t tokens; /* of its input */
	int64_t cost;    /* at most */
};

enum budget_refusal { BUDGET_OK, BUDGET_REQUESTS, BUDGET_TOKENS, BUDGET_PARALLEL, BUDGET_MONEY };

/* Whether one more call fits; nothing is counted. *ret_wait: seconds until it may, where it says so by
 * itself. */
enum budget_refusal budget_check(struct budget *b, const struct budget_limits *l,
				 const struct budget_claim *c, int64_t wall_ms, unsigned *ret_wait,
				 struct err *e) _must_check_;
void budget_take(struct budget *b, const struct budget_claim *c, int64_t wall_ms);
/* The call is over. `tokens` are all that it used. */
void budget_settle(struct budget *b, const struct budget_claim *c, uint64_t tokens, int64_t cost,
		   int64_t wall_ms);
/* It never was sent. */
void budget_give_back(struct budget *b, const struct budget_claim *c);
/* From the store: spent on that day (since 1970). */
void budget_load(struct budget *b, int64_t day, int64_t cost, int64_t wall_ms);
/* From the store: a call and what it used, each where it is of the last minute. */
void budget_load_minute(struct budget *b, int64_t began_ms, int64_t ended_ms, uint64_t tokens,
			int64_t wall_ms);
int64_t budget_spent(struct budget *b, enum budget_window w, int64_t wall_ms);

/* Something that somebody should hear of. */
struct budget_notice {
	enum budget_window window;
	int64_t limit, spent, reserved;
};
/* A budget is spent as far as `warn` says: true once for each of its periods and limits. */
bool budget_warns(struct budget *b, const struct budget_limits *l, int64_t wall_ms,
		  struct budget_notice *ret);
/* After loading: who had spent so much, but for the last `unheard`, was warned before. */
void budget_warned(struct budget *b, const struct budget_limits *l, int64_t wall_ms, int64_t unheard);
/* The same for the client of the next answer. */
bool budget_tells(struct budget *b, const struct budget_limits *l, int64_t wall_ms,
		  struct budget_notice *ret);
/* A budget has refused this claim: true once in BUDGET_AGAIN_MS for each limit. */
#define BUDGET_AGAIN_MS (3600 * 1000ll)
bool budget_refuses(struct budget *b, const struct budget_limits *l, const struct budget_claim *c,
		    int64_t wall_ms, struct budget_notice *ret);
const char *budget_window_name(enum budget_window w); /* "day" */

int64_t budget_day(int64_t wall_ms);
/* The number of the window that a day belongs to. */
int64_t budget_number(enum budget_window w, int64_t day);
