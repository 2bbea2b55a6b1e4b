/*
 * What sudo and su are asked for, and what PID 1 reads of a request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sudo.h"
#include "sudo_args.h"
#include "poison.h"

static char *caller_env[] = { (char *)"A=1",
			      (char *)"LANG=C",
			      (char *)"LC_ALL=C",
			      (char *)"PATH=/x",
			      (char *)"HOME=/home/u",
			      (char *)"BASH_FUNC_x%%=() { :; }",
			      (char *)"SHELL=/bin/zsh",
			      NULL };
static const struct sudo_target root = { "root", "/root", "/bin/bash" };
static const struct sudo_caller caller = { "user", 1000, 1001, caller_env };

/* The command line, the words that are executed (joined by '|'), and variables that must be there. */
static void check(char **argv, const char *file, const char *words, const char *const *has)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct sudo_args s;
	struct err e = { 0 };
	char **command, **env, got[512] = "";
	const char *f;
	int argc = 0;
	while (argv[argc])
		argc++;
	assert_int_equal(sudo_args_read(argc, argv, &a, &s, &e), 0);
	assert_int_equal(sudo_args_command(&s, &root, &caller, &a, &command, &f), 0);
	assert_int_equal(sudo_args_env(&s, &root, &caller, command, &a, &env), 0);
	for (char **p = command; *p; p++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s|", *p);
	assert_string_equal(got, words);
	assert_string_equal(f ? f : "", file);
	for (; *has; has++) {
		bool want = (*has)[0] != '!', found = false;
		for (char **p = env; *p; p++)
			found |= strcmp(*p, *has + !want) == 0;
		if (found != want)
			fail_msg("%s", *has);
	}
	arena_done(&a);
}

#define ARGV(...)                                                                                            \
	(char *[])                                                                                           \
	{                                                                                                    \
		__VA_ARGS__, NULL                                                                            \
	}
#define HAS(...)                                                                                             \
	(const char *const[])                                                                                \
	{                                                                                                    \
		__VA_ARGS__, NULL                                                                            \
	}

static void test_sudo(void **state)
{
	char sudo[] = "/usr/bin/sudo", su[] = "su";
	char ls[] = "ls", all[] = "-la", e[] = "-E", nu[] = "-nu", bob[] = "root", i[] = "-i", s[] = "-s",
	     c[] = "-c", set[] = "B=2=3", dashes[] = "--", text[] = "a b;$X", dash[] = "-",
	     lng[] = "--user=root";
	check(ARGV(sudo, ls, all), "", "ls|-la|",
	      HAS("!A=1", "LANG=C", "LC_ALL=C", "PATH=" SUDO_ARGS_PATH, "HOME=/root", "USER=root",
		  "SUDO_USER=user", "SUDO_UID=1000", "SUDO_GID=1001", "SUDO_COMMAND=ls -la"));
	check(ARGV(sudo, e, set, ls), "", "ls|",
	      HAS("A=1", "B=2=3", "!BASH_FUNC_x%%=() { :; }", "HOME=/root"));
	check(ARGV(sudo, nu, bob, dashes, ls), "", "ls|", HAS("USER=root"));
	check(ARGV(sudo, lng, ls), "", "ls|", HAS("USER=root"));
	check(ARGV(sudo, i), "/bin/bash", "-bash|", HAS("HOME=/root", "SHELL=/bin/bash"));
	check(ARGV(sudo, i, ls, text), "/bin/bash", "-bash|-c|ls a\\ b\\;$X|", HAS("!A=1"));
	check(ARGV(sudo, s), "/bin/zsh", "zsh|", HAS("!A=1"));
	check(ARGV(su, c, text), "/bin/bash", "bash|-c|a b;$X|", HAS("A=1", "HOME=/root", "PATH=/x"));
	check(ARGV(su, dash, bob, c, text), "/bin/bash", "-bash|-c|a b;$X|", HAS("!A=1", "USER=root"));
}

static void refused(char **argv)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct sudo_args s;
	struct err e = { 0 };
	int argc = 0;
	while (argv[argc])
		argc++;
	assert_int_equal(sudo_args_read(argc, argv, &a, &s, &e), -1);
	assert_true(e.msg[0]);
	arena_done(&a);
}

static void test_bad(void **state)
{
	char sudo[] = "sudo", u[] = "-u", z[] = "-Z", lng[] = "--nosuch", set[] = "A=1", empty[] = "",
	     g[] = "-g", x[] = "x";
	refused(ARGV(sudo));
	refused(ARGV(sudo, u));
	refused(ARGV(sudo, z, x));
	refused(ARGV(sudo, lng, x));
	refused(ARGV(sudo, set));
	refused(ARGV(sudo, u, empty, x));
	refused(ARGV(sudo, g, x, x));
}

static void test_requests(void **state)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct wire_start s;
	const char *file;
	assert_int_equal(sudo_read_request(VIEW("root\0"
						"2\0\0ls\0-l\0A=b\0=x\0y\0"),
					   &a, &s, &file),
			 0);
	assert_true(view_is(s.user, "root") && !file);
	assert_int_equal(s.argv.n, 2);
	assert_int_equal(s.env.n, 1); /* what is no variable is left out */
	assert_true(view_is(s.env.items[0].name, "A") && view_is(s.env.items[0].value, "b"));
	assert_int_equal(sudo_read_request(VIEW("root\0"
						"1\0/bin/sh\0-sh\0"),
					   &a, &s, &file),
			 0);
	assert_string_equal(file, "/bin/sh");
	static const struct view bad[] = { VIEW(""),
					   VIEW("\0"),
					   VIEW("root\0"
						"1\0"),
					   VIEW("root\0"
						"1\0\0"),
					   VIEW("root\0"
						"0\0\0"),
					   VIEW("root\0"
						"2\0\0a\0"),
					   VIEW("root\0"
						"1\0\0a"),
					   VIEW("root\0"
						"1\0\0\0"),
					   VIEW("\0"
						"1\0\0a\0"),
					   VIEW("root\0-1\0\0a\0"),
					   VIEW("root\0"
						"4294967295\0\0a\0") };
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(sudo_read_request(bad[i], &a, &s, &file) < 0);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sudo),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
