/*
 * Patterns of paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"
#include "glob.h"
#include "poison.h"

struct sample {
	const char *pattern, *path;
	bool match;
};

static void check(const struct sample *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (glob_match(view_of(s[i].pattern), view_of(s[i].path)) != s[i].match)
			fail_msg("'%s' and '%s': not %d", s[i].pattern, s[i].path, s[i].match);
}

static void test_names(void **state)
{
	static const struct sample samples[] = {
		{ "a", "a", true },          { "a", "b", false },
		{ "a", "x/a", true },        { "*", "anything", true },
		{ "*", ".hidden", true },    { "*.c", "x.c", true },
		{ "*.c", "d/x.c", true },    { "*.c", "x.h", false },
		{ "*.c", ".c", true },       { "?", "a", true },
		{ "?", "", false },          { "?", "ab", false },
		{ "a*b*c", "axbxbc", true }, { "a*b*c", "axbxb", false },
		{ "**a", "xa", true },       { "[abc]", "b", true },
		{ "[abc]", "d", false },     { "[a-c]x", "bx", true },
		{ "[!a-c]", "b", false },    { "[^a-c]", "d", true },
		{ "[]a]", "]", true },       { "[a-]", "-", true },
		{ "[", "[", true },          { "[a", "[a", true },
		{ "\\*", "*", true },        { "\\*", "x", false },
		{ "\\[a]", "[a]", true },    { "a\\", "a\\", true },
		{ "[\\]]", "]", true },      { "", "", true },
		{ "", "a", false },          { "new\nline", "new\nline", true },
	};
	check(samples, ELEMS(samples));
}

static void test_paths(void **state)
{
	static const struct sample samples[] = {
		{ "a/b", "a/b", true },
		{ "a/b", "x/a/b", false },
		{ "a/*", "a/b", true },
		{ "a/*", "a/b/c", false },
		{ "a/?", "a/", false },
		{ "**/b", "b", true },
		{ "**/b", "a/b", true },
		{ "**/b", "a/x/y/b", true },
		{ "**/b", "a/bb", false },
		{ "a/**/b", "a/b", true },
		{ "a/**/b", "a/x/y/b", true },
		{ "a/**/b", "x/a/b", false },
		{ "a/**", "a/x", true },
		{ "a/**", "a/x/y", true },
		{ "a/**", "a", false },
		{ "**", "a/b/c", true },
		{ "**/*", "a", true },
		{ "**/a/**/b/**", "x/a/b/c", true },
		{ "**/a/**/b/**", "x/a/b", false },
		{ "**/a/*/b", "a/a/x/b", true },
		{ "/a/b", "a/b", true },
		{ "/a", "a", true },
		{ "/a", "x/a", false },
		{ "*/b", "a/b", true },
		{ "**/*.c", "x/y.c", true },
		{ "a**/b", "axx/b", true },
		{ "a**/b", "ax/x/b", false },
	};
	check(samples, ELEMS(samples));
}

/* What makes naive matchers run for ever. */
static void test_time_is_bounded(void **state)
{
	char pattern[1001], path[4001];
	uint64_t begin = clock_mono_ms();
	for (size_t i = 0; i < 1000; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[999] = 'b';
	pattern[1000] = 0;
	memset(path, 'a', 4000);
	path[4000] = 0;
	assert_false(glob_match(view_of(pattern), view_of(path)));
	for (size_t i = 0; i < 999; i++)
		pattern[i] = "**/a/"[i % 5];
	pattern[999] = 'x';
	for (size_t i = 1; i < 3999; i += 2)
		path[i] = '/';
	assert_false(glob_match(view_of(pattern), view_of(path)));
	assert_true(clock_mono_ms() - begin < 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_time_is_bounded),
	};
	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
