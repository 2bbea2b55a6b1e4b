/*
 * Which port a request is for, and what of a head passes the proxy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plane_target.h"
#include "proxy_head.h"
#include "proxy_secrets.h"
#include "poison.h"

#define ID "abcdefghij0123456789"

static void test_hosts(void **state)
{
	static const char *const good[] = { "8000-" ID ".boxes.test", "8000-" ID ".BOXES.Test",
					    "8000-" ID ".boxes.test:7080" };
	static const char *const bad[] = { "",
					   "boxes.test",
					   "x.boxes.test",
					   "8000-.boxes.test",
					   "-" ID ".boxes.test",
					   "0-" ID ".boxes.test",
					   "65536-" ID ".boxes.test",
					   "+80-" ID ".boxes.test",
					   "8000-ABC.boxes.test",
					   "8000-a_b.boxes.test",
					   "8000-" ID ".boxes.test.evil",
					   "8000-" ID ".xboxes.test",
					   "8000-" ID ".a.boxes.test",
					   ("8000-" ID) };
	struct plane_name n;

	for (size_t i = 0; i < ELEMS(good); i++) {
		assert_true(plane_target_host(view_of(good[i]), VIEW("boxes.test"), &n));
		assert_true(n.port == 8000 && n.by_host && view_is(n.id, ID));
	}
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (plane_target_host(view_of(bad[i]), VIEW("boxes.test"), &n))
			fail_msg("taken: %s", bad[i]);
	assert_false(plane_target_host(VIEW("8000-" ID "."), VIEW(""), &n));
}

static void test_paths(void **state)
{
	struct plane_name n;

	assert_true(plane_target_path(VIEW("/v1/sandboxes/me/ports/8000/a/b"), &n));
	assert_true(n.port == 8000 && !n.by_host && view_is(n.id, "me") && view_is(n.path, "/a/b") &&
		    view_is(n.prefix, "/v1/sandboxes/me/ports/8000") && !n.ticket.p);
	assert_true(plane_target_path(VIEW("/v1/sandboxes/me/ports/8000"), &n));
	assert_int_equal(n.path.n, 0);
	assert_true(plane_target_path(VIEW("/v1/sandboxes/me/ports/8000//x"), &n));
	assert_true(view_is(n.path, "//x"));
	assert_true(plane_target_path(VIEW("/v1/previews/" ID "/80/1-abc/x"), &n));
	assert_true(n.port == 80 && view_is(n.ticket, "1-abc") && view_is(n.path, "/x") &&
		    view_is(n.prefix, "/v1/previews/" ID "/80/1-abc"));

	static const char *const bad[] = { "/",
					   "/v1/sandboxes/",
					   "/v1/sandboxes/me",
					   "/v1/sandboxes/me/ports",
					   "/v1/sandboxes/me/ports/",
					   "/v1/sandboxes/me/ports/x/",
					   "/v1/sandboxes/me/ports/0/",
					   "/v1/sandboxes/me/files/80/",
					   "/v1/sandboxes//ports/80/",
					   "/v1/previews/" ID "/80",
					   ("/v1/previews/" ID),
					   "/v1/previews/" };
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (plane_target_path(view_of(bad[i]), &n))
			fail_msg("taken: %s", bad[i]);
}

static void test_router(void **state)
{
	struct plane_name n = { 0 };

	assert_true(plane_target_router(VIEW("/sandboxes/router/" ID "/49983/files"), &n));
	assert_true(view_is(n.id, ID) && n.port == 49983 && view_is(n.path, "/files") &&
		    view_is(n.prefix, "/sandboxes/router/" ID "/49983"));
	assert_true(plane_target_router(VIEW("/sandboxes/router/" ID "/80//x"), &n) &&
		    view_is(n.path, "//x"));

	static const char *const bad[] = { "/sandboxes/router",           "/sandboxes/router/",
					   "/sandboxes/router/" ID,       "/sandboxes/router/" ID "/80",
					   "/sandboxes/router/" ID "/0/", "/sandboxes/router/" ID "/65536/",
					   "/sandboxes/router/" ID "/x/", "/sandboxes/router//80/",
					   "/sandboxes/router/../80/",    "/sandboxes/routers/" ID "/80/" };
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (plane_target_router(view_of(bad[i]), &n))
			fail_msg("taken: %s", bad[i]);
}

static struct http_header h(const char *name, const char *value)
{
	return (struct http_header){ view_of(name), view_of(value) };
}

static bool holds(const struct buf *b, const char *text)
{
	return memmem(buf_view(b).p, buf_len(b), text, strlen(text)) != NULL;
}

static void test_request(void **state)
{
	const struct http_header headers[] = {
		h("host", "client.test"),
		h("connection", "keep-alive, X-Named"),
		h("x-named", "1"),
		h("keep-alive", "5"),
		h("te", "trailers"),
		h("transfer-encoding", "chunked"),
		h("content-length", "7"),
		h("upgrade", "h2c"),
		h("proxy-authorization", "Basic x"),
		h("authorization", "Bearer pdk_0000"),
		h("x-api-key", "e2b_0000"),
		h("e2b-traffic-access-token", "t"),
		h("e2b-sandbox-id", "i"),
		h("x-forwarded-for", "6.6.6.6"),
		h("cookie", "a=1; paddock_preview=secret;b=2"),
		h("referer", "http://r"),
		h("x-own", "yes"),
	};
	struct proxy_head p = { .method = VIEW("POST"),
				.path = VIEW("/x"),
				.query = VIEW("a=b"),
				.host = VIEW("inner"),
				.client_host = VIEW("client.test"),
				.peer = VIEW("10.0.0.1"),
				.headers = headers,
				.n_headers = ELEMS(headers),
				.content_length = 7 };
	_cleanup_(buf_done) struct buf out = BUF_INIT(8192), below = BUF_INIT(8192);

	assert_int_equal(proxy_head_request(&out, &p), 0);
	const char *want = "POST /x?a=b HTTP/1.1\r\nhost: inner\r\ncookie: a=1; b=2\r\nreferer: "
			   "http://r\r\nx-own: yes\r\n"
			   "x-forwarded-for: 6.6.6.6, 10.0.0.1\r\nx-forwarded-host: "
			   "client.test\r\nx-forwarded-proto: http\r\ncontent-length: 7\r\n"
			   "connection: close\r\n\r\n";
	assert_int_equal(buf_len(&out), strlen(want));
	assert_memory_equal(buf_view(&out).p, want, strlen(want));

	p.prefix = VIEW("/v1/previews/id/80/1-secret");
	p.content_length = -1;
	p.tls = p.websocket = true;
	assert_int_equal(proxy_head_request(&below, &p), 0);
	assert_false(holds(&below, "cookie") || holds(&below, "referer") || holds(&below, "secret"));
	assert_true(holds(&below, "transfer-encoding: chunked\r\n") &&
		    holds(&below, "x-forwarded-proto: https\r\n") &&
		    holds(&below, "connection: upgrade\r\nupgrade: websocket\r\n\r\n"));
}

static void test_foreign_keys_pass(void **state)
{
	assert_true(proxy_head_is_key(VIEW("Bearer pdk_x")) && proxy_head_is_key(VIEW("bearer  e2b_x")) &&
		    proxy_head_is_key(VIEW("pdk_x")));
	assert_false(proxy_head_is_key(VIEW("Bearer sk-x")) || proxy_head_is_key(VIEW("Basic cGRrXw==")) ||
		     proxy_head_is_key(VIEW_NONE));
}

#define HEX40 "0123456789abcdef0123456789abcdef01234567"

static void test_keys_are_found(void **state)
{
	static const char *const with[] = {
		"pdk_" HEX40,         "e2b_pdk_" HEX40,
		"Bearer e2b_" HEX40,  "%70dk_" HEX40,
		"%2570dk%255f" HEX40, "%zz%70dk_" HEX40,
		"a, pdk_" HEX40 "x",  "basic cGRrXzAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc="
	};
	static const char *const without[] = { "",  "pdk_", "pdk_0123", ("sk_" HEX40), "Basic cGRrXw==",
					       "%", "%7" };

	for (size_t i = 0; i < ELEMS(with); i++)
		if (!proxy_secrets_in(view_of(with[i])))
			fail_msg("not found: %s", with[i]);
	for (size_t i = 0; i < ELEMS(without); i++)
		if (proxy_secrets_in(view_of(without[i])))
			fail_msg("found: %s", without[i]);
}

static void test_query_without_credentials(void **state)
{
	static const struct {
		const char *query, *names, *want;
	} cases[] = { { "a=1&api%5Fkey=x&b=2", "api_key ticket", "?a=1&b=2" },
		      { "%74icket=x", "api_key ticket", "" },
		      { "api_key=x", NULL, "?api_key=x" },
		      { "api_key=pdk_" HEX40, NULL, "" },
		      { "a=%zz&&flag", "api_key", "?a=%zz&&flag" },
		      { "", "api_key", "" } };

	for (size_t i = 0; i < ELEMS(cases); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT(256);
		proxy_secrets_query(&out, view_of(cases[i].query), cases[i].names);
		if (!view_is(buf_view(&out), cases[i].want))
			fail_msg("%s became %.*s", cases[i].query, VIEW_ARG(buf_view(&out)));
	}
}

static size_t filter(const struct http_header *in, size_t n, const char *prefix, struct buf *room,
		     struct http_header *out)
{
	struct http1_response r = { .headers = (struct http_header *)(uintptr_t)in,
				    .n_headers = n,
				    .status = 200 };
	return proxy_head_response(&r, view_of(prefix), room, out);
}

static bool has(const struct http_header *list, size_t n, const char *name, const char *value)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(list[i].name, name) && (!value || view_is(list[i].value, value)))
			return true;
	return false;
}

static void test_response(void **state)
{
	const struct http_header headers[] = {
		h("connection", "x-named"),
		h("x-named", "1"),
		h("content-length", "3"),
		h("transfer-encoding", "chunked"),
		h("set-cookie", "a=1"),
		h("set-cookie", "b=1; DOMAIN=boxes.test; Path=/"),
		h("set-cookie", "c=1 ; path=/; domain = x"),
		h("set-cookie", "paddock_preview=x"),
		h("set-cookie", "=paddock_preview=x; Path=/"), /* nameless: sent as its value alone */
		h("set-cookie", " = =paddock_preview=x"),
		h("x-accel-redirect", "/etc/"),
		h("x-sendfile", "/etc/passwd"),
		h("clear-site-data", "*"),
		h("location", "/there"),
		h("content-type", "text/x"),
		h("content-security-policy", "default-src *"),
	};
	struct http_header out[ELEMS(headers) + PROXY_HEAD_MORE];
	_cleanup_(buf_done) struct buf room = BUF_INIT(4096), room2 = BUF_INIT(4096);

	size_t n = filter(headers, ELEMS(headers), "", &room, out);
	assert_int_equal(n, 4);
	assert_true(has(out, n, "set-cookie", "a=1") && has(out, n, "location", "/there") &&
		    has(out, n, "content-type", "text/x"));
	static const char *const origin[] = { "nel", "report-to", "reporting-endpoints", "accept-ch" };
	for (size_t i = 0; i < ELEMS(origin);
	     i++) { /* they are about the whole origin, which is ours below a path */
		struct http_header one = h(origin[i], "{}"), got[1 + PROXY_HEAD_MORE];
		assert_true(has(got, filter(&one, 1, "", &room, got), origin[i], "{}"));
		assert_false(has(got, filter(&one, 1, "/p", &room, got), origin[i], NULL));
	}
	n = filter(headers, ELEMS(headers), "/p", &room2, out);
	assert_false(has(out, n, "set-cookie", NULL));
	assert_true(has(out, n, "location", "/p/there") && has(out, n, "referrer-policy", "no-referrer"));
	/* The box's own policy stays, ours is added: both hold. */
	assert_true(has(out, n, "content-security-policy", "default-src *"));
	assert_int_equal(n, 5);
}

