/*
 * The HTTP/1.1 parser and writer on what is legal: what is read is what was sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http1_feed.h"
#include "poison.h"

struct parsed {
	struct http1_request r;
	struct http_header headers[20];
	char bytes[4096];
	int rc;
};

static void parse(struct parsed *p, const char *text)
{
	size_t n = strlen(text);
	assert_true(n < sizeof(p->bytes));
	memcpy(p->bytes, text, n);
	http1_request_init(&p->r, p->headers, ELEMS(p->headers), sizeof(p->bytes));
	p->rc = http1_request_parse(&p->r, p->bytes, n);
}

#define assert_view(v, s)                                                                                    \
	do {                                                                                                 \
		struct view _v = (v);                                                                        \
		assert_int_equal(_v.n, strlen(s));                                                           \
		assert_memory_equal(_v.p, s, _v.n);                                                          \
	} while (0)

static void test_request(void **state)
{
	struct parsed p;
	const char *text =
		"PUT /v1/a%20b?x=1&y HTTP/1.1\r\nHost: Example.com:80\r\nX-Mixed-CASE:\t va lue \t\r\n"
		"Content-Length: 12\r\nEmpty:\r\n\r\n";
	parse(&p, text);
	assert_int_equal(p.rc, strlen(text));
	assert_view(p.r.method, "PUT");
	assert_view(p.r.path, "/v1/a%20b");
	assert_view(p.r.query, "x=1&y");
	assert_view(p.r.host, "Example.com:80");
	assert_int_equal(p.r.version, 11);
	assert_int_equal(p.r.content_length, 12);
	assert_true(p.r.keep_alive);
	assert_false(p.r.expect_continue);
	assert_int_equal(p.r.n_headers, 4);
	assert_view(p.r.headers[1].name, "x-mixed-case");
	assert_view(p.r.headers[1].value, "va lue");
	assert_view(p.r.headers[3].name, "empty");
	assert_view(p.r.headers[3].value, "");
}

static void test_absolute_form(void **state)
{
	struct parsed p;
	parse(&p, "GET http://a:1 HTTP/1.1\r\nHost: A:1\r\n\r\n");
	assert_true(p.rc > 0);
	assert_view(p.r.path, "/");
	parse(&p, "GET https://a:1?q HTTP/1.1\r\nHost: a:1\r\n\r\n");
	assert_true(p.rc > 0);
	assert_view(p.r.path, "/");
	assert_view(p.r.query, "q");
}

static void test_hosts(void **state)
{
	static const char *const good[] = { "a",     "a:1",         "a.b-c_d", "127.0.0.1:7080",
					    "[::1]", "[::1]:65535", "a:" };
	static const char *const bad[] = { "",    ":80",      "[]",   "[",   "[::1", "[g]",    "a b",
					   "a,b", "a:123456", "a:-1", "a@b", "a/b",  "[::1]x", "a?b" };
	for (size_t i = 0; i < ELEMS(good); i++)
		assert_true(http1_is_host(view_of(good[i])));
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_false(http1_is_host(view_of(bad[i])));
}

static void test_keep_alive(void **state)
{
	static const struct {
		const char *text;
		bool keep;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, ,Close\r\n\r\n", false },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct parsed p;
		parse(&p, cases[i].text);
		assert_true(p.rc > 0);
		assert_int_equal(p.r.keep_alive, cases[i].keep);
	}
}

static void test_expect(void **state)
{
	struct parsed p;
	parse(&p, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n");
	assert_true(p.rc > 0 && p.r.expect_continue);
	parse(&p, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"); /* nothing to wait for */
	assert_true(p.rc > 0 && !p.r.expect_continue);
	parse(&p, "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
	assert_true(p.rc > 0 && !p.r.expect_continue);
}

/* The limits hold to the byte, however the bytes come. */
static void test_limits(void **state)
{
	struct http_header headers[2];
	for (size_t extra = 0; extra < 2; extra++) {
		for (size_t step = 1; step < 400; step += 57) {
			char text[256];
			size_t n = 0;
			int rc = 0;
			memset(text, 'y', sizeof(text));
			memcpy(text, "GET / HTTP/1.1\r\nHost: ", 22);
			memcpy(text + 196 + extra, "\r\n\r\n", 4);
			size_t total = 200 + extra;
			struct http1_request r;
			http1_request_init(&r, headers, ELEMS(headers), 200);
			while (rc == 0 && n < total) {
				n = MIN(n + step, total);
				rc = http1_request_parse(&r, text, n);
			}
			assert_int_equal(rc, extra ? -431 : 200);
		}
	}
}

