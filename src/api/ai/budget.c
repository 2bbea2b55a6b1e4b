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

static void minute(const struct budget *b, int64_t second, uint64_t *ret_requests, uint64_t *ret_tokens, int64_t *ret_oldest)
{
	*ret_requests = *ret_tokens = 0;
	*ret_oldest = second;
	for (int i = 0; i < BUDGET_SLOTS; i++) {
		if (b->slots[i].second <= second - BUDGET_SLOTS || (!b->slots[i].requests && !b->slots[i].tokens))
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

/* ---- calls ---- */

static const char *const window_names[BUDGET_WINDOWS] = { "day", "week", "month" };

enum budget_refusal budget_check(struct budget *b, const struct budget_limits *l, const struct budget_claim *c,
				 int64_t wall_ms, unsigned *ret_wait, struct err *e)
{
	const int64_t limits[BUDGET_WINDOWS] = { l->day, l->week, l->month };
	uint64_t requests, tokens;
	int64_t second = wall_ms / 1000, oldest;

	minute(b, second, &requests, &tokens, &oldest);
	*ret_wait = (unsigned)MAX(oldest + BUDGET_SLOTS - second, 1);
	if (l->parallel && b->parallel >= l->parallel) {
		*ret_wait = 1;
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu calls at a time", (unsigned long long)l->parallel);
		return BUDGET_PARALLEL;
	}
	if (l->requests_per_minute && requests >= l->requests_per_minute) {
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu requests per minute", (unsigned long long)l->requests_per_minute);
		return BUDGET_REQUESTS;
	}
	if (l->tokens_per_minute && (tokens >= l->tokens_per_minute || tokens + c->tokens > l->tokens_per_minute)) {
		err_set(e, ERR_RATE, "Rate limit exceeded: %llu tokens per minute", (unsigned long long)l->tokens_per_minute);
		return BUDGET_TOKENS;
	}
	for (int w = 0; w < BUDGET_WINDOWS; w++) {
		int64_t left = limits[w] - budget_spent(b, (enum budget_window)w, wall_ms) - b->reserved;
		if (!limits[w] || c->cost <= left)
			continue;
		err_set(e, ERR_FORBIDDEN, "the budget of this %s does not suffice: $%.6f may be needed, $%.6f of $%.6f is left",
			window_names[w], (double)c->cost / 1e9, (double)MAX(left, 0) / 1e9, (double)limits[w] / 1e9);
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

void budget_settle(struct budget *b, const struct budget_claim *c, uint64_t tokens, int64_t cost, int64_t wall_ms)
{
	release(b, c);
	add_spent(b, budget_day(wall_ms), cost);
	count(b, wall_ms, 0, tokens > c->tokens ? tokens - c->tokens : 0);
}

void budget_give_back(struct budget *b, const struct budget_claim *c)
{
	release(b, c);
}
