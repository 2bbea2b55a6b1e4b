/*
 * What /etc/hosts becomes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "identity.h"
#include "poison.h"

#define LOCAL "127.0.0.1 localhost # paddock\n::1 localhost ip6-localhost ip6-loopback # paddock\n"

static void check(struct view old, const char *want)
{
	struct buf out = BUF_INIT(4096);
	assert_int_equal(identity_hosts(old, VIEW("box"), &out), 0);
	assert_true(view_is(buf_view(&out), want));
	/* What was made is fine as it is. */
	struct buf again = BUF_INIT(4096);
	if (want[0]) {
		assert_int_equal(identity_hosts(view_of(want), VIEW("box"), &again), 0);
		assert_int_equal(buf_len(&again), 0);
	}
	buf_done(&again);
	buf_done(&out);
}

static void test_hosts(void **state)
{
	check(VIEW(""), LOCAL "127.0.1.1 box # paddock\n");
	check(VIEW("127.0.0.1\tlocalhost\n::1 ip6-localhost\n10.0.0.1 BOX # mine\n"), "");
	check(VIEW("127.0.0.1 localhost\n::1 ip6-localhost\n127.0.1.1 old # paddock"),
	      "127.0.0.1 localhost\n::1 ip6-localhost\n127.0.1.1 box # paddock\n");
	check(VIEW("# 127.0.0.1 localhost\n127.0.0.1 box"), "# 127.0.0.1 localhost\n127.0.0.1 box\n" LOCAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
