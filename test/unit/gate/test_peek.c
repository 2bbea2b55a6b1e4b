/*
 * First bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peek.h"

#include "poison.h"

static void kinds(void **state)
{
	static const struct {
		const char *bytes;
		enum peek want;
	} cases[] = {
		{ "", PEEK_MORE },	 { "G", PEEK_MORE },	   { "GET", PEEK_MORE },       { "GET ", PEEK_MORE },	     { "GET /", PEEK_HTTP },
		{ "GET http://", PEEK_HTTP }, { "OPTIONS *", PEEK_HTTP }, { "M-SEARCH *", PEEK_HTTP }, { "GET x", PEEK_OTHER },	     { "get /", PEEK_OTHER },
		{ "SSH-2.0-x\r\n", PEEK_OTHER }, { "EHLO x\r\n", PEEK_OTHER }, { "PRI * HT", PEEK_MORE }, { "PRI * HTTP/2.0\r\n", PEEK_HTTP2 },
		{ "PRI ", PEEK_MORE },	 { "\x16", PEEK_MORE },	   { "\x16\x02", PEEK_OTHER }, { "\x16\x03\x01\x10", PEEK_MORE },
		{ "\x16\x03\x01\x00\x05\x02", PEEK_BAD }, { "ABCDEFGHIJKLMNOPQRST /", PEEK_OTHER }, { "\r\nGET /", PEEK_HTTP },
		{ "\n\r\n", PEEK_MORE },  { "\r\nPRI * HTTP/2.0\r\n", PEEK_HTTP2 }, { "\r\nhello", PEEK_OTHER },
	};
	char name[256];
	for (size_t i = 0; i < ELEMS(cases); i++)
		if (peek_look((struct view){ cases[i].bytes, i == 18 ? 6 : strlen(cases[i].bytes) }, name) != cases[i].want)
			fail_msg("case %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
