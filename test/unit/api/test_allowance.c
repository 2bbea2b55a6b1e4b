/*
 * What was said, what holds, and what is too much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "allowance.h"
#include "poison.h"

static struct arena arena;

static int change(struct allowance *a, const char *text, struct err *e)
{
	struct json *j;

	*e = (struct err){ 0 };
	assert_int_equal(json_parse(&arena, view_of(text), &j, e), 0);
	return allowance_read(&arena, j, a, e);
}

static void says(const struct allowance *a, const char *text)
{
	struct buf out = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &out);
	allowance_put(&o, a);
	assert_int_equal(out.bad, 0);
	buf_putc(&out, 0);
	assert_string_equal(out.p, text);
	buf_done(&out);
}

static void test_said(void **state)
{
	struct allowance a = { 0 };
	struct err e;

	says(&a, "{}");
	assert_int_equal(change(&a, "{\"day\":0.1,\"warn\":0.8,\"parallel\":0,\"models\":[\"gpt-*\"]}", &e),
			 0);
	says(&a, "{\"parallel\":0,\"day\":0.1,\"warn\":0.8,\"models\":[\"gpt-*\"]}");
	assert_int_equal(a.parts[ALLOWANCE_DAY], 100000000);
	assert_int_equal(change(&a, "{\"day\":null,\"models\":[],\"week\":2}", &e), 0);
	says(&a, "{\"parallel\":0,\"week\":2,\"warn\":0.8,\"models\":[]}");
	assert_int_equal(change(&a, "{\"models\":null,\"warn\":null,\"parallel\":null,\"week\":null}", &e),
			 0);
	says(&a, "{}");
}

static void test_lists(void **state)
{
	struct allowance a = { 0 };
	struct err e;

	assert_true(allowance_allows(&a, ALLOWANCE_MODELS, VIEW("x")));
	assert_int_equal(
		change(&a,
		       "{\"models\":[\"gpt-4o\",\"o*-mini\"],\"providers\":[\"openai\"],\"endpoints\":[]}",
		       &e),
		0);
	assert_true(allowance_allows(&a, ALLOWANCE_MODELS, VIEW("o3-mini")));
	assert_false(allowance_allows(&a, ALLOWANCE_MODELS, VIEW("gpt-4o-mini")));
	assert_false(allowance_allows(&a, ALLOWANCE_PROVIDERS, VIEW("anthropic")));
	assert_false(allowance_allows(&a, ALLOWANCE_ENDPOINTS,
				      VIEW("models"))); /* none is said, so none is allowed */
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = { "[]",
					     "{\"day\":-0.1}",
					     "{\"day\":1e300}",
					     "{\"day\":1e-12}",
					     "{\"day\":true}",
					     "{\"warn\":2}",
					     "{\"parallel\":1.5}",
					     "{\"parallel\":100001}",
					     "{\"models\":{}}",
					     "{\"models\":[1]}",
					     "{\"models\":[\"\"]}",
					     "{\"providers\":[\"x\"]}",
					     "{\"Day\":1}" };

	for (size_t i = 0; i < ELEMS(wrong); i++) {
		struct allowance a = { 0 };
		struct err e;
		if (change(&a, wrong[i], &e) >= 0 || e.code != ERR_INVALID)
			fail_msg("taken: %s", wrong[i]);
	}
}

