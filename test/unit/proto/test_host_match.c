/*
 * Host patterns, as docs/egress.md has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host_match.h"

#include "poison.h"

struct sample {
	const char *pattern, *host;
	bool matches;
};

static void check(const struct sample *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (host_match(view_of(all[i].pattern), view_of(all[i].host)) != all[i].matches)
			fail_msg("\"%s\" and \"%s\"", all[i].pattern, all[i].host);
}

static void names(void **state)
{
	static const struct sample all[] = {
		{ "api.example.com", "api.example.com", true },
		{ "api.example.com", "xapi.example.com", false },
		{ "api.example.com", "x.api.example.com", false },
		{ "api.example.com", "example.com", false },
		{ "api.example.com", "api.example.com.evil.org", false },
		{ "api.example.com", "apixexample.com", false },
		{ "api.*.com", "api.example.com", false },
		{ "*example.com", "xexample.com", false },
		{ "", "", false },
		{ "", "a.test", false },
		{ "a.test", "", false },
	};

	check(all, ELEMS(all));
}

static void below(void **state)
{
	static const struct sample all[] = {
		{ "*.example.com", "a.example.com", true },
		{ "*.example.com", "a.b.example.com", true },
		{ "*.example.com", "example.com", false },
		{ "*.example.com", "evilexample.com", false },
		{ "*.example.com", ".example.com", false },
		{ "*.example.com", "a.example.com.evil.org", false },
		{ "*.example.com", "", false },
		{ "*.", "x.", false },
		{ "*.", "x", false },
		{ "*.", "", false },
		{ "*", "a.test", true },
		{ "*", "x", true },
		{ "*", "", false }, /* every name, but a name */
	};

	check(all, ELEMS(all));
}

static void case_and_root(void **state)
{
	static const struct sample all[] = {
		{ "api.example.com", "API.Example.COM", true },
		{ "API.Example.COM", "api.example.com", true },
		{ "*.Example.com", "A.eXAMPLE.com", true },
		{ "*.Example.com", "Example.COM", false },
		{ "a.test", "a.test.", true },
		{ "a.test.", "a.test", true },
		{ "*.test.", "a.test", true },
		{ "*.test", "a.test.", true },
		{ "*.test", "test.", false },
		{ "a.test", "a.test..", false },
	};

	check(all, ELEMS(all));
}

static void patterns_below_patterns(void **state)
{
	static const struct sample all[] = {
		{ "*.b.test", "*.b.test", true },
		{ "*.b.test", "*.a.b.test", true },
		{ "*.b.test", "*.test", false },
		{ "*.b.test", "*", false },
		{ "b.test", "*.b.test", false },
		{ "*", "*.b.test", true },
		{ "*", "*", true },
	};

	check(all, ELEMS(all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(below),
		cmocka_unit_test(case_and_root),
		cmocka_unit_test(patterns_below_patterns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
