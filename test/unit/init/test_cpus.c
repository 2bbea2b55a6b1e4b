/*
 * Which processors a program gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cpus.h"
#include "poison.h"

static unsigned long pick(unsigned long all, unsigned count, unsigned first)
{
	cpu_set_t from, mine;
	unsigned long found = 0;
	CPU_ZERO(&from);
	for (unsigned i = 0; i < 64; i++)
		if (all & 1ul << i)
			CPU_SET(i, &from);
	if (!cpus_pick(&from, count, first, &mine))
		return 0;
	for (unsigned i = 0; i < 64; i++)
		if (CPU_ISSET(i, &mine))
			found |= 1ul << i;
	return found;
}

static void test_pick(void **state)
{
	assert_int_equal(pick(0xf, 1, 0), 0x1);
	assert_int_equal(pick(0xf, 1, 3), 0x8);
	assert_int_equal(pick(0xf, 2, 3), 0x9); /* begins anew */
	assert_int_equal(pick(0x5, 1, 1), 0x4); /* not what the machine keeps to itself */
	assert_int_equal(pick(0xf, 4, 0), 0);
	assert_int_equal(pick(0xf, 9, 0), 0);
	assert_int_equal(pick(0xf, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pick) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