static void test_in_force(void **state)
{
	const uint64_t standard[ALLOWANCE_PARTS] = {
		[ALLOWANCE_DAY] = 50, [ALLOWANCE_PARALLEL] = 9, [ALLOWANCE_WARN] = 900000
	};
	const uint64_t max[ALLOWANCE_PARTS] = { [ALLOWANCE_PARALLEL] = 6, [ALLOWANCE_MONTH] = 1000 };
	const uint64_t tenant[ALLOWANCE_PARTS] = {
		[ALLOWANCE_MONTH] = 500, [ALLOWANCE_REQUESTS] = 10, [ALLOWANCE_WARN] = 100000
	};
	const struct allowance_ceiling ceilings[] = { { "max", max }, { "tenant", tenant } };
	struct allowance own = { .said = { [ALLOWANCE_REQUESTS] = true, [ALLOWANCE_WEEK] = true },
				 .parts = { [ALLOWANCE_REQUESTS] = 4 } };
	struct allowance_force f;
	struct err e = { 0 };

	allowance_in_force("own", &own, standard, ceilings, ELEMS(ceilings), &f);
	assert_int_equal(f.parts[ALLOWANCE_REQUESTS], 4);
	assert_string_equal(f.from[ALLOWANCE_REQUESTS], "own");
	assert_int_equal(f.parts[ALLOWANCE_DAY], 50);
	assert_string_equal(f.from[ALLOWANCE_DAY], "default");
	assert_int_equal(f.parts[ALLOWANCE_PARALLEL], 6);
	assert_string_equal(f.from[ALLOWANCE_PARALLEL], "max");
	assert_int_equal(f.parts[ALLOWANCE_MONTH], 500); /* the lower of two */
	assert_string_equal(f.from[ALLOWANCE_MONTH], "tenant");
	assert_int_equal(f.parts[ALLOWANCE_WARN], 900000);  /* is no limit, and has no ceiling */
	assert_string_equal(f.from[ALLOWANCE_WEEK], "own"); /* said: none */
	assert_int_equal(f.parts[ALLOWANCE_WEEK], 0);
	assert_null(f.from[ALLOWANCE_TOKENS]);
	assert_int_equal(allowance_within(&own, ceilings, ELEMS(ceilings), &e), 0);
	own.parts[ALLOWANCE_REQUESTS] = 10;
	assert_int_equal(allowance_within(&own, ceilings, ELEMS(ceilings), &e), 0);
	own.parts[ALLOWANCE_REQUESTS] = 11;
	assert_true(allowance_within(&own, ceilings, ELEMS(ceilings), &e) < 0);
	own.parts[ALLOWANCE_REQUESTS] = 0; /* no limit is more than any */
	assert_true(allowance_within(&own, ceilings, ELEMS(ceilings), &e) < 0 && e.code == ERR_INVALID);
	allowance_in_force("own", &own, standard, ceilings, ELEMS(ceilings), &f);
	assert_int_equal(f.parts[ALLOWANCE_REQUESTS], 10); /* however it came to be said */
}

/* What is said above holds for who says nothing, and a no for everybody. */
static void test_bodies(void **state)
{
	static const struct {
		int max, tenant, standard, own; /* enum allowance_bodies; own: -1 */
		int want;
		const char *from;
		bool refused;
	} cases[] = {
		{ 0, 0, 0, -1, 0, NULL, false },     { 0, 0, 1, -1, 1, "default", false },
		{ 0, 1, 0, -1, 1, "tenant", false }, { 0, 0, 0, 1, 1, "own", false },
		{ 0, 1, 1, 2, 2, "own", false },     { 0, 2, 1, -1, 2, "tenant", false },
		{ 0, 2, 0, 1, 2, "tenant", true },   { 2, 1, 1, 1, 2, "max", true },
		{ 2, 1, 0, -1, 2, "max", false },    { 2, 2, 0, 2, 2, "own", false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		const uint64_t max[ALLOWANCE_PARTS] = { [ALLOWANCE_BODIES] = (uint64_t)cases[i].max };
		const uint64_t tenant[ALLOWANCE_PARTS] = { [ALLOWANCE_BODIES] = (uint64_t)cases[i].tenant };
		const uint64_t standard[ALLOWANCE_PARTS] = { [ALLOWANCE_BODIES] =
								     (uint64_t)cases[i].standard };
		const struct allowance_ceiling ceilings[] = { { "max", max }, { "tenant", tenant } };
		struct allowance own = { 0 };
		struct allowance_force f;
		struct err e;
		if (cases[i].own > 0)
			assert_int_equal(
				change(&own,
				       cases[i].own == 1 ? "{\"log_bodies\":true}" : "{\"log_bodies\":false}",
				       &e),
				0);
		allowance_in_force("own", &own, standard, ceilings, ELEMS(ceilings), &f);
		assert_int_equal(f.parts[ALLOWANCE_BODIES], cases[i].want);
		if (cases[i].from)
			assert_string_equal(f.from[ALLOWANCE_BODIES], cases[i].from);
		else
			assert_null(f.from[ALLOWANCE_BODIES]);
		e = (struct err){ 0 };
		assert_int_equal(allowance_within(&own, ceilings, ELEMS(ceilings), &e) < 0, cases[i].refused);
	}
	struct allowance a = { 0 };
	struct err e;
	assert_int_equal(change(&a, "{\"log_bodies\":false}", &e), 0);
	says(&a, "{\"log_bodies\":false}");
	assert_true(change(&a, "{\"log_bodies\":1}", &e) < 0);
}

static int begin(void **state)
{
	arena = ARENA_INIT(1u << 20);
	return 0;
}

static int end(void **state)
{
	arena_done(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_said), cmocka_unit_test(test_lists),
					    cmocka_unit_test(test_wrong), cmocka_unit_test(test_in_force),
					    cmocka_unit_test(test_bodies) };
	return cmocka_run_group_tests(tests, begin, end);
}
