/*
 * Numbers from text: the whole text or nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "num.h"
#include "poison.h"

static const char *const no_number[] = { "",    " ",   "1 ",  " 1", "+1",  "1a", "0x1",
					 "1.0", "1e3", "--1", "-",  "\n1", "١",  "1_0" };

static void test_u64(void **state)
{
	uint64_t n = 42;
	assert_int_equal(num_u64(VIEW("0"), &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(num_u64(VIEW("010"), &n), 0);
	assert_int_equal(n, 10); /* never octal */
	assert_int_equal(num_u64(VIEW("18446744073709551615"), &n), 0);
	assert_true(n == UINT64_MAX);
	n = 42;
	assert_int_equal(num_u64(VIEW("18446744073709551616"), &n), -ERANGE);
	assert_int_equal(num_u64(VIEW("99999999999999999999"), &n), -ERANGE);
	assert_int_equal(num_u64(VIEW("-1"), &n), -EINVAL);
	for (size_t i = 0; i < ELEMS(no_number); i++)
		assert_int_equal(num_u64(view_of(no_number[i]), &n), -EINVAL);
	assert_int_equal(num_u64((struct view){ "1\0", 2 }, &n), -EINVAL);
	assert_int_equal(n, 42); /* written only on success */
	assert_int_equal(num_u64((struct view){ "123", 2 }, &n), 0);
	assert_int_equal(n, 12); /* a view has no terminator */
}

static void test_u32(void **state)
{
	uint32_t n = 42;
	assert_int_equal(num_u32(VIEW("4294967295"), &n), 0);
	assert_true(n == UINT32_MAX);
	n = 42;
	assert_int_equal(num_u32(VIEW("4294967296"), &n), -ERANGE);
	assert_int_equal(num_u32(VIEW("18446744073709551616"), &n), -ERANGE);
	assert_int_equal(num_u32(VIEW("-1"), &n), -EINVAL);
	assert_int_equal(n, 42);
}

static void test_i64(void **state)
{
	int64_t n = 42;
	assert_int_equal(num_i64(VIEW("-9223372036854775808"), &n), 0);
	assert_true(n == INT64_MIN);
	assert_int_equal(num_i64(VIEW("9223372036854775807"), &n), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(num_i64(VIEW("-0"), &n), 0);
	assert_int_equal(n, 0);
	n = 42;
	assert_int_equal(num_i64(VIEW("9223372036854775808"), &n), -ERANGE);
	assert_int_equal(num_i64(VIEW("-9223372036854775809"), &n), -ERANGE);
	for (size_t i = 0; i < ELEMS(no_number); i++)
		assert_int_equal(num_i64(view_of(no_number[i]), &n), -EINVAL);
	assert_int_equal(n, 42);
}

static void test_hex(void **state)
{
	uint64_t n = 42;
	assert_int_equal(num_hex(VIEW("dEadBeef"), &n), 0);
	assert_int_equal(n, 0xdeadbeef);
	assert_int_equal(num_hex(VIEW("ffffffffffffffff"), &n), 0);
	assert_true(n == UINT64_MAX);
	n = 42;
	assert_int_equal(num_hex(VIEW("10000000000000000"), &n), -ERANGE);
	assert_int_equal(num_hex(VIEW("0x1"), &n), -EINVAL);
	assert_int_equal(num_hex(VIEW("g"), &n), -EINVAL);
	assert_int_equal(num_hex(VIEW(""), &n), -EINVAL);
	assert_int_equal(n, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_u32),
		cmocka_unit_test(test_i64),
		cmocka_unit_test(test_hex),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
