/*
 * What reaches the terminal, and how path segments reach the URL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "session.h"
#include "show.h"

#include "poison.h"

static void clean(struct view in, const char *expected)
{
	struct buf b = BUF_INIT(1024);

	assert_int_equal(show_clean(&b, in), 0);
	buf_putc(&b, '\0');
	assert_string_equal(b.p, expected);
	buf_done(&b);
}

static void test_clean(void **state)
{
	clean(VIEW("plain"), "plain");
	clean(VIEW("a\x1b[31mred\n\t\x7f"), "a?[31mred???");
	clean(VIEW("caf\xc3\xa9"), "caf\xc3\xa9");
	clean(VIEW("\xe2\x80\xae"
		   "a\xe2\x80\xa8\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f\xe2\x82\xac\xe2\x80\xa6\xe2\x80"),
	      "?a????\xe2\x82\xac\xe2\x80\xa6\xe2\x80");
	clean(VIEW("\xc2\x9b"
		   "31m\xc2\xa0\xc2"),
	      "?31m\xc2\xa0\xc2");
	clean(VIEW("a\0b"), "a?b");
}

static void segment(const char *in, const char *expected)
{
	struct buf b = BUF_INIT(1024);
	struct err e = { 0 };

	assert_int_equal(session_segment(&b, in, &e), expected ? 0 : -1);
	if (expected)
		assert_true(view_is(buf_view(&b), expected));
	buf_done(&b);
}

static void test_segments(void **state)
{
	segment("abc-1", "abc-1");
	segment("a b?c#d", "a%20b%3Fc%23d");
	segment("../x", "..%2Fx");
	segment("a/b", "a%2Fb");
	segment("/", "%2F");
	segment("", NULL);
	segment(".", NULL);
	segment("..", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
