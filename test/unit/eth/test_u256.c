/*
 * Numbers of 256 bits: the edges of every operation; random ones are compared with ethers in
 * test/it/test_eth.py.
 */
#include "eth_rig.h"
#include "u256.h"

#include "poison.h"

#define MAX_TEXT "115792089237316195423570985008687907853269984665640564039457584007913129639935"
#define OVER     "115792089237316195423570985008687907853269984665640564039457584007913129639936"

static void test_parse(void **state)
{
	static const char *const bad[] = { "",    "-1", "+1", " 1",  "1 ", "1e3",
					   "0x1", "01", "00", "1.0", "½",  OVER "0" };
	struct u256 v = u256_of(7);
	char text[U256_TEXT];

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(u256_parse(view_of(bad[i]), &v) < 0);
	assert_int_equal(u256_parse(VIEW(OVER), &v), -EOVERFLOW);
	assert_int_equal(v.w[0], 7); /* untouched */
	assert_int_equal(u256_parse(VIEW(MAX_TEXT), &v), 0);
	assert_int_equal(u256_cmp(&v, &U256_MAX), 0);
	u256_text(&v, text);
	assert_string_equal(text, MAX_TEXT);
	assert_int_equal(u256_parse(VIEW("0"), &v), 0);
	assert_true(u256_is_zero(&v));
	u256_text(&v, text);
	assert_string_equal(text, "0");
}

static void test_hex(void **state)
{
	static const char *const bad[] = {
		"",
		"0x",
		"1",
		"0X1",
		"0xg",
		"0x-1",
		"0x10000000000000000000000000000000000000000000000000000000000000000"
	};
	struct u256 v;

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(u256_parse_hex(view_of(bad[i]), &v), -EINVAL);
	assert_int_equal(u256_parse_hex(VIEW("0xDEADbeef"), &v), 0);
	assert_int_equal(v.w[0], 0xdeadbeef);
	assert_int_equal(u256_bits(&v), 32);
}

static void test_units(void **state)
{
	static const struct {
		const char *text;
		unsigned decimals;
		const char *wei; /* NULL: refused */
	} cases[] = {
		{ "0.1", 18, "100000000000000000" },
		{ "1", 18, "1000000000000000000" },
		{ "1.000000000000000001", 18, "1000000000000000001" },
		{ "0", 18, "0" },
		{ "12", 0, "12" },
		{ "1.5", 6, "1500000" },
		{ "1.0000000000000000001", 18, NULL },
		{ "1.", 18, NULL },
		{ ".1", 18, NULL },
		{ "1.2.3", 18, NULL },
		{ "1e3", 18, NULL },
		{ "1,5", 18, NULL },
		{ "1.5", 0, NULL },
		{ "-1", 18, NULL },
		{ "1."
		  "-1",
		  18, NULL },
		{ MAX_TEXT, 1, NULL },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct u256 v;
		char text[U256_UNITS];
		int r = u256_parse_units(view_of(cases[i].text), cases[i].decimals, &v);
		assert_int_equal(r == 0, cases[i].wei != NULL);
		if (r < 0)
			continue;
		u256_text(&v, text);
		assert_string_equal(text, cases[i].wei);
		u256_units(&v, cases[i].decimals, text);
		assert_string_equal(text, cases[i].text);
	}
	char text[U256_UNITS];
	u256_units(&U256_MAX, 36, text);
	assert_string_equal(
		text, "115792089237316195423570985008687907853269.984665640564039457584007913129639935");
}

static void test_overflow(void **state)
{
	const struct u256 max = U256_MAX, one = u256_of(1), two = u256_of(2);
	const struct u256 high = { { 0, 0, 1, 0 } }; /* 2^128 */
	struct u256 v = u256_of(5);

	assert_int_equal(u256_add(&max, &one, &v), -EOVERFLOW);
	assert_int_equal(u256_sub(&one, &two, &v), -EOVERFLOW);
	assert_int_equal(u256_mul(&max, &two, &v), -EOVERFLOW);
	assert_int_equal(u256_mul(&high, &high, &v), -EOVERFLOW);
	assert_int_equal(v.w[0], 5);
	v = u256_add_sat(&max, &one);
	assert_int_equal(u256_cmp(&v, &max), 0);
	assert_int_equal(u256_sub(&max, &max, &v), 0);
	assert_true(u256_is_zero(&v));
	/* A borrow that goes through all words. */
	assert_int_equal(u256_sub(&high, &one, &v), 0);
	assert_true(v.w[0] == UINT64_MAX && v.w[1] == UINT64_MAX && v.w[2] == 0 && v.w[3] == 0);
	assert_int_equal(u256_add(&v, &one, &v), 0);
	assert_int_equal(u256_cmp(&v, &high), 0);
}

static void test_bytes(void **state)
{
	uint8_t be[32];
	struct u256 v = { { 4, 3, 2, 1 } }, w;

	u256_store(&v, be);
	assert_true(be[7] == 1 && be[15] == 2 && be[23] == 3 && be[31] == 4);
	w = u256_load(be);
	assert_int_equal(u256_cmp(&v, &w), 0);
	assert_int_equal(u256_load_view((struct view){ "\1\0", 2 }, &w), 0);
	assert_int_equal(w.w[0], 256);
	assert_int_equal(u256_load_view(VIEW("123456789012345678901234567890123"), &w), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),    cmocka_unit_test(test_hex),   cmocka_unit_test(test_units),
		cmocka_unit_test(test_overflow), cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests_name("eth_u256", tests, NULL, NULL);
}
