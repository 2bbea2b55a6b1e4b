/*
 * Answers, well-formed and hostile. Everything is fed whole and byte by byte:
 * where the network cuts must not matter.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "buf.h"
#include "response.h"

#include "poison.h"

static int head(const char *text, struct response *r, size_t *used)
{
	struct err e = { 0 };
	int rc = response_head(view_of(text), false, r, used, &e);

	assert_int_equal(rc < 0, e.code != ERR_OK);
	return rc;
}

static void test_heads(void **state)
{
	static const struct {
		const char *text;
		int status;
		enum response_framing framing;
		uint64_t length;
		bool keep, json;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, RESPONSE_LENGTH, 5, true, false },
		{ "HTTP/1.1 200\r\ncontent-length:5\r\n\r\n", 200, RESPONSE_LENGTH, 5, true, false },
		{ "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200, RESPONSE_EMPTY, 0, true, false },
		{ "HTTP/1.1 201 Created\r\nTransfer-Encoding: Chunked\r\nContent-Type: application/json; "
		  "charset=x\r\n\r\n",
		  201, RESPONSE_CHUNKED, 0, true, true },
		{ "HTTP/1.1 200 OK\r\n\r\n", 200, RESPONSE_TO_END, 0, false, false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 200, RESPONSE_LENGTH, 5, false, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, Close\r\n\r\n", 200,
		  RESPONSE_LENGTH, 5, false, false },
		{ "HTTP/1.1 204 No Content\r\n\r\n", 204, RESPONSE_EMPTY, 0, true, false },
		{ "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", 304, RESPONSE_EMPTY, 9, true, false },
		{ "HTTP/1.1 100 Continue\r\n\r\n", 100, RESPONSE_EMPTY, 0, true, false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct response r = { 0 };
		struct err e = { 0 };
		size_t used = 0, n = strlen(cases[i].text);

		assert_int_equal(head(cases[i].text, &r, &used), 1);
		assert_int_equal(used, n);
		assert_int_equal(r.status, cases[i].status);
		assert_int_equal(r.framing, cases[i].framing);
		assert_int_equal(r.length, cases[i].length);
		assert_int_equal(r.keep_alive, cases[i].keep);
		assert_int_equal(r.json, cases[i].json);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(
				response_head(view_head(view_of(cases[i].text), k), false, &r, &used, &e), 0);
	}
}

static void test_cookie(void **state)
{
	static const char *const cases[][2] = {
		{ "Set-Cookie: a=b; Path=/; HttpOnly\r\n", "a=b" },
		{ "set-cookie:a=b\r\nSet-Cookie: c=d;x\r\n", "c=d" },
		{ "Set-Cookie: " /* 130 bytes: nothing that could be a session of ours */
		  "a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
		  "" },
		{ "X: y\r\n", "" },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[512];
		struct response r = { 0 };
		size_t used;

		snprintf(text, sizeof(text), "HTTP/1.1 204 No Content\r\n%s\r\n", cases[i][0]);
		assert_int_equal(head(text, &r, &used), 1);
		assert_string_equal(r.cookie, cases[i][1]);
	}
}

