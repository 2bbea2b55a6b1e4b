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

static enum budget_refusal try(struct budget *b, const struct budget_limits *l, struct budget_claim c, int64_t now)
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
	int64_t sunday = at("2026-11-29T23:59:59Z"), monday = at("2026-11-30T00:00:00Z"), december = at("2026-12-01T00:00:00Z");

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_money), cmocka_unit_test(test_windows),
					    cmocka_unit_test(test_rates), cmocka_unit_test(test_tokens) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
