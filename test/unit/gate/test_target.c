/*
 * Where a request says that it goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "target.h"
#include "poison.h"

static void test_names(void **state)
{
	struct target t;

	assert_int_equal(target_parse(VIEW("Example.ORG:8080"), &t), 0);
	assert_string_equal(t.name, "example.org");
	assert_int_equal(t.port, 8080);
	assert_int_equal(target_parse(VIEW("example.org"), &t), 0);
	assert_int_equal(t.port, 0);
	assert_int_equal(target_parse(VIEW("example.org:"), &t), 0); /* as RFC 3986 allows */
	assert_int_equal(t.port, 0);
}

static void test_addresses(void **state)
{
	char text[ADDR_TEXT];
	struct target t;

	assert_int_equal(target_parse(VIEW("10.0.0.1:80"), &t), 0);
	assert_string_equal(t.name, "");
	assert_string_equal(addr_text(&t.addr, text), "10.0.0.1");
	assert_int_equal(t.port, 80);
	assert_int_equal(target_parse(VIEW("[::1]:443"), &t), 0);
	assert_string_equal(addr_text(&t.addr, text), "::1");
	assert_int_equal(t.port, 443);
	assert_int_equal(target_parse(VIEW("[::1]"), &t), 0);
	assert_int_equal(t.port, 0);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = { "",      ":80",     "a:0",           "a:65536", "a:8x",
					   "::1",   "[::1",    "[example.org]", "1.2.3",   "0x7f.1",
					   "a b:1", "a:80:80", "user@a:80",     "a/b:80" };

	for (size_t i = 0; i < ELEMS(bad); i++) {
		struct target t;
		if (target_parse(view_of(bad[i]), &t) == 0)
			fail_msg("%s", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
