/*
 * The daemon's address: what is understood, what is refused, what is local.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "url.h"

#include "poison.h"

static void test_accepted(void **state)
{
	static const struct {
		const char *text, *host, *port, *authority;
		bool loopback;
	} cases[] = {
		{ "http://127.0.0.1:7080", "127.0.0.1", "7080", "127.0.0.1:7080", true },
		{ "http://127.0.0.1:7080/", "127.0.0.1", "7080", "127.0.0.1:7080", true },
		{ "127.0.0.1:7080", "127.0.0.1", "7080", "127.0.0.1:7080", true },
		{ "http://localhost", "localhost", "80", "localhost:80", true },
		{ "http://[::1]:7080", "::1", "7080", "[::1]:7080", true },
		{ "http://[fe80::1]", "fe80::1", "80", "[fe80::1]:80", false },
		{ "http://box-1.example:65535", "box-1.example", "65535", "box-1.example:65535", false },
		{ "http://127.evil.example:1", "127.evil.example", "1", "127.evil.example:1", false },
		{ "http://localhost.example", "localhost.example", "80", "localhost.example:80", false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct url u;
		struct err e = { 0 };

		if (url_parse(view_of(cases[i].text), &u, &e) != 0)
			fail_msg("%s: %s", cases[i].text, e.msg);
		assert_string_equal(u.host, cases[i].host);
		assert_string_equal(u.port, cases[i].port);
		assert_string_equal(u.authority, cases[i].authority);
		assert_int_equal(u.loopback, cases[i].loopback);
	}
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"http://",
		"http://:7080",
		"ftp://x:1",
		"http://x:0",
		"http://x:65536",
		"http://x:",
		"http://x:12a",
		"http://x:+1",
		"http://u@x:1",
		"http://u:p@x:1",
		"http://x:1/v1",
		"http://x?y",
		"http://x#y",
		"http://[::1",
		"http://::1:80",
		"http://[]:80",
		"http://x y:1",
		"http://x\r\nHost: y",
		"http://x:1//",
		"http://[::1]80",
		"http://\xc3\xa9:80",
		"//x:1",
	};
	char host[400];
	struct url u;
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMS(cases); i++) {
		e = (struct err){ 0 };
		if (url_parse(view_of(cases[i]), &u, &e) != -1)
			fail_msg("accepted \"%s\"", cases[i]);
		assert_int_equal(e.code, ERR_INVALID);
	}
	memset(host, 'a', sizeof(host));
	assert_int_equal(url_parse((struct view){ host, sizeof(host) }, &u, &e), -1);
}

static void test_https(void **state)
{
	struct url u;
	struct err e = { 0 };

	assert_int_equal(url_parse(VIEW("https://x.example"), &u, &e), 0);
	assert_true(u.tls);
	assert_string_equal(u.port, "443");
	assert_int_equal(url_parse(VIEW("https://x:7080/"), &u, &e), 0);
	assert_string_equal(u.authority, "x:7080");
	assert_int_equal(url_parse(VIEW("http://x"), &u, &e), 0);
	assert_false(u.tls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_https),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
