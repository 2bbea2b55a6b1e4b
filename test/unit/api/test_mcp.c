/*
 * The parts of the MCP dialect that do no I/O: messages, headers, sealed states, Host and Origin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "mcp_impl.h"
#include "origin.h"
#include "poison.h"

/* ---- messages ---- */

static enum mcp_message_kind kind_of(const char *text)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct err e = { 0 };
	struct json *doc;

	assert_int_equal(json_parse(&a, view_of(text), &doc, &e), 0);
	enum mcp_message_kind k = mcp_rpc_read(doc).kind;
	arena_done(&a);
	return k;
}

static void test_messages(void **state)
{
	static const struct {
		const char *text;
		enum mcp_message_kind kind;
	} cases[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", MCP_MESSAGE_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}",
		  MCP_MESSAGE_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", MCP_MESSAGE_NOTE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MCP_MESSAGE_RESPONSE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}",
		  MCP_MESSAGE_RESPONSE },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", MCP_MESSAGE_BAD },
		{ "{\"id\":1,\"method\":\"ping\"}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", MCP_MESSAGE_BAD },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_MESSAGE_BAD },
		{ "[]", MCP_MESSAGE_BAD },
		{ "7", MCP_MESSAGE_BAD },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		if (kind_of(cases[i].text) != cases[i].kind)
			fail_msg("%s", cases[i].text);
}

static void test_headers(void **state)
{
	struct arena a = ARENA_INIT(1u << 16);

	assert_true(view_is(mcp_rpc_header(&a, VIEW("tools/call")), "tools/call"));
	assert_true(view_is(mcp_rpc_header(&a, VIEW("=?base64?aMOpbGxv?=")), "h\xc3\xa9llo"));
	assert_true(view_is(mcp_rpc_header(&a, VIEW("=?base64?")), "=?base64?")); /* no end: literal */
	assert_true(view_is(mcp_rpc_header(&a, VIEW("=?base64?=")), "=?base64?="));
	assert_null(mcp_rpc_header(&a, VIEW("=?base64?a?=")).p);
	assert_null(mcp_rpc_header(&a, VIEW("=?base64?/w==?=")).p); /* not UTF-8 */
	arena_done(&a);
}

static void test_versions(void **state)
{
	assert_int_equal(mcp_rpc_version(VIEW("2026-07-28")), MCP_2026_07);
	assert_int_equal(mcp_rpc_version(VIEW("2025-03-26")), MCP_2025_03);
	assert_int_equal(mcp_rpc_version(VIEW("2024-11-05")), MCP_NONE);
	assert_int_equal(mcp_rpc_level(VIEW("warning")), MCP_LEVEL_WARNING);
	assert_true(mcp_rpc_level(VIEW("loud")) < 0);
}

/* ---- seals ---- */

static const uint8_t KEY[32] = { 1, 2, 3 }, OTHER[32] = { 1, 2, 4 };

static int try_open(const uint8_t *key, const char *bound, int64_t now, struct view sealed)
{
	struct buf out = BUF_INIT(MCP_STATE_MAX);
	int r = mcp_seal_open(key, view_of(bound), now, sealed, &out);

	if (r == 0)
		assert_true(view_is(buf_view(&out), "the state, which is longer than one block of a hash"));
	else
		assert_int_equal(buf_len(&out), 0);
	buf_done(&out);
	return r;
}

static void test_seals(void **state)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct buf a = BUF_INIT(MCP_STATE_MAX), b = BUF_INIT(MCP_STATE_MAX);
	struct view text = VIEW("the state, which is longer than one block of a hash");

	assert_int_equal(mcp_seal(KEY, VIEW("me"), 1000, text, &a), 0);
	assert_int_equal(mcp_seal(KEY, VIEW("me"), 1000, text, &b), 0);
	assert_false(view_eq(buf_view(&a), buf_view(&b))); /* nobody sees that two are the same */
	assert_int_equal(try_open(KEY, "me", 999, buf_view(&a)), 0);
	assert_int_equal(try_open(KEY, "me", 1000, buf_view(&a)), -ETIME);
	assert_int_equal(try_open(KEY, "you", 999, buf_view(&a)), -EBADMSG);
	assert_int_equal(try_open(OTHER, "me", 999, buf_view(&a)), -EBADMSG);
	assert_int_equal(try_open(KEY, "me", 999, VIEW("")), -EBADMSG);
	assert_int_equal(try_open(KEY, "me", 999, view_head(buf_view(&a), 64)), -EBADMSG);
	for (size_t i = 0; i < buf_len(&a); i++) { /* any other character, anywhere */
		char was = a.p[i];
		a.p[i] = digits[((size_t)(strchr(digits, was) - digits) + 1) % 64];
		if (was != '=')
			assert_true(try_open(KEY, "me", 999, buf_view(&a)) < 0);
		a.p[i] = was;
	}
	buf_done(&a);
	buf_done(&b);
}

/* ---- browsers ---- */

static int access(const char *listen, bool tls, const char *host, const char *origin)
{
	struct http_header h = { VIEW("origin"), view_of(origin) };
	struct http_exchange x = {
		.host = view_of(host), .headers = &h, .n_headers = origin ? 1 : 0, .tls = tls
	};
	struct err e = { 0 };

	return origin_check(&x, view_of(listen), &e);
}

static void test_access(void **state)
{
	const char *here = "127.0.0.1:7080", *all = "0.0.0.0:7080";

	assert_int_equal(access(here, false, "127.0.0.1:7080", NULL), 0);
	assert_int_equal(access(here, false, "localhost:7080", NULL), 0);
	assert_int_equal(access("[::1]:7080", false, "[::1]:7080", NULL), 0);
	assert_int_equal(access(here, false, "localhost:7080", "http://localhost:3000"), 0);
	assert_int_equal(access(here, false, "evil.example", NULL), -1);
	assert_int_equal(access(here, false, "127.evil.example", NULL), -1);
	assert_int_equal(access(here, false, "localhost.evil.example", NULL), -1);
	assert_int_equal(access(here, false, "localhost:7080", "http://evil.example"), -1);
	assert_int_equal(access(here, false, "localhost:7080", "null"), -1);
	assert_int_equal(access(here, false, "localhost:7080", "file://"), -1);
	assert_int_equal(access(all, false, "paddock.example:7080", NULL), 0);
	assert_int_equal(access(all, false, "paddock.example:7080", "http://paddock.example:7080"), 0);
	assert_int_equal(access(all, false, "paddock.example:7080", "http://localhost"), -1);
	assert_int_equal(access(all, false, "paddock.example:7080", "http://evil.example"), -1);
	assert_int_equal(access(here, true, "paddock.example", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages), cmocka_unit_test(test_headers),
		cmocka_unit_test(test_versions), cmocka_unit_test(test_seals),
		cmocka_unit_test(test_access),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
