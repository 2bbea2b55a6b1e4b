/*
 * Ranges of bytes: what is one, and what of it there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http_range.h"
#include "poison.h"

#define MOST "18446744073709551615"

static void test_none(void **state)
{
	static const char *const texts[] = { "",
					     "bytes",
					     "bytes=",
					     "bytes=-",
					     "bytes=5",
					     "bytes=5-4",
					     "bytes=a-",
					     "bytes=-x",
					     "items=0-1",
					     "bytes=0-1,3-4",
					     "bytes=+1-2",
					     ("bytes=0-1" MOST),
					     "bytes= 1 - 2 3" };
	for (size_t i = 0; i < ELEMS(texts); i++) {
		struct http_range r;
		http_range_parse(view_of(texts[i]), &r);
		if (r.given)
			fail_msg("%s", texts[i]);
	}
	struct http_range r;
	http_range_parse(VIEW_NONE, &r);
	assert_false(r.given);
}

static void test_given(void **state)
{
	static const struct {
		const char *text;
		uint64_t size, n;
		const char *says;
	} cases[] = {
		{ "bytes=0-0", 10, 1, "bytes 0-0/10" },      { "bytes=2-5", 10, 4, "bytes 2-5/10" },
		{ "bytes=2-", 10, 8, "bytes 2-9/10" },       { "bytes=2-99", 10, 8, "bytes 2-9/10" },
		{ "bytes=10-", 10, 0, "bytes */10" },        { "bytes=0-0", 0, 0, "bytes */0" },
		{ "bytes=0-" MOST, 10, 10, "bytes 0-9/10" }, { "bytes=5-" MOST, 10, 5, "bytes 5-9/10" },
		{ "bytes=" MOST "-", 10, 0, "bytes */10" },  { "bytes= 2 - 5 ", 10, 4, "bytes 2-5/10" },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[HTTP_RANGE_TEXT];
		struct http_range r;
		http_range_parse(view_of(cases[i].text), &r);
		assert_true(r.given && !r.from_end);
		assert_int_equal(http_range_fit(&r, cases[i].size, text), cases[i].n);
		assert_string_equal(text, cases[i].says);
	}
}

static void test_from_end(void **state)
{
	char text[HTTP_RANGE_TEXT];
	struct http_range r;

	http_range_parse(VIEW("bytes=-3"), &r);
	assert_true(r.given && r.from_end && http_range_from_end(&r, 10));
	assert_int_equal(http_range_fit(&r, 10, text), 3);
	assert_string_equal(text, "bytes 7-9/10");
	assert_true(http_range_from_end(&r, 2)); /* more than there is: all of it */
	assert_int_equal(http_range_fit(&r, 2, text), 2);
	assert_false(http_range_from_end(&r, 0));
	http_range_parse(VIEW("bytes=-0"), &r);
	assert_true(r.given && r.from_end);
	assert_false(http_range_from_end(&r, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_from_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