static void test_chunked(void **state)
{
	struct view stream = VIEW("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
				  "1\r\na\r\n0A;x=\"\\\"\"\r\nbcdefghijk\r\n00\r\nT: x\r\n\r\n"
				  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nlmn");
	for (size_t step = 1; step < stream.n; step++) {
		struct http1_feed f;
		http1_feed(&f, stream, step);
		assert_string_equal(f.outcome, "ok ok");
		assert_view(buf_view(&f.bodies), "abcdefghijklmn");
		buf_done(&f.bodies);
	}
}

static void test_write_head(void **state)
{
	struct buf out = BUF_INIT(4096);
	const struct http_header extra[] = {
		{ VIEW("etag"), VIEW("\"x\"") },
		{ VIEW("bad\r\nname"), VIEW("x") },
		{ VIEW("split"), VIEW("x\r\nset-cookie: y") },
		{ VIEW("Content-Length"), VIEW("7") },
		{ VIEW("transfer-encoding"), VIEW("chunked") },
	};
	struct http1_answer a = { .status = 200,
				  .length = 1234567890123,
				  .content_type = "text/plain",
				  .date = VIEW("D"),
				  .request_id = VIEW("R"),
				  .version = 11,
				  .keep_alive = true,
				  .extra = extra,
				  .n_extra = ELEMS(extra) };
	assert_int_equal(http1_write_head(&out, &a), 0);
	assert_view(buf_view(&out), "HTTP/1.1 200 OK\r\nserver: paddock\r\ndate: D\r\nx-request-id: R\r\n"
				    "content-type: text/plain\r\netag: \"x\"\r\n"
				    "content-length: 1234567890123\r\n\r\n");
	buf_clear(&out);
	a = (struct http1_answer){ .status = 299,
				   .length = HTTP1_LENGTH_CHUNKED,
				   .date = VIEW("D"),
				   .request_id = VIEW("R"),
				   .version = 11 };
	assert_int_equal(http1_write_head(&out, &a), 0);
	assert_view(buf_view(&out), "HTTP/1.1 299 Other\r\nserver: paddock\r\ndate: D\r\nx-request-id: R\r\n"
				    "transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
	buf_done(&out);
}

/* Parsed from its start whenever there is news: each answer as soon as it can be known, and no look without
 * need. */
static void test_news(void **state)
{
	enum { MAX_BYTES = 512 };
	static const char *const heads[] = {
		"GET / HTTP/1.1\r\nHost: a\r\nx: y\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nno header\r\n",
		"\x16\x03\x01",
		"GET /" /* and so on */,
	};

	for (size_t i = 0; i < ELEMS(heads); i++) {
		char text[MAX_BYTES * 2], copy[sizeof(text)];
		size_t seen = 0, all = strlen(heads[i]), lines = 0, looks = 0;
		memset(text, 'x', sizeof(text));
		memcpy(text, heads[i], all);
		all = heads[i][all - 1] == '\n' ? all : sizeof(text);
		int r = 0;
		for (size_t n = 1; n <= all && r == 0; n++) {
			struct http_header headers[8];
			struct http1_request q;
			bool news = http1_request_news(&seen, text, n, MAX_BYTES);
			assert_int_equal(seen, n);
			assert_false(http1_request_news(&seen, text, n, MAX_BYTES));
			lines += text[n - 1] == '\n';
			looks += news;
			memcpy(copy, text, n);
			http1_request_init(&q, headers, ELEMS(headers), MAX_BYTES);
			r = http1_request_parse(&q, copy, n);
			assert_true(news || r == 0);
		}
		assert_int_not_equal(r, 0);
		assert_true(looks <= lines + 2);
	}
}

static void test_write_chunks(void **state)
{
	struct buf out = BUF_INIT(4096);
	http1_write_chunk(&out, VIEW("hello, chunks: 20 by"));
	http1_write_chunk(&out, VIEW(""));
	http1_write_last_chunk(&out, VIEW_NONE);
	assert_view(buf_view(&out), "14\r\nhello, chunks: 20 by\r\n0\r\n\r\n");
	buf_clear(&out);
	http1_write_last_chunk(&out, VIEW("x-sum: 7\r\n"));
	assert_view(buf_view(&out), "0\r\nx-sum: 7\r\n\r\n");
	buf_done(&out);
}

/* HTTP/2 asks this without the request line's own rules before it. */
static void test_targets(void **state)
{
	static const char *const good[] = { "/", "/a%20b", "/~!$&'()*+,;=:@-._", "" };
	static const char *const bad[] = { "/a b", "/a\tb", "/a\x1f", "/\x7f", "/\x80", "/#f",  "/\"",
					   "/<",   "/>",    "/\\",    "/%",    "/%2",   "/%2g", "/%g2" };

	for (size_t i = 0; i < ELEMS(good); i++)
		assert_true(http1_is_target(view_of(good[i])));
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (http1_is_target(view_of(bad[i])))
			fail_msg("%s", bad[i]);
}

static void test_versions(void **state)
{
	struct parsed p;

	parse(&p, "GET / HTTP/1.2\r\nHost: a\r\n\r\n");
	assert_int_equal(p.rc, -505);
	parse(&p, "GET / HTTP/2.0\r\nHost: a\r\n\r\n");
	assert_int_equal(p.rc, -505);
}

static void test_date(void **state)
{
	char d[HTTP1_DATE_SIZE];
	http1_write_date(d, 784111777); /* RFC 9110's example */
	assert_string_equal(d, "Sun, 06 Nov 1994 08:49:37 GMT");
	http1_write_date(d, 1709164800);
	assert_string_equal(d, "Thu, 29 Feb 2024 00:00:00 GMT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),      cmocka_unit_test(test_absolute_form),
		cmocka_unit_test(test_hosts),        cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_expect),       cmocka_unit_test(test_limits),
		cmocka_unit_test(test_chunked),      cmocka_unit_test(test_write_head),
		cmocka_unit_test(test_write_chunks), cmocka_unit_test(test_date),
		cmocka_unit_test(test_news),         cmocka_unit_test(test_targets),
		cmocka_unit_test(test_versions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
