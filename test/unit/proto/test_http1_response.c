/*
 * Response heads: what is read is what was sent, and what could be read in two
 * ways is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "http1_response.h"
#include "poison.h"

struct parsed {
	struct http1_response r;
	struct http_header headers[8];
	char bytes[2048];
	int rc;
};

static void parse(struct parsed *p, const char *text, size_t step)
{
	size_t n = strlen(text);

	assert_true(n < sizeof(p->bytes));
	http1_response_init(&p->r, p->headers, ELEMS(p->headers), 1024);
	p->rc = 0;
	for (size_t at = 0; at < n && p->rc == 0;) {
		size_t k = MIN(step, n - at);
		memcpy(p->bytes + at, text + at, k);
		at += k;
		p->rc = http1_response_parse(&p->r, p->bytes, at);
	}
}

static void test_heads(void **state)
{
	static const struct {
		const char *text;
		int status;
		enum http1_framing framing, to_head;
		int64_t length;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, HTTP1_LENGTH, HTTP1_EMPTY, 5 },
		{ "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, HTTP1_LENGTH, HTTP1_EMPTY, 0 },
		{ "HTTP/1.1 404 \r\nTransfer-Encoding: CHUNKED\r\n\r\n", 404, HTTP1_CHUNKED, HTTP1_EMPTY,
		  -1 },
		{ "HTTP/1.0 200 OK\r\nX: y\r\n\r\n", 200, HTTP1_TO_END, HTTP1_EMPTY, -1 },
		{ "HTTP/1.1 204 No Content\r\n\r\n", 204, HTTP1_EMPTY, HTTP1_EMPTY, -1 },
		{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, HTTP1_EMPTY, HTTP1_EMPTY,
		  9 },
		{ "HTTP/1.1 100 Continue\r\n\r\n", 100, HTTP1_EMPTY, HTTP1_EMPTY, -1 },
	};
	for (size_t i = 0; i < ELEMS(cases); i++)
		for (size_t step = 1; step < 64; step += 13) {
			struct parsed p;
			parse(&p, cases[i].text, step);
			assert_int_equal(p.rc, strlen(cases[i].text));
			assert_int_equal(p.r.status, cases[i].status);
			assert_int_equal(http1_response_framing(&p.r, false), cases[i].framing);
			assert_int_equal(http1_response_framing(&p.r, true), cases[i].to_head);
			assert_int_equal(p.r.content_length, cases[i].length);
		}
}

static void test_headers(void **state)
{
	struct parsed p;

	parse(&p, "HTTP/1.1 200 OK\r\nX-Mixed-CASE:\t va lue \t\r\nEmpty:\r\n\r\nbody", 1000);
	assert_true(p.rc > 0);
	assert_memory_equal(p.bytes + p.rc, "body", 4);
	assert_int_equal(p.r.n_headers, 2);
	assert_true(view_is(p.headers[0].name, "x-mixed-case") && view_is(p.headers[0].value, "va lue"));
	assert_true(view_is(p.headers[1].name, "empty") && p.headers[1].value.n == 0);
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"HTTP/1.1 200 OK\nX: y\n\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.2 200 OK\r\n\r\n",
		" HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1  200 OK\r\n\r\n",
		"HTTP/1.1 99 x\r\n\r\n",
		"HTTP/1.1 600 x\r\n\r\n",
		"HTTP/1.1 2000 x\r\n\r\n",
		"HTTP/1.1 200 a\x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: a\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\x7f\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\n\r\n",
	};
	for (size_t i = 0; i < ELEMS(cases); i++)
		for (size_t step = 1; step < 64; step += 31) {
			struct parsed p;
			parse(&p, cases[i], step);
			if (p.rc != -1 || !p.r.why)
				fail_msg("accepted: %s", cases[i]);
			/* For good. */
			assert_int_equal(http1_response_parse(&p.r, p.bytes, 1), -1);
		}
}

static void test_limit(void **state)
{
	char text[1200];
	struct parsed p;

	memset(text, 'a', sizeof(text));
	memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
	text[1100] = 0;
	parse(&p, text, 7);
	assert_int_equal(p.rc, -1);
	text[1000] = 0;
	parse(&p, text, 7);
	assert_int_equal(p.rc, 0);
}

static void test_options(void **state)
{
	assert_true(http1_response_has_option(VIEW("keep-alive, Upgrade"), "upgrade"));
	assert_false(http1_response_has_option(VIEW("keep-alive, Upgraded"), "upgrade"));
	assert_false(http1_response_has_option(VIEW_NONE, "upgrade"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heads), cmocka_unit_test(test_headers), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limit), cmocka_unit_test(test_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
