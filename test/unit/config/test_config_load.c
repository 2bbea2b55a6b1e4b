/*
 * The three sources of the configuration and their order, with real files.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "config_load.h"
#include "config_schema.h"
#include "fd.h"

#include "poison.h"

static char path[] = "/tmp/paddock-config-XXXXXX";
static struct arena arena = ARENA_INIT(16u << 20);
static struct config config;
static struct err e;

static int setup(void **state)
{
	int fd = mkostemp(path, O_CLOEXEC);

	fd_close(fd);
	return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	arena_done(&arena);
	return unlink(path);
}

static int load(const char *text, char **env, const struct config_flag *flags, size_t n)
{
	const char *from = NULL;
	int r;

	assert_int_equal(fd_replace(AT_FDCWD, path, text, strlen(text), 0600, false), 0);
	e = (struct err){ 0 };
	r = config_load(&arena, path, env, flags, n, &config, &from, &e);
	if (r == 0)
		assert_string_equal(from, path);
	return r;
}

#define ENV(...) ((char *[]){ __VA_ARGS__, NULL })

static void test_order(void **state)
{
	static const struct config_flag flags[] = { { "RUN_DIR", "/flag" } };
	const char *text = "listen: 127.0.0.1:1\ndata_dir: /file\nrun_dir: /file2\nmax: {boxes: 7}\n";

	assert_int_equal(load(text,
			      ENV("PADDOCK_DATA_DIR=/env", "PADDOCK_RUN_DIR=/env2", "HOME=/x", "PADDOCK"),
			      flags, 1),
			 0);
	assert_true(view_is(config.listen, "127.0.0.1:1"));
	assert_true(view_is(config.data_dir, "/env"));
	assert_true(view_is(config.run_dir, "/flag"));
	assert_int_equal(config.max.boxes, 7);
	assert_true(view_is(config.defaults.image, "machine"));
	/* a section that only a variable has */
	assert_int_equal(load("listen: 127.0.0.1:1\n", ENV("PADDOCK_DEFAULTS_LIMITS_PIDS=9"), NULL, 0), 0);
	assert_int_equal(config.defaults.limits.pids, 9);
}

static void test_client_variables(void **state)
{
	assert_int_equal(load("", ENV("PADDOCK_URL=x", "PADDOCK_API_KEY=y", "PADDOCK_KEY_FILE=z"), NULL, 0),
			 0);
}

static void refused(const char *text, char **env, bool in_file, const char *message)
{
	char expected[256];

	snprintf(expected, sizeof(expected), "%s%s%s", in_file ? path : "", in_file ? ": " : "", message);
	assert_int_equal(load(text, env, NULL, 0), -1);
	if (strncmp(e.msg, expected, strlen(expected)) != 0)
		fail_msg("gave  %s\nnot   %s", e.msg, expected);
}

static void test_refused(void **state)
{
	refused("listen: 127.0.0.1:1\n\nlisen: x\n", NULL, true, "line 3: ");
	refused("listen: 127.0.0.1:1\nmax:\n  boxes: many\n", NULL, true, "line 3: ");
	refused("data_dir: relative\n", NULL, true, "line 1: data_dir: must be an absolute path");
	refused("a: [\n", NULL, true, "line 2: ");
	refused("- a\n- b\n", NULL, true, "line 1: expected keys and values, not an array");
	refused("", ENV("PADDOCK_LISEN=x"), false, "PADDOCK_LISEN: no such setting");
	refused("", ENV("PADDOCK_MAX_BOXES=many"), false, "PADDOCK_MAX_BOXES: must be a number");
	/* a variable's mistake is blamed on it, not on the file */
	refused("listen: 127.0.0.1:1\n", ENV("PADDOCK_DATA_DIR=relative"), false,
		"PADDOCK_DATA_DIR: data_dir: must be an absolute path");
	refused("", ENV("PADDOCK_DEFAULTS_LIMITS_PIDS=0"), false,
		"PADDOCK_DEFAULTS_LIMITS_PIDS: defaults.limits.pids");
	/* a flag's mistake is nobody else's */
	assert_int_equal(
		load("", ENV("PADDOCK_LISTEN=127.0.0.1:1"), &(struct config_flag){ "LISTEN", "x" }, 1), -1);
	assert_int_equal(strncmp(e.msg, "listen: ", 8), 0);
}

