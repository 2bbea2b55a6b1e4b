/*
 * Log lines: one write each, one line each whatever is logged, and never longer
 * than the buffer.
 */
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"
#include "poison.h"

static int pipe_in, saved;
static char got[4096];

/* What the calls write to standard error from here to `captured`. */
static void capture(void)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	saved = dup(STDERR_FILENO);
	assert_true(dup2(p[1], STDERR_FILENO) >= 0);
	close(p[1]);
	pipe_in = p[0];
}

static const char *captured(void)
{
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	ssize_t n = read(pipe_in, got, sizeof(got) - 1);
	got[n > 0 ? n : 0] = 0;
	close(pipe_in);
	return got;
}

static void assert_match(const char *text, const char *pattern)
{
	regex_t re;
	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	int r = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	if (r != 0)
		fail_msg("\"%s\" does not match %s", text, pattern);
}

static void test_line(void **state)
{
	log_setup("tester", LOG_LEVEL_INFO);
	capture();
	log_info("box %s has %d", "abc", 7);
	assert_match(captured(),
		     "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z tester info: box abc has 7\n$");
	capture();
	log_error("x");
	log_warn("y");
	log_debug("z"); /* below the level */
	assert_match(captured(), "^[^\n]* error: x\n[^\n]* warn: y\n$");
	log_setup("tester", LOG_LEVEL_ERROR);
	capture();
	log_warn("y");
	assert_string_equal(captured(), "");
	log_setup("tester", LOG_LEVEL_DEBUG);
	capture();
	log_debug("z");
	assert_match(captured(), " debug: z\n$");
}

static void test_long(void **state)
{
	log_setup("tester", LOG_LEVEL_INFO);
	static char text[3000];
	memset(text, 'a', sizeof(text));
	for (int n = 900; n < 1100; n++) {
		capture();
		log_info("%.*s", n, text);
		size_t len = strlen(captured());
		assert_true(len <= 1023);
		assert_int_equal(got[len - 1], '\n');
		assert_int_equal(got[len - 2], 'a');
	}
	capture();
	log_info("%.*s", 2999, text);
	assert_int_equal(strlen(captured()), 1023);
}

/* A message of ours may hold a stranger's words: it stays one line without controls. */
static void test_cannot_forge(void **state)
{
	log_setup("tester", LOG_LEVEL_INFO);
	capture();
	log_info("name is %s", "x\n2026-01-01T00:00:00.000Z tester error: forged\r\x1b[31m\x7f");
	assert_match(captured(), "^[^\n]* name is x\\?2026-[^\n]*forged\\?\\?\\[31m\\?\n$");
	capture();
	log_info("tab\tstays, so does \xc3\xa4");
	assert_match(captured(), "tab\tstays, so does \xc3\xa4\n$");
}

static void test_quoted(void **state)
{
	assert_string_equal(log_quoted(VIEW("a\n\"b\"\x1b")), "\"a\\x0a\\\"b\\\"\\x1b\"");
	assert_string_equal(log_quoted(VIEW_NONE), "\"\"");
	/* Several in one call. */
	const char *a = log_quoted(VIEW("a")), *b = log_quoted(VIEW("b")), *c = log_quoted(VIEW("c")),
		   *d = log_quoted(VIEW("d"));
	assert_string_equal(a, "\"a\"");
	assert_string_equal(b, "\"b\"");
	assert_string_equal(c, "\"c\"");
	assert_string_equal(d, "\"d\"");
	/* The worst that fits, and more. */
	char bytes[200];
	memset(bytes, 0xff, sizeof(bytes));
	const char *q = log_quoted((struct view){ bytes, sizeof(bytes) });
	assert_int_equal(strlen(q), 96 * 4 + 2 + 3);
	assert_string_equal(q + strlen(q) - 4, "...\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_cannot_forge),
		cmocka_unit_test(test_quoted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
