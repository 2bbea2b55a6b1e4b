/*
 * Limits and budgets: what is reserved counts, windows end, nothing is counted twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "budget.h"
#include "clock.h"
#include "poison.h"

static int64_t at(const char *when)
{
	int64_t ms = 0;
	assert_int_equal(clock_from_rfc3339(view_of(when), &ms), 0);
	return ms;
}

static enum budget_refusal try(struct budget *b, const struct budget_limits *l, struct budget_claim c,
			       int64_t now)
{
	struct err e = { 0 };
	unsigned wait;
	enum budget_refusal r = budget_check(b, l, &c, now, &wait, &e);

	if (r == BUDGET_OK)
		budget_take(b, &c, now);
	else
		assert_true(e.msg[0] && wait >= 1 && wait <= 60);
	return r;
}

static void test_money(void **state)
{
	struct budget_limits l = { .day = 100 };
	struct budget b = { 0 };
	int64_t now = at("2026-11-15T10:00:00Z");
	struct budget_claim c = { 0, 60 };

	assert_int_equal(try(&b, &l, c, now), BUDGET_OK);
	assert_int_equal(try(&b, &l, c, now), BUDGET_MONEY); /* the first is under way */
	budget_settle(&b, &c, 5, 40, now);
	assert_int_equal(try(&b, &l, c, now), BUDGET_OK); /* 40 + 60 */
	assert_int_equal(try(&b, &l, (struct budget_claim){ 0, 1 }, now), BUDGET_MONEY);
	budget_give_back(&b, &c);
	assert_int_equal(budget_spent(&b, BUDGET_DAY, now), 40);
	assert_int_equal(try(&b, &l, (struct budget_claim){ 0, 100 }, at("2026-11-16T00:00:00Z")), BUDGET_OK);
}

static void test_windows(void **state)
{
	struct budget_limits week = { .week = 10 }, month = { .month = 10 };
	struct budget b = { 0 };
	struct budget_claim c = { 0, 10 };
	int64_t sunday = at("2026-11-29T23:59:59Z"), monday = at("2026-11-30T00:00:00Z"),
		december = at("2026-12-01T00:00:00Z");

	budget_load(&b, budget_day(sunday), 10, sunday);
	assert_int_equal(try(&b, &week, c, sunday), BUDGET_MONEY);
	assert_int_equal(try(&b, &month, c, monday), BUDGET_MONEY);
	assert_int_equal(try(&b, &week, c, monday), BUDGET_OK);
	budget_give_back(&b, &c);
	assert_int_equal(try(&b, &month, c, december), BUDGET_OK);
	assert_int_equal(budget_number(BUDGET_MONTH, budget_day(at("2024-02-29T12:00:00Z"))), 2024 * 12 + 1);
	assert_int_equal(budget_number(BUDGET_MONTH, budget_day(at("2024-03-01T00:00:00Z"))), 2024 * 12 + 2);
	/* Rows of the store come in any order; old ones do not count. */
	struct budget other = { 0 };
	budget_load(&other, budget_day(monday), 3, december);
	budget_load(&other, budget_day(december), 4, december);
	budget_load(&other, budget_day(sunday), 5, december);
	assert_int_equal(budget_spent(&other, BUDGET_DAY, december), 4);
	assert_int_equal(budget_spent(&other, BUDGET_WEEK, december), 7);
	assert_int_equal(budget_spent(&other, BUDGET_MONTH, december), 4);
}

static void test_rates(void **state)
{
	struct budget_limits l = { .requests_per_minute = 2, .parallel = 3 };
	struct budget b = { 0 };
	int64_t now = at("2026-11-15T10:00:30Z");
	struct budget_claim c = { 10, 0 };

	assert_int_equal(try(&b, &l, c, now), BUDGET_OK);
	assert_int_equal(try(&b, &l, c, now + 10000), BUDGET_OK);
	assert_int_equal(try(&b, &l, c, now + 59000), BUDGET_REQUESTS);
	assert_int_equal(try(&b, &l, c, now + 60000), BUDGET_OK);
	l.requests_per_minute = 0;
	assert_int_equal(try(&b, &l, c, now + 60000), BUDGET_PARALLEL);
	budget_settle(&b, &c, 10, 0, now + 60000);
	assert_int_equal(try(&b, &l, c, now + 60000), BUDGET_OK);
}

