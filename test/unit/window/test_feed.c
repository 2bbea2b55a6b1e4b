/*
 * Events that say that requests have changed, and the list of those that wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "feed.h"

#include "poison.h"

static void test_events(void **state)
{
	static const struct {
		const char *text;
		bool changed;
		size_t left;
	} cases[] = {
		{ "", false, 0 },
		{ ": comment\n\n", false, 0 },
		{ "id: 4\nevent: sandbox.created\ndata: {\"type\":\"transaction.pending\"}\n\n", false, 0 },
		{ "id: 5\nevent: transaction.pending\ndata: {}\n\n", true, 0 },
		{ "event:transaction.decided\r\n", true, 0 },
		{ "event: lost\ndata: {}\n\n", true, 0 },
		{ "event: lostx\n", false, 0 },
		{ "event: transaction.pend", false, 23 }, /* the rest is yet to come */
		{ "event: transaction.changed\nevent: x", true, 8 },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct buf b = BUF_INIT(FEED_LINE);

		buf_puts(&b, cases[i].text);
		assert_int_equal(feed_changed(&b), cases[i].changed);
		assert_int_equal(buf_len(&b), cases[i].left);
		buf_done(&b);
	}
}

/* A byte at a time gives the same. */
static void test_pieces(void **state)
{
	static const char text[] = "id: 5\nevent: transaction.pending\ndata: {}\n\n";
	struct buf b = BUF_INIT(FEED_LINE);
	size_t times = 0;

	for (const char *p = text; *p; p++) {
		buf_putc(&b, *p);
		times += feed_changed(&b);
	}
	assert_int_equal(times, 1);
	buf_done(&b);
}

static int update(struct feed *f, const char *text, struct feed_request *new, size_t max, size_t *ret_new)
{
	struct arena a = ARENA_INIT(16u << 20);
	struct json *answer = NULL;
	struct err e = { 0 };
	int n;

	assert_int_equal(json_parse(&a, view_of(text), &answer, &e), 0);
	n = feed_update(f, answer, new, max, ret_new, &e);
	arena_done(&a);
	return n;
}

static void test_list(void **state)
{
	static struct feed f;
	struct feed_request new[2];
	size_t n = 0;

	assert_int_equal(
		update(&f,
		       "{\"transactions\":[{\"id\":\"tx_1\",\"agent\":\"a1\",\"agent_name\":\"dca\","
		       "\"chain\":"
		       "\"eip155:1\",\"chain_name\":null,\"summary\":\"Send\\n0.1 ETH\"}],\"next\":null}",
		       new, ELEMS(new), &n),
		1);
	assert_int_equal(n, 1);
	assert_string_equal(new[0].id, "tx_1");
	assert_string_equal(new[0].agent, "dca");
	assert_string_equal(new[0].chain, "eip155:1");
	assert_string_equal(new[0].summary, "Send 0.1 ETH");

	/* It is known by now; of three new ones, two fit. */
	assert_int_equal(update(&f,
				"{\"transactions\":[{\"id\":\"tx_4\"},{\"id\":\"tx_3\"},{\"id\":\"tx_2\"},{"
				"\"id\":\"tx_1\"},{\"nothing\":1}]}",
				new, ELEMS(new), &n),
			 5);
	assert_int_equal(n, 3);
	assert_string_equal(new[0].id, "tx_4");
	assert_string_equal(new[0].summary, "");

	/* One that was decided and asked for again would be new again. */
	assert_int_equal(update(&f, "{\"transactions\":[]}", new, ELEMS(new), &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(update(&f, "{\"transactions\":[{\"id\":\"tx_1\"}]}", new, ELEMS(new), &n), 1);
	assert_int_equal(n, 1);
}

static void test_bad(void **state)
{
	static const char *const cases[] = { "{}", "[]", "null", "{\"transactions\":{}}",
					     "{\"transactions\":7}" };
	static struct feed f;
	struct feed_request new[1];
	size_t n;

	for (size_t i = 0; i < ELEMS(cases); i++)
		assert_int_equal(update(&f, cases[i], new, ELEMS(new), &n), -1);
}

/* Longer than any field, and more of them than are told apart. */
static void test_large(void **state)
{
	struct buf b = BUF_INIT(16u << 20);
	static struct feed f;
	struct feed_request new[1];
	size_t n = 0;

	buf_puts(&b, "{\"transactions\":[");
	for (unsigned i = 0; i < FEED_MAX + 50; i++) {
		buf_printf(&b, "%s{\"id\":\"tx_%u\",\"summary\":\"", i ? "," : "", i);
		for (unsigned j = 0; j < 400; j++)
			buf_puts(&b, "\xc3\xa4"); /* two bytes each: the cut falls between two of them */
		buf_puts(&b, "\"}");
	}
	buf_puts(&b, "]}");
	buf_putc(&b, '\0');
	assert_int_equal(b.bad, 0);
	assert_int_equal(update(&f, b.p, new, ELEMS(new), &n), FEED_MAX + 50);
	assert_int_equal(n, FEED_MAX);
	assert_int_equal(strlen(new[0].summary), 510);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events), cmocka_unit_test(test_pieces), cmocka_unit_test(test_list),
		cmocka_unit_test(test_bad),    cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
