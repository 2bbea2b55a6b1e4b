/*
 * Headers and query parameters of an exchange.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http.h"
#include "poison.h"

static struct view query(struct arena *a, const char *text, const char *name)
{
	struct http_exchange x = { .arena = a, .query = view_of(text) };
	return http_get_query(&x, name);
}

static void test_query(void **state)
{
	static const struct {
		const char *text, *name, *value; /* value NULL: absent */
	} cases[] = {
		{ "a=1&b=2", "b", "2" },
		{ "a=1&b=2", "c", NULL },
		{ "a=1&a=2", "a", "1" },
		{ "ab=1", "a", NULL },
		{ "a", "a", "" },
		{ "a=", "a", "" },
		{ "&&=x&a==1", "a", "=1" },
		{ "q=a%20b+c%2Bd", "q", "a b c+d" },
		{ "metadata.%6Bey=v", "metadata.key", "v" },
		{ "a+b=1", "a b", "1" },
		{ "a=%zz", "a", NULL },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct arena a = ARENA_INIT(1 << 16);
		struct view v = query(&a, cases[i].text, cases[i].name);
		assert_int_equal(v.p != NULL, cases[i].value != NULL);
		if (v.p)
			assert_true(view_is(v, cases[i].value));
		arena_done(&a);
	}
	struct http_exchange none = { .query = VIEW_NONE };
	assert_null(http_get_query(&none, "a").p);
}

static void test_header(void **state)
{
	const struct http_header h[] = { { VIEW("accept"), VIEW("x") }, { VIEW("empty"), VIEW("") } };
	struct http_exchange x = { .headers = h, .n_headers = ELEMS(h) };
	assert_true(view_is(http_get_header(&x, "accept"), "x"));
	assert_non_null(http_get_header(&x, "empty").p);
	assert_null(http_get_header(&x, "accep").p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_query), cmocka_unit_test(test_header) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
