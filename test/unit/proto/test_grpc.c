/*
 * gRPC's content types, deadlines and ends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "grpc.h"
#include "poison.h"

static void test_types(void **state)
{
	static const struct {
		const char *name;
		struct grpc_type type;
	} known[] = {
		{ "application/grpc", { GRPC_PLAIN, CONNECT_PROTO } },
		{ "application/grpc+proto", { GRPC_PLAIN, CONNECT_PROTO } },
		{ "Application/gRPC+JSON ; charset=utf-8", { GRPC_PLAIN, CONNECT_JSON } },
		{ "application/grpc-web", { GRPC_WEB, CONNECT_PROTO } },
		{ "application/grpc-web+json", { GRPC_WEB, CONNECT_JSON } },
		{ "application/grpc-web-text", { GRPC_NONE, CONNECT_NONE } },
		{ "application/grpcx", { GRPC_NONE, CONNECT_NONE } },
		{ "application/json", { GRPC_NONE, CONNECT_NONE } },
		{ "", { GRPC_NONE, CONNECT_NONE } },
	};

	for (size_t i = 0; i < ELEMS(known); i++) {
		struct grpc_type t = grpc_type(view_of(known[i].name));
		assert_int_equal(t.form, known[i].type.form);
		assert_int_equal(t.codec, known[i].type.codec);
		if (t.form)
			assert_int_equal(grpc_type(view_of(grpc_type_name(t))).codec, t.codec);
		else
			assert_null(grpc_type_name(t));
	}
}

static void test_timeouts(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "1H", 3600000 }, { "2M", 120000 }, { "3S", 3000 }, { "4m", 4 },
		     { "5000u", 5 },    { "1n", 1 },      { "0S", 1 },    { "99999999H", 359999996400000 } };
	static const char *const bad[] = { "", "1", "S", "1s", "-1S", "1.5S", "100000000S", "1 S", "1SS" };
	uint64_t ms;

	for (size_t i = 0; i < ELEMS(good); i++) {
		assert_int_equal(grpc_timeout(view_of(good[i].text), &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(grpc_timeout(view_of(bad[i]), &ms), -EINVAL);
}

static void test_messages(void **state)
{
	char text[GRPC_MESSAGE], much[GRPC_MESSAGE];

	grpc_message("50% of\r\n\xc3\xa4~", text);
	assert_string_equal(text, "50%25 of%0D%0A%C3%A4~");
	grpc_message("", text);
	assert_string_equal(text, "");
	/* Never beyond its room, and no half of an escape. */
	memset(much, 0xff, sizeof(much) - 1);
	much[sizeof(much) - 1] = 0;
	grpc_message(much, text);
	assert_true(strlen(text) < GRPC_MESSAGE);
	assert_int_equal(strlen(text) % 3, 0);
}

static void test_end(void **state)
{
	struct buf b = BUF_INIT(4096);
	struct err e = { 0 };

	assert_int_equal(grpc_put_end(&b, NULL), 0);
	assert_int_equal(buf_len(&b), 5 + 16);
	assert_memory_equal(b.p, "\x80\0\0\0\x10grpc-status: 0\r\n", 21);
	buf_clear(&b);
	err_set(&e, ERR_NOT_FOUND, "gone");
	assert_int_equal(grpc_put_end(&b, &e), 0);
	assert_memory_equal(b.p, "\x80\0\0\0\x24grpc-status: 5\r\ngrpc-message: gone\r\n", 41);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
