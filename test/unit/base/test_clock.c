/*
 * Clocks and randomness: times as text, and names that are only names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "clock.h"
#include "rnd.h"
#include "view.h"
#include "poison.h"

static void test_rfc3339(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 999, "1970-01-01T00:00:00.999Z" },
		{ 951782400007, "2000-02-29T00:00:00.007Z" },
		{ 1735689599999, "2024-12-31T23:59:59.999Z" },
		{ 1794730372123, "2026-11-15T08:12:52.123Z" },
		{ 2147483648000, "2038-01-19T03:14:08.000Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
		/* Times of files come from boxes: they may be anything. */
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ -1000, "1969-12-31T23:59:59.000Z" },
		{ -1001, "1969-12-31T23:59:58.999Z" },
		{ -62135596800000, "0001-01-01T00:00:00.000Z" },
		{ -62135596800001, "0001-01-01T00:00:00.000Z" },
		{ 253402300800000, "9999-12-31T23:59:59.999Z" },
		{ INT64_MAX, "9999-12-31T23:59:59.999Z" },
		{ INT64_MIN, "0001-01-01T00:00:00.000Z" },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char dst[CLOCK_RFC3339_SIZE + 8];
		memset(dst, 0x5a, sizeof(dst));
		clock_rfc3339(cases[i].ms, dst);
		assert_string_equal(dst, cases[i].text);
		for (size_t k = CLOCK_RFC3339_SIZE; k < sizeof(dst); k++)
			assert_int_equal(dst[k], 0x5a);
	}
}

static void test_clocks(void **state)
{
	uint64_t a = clock_mono_ns(), ms = clock_mono_ms(), b = clock_mono_ns();
	assert_true(a <= b);
	assert_in_range(ms, a / 1000000, b / 1000000);
	time_t before = time(NULL);
	int64_t wall = clock_wall_ms();
	assert_in_range(wall / 1000, before, time(NULL) + 1);
}

static void test_from_rfc3339(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:00.5Z", 500 },
		{ "1970-01-01T00:00:00.123456789Z", 123 },
		{ "1970-01-01T01:00:00+01:00", 0 },
		{ "1969-12-31T18:30:00.007-05:30", 7 },
		{ "2026-11-15T08:12:52.123Z", 1794730372123 },
	};
	static const char *const bad[] = { "",
					   "2026-11-15",
					   "2026-11-15T08:12:52",
					   "2026-11-15T08:12:52.Z",
					   "2026-11-15T08:12:52+0100",
					   "2026-13-15T08:12:52Z",
					   "2026-11-15 08:12:52Z",
					   "2026-11-15T08:12:52Zx",
					   "2026-11-15T+8:12:52Z",
					   "2026-11-15T08:12:52+24:00" };
	char back[CLOCK_RFC3339_SIZE];
	int64_t ms = 42;

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(clock_from_rfc3339(view_of(bad[i]), &ms), -EINVAL);
	assert_int_equal(ms, 42);
	for (size_t i = 0; i < ELEMS(good); i++) {
		assert_int_equal(clock_from_rfc3339(view_of(good[i].text), &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	clock_rfc3339(1794730372123, back);
	assert_int_equal(clock_from_rfc3339(view_of(back), &ms), 0);
	assert_int_equal(ms, 1794730372123);
}

static void test_names(void **state)
{
	unsigned seen[256] = { 0 };
	char name[3001 + 1];
	memset(name, 0x5a, sizeof(name));
	rnd_name(name, 3000);
	assert_int_equal(strlen(name), 3000);
	assert_int_equal(name[3001], 0x5a);
	for (int i = 0; i < 3000; i++)
		seen[(unsigned char)name[i]]++;
	unsigned kinds = 0;
	for (int c = 0; c < 256; c++) {
		if (!seen[c])
			continue;
		kinds++;
		assert_non_null(strchr("bcdfghjklmnpqrstvwxz0123456789", c));
		/* 100 expected; 6 standard deviations (9.8) either side: once in a billion runs. */
		assert_in_range(seen[c], 40, 160);
	}
	assert_int_equal(kinds, 30);
	char a[21], b[21];
	rnd_name(a, 20);
	rnd_name(b, 20);
	assert_string_not_equal(a, b);
	rnd_name(a, 0);
	assert_string_equal(a, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rfc3339),
		cmocka_unit_test(test_from_rfc3339),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
