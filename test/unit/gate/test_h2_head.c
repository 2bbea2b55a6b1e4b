/*
 * Field lists of HTTP/2: what is a request, what is sent on with its secrets, what of an
 * answer comes back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "h2_head.h"

#include "poison.h"

#define HTTPS VIEW("https")

/* "name: value" lines. */
static void list(struct h2_head *h, const char *lines)
{
	struct view rest = view_of(lines);

	h2_head_init(h, INJECT_HEAD);
	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest), value, name;
		size_t skip = line.n && line.p[0] == ':';
		name = view_split(view_skip(line, skip), ':', &value);
		h2_head_add(h, (struct view){ name.p - skip, name.n + skip }, view_skip(value, 1), false);
	}
}

static void expect_list(const struct h2_head *h, const char *lines)
{
	struct buf text = BUF_INIT(65536);

	for (size_t i = 0; i < h->n; i++) {
		struct http_header f = h2_head_get(h, i);
		buf_printf(&text, "%.*s: %.*s\n", VIEW_ARG(f.name), VIEW_ARG(f.value));
	}
	buf_putc(&text, 0);
	assert_string_equal(text.p, lines);
	buf_done(&text);
}

#define START ":method: GET\n:scheme: https\n:authority: api.test\n"

static int parse(const char *lines, struct h2_request *r, struct h2_head *h)
{
	list(h, lines);
	return h2_request_parse(h, HTTPS, r);
}

static void expect_status(const char *lines, int status)
{
	struct h2_request r;
	struct h2_head h;

	int got = parse(lines, &r, &h);
	if (got != status)
		fail_msg("%s: %d", lines, got);
	assert_true(status == 0 || r.why);
	h2_head_done(&h);
}

static void test_request(void **state)
{
	struct h2_request r;
	struct h2_head h;

	assert_int_equal(parse(":path: /a/b?c=d?e\n" START
			       "content-length: 12\nexpect: 100-continue\nte: trailers\n",
			       &r, &h),
			 0);
	assert_true(view_is(r.method, "GET") && view_is(r.path, "/a/b") && view_is(r.query, "c=d?e") &&
		    view_is(r.authority, "api.test"));
	assert_true(r.content_length == 12 && r.expect_continue && r.n_headers == 3);
	h2_head_done(&h);
	assert_int_equal(parse(":method: GET\n:scheme: https\n:path: /\nhost: api.test:443\n", &r, &h), 0);
	assert_true(view_is(r.authority, "api.test:443") && !r.query.p && r.content_length == -1);
	h2_head_done(&h);
	expect_status(START ":path: /\nhost: API.test\n", 0);
	expect_status(":method: OPTIONS\n:scheme: https\n:authority: a\n:path: *\n", 0);
}

static void test_request_refused(void **state)
{
	expect_status("", -501);
	expect_status(START, -400);
	expect_status(START ":path: *\n", -400);
	expect_status(START ":path: x\n", -400);
	expect_status(START ":path: https://evil.test/\n", -400);
	expect_status(START ":path: /a b\n", -400);
	expect_status(START ":path: /a#b\n", -400);
	expect_status(START ":path: /%zz\n", -400);
	expect_status(START ":path: /\n:path: /b\n", -400);
	expect_status(START ":path: /\n:authority: evil.test\n", -400);
	expect_status(START ":path: /\nx-a: b\n:authority: evil.test\n", -400);
	expect_status(START ":path: /\n:protocol: websocket\n", -400);
	expect_status(START ":path: /\n:status: 200\n", -400);
	expect_status(START ":path: /\nhost: evil.test\n", -403);
	expect_status(START ":path: /\nhost: api.test\nhost: api.test\n", -400);
	expect_status(":method: GET\n:scheme: http\n:authority: a\n:path: /\n", -400);
	expect_status(":method: GET\n:scheme: https\n:path: /\n", -400);
	expect_status(":method: GET\n:scheme: https\n:authority: a@b/c\n:path: /\n", -400);
	expect_status(":method: CONNECT\n:scheme: https\n:authority: a\n:path: /\n", -501);
	expect_status(":method: G T\n:scheme: https\n:authority: a\n:path: /\n", -501);
	expect_status(START ":path: /\nconnection: close\n", -400);
	expect_status(START ":path: /\nkeep-alive: 1\n", -400);
	expect_status(START ":path: /\nproxy-connection: x\n", -400);
	expect_status(START ":path: /\nupgrade: websocket\n", -400);
	expect_status(START ":path: /\ntransfer-encoding: chunked\n", -400);
	expect_status(START ":path: /\nte: gzip\n", -400);
	expect_status(START ":path: /\nX-Upper: a\n", -400);
	expect_status(START ":path: /\nx-a: b\rc\n", -400);
	expect_status(START ":path: /\ncontent-length: 1\ncontent-length: 2\n", -400);
	expect_status(START ":path: /\ncontent-length: -1\n", -400);
	expect_status(START ":path: /\ncontent-length: 1\ncontent-length: 1\n", 0);
}

