/*
 * Amounts, chains and tokens as people write them: exact, or refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "amount.h"

#include "poison.h"

static void test_amounts(void **state)
{
	static const struct {
		const char *text, *wei;
	} cases[] = {
		{ "1", "1000000000000000000" },
		{ "0.1", "100000000000000000" },
		{ "0.000000000000000001", "1" },
		{ "1eth", "1000000000000000000" },
		{ "1.5 ETH", "1500000000000000000" },
		{ "2ether", "2000000000000000000" },
		{ "5gwei", "5000000000" },
		{ "0.5gwei", "500000000" },
		{ "7wei", "7" },
		{ "0", "0" },
		{ "115792089237316195423570985008687907853269984665640564039457584007913129639935wei",
		  "115792089237316195423570985008687907853269984665640564039457584007913129639935" },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct err e = { 0 };
		char text[U256_TEXT];
		struct u256 n;
		if (amount_parse(view_of(cases[i].text), AMOUNT_NATIVE, &n, &e) < 0)
			fail_msg("%s: %s", cases[i].text, e.msg);
		u256_text(&n, text);
		assert_string_equal(text, cases[i].wei);
	}
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"-1",
		"+1",
		"1e18",
		"0x10",
		"1.",
		".5",
		"1,5",
		"1.5wei",
		"0.0000000005gwei",
		"gwei",
		"1 2",
		"0.0000000000000000001",
		"1btc",
		"NaN",
		"١",
		"115792089237316195423570985008687907853269984665640564039457584007913129639936wei",
		"115792089237316195423570985008687907853269984665640564039458"
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct err e = { 0 };
		struct u256 n;
		if (amount_parse(view_of(cases[i]), AMOUNT_NATIVE, &n, &e) == 0)
			fail_msg("\"%s\" was taken", cases[i]);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

static void test_limits(void **state)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct sgn_limit l = { 0 };
	struct err e = { 0 };
	char text[U256_UNITS];

	assert_int_equal(amount_limit(&a, VIEW("0.1//5///"), AMOUNT_NATIVE, &l, &e), -1);
	l = (struct sgn_limit){ 0 };
	assert_int_equal(amount_limit(&a, VIEW("0.1//5"), AMOUNT_NATIVE, &l, &e), 0);
	assert_int_equal(l.day.n, 0);
	amount_text(l.week, AMOUNT_NATIVE, text);
	assert_string_equal(text, "5");
	amount_text(l.per_tx, AMOUNT_NATIVE, text);
	assert_string_equal(text, "0.1");
	amount_text(l.month, AMOUNT_NATIVE, text);
	assert_string_equal(text, "");
	l = (struct sgn_limit){ 0 };
	assert_int_equal(amount_limit(&a, VIEW("/5"), AMOUNT_NATIVE, &l, &e), -1);
	arena_done(&a);
}

static void test_tokens(void **state)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct sgn_limit l;
	struct err e = { 0 };
	char text[U256_UNITS];

	assert_int_equal(
		amount_token(&a, "eip155:10@0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512:6=1.5/100", &l, &e),
		0);
	assert_int_equal(l.chain, 10);
	assert_int_equal(amount_decimals(&l), 6);
	amount_text(l.per_tx, 0, text);
	assert_string_equal(text, "1500000");
	assert_int_equal(amount_token(&a, "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512=7", &l, &e), 0);
	assert_int_equal(l.chain, 0);
	static const char *const wrong[] = { "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
					     "0xe7f1=1",
					     "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512=1.5",
					     "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512:99=1",
					     "0xe7f1725e7734CE288F8367e1Bb143E90bb3F0512=1",
					     "x@0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512=1",
					     "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE=1",
					     "=1" };
	for (size_t i = 0; i < ELEMS(wrong); i++)
		if (amount_token(&a, wrong[i], &l, &e) == 0)
			fail_msg("%s was taken", wrong[i]);
	arena_done(&a);
}

static void test_chains(void **state)
{
	static const char *const wrong[] = { "",
					     "0",
					     "eip155:",
					     "eip155:0",
					     "eip155:01x",
					     "-1",
					     "solana:1",
					     "9223372036854775808",
					     "eip155:18446744073709551616" };
	struct err e = { 0 };
	uint64_t chain;

	assert_int_equal(amount_chain(VIEW("eip155:1"), &chain, &e), 0);
	assert_int_equal(chain, 1);
	assert_int_equal(amount_chain(VIEW("31337"), &chain, &e), 0);
	assert_int_equal(chain, 31337);
	for (size_t i = 0; i < ELEMS(wrong); i++)
		if (amount_chain(view_of(wrong[i]), &chain, &e) == 0)
			fail_msg("\"%s\" was taken", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amounts), cmocka_unit_test(test_refused), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_tokens),  cmocka_unit_test(test_chains),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
