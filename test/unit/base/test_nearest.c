/*
 * "Did you mean": what is near, and what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nearest.h"

static const char *of(const char *word)
{
	static const char *const known[] = { "create", "inspect", "image",   "memory_mb",
					     "cpu",    "ls",      "no-stdin" };
	struct nearest n = NEAREST(view_of(word));

	for (size_t i = 0; i < ELEMS(known); i++)
		nearest_try(&n, known[i]);
	return n.best;
}

static void test_near(void **state)
{
	assert_string_equal(of("craete"), "create");
	assert_string_equal(of("Create"), "create");
	assert_string_equal(of("inpsect"), "inspect");
	assert_string_equal(of("imgae"), "image");
	assert_string_equal(of("memory"), "memory_mb");
	assert_string_equal(of("memory_mbs"), "memory_mb");
	assert_string_equal(of("cpus"), "cpu");
	assert_string_equal(of("lss"), "ls");
	assert_string_equal(of("no_stdin"), "no-stdin");
}

static void test_far(void **state)
{
	char word[200];

	assert_null(of("frobnicate"));
	assert_null(of("x"));
	assert_null(of(""));
	assert_null(of("abc"));
	memset(word, 'c', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_null(of(word));
	word[NEAREST_MAX] = '\0';
	assert_null(of(word));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near),
		cmocka_unit_test(test_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
