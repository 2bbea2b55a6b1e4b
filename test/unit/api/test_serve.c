/*
 * The frame of the dialects: which one a request is for, routes, errors in each one's
 * own words, listeners that belong to one, and calls over Connect, gRPC and gRPC-Web.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "answer.h"
#include "envd_gen.h"
#include "fd.h"
#include "http_h2_client.h"
#include "proxy.h"
#include "sample_dialect.h"
#include "serve_rig.h"
#include "served.h"
#include "stream.h"
#include "poison.h"

/* ---- a dialect of calls, which takes what is left: a size of 80 × 24 is the message ---- */

struct sum {
	struct envd_pty_size all;
};

static void on_unary(struct request *r, const void *msg)
{
	const struct envd_pty_size *q = msg;
	struct err e = { 0 };

	if (q->cols == 0) {
		err_set(&e, ERR_INVALID, "100%% of nothing, \xc3\xa4");
		answer_fail(r, &e);
		return;
	}
	rpc_reply(r, &(struct envd_pty_size){ q->cols + 1, q->rows });
}

static void on_server(struct request *r, const void *msg)
{
	const struct envd_pty_size *q = msg;
	struct err e = { 0 };

	rpc_begin(r, NULL);
	for (uint32_t i = 0; i < q->cols; i++)
		rpc_send(r, &(struct envd_pty_size){ i, q->rows });
	if (q->rows == 0) {
		err_set(&e, ERR_STATE, "no rows");
		answer_fail(r, &e);
		return;
	}
	rpc_end(r);
}

static void on_client(struct request *r, const void *msg)
{
	const struct envd_pty_size *q = msg;
	struct sum *s = r->own ? r->own : request_own(r, sizeof(*s));

	if (!s)
		return;
	s->all.cols += q->cols;
	s->all.rows += q->rows;
	rpc_go_on(r);
}

static void on_client_end(struct request *r)
{
	struct sum none = { 0 }, *s = r->own ? r->own : &none;
	struct envd_pty_size all = s->all;
	rpc_reply(r, &all);
}

static void on_bidi(struct request *r, const void *msg)
{
	if (!rpc_of(r)->begun)
		rpc_begin(r, NULL);
	rpc_send(r, msg);
	rpc_go_on(r);
}

static void on_bidi_end(struct request *r)
{
	rpc_end(r);
}

#define SIZE &envd_pty_size_msg, &envd_pty_size_msg
static const struct rpc_method methods[] = {
	{ "/test.Echo/Unary", RPC_UNARY, SIZE, on_unary },
	{ "/test.Echo/Server", RPC_SERVER, SIZE, on_server },
	{ "/test.Echo/Client", RPC_CLIENT, SIZE, on_client, on_client_end },
	{ "/test.Echo/Bidi", RPC_BIDI, SIZE, on_bidi, on_bidi_end },
	{ 0 },
};
static const struct rpc_method *const method_tables[] = { methods, NULL };

/* Events, the number of which is in the path, from the one behind Last-Event-ID on. */
static void drop_stream(struct request *r)
{
	stream_release(r->own);
}

static void events(struct request *r)
{
	static const struct http_ops ops = { .on_body = request_drop_body, .on_abort = request_abort };
	struct stream *s = request_own(r, sizeof(*s));
	struct view last = stream_last_id(r);
	struct json_out o;

	r->on_gone = drop_stream;
	stream_init(s, r, stream_form(r), &ops);
	stream_begin(s, NULL, 0);
	for (unsigned i = last.n ? (unsigned)(last.p[0] - '0') + 1 : 1;
	     i <= (unsigned)(r->params[0].p[0] - '0'); i++) {
		stream_id(s, i);
		stream_open(s, &o, "tick");
		json_out_ku64(&o, "i", i);
		stream_close(s, &o);
	}
	stream_finish(s);
}

static void any(struct request *r)
{
	answer_plain(r, 200, "text/plain", r->params[0]);
}

/* Nothing is there: the proxy's own answer, in its words. */
static void passed(struct request *r)
{
	proxy_take(r, &(struct proxy_wish){ .serve = r->serve,
					    .actor = r->actor,
					    .box = VIEW("nobody"),
					    .path = VIEW("/"),
					    .host = VIEW("localhost"),
					    .port = 80,
					    .words = proxy_words_rest });
}

static const struct route routes[] = {
	{ "GET", "/events/{n}", events, .auth = ROUTE_OPEN },
	{ ROUTE_ANY_METHOD, "/any/{path}", any, .auth = ROUTE_OPEN },
	{ "PUT", "/any/passed", passed, .auth = ROUTE_OPEN, .body = ROUTE_STREAM },
	{ 0 },
};
static const struct route *const tables[] = { routes, NULL };

