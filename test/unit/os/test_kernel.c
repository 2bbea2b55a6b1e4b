/*
 * Which kernels are refused, by the text of uname alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "kernel.h"
#include "poison.h"

static void test_version(void **state)
{
	static const struct {
		const char *release;
		unsigned major, minor;
	} good[] = { { "6.1.0-37-amd64", 6, 1 },
		     { "6.12.38+deb13-amd64", 6, 12 },
		     { "6.18.44", 6, 18 },
		     { "5.10.0-30-cloud-arm64", 5, 10 },
		     { "6.1", 6, 1 },
		     { "7.0-rc1", 7, 0 },
		     { "6.6.87.2-microsoft-WSL2", 6, 6 },
		     { "10.2.3", 10, 2 } };
	for (size_t i = 0; i < ELEMS(good); i++) {
		unsigned major = 99, minor = 99;
		assert_int_equal(kernel_version(good[i].release, &major, &minor), 0);
		assert_int_equal(major, good[i].major);
		assert_int_equal(minor, good[i].minor);
	}
	static const char *const bad[] = {
		"", "6", "6.", ".1", "x.y", "6-1", "99999999999.1", "6.99999999999"
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		unsigned major = 99, minor = 99;
		assert_true(kernel_version(bad[i], &major, &minor) < 0);
		assert_int_equal(major, 99);
	}
}

static void test_check(void **state)
{
	static const char *const fine[] = { "6.1.0-37-amd64", "6.1", "6.12.38", "6.18.44-fc", "7.0.0" };
	static const char *const old[] = { "6.0.19", "5.15.0-91-generic", "4.18.0-553.el8", "2.6.78",
					   "3.10" };
	for (size_t i = 0; i < ELEMS(fine); i++) {
		struct err e = { 0 };
		assert_int_equal(kernel_check(fine[i], &e), 0);
	}
	for (size_t i = 0; i < ELEMS(old); i++) {
		struct err e = { 0 };
		assert_true(kernel_check(old[i], &e) < 0);
		assert_int_equal(e.code, ERR_WALLS);
		/* A sentence: what there is, and what is needed. */
		assert_non_null(strstr(e.msg, old[i]));
		assert_non_null(strstr(e.msg, "needs Linux 6.1 or newer"));
	}
	struct err e = { 0 };
	assert_true(kernel_check("strange", &e) < 0);
	assert_non_null(strstr(e.msg, "strange"));
	struct utsname u;
	unsigned major, minor;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(kernel_version(u.release, &major, &minor), 0);
	assert_true(kernel_at_least(major, minor) && kernel_at_least(major - 1, minor + 1));
	assert_false(kernel_at_least(major, minor + 1) || kernel_at_least(major + 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_version), cmocka_unit_test(test_check) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
