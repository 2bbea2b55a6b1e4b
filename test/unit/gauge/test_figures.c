/*
 * The texts of /proc, and the table from uid ranges to boxes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "figures.h"

#include "poison.h"

#define MIB (1ull << 20)

static const char *print(const struct figures *f, enum gauge_file file)
{
	static struct buf out = BUF_INIT(65536);
	buf_done(&out);
	figures_print(f, file, &out);
	assert_int_equal(buf_putc(&out, 0), 0);
	return out.p;
}

static void test_meminfo(void **state)
{
	struct figures f = { .memory = 512 * MIB,
			     .memory_used = 100 * MIB,
			     .file = 30 * MIB,
			     .active_file = 10 * MIB,
			     .inactive_file = 20 * MIB };
	const char *text = print(&f, GAUGE_MEMINFO);
	assert_ptr_equal(strstr(text, "MemTotal:         524288 kB\nMemFree:          421888 kB\n"), text);
	assert_non_null(strstr(text, "\nMemAvailable:     452608 kB\n"));
	assert_non_null(strstr(text, "\nCached:            30720 kB\n"));
	assert_non_null(strstr(text, "\nSwapTotal:             0 kB\n"));
	/* The kernel's counters are not of one moment: nothing may wrap. */
	f.memory_used = 600 * MIB;
	f.inactive_file = 900 * MIB;
	text = print(&f, GAUGE_MEMINFO);
	assert_non_null(strstr(text, "\nMemFree:               0 kB\n"));
	assert_non_null(strstr(text, "\nMemAvailable:     524288 kB\n"));
}

static void test_processors(void **state)
{
	struct figures f = {
		.cpus = 2, .user = 101, .system = 50, .age = 1000, .boot_s = 1700000000, .pids = 7
	};
	f.cpuinfo = VIEW("processor\t: 0\nx\t: 1\n\nprocessor\t: 1\nx\t: 2\n\nprocessor\t: 2\n\n");
	assert_string_equal(print(&f, GAUGE_CPUINFO), "processor\t: 0\nx\t: 1\n\nprocessor\t: 1\nx\t: 2\n\n");
	const char *text = print(&f, GAUGE_STAT);
	assert_ptr_equal(strstr(text, "cpu  101 0 50 1849 0 0 0 0 0 0\ncpu0 51 0 25 924 0 0 0 0 0 0\n"
				      "cpu1 50 0 25 925 0 0 0 0 0 0\nintr 0\n"),
			 text);
	assert_non_null(strstr(text, "\nbtime 1700000000\nprocesses 7\n"));
	f.user = 5000; /* more than its age times its processors, by the kernel's rounding */
	assert_true(strncmp(print(&f, GAUGE_STAT), "cpu  5000 0 50 0 ", 17) == 0);
	f.cpus = 9;
	assert_int_equal(strlen(print(&f, GAUGE_CPUINFO)), f.cpuinfo.n);
	assert_string_equal(print(&f, GAUGE_LOADAVG), "0.00 0.00 0.00 1/7 7\n");
	assert_string_equal(print(&f, GAUGE_SWAPS), "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
}

static void test_table(void **state)
{
	struct gauge_slot s = { 0 };
	char id[GAUGE_ID];
	uint64_t started;
	bool own;
	assert_int_equal(gauge_get(&s, id, &started, &own), -ENOENT);
	gauge_put(&s, "abcdefghij0123456789", 42, true);
	assert_int_equal(gauge_get(&s, id, &started, &own), 0);
	assert_string_equal(id, "abcdefghij0123456789");
	assert_int_equal(started, 42);
	assert_true(own);
	s.turn++;
	assert_int_equal(gauge_get(&s, id, &started, &own), -EAGAIN);
	gauge_put(&s, "", 0, false);
	assert_int_equal(gauge_get(&s, id, &started, &own), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meminfo),
		cmocka_unit_test(test_processors),
		cmocka_unit_test(test_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
