/*
 * QR codes: their sizes, the patterns that every reader looks for, and one code as other encoders draw it.
 * test/it/test_walletconnect.py has codes read by a real decoder.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qr.h"

#include "poison.h"

static void test_sizes(void **state)
{
	static const struct {
		size_t n;
		unsigned size;
	} cases[] = { { 0, 21 }, { 14, 21 }, { 15, 25 }, { 180, 53 }, { 181, 57 }, { 213, 57 }, { 666, 97 } };
	static char text[QR_BYTES_MAX + 1];
	struct qr q;

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ELEMS(cases); i++) {
		assert_int_equal(qr_encode((struct view){ text, cases[i].n }, &q), 0);
		assert_int_equal(q.size, cases[i].size);
	}
	assert_int_equal(qr_encode((struct view){ text, QR_BYTES_MAX + 1 }, &q), -E2BIG);
}

static void test_patterns(void **state)
{
	struct qr q;

	assert_int_equal(qr_encode(VIEW("https://example.org/"), &q), 0);
	for (unsigned i = 0; i < 7; i++) { /* the edges of the three finder patterns */
		assert_true(q.dark[0][i] && q.dark[i][0]);
		assert_true(q.dark[0][q.size - 1 - i] && q.dark[i][q.size - 1]);
		assert_true(q.dark[q.size - 1][i] && q.dark[q.size - 1 - i][0]);
	}
	for (unsigned i = 0; i < 8; i++) /* and the light around them */
		assert_false(q.dark[7][i] || q.dark[i][7]);
	for (unsigned i = 8; i + 8 < q.size; i++) /* the timing patterns */
		assert_true(q.dark[6][i] == (i % 2 == 0) && q.dark[i][6] == (i % 2 == 0));
	assert_true(q.dark[q.size - 8][8]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
