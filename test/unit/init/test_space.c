/*
 * What statfs says where there is a limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>

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

static void test_memory(void **state)
{
	struct sysinfo s = { .uptime = 7,
			     .loads = { 1, 2, 3 },
			     .totalram = 1000,
			     .freeram = 500,
			     .sharedram = 9,
			     .totalswap = 100,
			     .freeswap = 50,
			     .procs = 900,
			     .mem_unit = 4096 };
	space_memory(&s, 512 << 20, 12 << 20, 3);
	assert_int_equal(s.uptime, 7);
	assert_int_equal(s.totalram, 512 << 20);
	assert_int_equal(s.freeram, 500 << 20);
	assert_int_equal(s.mem_unit, 1);
	assert_int_equal(s.procs, 3);
	assert_int_equal(s.loads[0] + s.loads[1] + s.loads[2] + s.totalswap + s.freeswap + s.sharedram, 0);
	space_memory(&s, 512 << 20, 600 << 20, 1 << 20);
	assert_int_equal(s.freeram, 0);
	assert_int_equal(s.procs, 0xffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit), cmocka_unit_test(test_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
