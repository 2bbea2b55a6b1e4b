/*
 * SOCKS 5: each message cut at every place, and what is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "socks5.h"

#include "poison.h"

#define BYTES(s) ((struct view){ "" s "", sizeof(s) - 1 })

static void greeting(void **state)
{
	uint8_t method;
	struct view in = BYTES("\5\2\2\0rest");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(socks5_greeting(view_head(in, i), &method), 0);
	assert_int_equal(socks5_greeting(in, &method), 4);
	assert_int_equal(method, 0);
	assert_int_equal(socks5_greeting(BYTES("\5\1\2"), &method), 3);
	assert_int_equal(method, 0xff);
	assert_true(socks5_greeting(BYTES("\4\1\0"), &method) < 0);
	assert_true(socks5_greeting(BYTES("\5\0"), &method) < 0);
}

static void requests(void **state)
{
	static const struct view good[] = { BYTES("\5\1\0\1\1\2\3\4\0\120"), BYTES("\5\1\0\3\6a.test\1\273"),
					    BYTES("\5\1\0\4"
						  "0123456789abcdef"
						  "\1\273") };
	struct socks5_request r;
	for (size_t i = 0; i < ELEMS(good); i++) {
		for (size_t n = 0; n < good[i].n; n++)
			assert_int_equal(socks5_parse(view_head(good[i], n), &r), 0);
		assert_int_equal(socks5_parse(good[i], &r), good[i].n);
		assert_int_equal(r.port, i ? 443 : 80);
	}
	assert_int_equal(socks5_parse(good[1], &r), good[1].n);
	assert_true(view_is(r.host, "a.test") && r.kind == 3);
	assert_true(socks5_parse(BYTES("\4\1\0\1\1\2\3\4\0\120"), &r) == -EINVAL);
	assert_true(socks5_parse(BYTES("\5\1\1\1\1\2\3\4\0\120"), &r) == -EINVAL);
	assert_true(socks5_parse(BYTES("\5\1\0\2\1\2\3\4\0\120"), &r) == -EINVAL);
	assert_true(socks5_parse(BYTES("\5\1\0\3\0\0\120"), &r) == -EINVAL);
	assert_true(socks5_parse(BYTES("\5\1\0\1\1\2\3\4\0\0"), &r) == -EINVAL);
	assert_true(socks5_parse(BYTES("\5\3\0\1\1\2\3\4\0\120"), &r) == -EOPNOTSUPP); /* UDP */
	assert_true(socks5_parse(BYTES("\5\2\0\1\1\2\3\4\0\120"), &r) == -EOPNOTSUPP); /* BIND */
}

static void reply(void **state)
{
	char out[SOCKS5_REPLY];
	socks5_reply(SOCKS5_FORBIDDEN, out);
	assert_memory_equal(out, "\5\2\0\1\0\0\0\0\0\0", sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(greeting), cmocka_unit_test(requests),
					    cmocka_unit_test(reply) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
