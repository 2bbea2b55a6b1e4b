/*
 * Options: values of each kind, where options may stand, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "opts.h"

#include "poison.h"

struct flags {
	bool flag;
	const char *text;
	struct opt_list list, pairs;
	uint64_t count, mib, ms;
	double cpu;
};

#define AT(m) offsetof(struct flags, m)
static const struct opt OPTS[] = {
	{ "flag", 'f', OPT_FLAG, AT(flag), NULL, "" }, { "text", 't', OPT_TEXT, AT(text), "T", "" },
	{ "list", 'l', OPT_LIST, AT(list), "L", "" },  { "env", 'e', OPT_PAIRS, AT(pairs), "K=V", "" },
	{ "count", 0, OPT_COUNT, AT(count), "N", "" }, { "cpu", 0, OPT_CPU, AT(cpu), "C", "" },
	{ "memory", 'm', OPT_MIB, AT(mib), "M", "" },  { "timeout", 0, OPT_MS, AT(ms), "T", "" },
};

static struct arena arena = ARENA_INIT(1u << 20);
static struct flags flags;
static char **operands;
static size_t n_operands;
static struct err e;

#define ARGS(...) ((char *[]){ __VA_ARGS__, NULL })

static int parse(size_t lead, char **argv)
{
	struct opt_table t = { OPTS, ELEMS(OPTS), &flags };
	size_t argc = 0;

	while (argv[argc])
		argc++;
	arena_reset(&arena);
	flags = (struct flags){ 0 };
	e = (struct err){ 0 };
	return opts_parse(&arena, &t, 1, lead, argc, argv, &operands, &n_operands, &e);
}

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static void test_kinds(void **state)
{
	assert_int_equal(parse(OPTS_ANYWHERE,
			       ARGS("--flag", "--text", "a", "--list=x", "-l", "y", "-e", "K=a=b", "--env",
				    "E=", "--count", "7", "--cpu", "0.5", "-m", "2g", "--timeout=500ms")),
			 0);
	assert_true(flags.flag);
	assert_string_equal(flags.text, "a");
	assert_int_equal(flags.list.n, 2);
	assert_string_equal(flags.list.items[1], "y");
	assert_int_equal(flags.pairs.n, 2);
	assert_string_equal(flags.pairs.items[0], "K=a=b");
	assert_int_equal(flags.count, 7);
	assert_true(flags.cpu == 0.5);
	assert_int_equal(flags.mib, 2048);
	assert_int_equal(flags.ms, 500);
	assert_int_equal(n_operands, 0);
	assert_null(operands[0]);
}

static void test_units(void **state)
{
	uint64_t v = 0;

	assert_int_equal(opts_read_mib(VIEW("512"), &v), 0);
	assert_int_equal(v, 512);
	assert_int_equal(opts_read_mib(VIEW("3G"), &v), 0);
	assert_int_equal(v, 3072);
	assert_int_not_equal(opts_read_mib(VIEW("5k"), &v), 0);
	assert_int_not_equal(opts_read_mib(VIEW("m"), &v), 0);
	assert_int_not_equal(opts_read_mib(VIEW("18014398509481984g"), &v), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(opts_read_ms(VIEW("10"), &v), 0);
	assert_int_equal(v, 10000);
	assert_int_equal(opts_read_ms(VIEW("2h"), &v), 0);
	assert_int_equal(v, 7200000);
	assert_int_equal(opts_read_ms(VIEW("1d"), &v), 0);
	assert_int_equal(v, 86400000);
	assert_int_not_equal(opts_read_ms(VIEW("-1s"), &v), 0);
	assert_int_not_equal(opts_read_ms(VIEW("1 s"), &v), 0);
	assert_int_not_equal(opts_read_ms(VIEW(""), &v), 0);
	assert_int_not_equal(opts_read_ms(VIEW("99999999999999999999d"), &v), 0);
}

static void test_where_options_end(void **state)
{
	/* like `run`: the first operand ends them */
	assert_int_equal(parse(0, ARGS("-f", "ls", "-l", "--text")), 0);
	assert_true(flags.flag);
	assert_int_equal(n_operands, 3);
	assert_string_equal(operands[2], "--text");
	/* "--" is dropped once, and only the first */
	assert_int_equal(parse(0, ARGS("--", "--", "-f")), 0);
	assert_int_equal(n_operands, 2);
	assert_string_equal(operands[0], "--");
	assert_false(flags.flag);
	/* like `exec`: options around the box, none after the command */
	assert_int_equal(parse(1, ARGS("box", "-t", "x", "sh", "-c", "--", "-f")), 0);
	assert_string_equal(flags.text, "x");
	assert_int_equal(n_operands, 5);
	assert_string_equal(operands[1], "sh");
	assert_string_equal(operands[3], "--");
	assert_int_equal(parse(1, ARGS("box", "--", "-f")), 0);
	assert_int_equal(n_operands, 2);
	assert_string_equal(operands[1], "-f");
	/* anywhere; a lone dash is an operand */
	assert_int_equal(parse(OPTS_ANYWHERE, ARGS("a", "-f", "-", "b")), 0);
	assert_true(flags.flag);
	assert_int_equal(n_operands, 3);
	assert_string_equal(operands[1], "-");
}

static void refused(char **argv, const char *message)
{
	assert_int_equal(parse(OPTS_ANYWHERE, argv), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.msg, message);
}

static void test_refused(void **state)
{
	refused(ARGS("--nope"), "unknown option --nope");
	refused(ARGS("--fla"), "unknown option --fla; did you mean --flag?"); /* no abbreviations */
	refused(ARGS("-x"), "unknown option -x");
	refused(ARGS("-fl"), "-l wants a value"); /* letters stand together */
	refused(ARGS("-fx"), "unknown option -x");
	refused(ARGS("--flag=1"), "--flag takes no value");
	refused(ARGS("--text"), "--text wants a value");
	refused(ARGS("-e", "novalue"), "--env wants KEY=VALUE, not \"novalue\"");
	refused(ARGS("-e", "=x"), "--env wants KEY=VALUE, not \"=x\"");
	refused(ARGS("--count", "0"), "--count wants a whole number from 1, not \"0\"");
	refused(ARGS("--count", "1x"), "--count wants a whole number from 1, not \"1x\"");
	refused(ARGS("-m", "0"), "--memory wants a size in MiB such as 512, 512m or 2g, not \"0\"");

	static const char *const bad_cpu[] = { "0", "-1", "inf", "nan", "0x10", "1e9", " 1", "1..5", "" };
	for (size_t i = 0; i < ELEMS(bad_cpu); i++)
		assert_int_equal(parse(OPTS_ANYWHERE, ARGS("--cpu", (char *)bad_cpu[i])), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_where_options_end),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