static void test_too_large(void **state)
{
	struct h2_request r;
	struct h2_head h;
	char value[4096];

	memset(value, 'v', sizeof(value));
	list(&h, START ":path: /\n");
	for (int i = 0; i < 12; i++)
		h2_head_add(&h, VIEW("x-a"), (struct view){ value, sizeof(value) }, false);
	assert_int_equal(h2_request_parse(&h, HTTPS, &r), -431);
	h2_head_done(&h);
	list(&h, START ":path: /\n");
	for (int i = 0; i < INJECT_HEADERS; i++)
		h2_head_add(&h, VIEW("x-a"), VIEW("b"), false);
	assert_int_equal(h2_request_parse(&h, HTTPS, &r), 0);
	h2_head_add(&h, VIEW("x-a"), VIEW("b"), false);
	assert_int_equal(h2_request_parse(&h, HTTPS, &r), -431);
	h2_head_done(&h);
}

/* ---- with secrets ---- */

static const struct policy_inject rules[] = {
	{ .secret = "A", .header = "authorization", .prefix = "Bearer " },
	{ .secret = "B", .query = "key" },
	{ .secret = "C", .placeholder = true },
};

static void begin(struct inject *j, const struct h2_request *r, bool body)
{
	struct inject_head h = { r->path, r->query, r->headers, r->n_headers };

	inject_init(j, rules, ELEMS(rules));
	assert_true(inject_choose(j, &h, body));
	inject_give(j, VIEW("A"), VIEW("value-a"));
	inject_give(j, VIEW("B"), VIEW("b/&more"));
	inject_give(j, VIEW("C"), VIEW("cccc"));
	inject_give(j, VIEW("D"), VIEW("of nobody"));
}

static void test_write(void **state)
{
	struct h2_request r;
	struct h2_head h, out;
	struct inject j = { 0 };

	assert_int_equal(parse(":method: POST\n:scheme: https\n:authority: api.test\n:path: "
			       "/{{secret.C}}?key=mine&x=%7B%7Bsecret.C%7D%7D\n"
			       "authorization: mine\nx-c: <{{secret.C}}>\ncontent-length: 5\nte: "
			       "trailers\naccept-encoding: gzip\n"
			       "grpc-accept-encoding: gzip\nhost: api.test\nexpect: 100-continue\ncookie: "
			       "a\ncookie: b\n",
			       &r, &h),
			 0);
	begin(&j, &r, true);
	assert_true(inject_ready(&j));
	h2_head_init(&out, INJECT_OUT);
	assert_int_equal(h2_request_write(&r, HTTPS, &j, false, 77, &out), 0);
	expect_list(&out, ":method: POST\n:scheme: https\n:authority: api.test\n:path: "
			  "/cccc?x=cccc&key=b%2F%26more\nx-c: <cccc>\nte: trailers\n"
			  "cookie: a\ncookie: b\nauthorization: Bearer value-a\ncontent-length: "
			  "77\naccept-encoding: identity\n");
	/* what holds a secret is not to be kept in a table */
	for (size_t i = 0; i < out.n; i++) {
		struct view name = h2_head_get(&out, i).name;
		bool secret =
			view_is(name, ":path") || view_is(name, "x-c") || view_is(name, "authorization");
		assert_int_equal(out.fields[i].hidden, secret);
	}
	h2_head_done(&out);
	h2_head_init(&out, INJECT_OUT);
	assert_int_equal(h2_request_write(&r, HTTPS, &j, true, -1, &out), 0);
	size_t lengths = 0;
	for (size_t i = 0; i < out.n; i++)
		lengths += view_is(h2_head_get(&out, i).name, "content-length") &&
			   view_is(h2_head_get(&out, i).value, "5");
	assert_int_equal(lengths, 1);
	h2_head_done(&out);
	h2_head_init(&out, 100);
	assert_int_equal(h2_request_write(&r, HTTPS, &j, true, -1, &out), -ENOBUFS);
	h2_head_done(&out);
	inject_done(&j);
	h2_head_done(&h);
}

