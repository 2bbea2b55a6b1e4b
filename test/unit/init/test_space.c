/*
 * What statfs says where there is a limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/statfs.h>

#include <cmocka.h>

#include "space.h"
#include "poison.h"

static struct statfs limited(uint64_t available, uint64_t limit, uint64_t used)
{
	struct statfs s = { .f_bsize = 4096, .f_blocks = 1000000, .f_bfree = 900000, .f_bavail = available };
	space_limit(&s, limit, used);
	return s;
}

static void test_limit(void **state)
{
	struct statfs s = limited(800000, 100 * 4096, 30 * 4096);
	assert_int_equal(s.f_blocks, 100);
	assert_int_equal(s.f_bfree, 70);
	assert_int_equal(s.f_bavail, 70);
	assert_int_equal(s.f_bsize, 4096);
	/* The machine has less than the limit leaves: used is what it was, available less. */
	s = limited(20, 100 * 4096, 30 * 4096);
	assert_int_equal(s.f_bfree, 70);
	assert_int_equal(s.f_bavail, 20);
	/* A limit that was lowered below what is used. */
	s = limited(800000, 100 * 4096, 300 * 4096);
	assert_int_equal(s.f_blocks, 100);
	assert_int_equal(s.f_bfree, 0);
	assert_int_equal(s.f_bavail, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