static void test_tokens(void **state)
{
	struct budget_limits l = { .tokens_per_minute = 100 };
	struct budget b = { 0 };
	int64_t now = at("2026-11-15T10:00:30Z");
	struct budget_claim c = { 60, 0 };

	assert_int_equal(try(&b, &l, (struct budget_claim){ 101, 0 }, now), BUDGET_TOKENS);
	assert_int_equal(try(&b, &l, c, now), BUDGET_OK);
	assert_int_equal(try(&b, &l, c, now), BUDGET_TOKENS);
	assert_int_equal(try(&b, &l, (struct budget_claim){ 40, 0 }, now), BUDGET_OK);
	budget_settle(&b, &c, 500, 0, now + 1000); /* the answer was long */
	assert_int_equal(try(&b, &l, (struct budget_claim){ 1, 0 }, now + 60000), BUDGET_TOKENS);
	assert_int_equal(try(&b, &l, (struct budget_claim){ 1, 0 }, now + 61000), BUDGET_OK);
}

static void test_warnings(void **state)
{
	struct budget_limits l = { .day = 100, .week = 1000, .warn = 800000 };
	struct budget b = { 0 };
	struct budget_notice n;
	struct budget_claim c = { 0, 10 };
	int64_t now = at("2026-11-15T10:00:00Z");

	budget_load(&b, budget_day(now), 79, now);
	assert_false(budget_warns(&b, &l, now, &n));
	budget_take(&b, &c, now);
	assert_false(budget_warns(&b, &l, now, &n)); /* what is reserved is not spent */
	budget_settle(&b, &c, 0, 1, now);
	assert_true(budget_warns(&b, &l, now, &n));
	assert_int_equal(n.window, BUDGET_DAY);
	assert_int_equal(n.spent, 80);
	assert_false(budget_warns(&b, &l, now, &n));
	assert_true(budget_tells(&b, &l, now, &n));
	assert_false(budget_tells(&b, &l, now, &n));
	/* A smaller budget is no news, a greater one is. */
	l.day = 90;
	assert_false(budget_warns(&b, &l, now, &n));
	l.day = 200;
	assert_false(budget_warns(&b, &l, now, &n));
	budget_load(&b, budget_day(now), 80, now);
	assert_true(budget_warns(&b, &l, now, &n));
	/* The next day begins anew; what nobody was told of yesterday is not told today. */
	int64_t next = at("2026-11-16T10:00:00Z");
	budget_load(&b, budget_day(next), 160, next);
	assert_true(budget_warns(&b, &l, next, &n));
	assert_int_equal(n.spent, 160);
	/* After a restart: who had passed it was warned. */
	struct budget same = { 0 }, cut = { 0 };
	budget_load(&same, budget_day(now), 160, now);
	budget_warned(&same, &l, now, 0);
	assert_false(budget_warns(&same, &l, now, &n));
	budget_load(&cut, budget_day(now), 160, now);
	budget_warned(&cut, &l, now, 1); /* but for what was under way */
	assert_true(budget_warns(&cut, &l, now, &n));
}

static void test_refusals_are_told_of(void **state)
{
	struct budget_limits l = { .day = 100, .month = 150 };
	struct budget b = { 0 };
	struct budget_notice n;
	struct budget_claim c = { 0, 101 };
	int64_t now = at("2026-11-15T10:00:00Z");

	assert_true(budget_refuses(&b, &l, &c, now, &n));
	assert_int_equal(n.window, BUDGET_DAY);
	assert_false(budget_refuses(&b, &l, &c, now + BUDGET_AGAIN_MS - 1, &n));
	assert_true(budget_refuses(&b, &l, &c, now + BUDGET_AGAIN_MS, &n));
	l.day = 99;
	assert_true(budget_refuses(&b, &l, &c, now + BUDGET_AGAIN_MS, &n));
	c.cost = 99;
	assert_false(budget_refuses(&b, &l, &c, now, &n));
}

static void test_minute_of_before(void **state)
{
	struct budget_limits l = { .requests_per_minute = 3, .tokens_per_minute = 100 };
	struct budget b = { 0 };
	int64_t now = at("2026-11-15T10:00:30Z");
	struct budget_claim c = { 1, 0 };

	budget_load_minute(&b, now - 61000, now - 59000, 40, now); /* its tokens are of this minute */
	budget_load_minute(&b, now - 5000, now - 4000, 10, now);
	budget_load_minute(&b, now - 120000, now - 100000, 1000, now);
	budget_load_minute(&b, now + 5000, now + 5000, 1000, now); /* by a clock that was wrong */
	assert_int_equal(try(&b, &l, (struct budget_claim){ 51, 0 }, now), BUDGET_TOKENS);
	assert_int_equal(try(&b, &l, (struct budget_claim){ 50, 0 }, now), BUDGET_OK);
	l.tokens_per_minute = 0;
	assert_int_equal(try(&b, &l, c, now), BUDGET_OK);
	assert_int_equal(try(&b, &l, c, now), BUDGET_REQUESTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_money),           cmocka_unit_test(test_windows),
		cmocka_unit_test(test_rates),           cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_warnings),        cmocka_unit_test(test_refusals_are_told_of),
		cmocka_unit_test(test_minute_of_before)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