static void test_secrets_that_are_not_there(void **state)
{
	struct h2_request r;
	struct h2_head h;
	struct inject j = { 0 };

	assert_int_equal(parse(START ":path: /\nx-a: {{secret.D}}\n", &r, &h), 0);
	struct inject_head head = { r.path, r.query, r.headers, r.n_headers };
	inject_init(&j, rules, ELEMS(rules));
	assert_false(inject_choose(&j, &head, false));
	assert_string_equal(j.trouble, "paddock: the secret D is not for this host");
	inject_done(&j);
	h2_head_done(&h);

	assert_int_equal(parse(START ":path: /\n", &r, &h), 0);
	head = (struct inject_head){ r.path, r.query, r.headers, r.n_headers };
	inject_init(&j, rules, ELEMS(rules));
	assert_true(inject_choose(&j, &head, false));
	assert_int_equal(j.n_values, 2); /* no body and no placeholder: C is not fetched */
	inject_give(&j, VIEW("A"), VIEW("value-a"));
	assert_false(inject_ready(&j));
	assert_string_equal(j.trouble, "paddock: the secret B is not there");
	inject_give(&j, VIEW("B"), VIEW("abc"));
	assert_false(inject_ready(&j));
	assert_string_equal(j.trouble, "paddock: the secret B is too short to be masked");
	inject_done(&j);
	inject_init(&j, rules, 1);
	assert_true(inject_choose(&j, &head, false));
	inject_give(&j, VIEW("A"), VIEW("two\r\nlines"));
	assert_false(inject_ready(&j));
	inject_done(&j);
	h2_head_done(&h);
}

/* ---- answers ---- */

static int write_answer(const char *lines, struct h2_head *out, struct h2_answer *a)
{
	struct h2_head in;
	struct mask m;

	mask_init(&m);
	assert_int_equal(mask_add(&m, VIEW("hush-hush")), 0);
	list(&in, lines);
	h2_head_init(out, INJECT_OUT);
	int r = h2_answer_write(&in, &m, out, a);
	h2_head_done(&in);
	mask_done(&m);
	return r;
}

static void test_answer(void **state)
{
	struct h2_head out;
	struct h2_answer a;
	static const char *const bad[] = { "",
					   "x-a: b\n",
					   ":status: 20\n",
					   ":status: 2000\n",
					   ":status: 099\n",
					   ":status: abc\n",
					   ":status: 101\n",
					   ":status: 200\n:status: 200\n",
					   ":status: 200\nconnection: close\n",
					   ":status: 200\nX-A: b\n",
					   ":status: 200\ntransfer-encoding: chunked\n" };

	assert_int_equal(write_answer(":status: 200\nx-echo: a hush-hush b\nx-hush-hush: c\nset-cookie: d\n",
				      &out, &a),
			 0);
	assert_true(a.status == 200 && !a.coded);
	expect_list(&out, ":status: 200\nx-echo: a ********* b\nx-*********: c\nset-cookie: d\n");
	h2_head_done(&out);
	assert_int_equal(
		write_answer(":status: 200\ngrpc-encoding: identity\ncontent-encoding: gzip\n", &out, &a), 0);
	assert_true(a.coded);
	h2_head_done(&out);
	assert_int_equal(write_answer(":status: 200\ngrpc-encoding: gzip\n", &out, &a), 0);
	assert_true(a.coded);
	h2_head_done(&out);
	for (size_t i = 0; i < ELEMS(bad); i++) {
		if (write_answer(bad[i], &out, &a) != -EBADMSG)
			fail_msg("%s", bad[i]);
		h2_head_done(&out);
	}
}

static void test_trailers(void **state)
{
	struct h2_head in, out;
	struct inject j = { 0 };
	struct mask m;

	mask_init(&m);
	assert_int_equal(mask_add(&m, VIEW("hush-hush")), 0);
	inject_init(&j, rules, ELEMS(rules));
	list(&in, "grpc-status: 0\ngrpc-message: hush-hush\nauthorization: mine\ncontent-length: 3\nhost: "
		  "evil.test\n");
	h2_head_init(&out, INJECT_OUT);
	assert_int_equal(h2_trailers_write(&in, NULL, &m, &out), 0);
	expect_list(&out, "grpc-status: 0\ngrpc-message: *********\nauthorization: mine\nhost: evil.test\n");
	h2_head_done(&out);
	h2_head_init(&out, INJECT_OUT);
	assert_int_equal(h2_trailers_write(&in, &j, NULL, &out), 0);
	expect_list(&out, "grpc-status: 0\ngrpc-message: hush-hush\n");
	h2_head_done(&out);
	h2_head_done(&in);
	list(&in, "x-a: b\n:status: 200\n");
	h2_head_init(&out, INJECT_OUT);
	assert_int_equal(h2_trailers_write(&in, NULL, &m, &out), -EBADMSG);
	h2_head_done(&out);
	h2_head_done(&in);
	mask_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_request_refused),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_secrets_that_are_not_there),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_trailers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