static void test_head_request(void **state)
{
	struct response r;
	struct err e = { 0 };
	size_t used;

	assert_int_equal(
		response_head(VIEW("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), true, &r, &used, &e), 1);
	assert_int_equal(r.framing, RESPONSE_EMPTY);
	assert_int_equal(r.length, 5);
}

static void test_file_mode(void **state)
{
	static const struct {
		const char *value;
		unsigned mode;
	} cases[] = { { "0644", 0644 }, { "0755", 0755 }, { "4755", 0755 }, { "", 0 },
		      { "0o644", 0 },   { "648", 0 },     { "-1", 0 },      { "7777777777777777", 0 } };

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct response r = { 0 };
		char text[120];
		size_t used;

		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nX-File-Mode: %s\r\n\r\n", cases[i].value);
		assert_int_equal(head(text, &r, &used), 1);
		assert_int_equal(r.mode, cases[i].mode);
	}
}

static void test_hostile_heads(void **state)
{
	static const char *const cases[] = {
		"HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/1.1  200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 600 OK\r\n\r\n",
		"HTTP/1.1 +20 OK\r\n\r\n",
		"http/1.1 200 OK\r\n\r\n",
		"ICY 200 OK\r\n\r\n",
		"\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\n\n",
		"HTTP/1.1 200 OK\r\nA: b\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nnocolon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA\x80: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct response r;
		size_t used;

		if (head(cases[i], &r, &used) != -1)
			fail_msg("accepted %s", cases[i]);
	}
}

static void test_head_without_end(void **state)
{
	struct buf b = BUF_INIT(1u << 20);
	struct response r;
	struct err e = { 0 };
	size_t used;

	buf_puts(&b, "HTTP/1.1 200 OK\r\n");
	while (buf_len(&b) < RESPONSE_HEAD_MAX - 8)
		buf_puts(&b, "A: b\r\n");
	assert_int_equal(response_head(buf_view(&b), false, &r, &used, &e), 0);
	buf_puts(&b, "A: b\r\nA: b\r\n");
	assert_int_equal(response_head(buf_view(&b), false, &r, &used, &e), -1);
	buf_clear(&b);
	while (buf_len(&b) <= RESPONSE_HEAD_MAX)
		buf_putc(&b, 'x');
	assert_int_equal(response_head(buf_view(&b), false, &r, &used, &e), -1);
	buf_done(&b);
}

/* Feeds `text` in steps of `step` bytes; 0 when the body ended exactly at its end. */
static int drain(const struct response *r, const char *text, size_t step, struct buf *out)
{
	struct response_body body;
	struct view all = view_of(text);
	size_t from = 0, to = 0;

	response_body_init(&body, r);
	while (!body.done) {
		struct view data;
		ssize_t n = response_body_next(&body, (struct view){ all.p + from, to - from }, &data);

		if (n < 0)
			return (int)n;
		assert_true((size_t)n <= to - from && data.n <= (size_t)n);
		buf_add(out, data);
		from += (size_t)n;
		if (n > 0 || body.done)
			continue;
		if (to == all.n)
			return response_body_eof(&body);
		to = MIN(to + step, all.n);
	}
	return from == all.n ? 0 : -EXDEV;
}

static void check_body(enum response_framing framing, uint64_t length, const char *text, int result,
		       const char *expected)
{
	const struct response r = { .framing = framing, .length = length };

	for (size_t step = 1; step < 40; step += step < 4 ? 1 : 13) {
		struct buf out = BUF_INIT(1024);
		int rc = drain(&r, text, step, &out);

		if (rc != result)
			fail_msg("%s: %d, not %d", text, rc, result);
		if (result == 0)
			assert_true(view_is(buf_view(&out), expected));
		buf_done(&out);
	}
}

static void test_bodies(void **state)
{
	check_body(RESPONSE_EMPTY, 0, "", 0, "");
	check_body(RESPONSE_LENGTH, 5, "hello", 0, "hello");
	check_body(RESPONSE_TO_END, 0, "hello", 0, "hello");
	check_body(RESPONSE_CHUNKED, 0, "0\r\n\r\n", 0, "");
	check_body(RESPONSE_CHUNKED, 0, "3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n", 0, "abc0123456789");
	check_body(RESPONSE_CHUNKED, 0, "3;x=y\r\nabc\r\n00\r\nTrailer: x\r\n\r\n", 0, "abc");
}

static void test_hostile_bodies(void **state)
{
	static const char *const chunked[] = {
		"3\nabc\r\n0\r\n\r\n",
		"3\r\nabcd\r\n0\r\n\r\n",
		"3\r\nabc\n0\r\n\r\n",
		"-3\r\nabc\r\n0\r\n\r\n",
		"0x3\r\nabc\r\n0\r\n\r\n",
		" 3\r\nabc\r\n0\r\n\r\n",
		"\r\n\r\n",
		";x\r\n\r\n",
		"g\r\n",
		"ffffffffffffffff\r\nabc",
		"10000000000000003\r\nabc\r\n0\r\n\r\n",
		"3\r\nabc\r\n0\r\nx\n\r\n",
		/* cut off */
		"",
		"3",
		"3\r\n",
		"3\r\nab",
		"3\r\nabc",
		"3\r\nabc\r\n",
		"3\r\nabc\r\n0\r\n",
		"0\r\nTrailer: x\r\n",
	};
	struct buf b = BUF_INIT(1u << 20);
	const struct response r = { .framing = RESPONSE_CHUNKED };

	for (size_t i = 0; i < ELEMS(chunked); i++)
		check_body(RESPONSE_CHUNKED, 0, chunked[i], -EBADMSG, NULL);
	check_body(RESPONSE_LENGTH, 5, "hell", -EBADMSG, NULL);
	/* bytes after the end are not the body's */
	check_body(RESPONSE_LENGTH, 5, "helloHTTP/1.1 200", -EXDEV, NULL);

	/* a size line and trailers without end */
	buf_puts(&b, "3;");
	while (buf_len(&b) < 100000)
		buf_putc(&b, 'x');
	buf_putc(&b, '\0');
	assert_int_equal(drain(&r, buf_view(&b).p, 4096, &(struct buf){ .max = 1 }), -EBADMSG);
	buf_clear(&b);
	buf_puts(&b, "0\r\n");
	while (buf_len(&b) < 100000)
		buf_puts(&b, "A: b\r\n");
	buf_putc(&b, '\0');
	assert_int_equal(drain(&r, buf_view(&b).p, 4096, &(struct buf){ .max = 1 }), -EBADMSG);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heads),         cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_head_request),  cmocka_unit_test(test_file_mode),
		cmocka_unit_test(test_hostile_heads), cmocka_unit_test(test_head_without_end),
		cmocka_unit_test(test_bodies),        cmocka_unit_test(test_hostile_bodies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
