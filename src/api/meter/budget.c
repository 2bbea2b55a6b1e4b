/*
 * Counting: see budget.h.
 */
#include "budget.h"

#include "poison.h"

#define DAY_MS 86400000ll

int64_t budget_day(int64_t wall_ms)
{
	return wall_ms / DAY_MS;
}

/* Months since 1970, by the calendar (days to civil, after Howard Hinnant). */
static int64_t month_of(int64_t day)
{
	int64_t z = day + 719468, era = z / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	int64_t month = mp < 10 ? mp + 3 : mp - 9, year = yoe + era * 400 + (month <= 2);

	return year * 12 + month - 1;
}

int64_t budget_number(enum budget_window w, int64_t day)
{
	switch (w) {
	case BUDGET_DAY:
		return day;
	case BUDGET_WEEK:
		return (day + 3) / 7; /* 1 January 1970 was a Thursday */
	case BUDGET_MONTH:
		return month_of(day);
	case BUDGET_WINDOWS:
		break;
	}
	return 0;
}

static void add_spent(struct budget *b, int64_t day, int64_t cost)
{
	for (int w = 0; w < BUDGET_WINDOWS; w++) {
		int64_t number = budget_number((enum budget_window)w, day);
		if (b->windows[w].number < number) {
			b->windows[w].number = number;
			b->windows[w].spent = 0;
			b->windows[w].warned = 0;
			b->windows[w].untold = false;
		}
		if (b->windows[w].number == number)
			b->windows[w].spent += cost;
	}
}

int64_t budget_spent(struct budget *b, enum budget_window w, int64_t wall_ms)
{
	return b->windows[w].number == budget_number(w, budget_day(wall_ms)) ? b->windows[w].spent : 0;
}

void budget_load(struct budget *b, int64_t day, int64_t cost, int64_t wall_ms)
{
	add_spent(b, budget_day(wall_ms), 0);
	add_spent(b, day, cost);
}

/* ---- the last minute ---- */

static void minute(const struct budget *b, int64_t second, uint64_t *ret_requests, uint64_t *ret_tokens,
		   int64_t *ret_oldest)
{
	*ret_requests = *ret_tokens = 0;
	*ret_oldest = second;
	for (int i = 0; i < BUDGET_SLOTS; i++) {
		if (b->slots[i].second <= second - BUDGET_SLOTS ||
		    (!b->slots[i].requests && !b->slots[i].tokens))
			continue;
		*ret_requests += b->slots[i].requests;
		*ret_tokens += b->slots[i].tokens;
		*ret_oldest = MIN(*ret_oldest, b->slots[i].second);
	}
}

static void count(struct budget *b, int64_t wall_ms, uint32_t requests, uint64_t tokens)
{
	int64_t second = wall_ms / 1000;
	__typeof__(&b->slots[0]) s = &b->slots[second % BUDGET_SLOTS];

	if (s->second != second) {
		s->second = second;
		s->requests = 0;
		s->tokens = 0;
	}
	s->requests += requests;
	s->tokens += tokens;
}

/* Seconds of the last minute have places of their own: nothing newer is overwritten. */
void budget_load_minute(struct budget *b, int64_t began_ms, int64_t ended_ms, uint64_t tokens,
			int64_t wall_ms)
{
	int64_t now = wall_ms / 1000;

	if (began_ms / 1000 > now - BUDGET_SLOTS && began_ms / 1000 <= now)
		count(b, began_ms, 1, 0);
	if (ended_ms / 1000 > now - BUDGET_SLOTS && ended_ms / 1000 <= now)
		count(b, ended_ms, 0, tokens);
}

/* ---- calls ---- */

static const char *const window_names[BUDGET_WINDOWS] = { "day", "week", "month" };

const char *budget_window_name(enum budget_window w)
{
	return window_names[w];
}

static int64_t limit_of(const struct budget_limits *l, int w)
{
	const int64_t limits[BUDGET_WINDOWS] = { l->day, l->week, l->month };
	return limits[w];
}

/* The first budget that the claim does not fit into; BUDGET_WINDOWS: it fits. */
static enum budget_window short_of(struct budget *b, const struct budget_limits *l,
				   const struct budget_claim *c, int64_t wall_ms)
{
	int w = 0;

	while (w < BUDGET_WINDOWS &&
	       (!limit_of(l, w) ||
		c->cost <= limit_of(l, w) - budget_spent(b, (enum budget_window)w, wall_ms) - b->reserved))
		w++;
	return (enum budget_window)w;
}

static struct budget_notice notice(struct budget *b, const struct budget_limits *l, enum budget_window w,
				   int64_t wall_ms)
{
	return (struct budget_notice){ .window = w,
				       .limit = limit_of(l, w),
				       .spent = budget_spent(b, w, wall_ms),
				       .reserved = b->reserved };
}

