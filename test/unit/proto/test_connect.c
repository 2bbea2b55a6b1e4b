/*
 * Connect: content types, envelopes however they are cut, errors, deadlines.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "connect_feed.h"
#include "poison.h"

#define MAX_MESSAGE 16

static void expect(struct view in, const char *want)
{
	for (size_t step = 1; step <= in.n + 1; step++) {
		struct buf out = BUF_INIT(4096);
		connect_feed(&out, in, step, MAX_MESSAGE);
		buf_putc(&out, 0);
		assert_string_equal(buf_view(&out).p, want);
		buf_done(&out);
	}
}

static void test_envelopes(void **state)
{
	expect(VIEW(""), ".");
	expect(VIEW("\0\0\0\0\0"), "[].");
	expect(VIEW("\0\0\0\0\3abc"), "[abc].");
	expect(VIEW("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\2bc"), "[a][][bc].");
	expect(VIEW("\0\0\0\0\20"
		    "0123456789abcdef"),
	       "[0123456789abcdef].");
	expect(VIEW("\0\0\0\0\3ab"), "");
	expect(VIEW("\0\0\0"), "");
	expect(VIEW("\0\0\0\0\1a\0"), "[a]");
}

static void test_refused(void **state)
{
	expect(VIEW("\0\0\0\0\21"), "!90"); /* EMSGSIZE */
	expect(VIEW("\0\xff\xff\xff\xff"), "!90");
	expect(VIEW("\1\0\0\0\1a"), "!95");  /* EOPNOTSUPP: compressed */
	expect(VIEW("\2\0\0\0\2{}"), "!74"); /* EBADMSG: an end is an answer's */
	expect(VIEW("\x80\0\0\0\1a"), "!74");
	expect(VIEW("\0\0\0\0\1a\4\0\0\0\0"), "[a]!74");
}

static void test_fails_for_good(void **state)
{
	struct connect_reader r;
	struct view in = VIEW("\2\0\0\0\0"), msg;

	connect_reader_init(&r, MAX_MESSAGE);
	assert_int_equal(connect_next(&r, &in, &msg), -EBADMSG);
	in = VIEW("\0\0\0\0\0");
	assert_int_equal(connect_next(&r, &in, &msg), -EBADMSG);
	assert_false(connect_is_between(&r));
	connect_reader_done(&r);
}

static void test_types(void **state)
{
	static const struct {
		const char *text;
		enum connect_codec codec;
		bool stream;
	} all[] = {
		{ "application/json", CONNECT_JSON, false },
		{ "Application/JSON; charset=utf-8", CONNECT_JSON, false },
		{ "application/proto", CONNECT_PROTO, false },
		{ "application/connect+json", CONNECT_JSON, true },
		{ "application/connect+proto", CONNECT_PROTO, true },
		{ "application/grpc", CONNECT_NONE, false },
		{ "text/json", CONNECT_NONE, false },
		{ "", CONNECT_NONE, false },
	};
	for (size_t i = 0; i < ELEMS(all); i++) {
		struct connect_type t = connect_type(view_of(all[i].text));
		assert_int_equal(t.codec, all[i].codec);
		assert_int_equal(t.stream, all[i].stream);
		if (t.codec)
			assert_int_equal(connect_type(view_of(connect_type_name(t))).stream, t.stream);
		else
			assert_null(connect_type_name(t));
	}
	assert_int_equal(connect_type(VIEW_NONE).codec, CONNECT_NONE);
}

static void test_errors(void **state)
{
	struct buf b = BUF_INIT(4096);
	struct err e = { 0 };

	err_set(&e, ERR_NOT_FOUND, "no \"x\"");
	assert_int_equal(connect_put_error(&b, &e), 0);
	assert_true(view_is(buf_view(&b), "{\"code\":\"not_found\",\"message\":\"no \\\"x\\\"\"}"));
	buf_clear(&b);
	assert_int_equal(connect_put_end(&b, NULL), 0);
	assert_true(view_eq(buf_view(&b), VIEW("\2\0\0\0\2{}")));
	buf_clear(&b);
	err_set(&e, ERR_INTERNAL, "x");
	assert_int_equal(connect_put_end(&b, &e), 0);
	assert_true(view_eq(buf_view(&b),
			    VIEW("\2\0\0\0\x2b{\"error\":{\"code\":\"internal\",\"message\":\"x\"}}")));
	buf_done(&b);
}

/* Every code of the table has the status that the protocol gives to its name. */
static void test_status(void **state)
{
	assert_int_equal(connect_status(ERR_INVALID), 400);
	assert_int_equal(connect_status(ERR_STATE), 400);
	assert_int_equal(connect_status(ERR_CONFLICT), 409);
	assert_int_equal(connect_status(ERR_STORAGE), 429);
	assert_int_equal(connect_status(ERR_TIMEOUT), 504);
	assert_int_equal(connect_status(ERR_UNAUTHORIZED), 401);
	assert_int_equal(connect_status(ERR_INTERNAL), 500);
	for (int i = 1; i < ERR_CODES; i++) {
		int status = connect_status((enum err_code)i);
		assert_true(status >= 400 && status <= 504);
		if (status == 500)
			assert_true(view_is(view_of(err_connect((enum err_code)i)), "internal"));
	}
}

static void test_timeout(void **state)
{
	uint64_t ms = 7;

	assert_int_equal(connect_timeout(VIEW("60000"), &ms), 0);
	assert_int_equal(ms, 60000);
	assert_int_equal(connect_timeout(VIEW("9999999999"), &ms), 0);
	assert_int_equal(connect_timeout(VIEW("00000000000"), &ms), -EINVAL);
	assert_int_equal(connect_timeout(VIEW("-1"), &ms), -EINVAL);
	assert_int_equal(connect_timeout(VIEW("1s"), &ms), -EINVAL);
	assert_int_equal(connect_timeout(VIEW(""), &ms), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_envelopes),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fails_for_good), cmocka_unit_test(test_types),
		cmocka_unit_test(test_errors),         cmocka_unit_test(test_status),
		cmocka_unit_test(test_timeout),
	};
	return cmocka_run_group_tests_name("connect", tests, NULL, NULL);
}
