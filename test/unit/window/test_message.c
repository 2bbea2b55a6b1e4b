/*
 * The lines between paddock-watch and paddock-window.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "message.h"

#include "poison.h"

static void assert_view(struct view a, struct view b)
{
	assert_int_equal(a.n, b.n);
	assert_true(view_eq(a, b));
}

static void test_there_and_back(void **state)
{
	static const struct message all[] = {
		{ .type = MESSAGE_HERE,
		  .url = VIEW("http://127.0.0.1:7080"),
		  .cookie = VIEW("a=b"),
		  .fresh = true },
		{ .type = MESSAGE_HERE,
		  .url = VIEW("https://h"),
		  .ca = VIEW("/a b"),
		  .text = VIEW("no key") },
		{ .type = MESSAGE_AWAY, .text = VIEW("\"quoted\"\nline"), .local = true },
		{ .type = MESSAGE_PENDING, .count = 7 },
		{ .type = MESSAGE_REQUEST,
		  .id = VIEW("tx"),
		  .agent = VIEW("a"),
		  .chain = VIEW("c"),
		  .text = VIEW("s") },
	};

	for (size_t i = 0; i < ELEMS(all); i++) {
		struct arena a = ARENA_INIT(1u << 20);
		struct buf b = BUF_INIT(MESSAGE_MAX);
		struct message got;
		struct err e = { 0 };

		message_put(&b, &all[i]);
		assert_int_equal(b.bad, 0);
		assert_ptr_equal(memchr(b.p, '\n', b.n), b.p + b.n - 1);
		if (message_read(&a, view_head(buf_view(&b), b.n - 1), &got, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(got.type, all[i].type);
		assert_view(got.url, all[i].url);
		assert_view(got.cookie, all[i].cookie);
		assert_view(got.ca, all[i].ca);
		assert_view(got.text, all[i].text);
		assert_view(got.id, all[i].id);
		assert_view(got.agent, all[i].agent);
		assert_view(got.chain, all[i].chain);
		assert_int_equal(got.fresh, all[i].fresh);
		assert_int_equal(got.local, all[i].local);
		assert_int_equal(got.count, all[i].count);
		buf_done(&b);
		arena_done(&a);
	}
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"{}",
		"[]",
		"{\"type\":\"\"}",
		"{\"type\":\"other\"}",
		"{\"type\":\"here\"}",
		"{\"type\":\"pending\",\"count\":-1}",
		"{\"type\":\"pending\",\"more\":1}",
		"{\"type\":\"here\",\"url\":7}",
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct arena a = ARENA_INIT(1u << 20);
		struct message m;
		struct err e = { 0 };

		if (message_read(&a, view_of(cases[i]), &m, &e) == 0)
			fail_msg("%s was accepted", cases[i]);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
