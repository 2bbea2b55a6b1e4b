/*
 * First bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "buf.h"
#include "peek.h"

#include "poison.h"

static enum peek look(struct view in, char name[256])
{
	return peek_look(&(struct peek_memory){ 0 }, in, name);
}

static void kinds(void **state)
{
	static const struct {
		const char *bytes;
		enum peek want;
	} cases[] = {
		{ "", PEEK_MORE },
		{ "G", PEEK_MORE },
		{ "GET", PEEK_MORE },
		{ "GET ", PEEK_MORE },
		{ "GET /", PEEK_HTTP },
		{ "GET http://", PEEK_HTTP },
		{ "OPTIONS *", PEEK_HTTP },
		{ "M-SEARCH *", PEEK_HTTP },
		{ "GET x", PEEK_OTHER },
		{ "get /", PEEK_OTHER },
		{ "SSH-2.0-x\r\n", PEEK_OTHER },
		{ "EHLO x\r\n", PEEK_OTHER },
		{ "PRI * HT", PEEK_MORE },
		{ "PRI * HTTP/2.0\r\n", PEEK_HTTP2 },
		{ "PRI ", PEEK_MORE },
		{ "\x16", PEEK_MORE },
		{ "\x16\x02", PEEK_OTHER },
		{ "\x16\x03\x01\x10", PEEK_MORE },
		{ "\x16\x03\x01\x00\x05\x02", PEEK_BAD },
		{ "ABCDEFGHIJKLMNOPQRST /", PEEK_OTHER },
		{ "\r\nGET /", PEEK_HTTP },
		{ "\n\r\n", PEEK_MORE },
		{ "\r\nPRI * HTTP/2.0\r\n", PEEK_HTTP2 },
		{ "\r\nhello", PEEK_OTHER },
	};
	char name[256];
	for (size_t i = 0; i < ELEMS(cases); i++)
		if (look((struct view){ cases[i].bytes, i == 18 ? 6 : strlen(cases[i].bytes) }, name) !=
		    cases[i].want)
			fail_msg("case %zu", i);
}

static void callers(void **state)
{
	static const struct {
		const char *bytes;
		enum peek want;
	} cases[] = {
		{ "G", PEEK_MORE },          { "GET /ap", PEEK_MORE },
		{ "GET /api/", PEEK_HTTP },  { "GET /api/openai/v1", PEEK_HTTP },
		{ "P", PEEK_MORE },          { "POST /api", PEEK_MORE },
		{ "POST /api/", PEEK_HTTP }, { "GET h", PEEK_OTHER },
		{ "GET /apis", PEEK_OTHER }, { "GET  /", PEEK_OTHER },
		{ "PUT", PEEK_OTHER },       { "CONNECT", PEEK_OTHER },
		{ "\x05\x01", PEEK_OTHER },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		if (peek_caller(view_of(cases[i].bytes)) != cases[i].want)
			fail_msg("%s", cases[i].bytes);
}

/* A ClientHello of TLS 1.2 with one cipher, a name and, or not, the extension 0xfe0d. */
static struct view hello(char *to, bool ech, const char *name)
{
	size_t n = strlen(name), extensions = (n ? n + 9 : 0) + (ech ? 6 : 0),
	       size = 2 + 32 + 1 + 4 + 2 + 2 + extensions;
	struct buf b = BUF_INIT(1024);

	buf_append(&b, (char[]){ 22, 3, 1, 0, (char)(size + 4), 1, 0, 0, (char)size, 3, 3 }, 11);
	for (int i = 0; i < 33; i++)
		buf_putc(&b, 0);
	buf_append(&b, (char[]){ 0, 2, 0x13, 1, 1, 0, 0, (char)extensions }, 8);
	if (ech)
		buf_append(&b, (char[]){ (char)0xfe, 0x0d, 0, 2, 0, 0 }, 6);
	if (n) {
		buf_append(&b, (char[]){ 0, 0, 0, (char)(n + 5), 0, (char)(n + 3), 0, 0, (char)n }, 9);
		buf_puts(&b, name);
	}
	size_t all = buf_len(&b);
	memcpy(to, b.p, all);
	buf_done(&b);
	return (struct view){ to, all };
}

static void hellos(void **state)
{
	char bytes[1024], name[256];

	assert_int_equal(look(hello(bytes, false, "A.test"), name), PEEK_TLS);
	assert_string_equal(name, "a.test");
	assert_int_equal(look(hello(bytes, true, "A.test"), name), PEEK_ECH);
	assert_string_equal(name, "a.test");
	assert_int_equal(look(hello(bytes, true, ""), name), PEEK_ECH);
	assert_string_equal(name, "");
	assert_int_equal(look(hello(bytes, true, "10.0.0.1"), name), PEEK_BAD);
	struct view whole = hello(bytes, true, "a.test");
	for (size_t n = 0; n < whole.n; n++)
		assert_int_equal(look(view_head(whole, n), name), PEEK_MORE);
}

/* Byte by byte a hello is not read from its start with each: `need` says when there may be something new. */
static void slow_hellos(void **state)
{
	char bytes[1024], name[256];
	struct view whole = hello(bytes, false, "a.test"), message = view_skip(whole, 5);
	struct buf tiny = BUF_INIT(8192); /* the same in records of one byte */

	for (size_t i = 0; i < message.n; i++)
		buf_append(&tiny, (char[]){ 22, 3, 1, 0, 1, message.p[i] }, 6);
	struct {
		struct view in;
		unsigned most;
	} cases[] = { { whole, 4 }, { buf_view(&tiny), 64 } };
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct peek_memory m = { 0 };
		unsigned looks = 0;
		for (size_t n = 1; n < cases[i].in.n; n++) {
			looks += n >= m.need;
			assert_int_equal(peek_look(&m, view_head(cases[i].in, n), name), PEEK_MORE);
			assert_true(m.need > n && m.need <= cases[i].in.n);
		}
		assert_true(looks <= cases[i].most);
		assert_int_equal(peek_look(&m, cases[i].in, name), PEEK_TLS);
		assert_string_equal(name, "a.test");
	}
	buf_done(&tiny);
}

/* Nor are empty lines counted again. */
static void slow_lines(void **state)
{
	struct peek_memory m = { 0 };
	char bytes[64], name[256];

	memset(bytes, '\n', sizeof(bytes));
	assert_int_equal(peek_look(&m, (struct view){ bytes, 60 }, name), PEEK_MORE);
	assert_int_equal(m.empty, 60);
	memcpy(bytes, "GET / HTTP", 10); /* what was counted is not looked at */
	memcpy(bytes + 59, "GET /", 5);
	m.empty = 59;
	assert_int_equal(peek_look(&m, (struct view){ bytes, 64 }, name), PEEK_HTTP);
	assert_int_equal(m.empty, 59);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds), cmocka_unit_test(callers),
					    cmocka_unit_test(hellos), cmocka_unit_test(slow_hellos),
					    cmocka_unit_test(slow_lines) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