static void test_redirects(void **state)
{
	static const char *const same[] = { "//other.test/x", "http://x/", "relative", "" };
	struct http_header out[1 + PROXY_HEAD_MORE];

	for (size_t i = 0; i < ELEMS(same); i++) {
		_cleanup_(buf_done) struct buf room = BUF_INIT(4096);
		struct http_header in = h("location", same[i]);
		filter(&in, 1, "/p", &room, out);
		assert_true(view_is(out[0].value, same[i]));
	}
}

static void test_mask(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(256);

	proxy_head_mask(&out, VIEW("${PORT}.x:${PORT}${POR}$"), 80);
	assert_true(view_is(buf_view(&out), "80.x:80${POR}$"));
}

static void test_cookie(void **state)
{
	struct view two = VIEW("a=1;  b=2 ;c; b=3"), none = VIEW("ab=1; c"), bare = VIEW("c");

	assert_true(view_is(proxy_head_cookie(&two, "b"), "2") && view_is(proxy_head_cookie(&two, "b"), "3"));
	assert_false(proxy_head_cookie(&two, "b").p || proxy_head_cookie(&none, "b").p ||
		     proxy_head_cookie(&bare, "c").p);
}

static void test_websocket(void **state)
{
	const struct http_header yes[] = { h("connection", "keep-alive, Upgrade"),
					   h("upgrade", "WebSocket") },
				 no[] = { h("upgrade", "websocket") },
				 h2c[] = { h("connection", "upgrade"), h("upgrade", "h2c") };

	assert_true(proxy_head_is_websocket(yes, 2));
	assert_false(proxy_head_is_websocket(no, 1) || proxy_head_is_websocket(h2c, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_router),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_foreign_keys_pass),
		cmocka_unit_test(test_keys_are_found),
		cmocka_unit_test(test_query_without_credentials),
		cmocka_unit_test(test_response),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_websocket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