static int check_echo(struct request *r, struct err *e)
{
	return http_get_header(r->x, "x-nobody").p ? err_set(e, ERR_UNAUTHORIZED, "who are you?") : 0;
}

static void fail_echo(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	if (!rpc_fail_head(r, e))
		http_reply(r->x, err_http(e->code), "text/plain", view_of(e->msg), extra, n_extra);
}

static const struct surface echo = {
	.routes = tables, .methods = method_tables, .authenticate = check_echo, .fail = fail_echo
};
static const struct dialect echo_dialect = { .name = "echo", .surface = &echo };

/* ---- the rig ---- */

static const struct dialect *const dialects[] = { &sample_dialect, &echo_dialect, NULL };
static struct serve_rig rig;
static struct h2_client *h2;
static struct buf body = BUF_INIT(1 << 20);
static struct buf head = BUF_INIT(1 << 16);

static int start(void **state)
{
	serve_rig_start(&rig, dialects, "sample");
	h2 = malloc(sizeof(*h2));
	h2_client_open(h2, http_rig_connect(&rig.listeners[0]), NULL, false);
	return 0;
}

static int stop(void **state)
{
	serve_rig_stop(&rig); /* drains: without that the stream of test_grpc_talks would keep it */
	h2_client_close(h2);
	free(h2);
	buf_done(&body);
	buf_done(&head);
	return 0;
}

/* One request by HTTP/1.1; the answer's status. */
static int ask(unsigned listener, const char *line, const char *headers, struct view content)
{
	struct buf text = BUF_INIT(1 << 16);
	int fd = http_rig_connect(&rig.listeners[listener]);

	buf_printf(&text, "%s HTTP/1.1\r\nhost: x\r\n%scontent-length: %zu\r\n\r\n", line, headers,
		   content.n);
	buf_add(&text, content);
	http_rig_send_bytes(fd, text.p, text.n);
	int status = http_rig_read_answer(fd, &head, &body, view_starts(view_of(line), "HEAD"));
	fd_close(fd);
	buf_done(&text);
	return status;
}

#define KEY "x-sample-token: " SERVE_RIG_KEY "\r\n"

/* ---- a dialect ---- */

static void test_claims(void **state)
{
	assert_int_equal(ask(0, "GET /sample/w%6frld", KEY, VIEW("")), 200);
	assert_string_equal(body.p, "{\"hello\":\"world\",\"bytes\":0}\n");
	assert_int_equal(ask(0, "POST /sample/you", KEY, VIEW("12345")), 200);
	assert_string_equal(body.p, "{\"hello\":\"you\",\"bytes\":5}\n");
	/* What it does not claim is the next one's. */
	assert_int_equal(ask(0, "GET /sampled", KEY, VIEW("")), 404);
	assert_string_equal(body.p, "there is nothing at this path");
}

static void test_own_words(void **state)
{
	assert_int_equal(ask(0, "GET /sample/x", "", VIEW("")), 401);
	assert_string_equal(body.p, "oops: a valid key is needed (Authorization: Bearer, or X-API-Key)\n");
	/* Its own header alone is looked at. */
	assert_int_equal(ask(0, "GET /sample/x", "x-api-key: " SERVE_RIG_KEY "\r\n", VIEW("")), 401);
	assert_int_equal(ask(0, "GET /sample/x/y", KEY, VIEW("")), 404);
	assert_string_equal(body.p, "oops: there is nothing at this path\n");
	assert_int_equal(ask(0, "GET /sample/%zz", KEY, VIEW("")), 400);
	assert_int_equal(ask(0, "GET /sample/x?a=1", KEY, VIEW("")), 400);
	assert_int_equal(ask(0, "POST /sample/x", KEY, VIEW("12345678901234567")), 413);
	assert_string_equal(body.p, "oops: the body is larger than 16 bytes\n");
}

static void test_methods(void **state)
{
	assert_int_equal(ask(0, "DELETE /sample/x", KEY, VIEW("")), 405);
	assert_string_equal(body.p, "oops: this path takes GET, HEAD, POST\n");
	assert_non_null(strstr(head.p, "\r\nallow: GET, HEAD, POST\r\n"));
	assert_int_equal(ask(0, "HEAD /sample/x", KEY, VIEW("")), 200);
	/* Without a key nobody is told. */
	assert_int_equal(ask(0, "DELETE /sample/x", "", VIEW("")), 401);
}