enum budget_refusal budget_check(struct budget *b, const struct budget_limits *l,
				 const struct budget_claim *c, int64_t wall_ms, unsigned *ret_wait,
				 struct err *e)
{
	uint64_t requests, tokens;
	int64_t second = wall_ms / 1000, oldest;

	minute(b, second, &requests, &tokens, &oldest);
	*ret_wait = (unsigned)MAX(oldest + BUDGET_SLOTS - second, 1);
	if (l->parallel && b->parallel >= l->parallel) {
		*ret_wait = 1;
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu calls at a time",
			(unsigned long long)l->parallel);
		return BUDGET_PARALLEL;
	}
	if (l->requests_per_minute && requests >= l->requests_per_minute) {
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu requests per minute",
			(unsigned long long)l->requests_per_minute);
		return BUDGET_REQUESTS;
	}
	if (l->tokens_per_minute &&
	    (tokens >= l->tokens_per_minute || tokens + c->tokens > l->tokens_per_minute)) {
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu tokens per minute",
			(unsigned long long)l->tokens_per_minute);
		return BUDGET_TOKENS;
	}
	enum budget_window w = short_of(b, l, c, wall_ms);
	if (w < BUDGET_WINDOWS) {
		struct budget_notice n = notice(b, l, w, wall_ms);
		err_set(e, ERR_FORBIDDEN,
			"the budget of this %s does not suffice: $%.6f may be needed, $%.6f of $%.6f is left",
			window_names[w], (double)c->cost / 1e9,
			(double)MAX(n.limit - n.spent - n.reserved, 0) / 1e9, (double)n.limit / 1e9);
		return BUDGET_MONEY;
	}
	return BUDGET_OK;
}

void budget_take(struct budget *b, const struct budget_claim *c, int64_t wall_ms)
{
	b->parallel++;
	b->reserved += c->cost;
	count(b, wall_ms, 1, c->tokens);
}

static void release(struct budget *b, const struct budget_claim *c)
{
	b->parallel -= b->parallel > 0;
	b->reserved -= MIN(b->reserved, c->cost);
}

void budget_settle(struct budget *b, const struct budget_claim *c, uint64_t tokens, int64_t cost,
		   int64_t wall_ms)
{
	release(b, c);
	add_spent(b, budget_day(wall_ms), cost);
	count(b, wall_ms, 0, tokens > c->tokens ? tokens - c->tokens : 0);
}

void budget_give_back(struct budget *b, const struct budget_claim *c)
{
	release(b, c);
}

/* ---- telling ---- */

/* The sum at which to warn; 0: never. */
static int64_t threshold(const struct budget_limits *l, int w)
{
	return limit_of(l, w) && l->warn ? MAX((int64_t)((double)limit_of(l, w) * ((double)l->warn / 1e6)), 1)
					 : 0;
}

/* A greater limit is warned of anew, a smaller one is not: it was known. */
static bool is_due(struct budget *b, const struct budget_limits *l, int w, int64_t spent)
{
	return threshold(l, w) && spent >= threshold(l, w) && threshold(l, w) > b->windows[w].warned;
}

bool budget_warns(struct budget *b, const struct budget_limits *l, int64_t wall_ms, struct budget_notice *ret)
{
	for (int w = 0; w < BUDGET_WINDOWS; w++) {
		if (!is_due(b, l, w, budget_spent(b, (enum budget_window)w, wall_ms)))
			continue;
		b->windows[w].warned = threshold(l, w);
		b->windows[w].untold = true;
		*ret = notice(b, l, (enum budget_window)w, wall_ms);
		return true;
	}
	return false;
}

void budget_warned(struct budget *b, const struct budget_limits *l, int64_t wall_ms, int64_t unheard)
{
	for (int w = 0; w < BUDGET_WINDOWS; w++)
		if (is_due(b, l, w, budget_spent(b, (enum budget_window)w, wall_ms) - unheard))
			b->windows[w].warned = threshold(l, w);
}

bool budget_tells(struct budget *b, const struct budget_limits *l, int64_t wall_ms, struct budget_notice *ret)
{
	for (int w = 0; w < BUDGET_WINDOWS; w++) {
		bool now = b->windows[w].untold &&
			   b->windows[w].number == budget_number((enum budget_window)w, budget_day(wall_ms));
		b->windows[w].untold = b->windows[w].untold && !now;
		if (!now || !limit_of(l, w))
			continue;
		*ret = notice(b, l, (enum budget_window)w, wall_ms);
		return true;
	}
	return false;
}

bool budget_refuses(struct budget *b, const struct budget_limits *l, const struct budget_claim *c,
		    int64_t wall_ms, struct budget_notice *ret)
{
	enum budget_window w = short_of(b, l, c, wall_ms);

	if (w == BUDGET_WINDOWS ||
	    (b->refused_limit == limit_of(l, w) && wall_ms - b->refused_ms < BUDGET_AGAIN_MS))
		return false;
	b->refused_limit = limit_of(l, w);
	b->refused_ms = wall_ms;
	*ret = notice(b, l, w, wall_ms);
	return true;
}
