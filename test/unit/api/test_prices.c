/*
 * etc/prices.json: which line holds for which model. A name that belongs to another model, or to nobody, must
 * not fall under a line that is not its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ai_prices.h"
#include "prices.h"
#include "poison.h"

struct table {
	struct arena arena;
	struct prices prices;
	struct json *doc;
};

static int load(void **state)
{
	static struct table t;
	struct err e = { 0 };

	t = (struct table){ .arena = ARENA_INIT(4u << 20) };
	if (json_parse(&t.arena, (struct view){ ai_prices, ai_prices_size }, &t.doc, &e) < 0 ||
	    prices_read(&t.arena, t.doc, &t.prices, &e) < 0) {
		print_error("%s\n", e.msg);
		return -1;
	}
	*state = &t;
	return 0;
}

static int unload(void **state)
{
	struct table *t = *state;
	arena_done(&t->arena);
	return 0;
}

static const struct price *find(const struct table *t, const char *model)
{
	struct view m = view_of(model);
	return prices_find(&t->prices, view_starts(m, "claude") ? ASK_ANTHROPIC : ASK_OPENAI, m);
}

static void is(const struct table *t, const char *model, double input, double output)
{
	const struct price *p = find(t, model);

	if (!p || p->usual.input != (int64_t)(input * 1000 + 0.5) ||
	    p->usual.output != (int64_t)(output * 1000 + 0.5))
		fail_msg("%s has another price, or none", model);
}

static void test_which_line(void **state)
{
	const struct table *t = *state;

	is(t, "gpt-4o", 2.5, 10);
	is(t, "gpt-4o-2024-11-20", 2.5, 10);
	is(t, "gpt-4o-mini", 0.15, 0.6);
	is(t, "gpt-4o-mini-2024-07-18", 0.15, 0.6);
	is(t, "gpt-4.1", 2, 8);
	is(t, "gpt-4.1-nano-2025-04-14", 0.1, 0.4);
	is(t, "gpt-5", 1.25, 10);
	is(t, "gpt-5-nano-2025-08-07", 0.05, 0.4);
	is(t, "gpt-5.4", 2.5, 15);
	is(t, "gpt-5.4-mini", 0.75, 4.5);
	is(t, "o3", 2, 8);
	is(t, "o3-mini", 1.1, 4.4);
	is(t, "claude-opus-5", 5, 25);
	is(t, "claude-opus-5-5", 4, 20);
	is(t, "claude-opus-4-20250514", 15, 75);
	is(t, "claude-opus-4-1-20250805", 15, 75);
	is(t, "claude-opus-4-5-20251101", 5, 25);
	is(t, "claude-sonnet-4-20250514", 3, 15);
	is(t, "claude-sonnet-5", 2, 10);
	is(t, "claude-haiku-4-5-20251001", 1, 5);
	is(t, "claude-3-5-haiku-20241022", 0.8, 4);
	is(t, "claude-3-haiku-20240307", 0.25, 1.25);
}

static void test_nobody_knows(void **state)
{
	static const char *const models[] = { "gpt-4o-audio-preview",
					      "gpt-4o-2024-05-13",
					      "gpt-4o-mini-tts",
					      "gpt-5-pro",
					      "gpt-5.5",
					      "gpt-5.4-pro",
					      "gpt-5-codex",
					      "gpt-4.1x",
					      "gpt-4-32k",
					      "o3-pro",
					      "o1-pro",
					      "o3-deep-research",
					      "gpt-6",
					      "gpt",
					      "",
					      "claude-opus-6",
					      "claude-opus-4-9",
					      "claude-3-5-sonnet",
					      "claude-haiku-5-5",
					      "claude-fable-5-1",
					      "text-embedding-3-huge",
					      "xgpt-4o" };
	const struct table *t = *state;

	for (size_t i = 0; i < ELEMS(models); i++)
		if (find(t, models[i]))
			fail_msg("%s has a price", models[i]);
	/* A provider's names mean nothing with the other. */
	assert_null(prices_find(&t->prices, ASK_ANTHROPIC, VIEW("gpt-4o")));
	assert_null(prices_find(&t->prices, ASK_OPENAI, VIEW("claude-opus-5")));
}

/* No line is hidden by one before it, and every line says where it comes from. */
static void test_lines(void **state)
{
	const struct table *t = *state;
	const struct json *rows = json_get(t->doc, "prices"), *sources = json_get(t->doc, "sources");

	assert_non_null(json_get(t->doc, "as_of"));
	assert_int_equal(rows->n, t->prices.n);
	for (size_t i = 0; i < t->prices.n; i++) {
		const struct price *p = &t->prices.items[i];
		const struct json *source = json_get(&rows->items[i], "source");
		char name[160];
		struct view rest, first = source ? view_split(source->text, ',', &rest) : VIEW_NONE;

		assert_true(first.n && view_to_str(first, name, sizeof(name)) >= 0);
		assert_non_null(json_get(sources, name));
		for (size_t k = 0; k < i; k++)
			if (t->prices.items[k].provider == p->provider &&
			    ask_fits(t->prices.items[k].model, p->model))
				fail_msg("%.*s is hidden by %.*s", VIEW_ARG(p->model),
					 VIEW_ARG(t->prices.items[k].model));
		assert_true(p->usual.input > 0 && p->usual.cache_read <= p->usual.input &&
			    p->usual.cache_write >= p->usual.input);
		assert_true(!p->long_above ||
			    (p->longer.input > p->usual.input && p->longer.output > p->usual.output));
	}
}

static void test_long(void **state)
{
	const struct price *p = find(*state, "gpt-5.4");

	assert_int_equal(prices_cost(p, &(struct meter_usage){ .input = 272000, .output = 10 }),
			 272000 * 2500ll + 10 * 15000);
	assert_int_equal(prices_cost(p, &(struct meter_usage){ .input = 272001, .output = 10 }),
			 272001 * 5000ll + 10 * 22500);
	/* What comes from a cache is input, too. */
	assert_int_equal(prices_cost(p, &(struct meter_usage){ .input = 1, .cache_read = 272000 }),
			 272001 * 5000ll);
	assert_int_equal(prices_most(p, 300000, 10), 300000 * 5000ll + 10 * 22500);
	p = find(*state, "claude-opus-5");
	assert_int_equal(prices_most(p, 100, 10), 100 * 10000 + 10 * 25000);
}

static void test_reading(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"{\"prices\":{}}",
		"[{\"provider\":\"openai\",\"model\":\"x\",\"input\":1,\"long\":{\"input\":2,\"output\":2}}]",
		"[{\"provider\":\"openai\",\"model\":\"x\",\"input\":1,\"long\":{\"above\":5,\"input\":2}}]",
		"[{\"provider\":\"openai\",\"model\":\"x\",\"input\":-1}]",
		"[{\"provider\":\"openai\",\"model\":\"x\",\"input\":1,\"colour\":1}]",
	};
	struct arena a = ARENA_INIT(1u << 20);
	struct json *j;

	for (size_t i = 0; i < ELEMS(wrong); i++) {
		struct prices p = { 0 };
		struct err e = { 0 };
		assert_int_equal(json_parse(&a, view_of(wrong[i]), &j, &e), 0);
		if (prices_read(&a, j, &p, &e) >= 0)
			fail_msg("taken: %s", wrong[i]);
		assert_int_equal(e.code, ERR_INVALID);
	}
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_which_line),
					    cmocka_unit_test(test_nobody_knows), cmocka_unit_test(test_lines),
					    cmocka_unit_test(test_long), cmocka_unit_test(test_reading) };
	return cmocka_run_group_tests(tests, load, unload);
}