static void test_listener(void **state)
{
	struct err e = { 0 };

	assert_int_equal(ask(1, "GET /sample/me", KEY, VIEW("")), 200);
	/* On its own listener all is its own, claimed or not. */
	assert_int_equal(
		ask(1, "POST /test.Echo/Unary", KEY "content-type: application/json\r\n", VIEW("{}")), 404);
	assert_string_equal(body.p, "oops: there is nothing at this path\n");
	assert_int_equal(serve_bind(rig.serve, 0, VIEW("nothing"), &e), -1);
}

static void test_routes_are_printed(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	serve_print_routes(f, dialects);
	fclose(f);
	assert_string_equal(text, "\n# sample\nGET /sample/{name}\nPOST /sample/{name}\n");
	free(text);
}

static void test_prefixes(void **state)
{
	static const char *const pairs[][2] = {
		{ "/v1/sandboxes/{id}/exec", "/v1/sandboxes" },
		{ "/api/v1/terminal/sandbox/{name}/ws", "/api/v1/terminal" },
		{ "/sandbox/{name}/mcp", "/sandbox/{name}/mcp" },
		{ "/sandbox/{name}/{path}", "/sandbox/{name}" },
		{ "/sandbox/{name}", "/sandbox/{name}" },
		{ "/sandbox/{name}/v1/file/read", "/sandbox/{name}/v1/file" },
		{ "/api/{provider}/{path}", "/api" },
		{ "/test.Echo/Unary", "/test.Echo" },
		{ "/v1", "/v1" },
		{ "/health", "/health" },
	};

	for (size_t i = 0; i < ELEMS(pairs); i++) {
		struct view found = served_prefix(pairs[i][0]);
		assert_true(view_is(found, pairs[i][1]));
	}
}

static void test_any_method(void **state)
{
	assert_int_equal(ask(0, "PATCH /any/a/b", "", VIEW("")), 200);
	assert_string_equal(body.p, "a/b");
	assert_int_equal(ask(0, "PROPFIND /any/passed", "", VIEW("")), 200);
	/* A method's own route goes before it; and a handler may hand its request to the proxy. */
	assert_int_equal(ask(0, "PUT /any/passed", "", VIEW("body")), 404);
	assert_non_null(strstr(body.p, "{\"error\":{\"code\":\"not_found\""));
}

/* ---- streams ---- */

static void test_events_resume(void **state)
{
	assert_int_equal(
		ask(0, "GET /events/3", "accept: text/event-stream\r\nlast-event-id: 1\r\n", VIEW("")), 200);
	assert_string_equal(body.p, "id: 2\nevent: tick\ndata: {\"i\":2}\n\n"
				    "id: 3\nevent: tick\ndata: {\"i\":3}\n\n");
	assert_int_equal(ask(0, "GET /events/1", "accept: application/x-ndjson\r\n", VIEW("")), 200);
	assert_string_equal(body.p, "{\"type\":\"tick\",\"i\":1}\n");
}

/* ---- calls ---- */

static void assert_bytes(struct view have, const char *want, size_t n)
{
	assert_int_equal(have.n, n);
	assert_memory_equal(have.p ? have.p : "", want, n);
}
#define ASSERT_BYTES(have, want) assert_bytes(have, want, sizeof(want) - 1)

static void test_connect(void **state)
{
	const char *json = "content-type: application/json\r\n";

	assert_int_equal(ask(0, "POST /test.Echo/Unary", json, VIEW("{\"cols\":80,\"rows\":24}")), 200);
	assert_string_equal(body.p, "{\"cols\":81,\"rows\":24}");
	assert_int_equal(ask(0, "POST /test.Echo/Unary", json, VIEW("{}")), 400);
	assert_non_null(strstr(body.p, "\"code\":\"invalid_argument\""));
	assert_int_equal(ask(0, "POST /test.Echo/Unary", "content-type: application/json\r\nx-nobody: 1\r\n",
			     VIEW("{}")),
			 401);
	assert_string_equal(body.p, "{\"code\":\"unauthenticated\",\"message\":\"who are you?\"}");
	assert_int_equal(ask(0, "GET /test.Echo/Unary", json, VIEW("")), 405);
	assert_int_equal(ask(0, "POST /test.Echo/Unary", "content-type: text/plain\r\n", VIEW("")), 415);
}

static void test_grpc_web(void **state)
{
	const char *web = "content-type: application/grpc-web\r\n";

	assert_int_equal(ask(0, "POST /test.Echo/Unary", web, VIEW("\0\0\0\0\4\x08\x50\x10\x18")), 200);
	assert_non_null(strstr(head.p, "\r\ncontent-type: application/grpc-web+proto\r\n"));
	ASSERT_BYTES(buf_view(&body), "\0\0\0\0\4\x08\x51\x10\x18\x80\0\0\0\x10grpc-status: 0\r\n");
	assert_int_equal(ask(0, "POST /test.Echo/Unary", web, VIEW("\0\0\0\0\0")), 200);
	ASSERT_BYTES(buf_view(&body),
		     "\x80\0\0\0\x39grpc-status: 3\r\ngrpc-message: 100%25 of nothing, %C3%A4\r\n");
	/* gRPC itself ends with trailers. */
	assert_int_equal(
		ask(0, "POST /test.Echo/Unary", "content-type: application/grpc\r\n", VIEW("\0\0\0\0\0")),
		505);
}