static void test_files(void **state)
{
	const char *from = path;

	e = (struct err){ 0 };
	assert_int_equal(config_load(&arena, "/nonexistent/x.yaml", NULL, NULL, 0, &config, NULL, &e), -1);
	assert_non_null(strstr(e.msg, "/nonexistent/x.yaml: cannot read"));
	assert_int_equal(config_load(&arena, "/", NULL, NULL, 0, &config, NULL, &e), -1);
	if (access(CONFIG_LOAD_DEFAULT, F_OK) != 0) {
		assert_int_equal(config_load(&arena, NULL, NULL, NULL, 0, &config, &from, &e), 0);
		assert_null(from);
	}
}

/* Takes the '#' off "#key: value" and "#  key: value", but leaves "# Some text". */
static void uncomment(const struct buf *in, struct buf *out)
{
	for (struct view rest = buf_view(in); rest.p;) {
		struct view line = view_split(rest, '\n', &rest);
		bool setting = line.n > 2 && line.p[0] == '#' && (line.p[1] != ' ' || line.p[2] == ' ');

		buf_add(out, setting ? view_skip(line, 1) : line);
		buf_putc(out, '\n');
	}
	buf_putc(out, '\0');
}

/* Whether a line of the text sets it. */
static bool is_set(struct view text, const char *name)
{
	size_t n = strlen(name);

	while (text.p) {
		struct view line = view_trim(view_split(text, '\n', &text));
		if (view_starts(line, name) && line.n > n && line.p[n] == ':')
			return true;
	}
	return false;
}

static void has_all(struct view text, const struct json_schema *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->fields[i].name, "origins") == 0)
			continue; /* `paddock serve` hands them down; nobody sets them */
		if (!is_set(text, s->fields[i].name))
			fail_msg("%s is not in the sample", s->fields[i].name);
		if (s->fields[i].kind == JSON_F_OBJECT)
			has_all(text, s->fields[i].sub);
	}
}

/* The sample that we ship must be what it says: all settings, with their defaults. */
static void test_sample(void **state)
{
	struct buf sample = BUF_INIT(1u << 20), text = BUF_INIT(1u << 20), shown = BUF_INIT(1u << 20),
		   defaults = BUF_INIT(1u << 20);
	const char *none = "";

	assert_int_equal(load(none, NULL, NULL, 0), 0);
	config.origins = NULL; /* which are not settings, and differ */
	assert_int_equal(config_to_json(&config, &defaults), 0);
	assert_int_equal(fd_slurp(AT_FDCWD, SAMPLE, &sample), 0);
	assert_int_equal(config_load(&arena, SAMPLE, NULL, NULL, 0, &config, NULL, &e), 0);
	config.origins = NULL;
	assert_int_equal(config_to_json(&config, &shown), 0);
	assert_true(view_eq(buf_view(&shown), buf_view(&defaults)));
	/* and again with its settings switched on */
	uncomment(&sample, &text);
	if (load(text.p, NULL, NULL, 0) != 0)
		fail_msg("%s", e.msg);
	has_all(view_of(text.p), &config_schema);
	buf_clear(&shown);
	config.origins = NULL;
	assert_int_equal(config_to_json(&config, &shown), 0);
	assert_true(view_eq(buf_view(&shown), buf_view(&defaults)));
	buf_done(&sample);
	buf_done(&text);
	buf_done(&shown);
	buf_done(&defaults);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),   cmocka_unit_test(test_client_variables),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_files),
		cmocka_unit_test(test_sample),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
