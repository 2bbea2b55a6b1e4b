/*
 * Lines of /proc/net/tcp and tcp6.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "listeners.h"
#include "poison.h"

static void test_lines(void **state)
{
	struct listeners_line l;

	assert_true(listeners_parse(
		VIEW("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  "
		     "1000        0 12345 1 0000000000000000 100 0 0 10 0"),
		&l));
	assert_int_equal(l.port, 8080);
	assert_int_equal(l.inode, 12345);
	assert_string_equal(l.address, "127.0.0.1");
	assert_true(
		listeners_parse(VIEW("   1: 00000000000000000000000001000000:0050 "
				     "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 "
				     "00000000     0        0 7 1 x"),
				&l));
	assert_int_equal(l.port, 80);
	assert_string_equal(l.address, "::1");
}

static void test_others(void **state)
{
	static const char *const lines[] = {
		"",
		("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
		 "inode"),
		"   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 1 1 x",
		"   0: 0100007F:0000 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 x",
		"   0: 0100007F 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 x",
		"   0: 01000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 x",
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000",
	};
	struct listeners_line l;

	for (size_t i = 0; i < ELEMS(lines); i++)
		assert_false(listeners_parse(view_of(lines[i]), &l));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_others) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
