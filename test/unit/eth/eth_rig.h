/*
 * What the tests of src/eth share: hex in and out.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "text.h"
#include "view.h"

/* The bytes of a text of hex digits; at most 4096, good until the eighth call after this one. */
static inline struct view unhex(const char *digits)
{
	static char room[8][4096];
	static unsigned at;
	char *p = room[at++ % 8];
	const size_t n = strlen(digits) / 2;

	assert_true(n <= sizeof(room[0]));
	assert_int_equal(text_unhex(view_of(digits), p, n), 0);
	return (struct view){ p, n };
}

static inline void assert_hex(const void *p, size_t n, const char *digits)
{
	char text[8192];

	assert_true(n < sizeof(text) / 2);
	text_hex(p, n, text);
	assert_string_equal(text, digits);
}
