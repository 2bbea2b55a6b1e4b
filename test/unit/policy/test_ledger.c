/*
 * Sums over sliding windows, compared with sums that are counted anew each time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ledger.h"

#include "poison.h"

#define N 4000

static const struct ledger_what what = { VIEW("agent:a"), 1, address_native };

static struct ledger_sums sums_at(struct ledger *l, int64_t now)
{
	struct ledger_sums s;

	ledger_sums(l, &what, now, &s);
	return s;
}

static void test_edges(void **state)
{
	struct ledger l;
	struct ledger_entry e;
	const struct u256 five = u256_of(5), max = U256_MAX;
	const int64_t day = ledger_length[LEDGER_DAY];

	ledger_init(&l);
	assert_int_equal(ledger_add(&l, &what, &five, 1000, false, &e), 0);
	assert_int_equal(sums_at(&l, 1000).window[LEDGER_DAY].w[0], 5);
	assert_int_equal(sums_at(&l, 1000 + day - 1).window[LEDGER_DAY].w[0], 5);
	assert_int_equal(sums_at(&l, 1000 + day).window[LEDGER_DAY].w[0], 0);
	assert_int_equal(sums_at(&l, 1000 + day).window[LEDGER_WEEK].w[0], 5);
	assert_int_equal(sums_at(&l, 1000 + 40 * day).window[LEDGER_MONTH].w[0], 0);
	assert_int_equal(sums_at(&l, 1000 + 40 * day).lifetime.w[0], 5);
	assert_int_equal(ledger_add(&l, &what, &five, 999, false, &e), -EINVAL);
	assert_int_equal(ledger_add(&l, &what, &max, 2000, false, &e), -EOVERFLOW);
	/* Another chain, asset or scope is another account. */
	const struct ledger_what others[] = { { VIEW("agent:b"), 1, address_native },
					      { VIEW("agent:a"), 2, address_native },
					      { VIEW("agent:a"), 1, address_zero } };
	for (size_t i = 0; i < ELEMS(others); i++) {
		struct ledger_sums s;
		ledger_sums(&l, &others[i], 1000, &s);
		assert_true(u256_is_zero(&s.lifetime));
	}
	ledger_done(&l);
}

static void test_random(void **state)
{
	static struct {
		uint64_t amount;
		int64_t at;
		struct ledger_entry e;
		bool reserved;
	} all[N];
	struct ledger l;
	int64_t now = 1;
	unsigned seed = 7;

	ledger_init(&l);
	for (unsigned i = 0; i < N; i++) {
		now += rand_r(&seed) % (3600 * 1000);
		all[i].amount = (unsigned)rand_r(&seed) % 1000;
		all[i].at = now;
		all[i].reserved = rand_r(&seed) % 2;
		const struct u256 amount = u256_of(all[i].amount);
		assert_int_equal(ledger_add(&l, &what, &amount, now, all[i].reserved, &all[i].e), 0);
		/* Only what is reserved is released or committed, as in the signer. */
		const unsigned k = (unsigned)rand_r(&seed) % (i + 1);
		if (all[k].reserved && rand_r(&seed) % 2) {
			ledger_release(&all[k].e);
			all[k].amount = 0;
			all[k].reserved = false;
		} else if (all[k].reserved) {
			ledger_commit(&all[k].e);
			all[k].reserved = false;
		}
		if (i % 37)
			continue;
		const struct ledger_sums s = sums_at(&l, now);
		uint64_t window[LEDGER_WINDOWS] = { 0 }, lifetime = 0, reserved = 0;
		for (unsigned m = 0; m <= i; m++) {
			for (int w = 0; w < LEDGER_WINDOWS; w++)
				window[w] += now - all[m].at < ledger_length[w] ? all[m].amount : 0;
			lifetime += all[m].amount;
			reserved += all[m].reserved ? all[m].amount : 0;
		}
		for (int w = 0; w < LEDGER_WINDOWS; w++)
			assert_int_equal(s.window[w].w[0], window[w]);
		assert_int_equal(s.lifetime.w[0], lifetime);
		assert_int_equal(s.reserved.w[0], reserved);
	}
	ledger_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_edges), cmocka_unit_test(test_random) };
	return cmocka_run_group_tests_name("policy_ledger", tests, NULL, NULL);
}