static struct h2_client_stream *call(const char *method, struct view messages, const char *name,
				     const char *value)
{
	struct http_header extra[] = { { VIEW("content-type"), VIEW("application/grpc+proto") },
				       { VIEW("te"), VIEW("trailers") },
				       { view_of(name ? name : ""), view_of(value ? value : "") } };
	char path[64];

	snprintf(path, sizeof(path), "/test.Echo/%s", method);
	struct h2_client_stream *s = h2_client_request(h2, "POST", path, messages, extra, name ? 3 : 2);
	h2_client_until(h2, &s->closed);
	assert_int_equal(s->status, 200);
	assert_int_equal(s->error, 0);
	return s;
}

#define ONE(cols, rows) "\0\0\0\0\4\x08" cols "\x10" rows

static void test_grpc(void **state)
{
	struct h2_client_stream *s = call("Unary", VIEW(ONE("\x50", "\x18")), NULL, NULL);

	ASSERT_BYTES(buf_view(&s->body), ONE("\x51", "\x18"));
	assert_true(s->trailer);
	assert_int_equal(s->grpc, 0);
	s = call("Server", VIEW(ONE("\x03", "\x01")), "grpc-timeout", "10S");
	/* What is 0 is left out. */
	ASSERT_BYTES(buf_view(&s->body), "\0\0\0\0\2\x10\x01" ONE("\x01", "\x01") ONE("\x02", "\x01"));
	assert_int_equal(s->grpc, 0);
	s = call("Client", VIEW(ONE("\x01", "\x02") ONE("\x03", "\x04")), NULL, NULL);
	ASSERT_BYTES(buf_view(&s->body), ONE("\x04", "\x06"));
	s = call("Bidi", VIEW(ONE("\x01", "\x02") ONE("\x03", "\x04")), NULL, NULL);
	ASSERT_BYTES(buf_view(&s->body), ONE("\x01", "\x02") ONE("\x03", "\x04"));
	assert_true(s->trailer);
}

/* By the trailers, or, where nothing was sent, by the head alone. */
static void test_grpc_errors(void **state)
{
	struct h2_client_stream *s = call("Unary", VIEW("\0\0\0\0\0"), NULL, NULL);

	assert_int_equal(s->grpc, 3);
	assert_false(s->trailer);
	s = call("Server", VIEW("\0\0\0\0\2\x08\x01"), NULL, NULL);
	assert_int_equal(s->grpc, 9);
	assert_true(s->trailer);
	assert_int_equal(call("Unary", VIEW("\0\0\0\0\2\x08"), NULL, NULL)->grpc, 3);
	assert_int_equal(call("Unary", VIEW("\1\0\0\0\0"), NULL, NULL)->grpc, 12);
	assert_int_equal(call("Unary", VIEW("\0\0\0\0\0"), "grpc-timeout", "soon")->grpc, 3);
	assert_int_equal(call("Unary", VIEW("\0\0\0\0\0"), "grpc-encoding", "gzip")->grpc, 12);
	assert_int_equal(call("Unary", VIEW("\0\0\0\0\0"), "x-nobody", "1")->grpc, 16);
	assert_int_equal(call("Missing", VIEW("\0\0\0\0\0"), NULL, NULL)->grpc, 5);
}

/* Messages that come while others are answered. */
static void test_grpc_talks(void **state)
{
	struct http_header type = { VIEW("content-type"), VIEW("application/grpc") };
	struct h2_client_stream *s =
		h2_client_request(h2, "POST", "/test.Echo/Bidi", VIEW(ONE("\x05", "\x06")), &type, 1);
	s->endless = true;
	while (buf_len(&s->body) < sizeof(ONE("\x05", "\x06")) - 1)
		h2_client_for(h2, 5);
	ASSERT_BYTES(buf_view(&s->body), ONE("\x05", "\x06"));
	assert_false(s->closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_own_words),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_listener),
		cmocka_unit_test(test_routes_are_printed),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_any_method),
		cmocka_unit_test(test_events_resume),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_grpc_web),
		cmocka_unit_test(test_grpc),
		cmocka_unit_test(test_grpc_errors),
		cmocka_unit_test(test_grpc_talks),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
