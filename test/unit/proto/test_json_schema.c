/*
 * The schema reader: values into a struct, and errors that name the field.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "json.h"

#include "poison.h"

struct limits {
	double cpu;
	uint64_t pids;
};

struct body {
	struct view name;
	bool has_name;
	bool readonly, has_readonly;
	uint64_t ttl;
	bool has_ttl;
	struct limits limits;
	bool has_limits;
	struct json_strmap env;
	struct json_strlist argv;
	const struct json *extra;
};

static const struct json_schema limits_schema = {
	.fields =
		(const struct json_field[]){
			{ "cpu", JSON_F_DOUBLE, offsetof(struct limits, cpu), .fmin = 0.01, .fmax = 64 },
			{ "pids", JSON_F_U64, offsetof(struct limits, pids), .min = 1, .max = 4096 },
		},
	.n = 2,
};

static const struct json_field body_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct body, name), offsetof(struct body, has_name), .min = 1,
	  .max = 8 },
	{ "readonly", JSON_F_BOOL, offsetof(struct body, readonly), offsetof(struct body, has_readonly) },
	{ "ttl", JSON_F_U64, offsetof(struct body, ttl), offsetof(struct body, has_ttl), .nullable = true },
	{ "limits", JSON_F_OBJECT, offsetof(struct body, limits), offsetof(struct body, has_limits),
	  .sub = &limits_schema },
	{ "env", JSON_F_STRMAP, offsetof(struct body, env), .max = 2 },
	{ "argv", JSON_F_STRLIST, offsetof(struct body, argv), .required = true, .min = 1 },
	{ "extra", JSON_F_ANY, offsetof(struct body, extra) },
};

static const struct json_schema body_schema = { body_fields, ELEMS(body_fields) };

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static int read_body(const char *text, bool lines, struct body *out, struct err *e)
{
	struct json *j;

	assert_int_equal(json_parse(&arena, view_of(text), &j, e), 0);
	return json_read(&arena, j, &body_schema, out, lines, e);
}

static void test_all_kinds(void **state)
{
	struct body b = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_body("{\"name\":\"box\",\"readonly\":true,\"ttl\":60,"
				   "\"limits\":{\"cpu\":0.5,\"pids\":10},\"env\":{\"A\":\"1\",\"B\":\"\"},"
				   "\"argv\":[\"ls\",\"-l\"],\"extra\":[1,2]}",
				   false, &b, &e),
			 0);
	assert_true(b.has_name && view_is(b.name, "box"));
	assert_true(b.has_readonly && b.readonly);
	assert_true(b.has_ttl && b.ttl == 60);
	assert_true(b.has_limits && b.limits.cpu == 0.5 && b.limits.pids == 10);
	assert_int_equal(b.env.n, 2);
	assert_true(view_is(b.env.keys[1], "B") && view_is(b.env.values[0], "1"));
	assert_int_equal(b.argv.n, 2);
	assert_true(view_is(b.argv.items[1], "-l"));
	assert_int_equal(b.extra->n, 2);
}

static void test_absent_keeps_defaults(void **state)
{
	struct body b = { .ttl = 7, .limits.cpu = 2, .limits.pids = 3 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_body("{\"argv\":[\"ls\"],\"ttl\":null,\"limits\":{\"pids\":9}}", false, &b, &e),
			 0);
	assert_false(b.has_name || b.has_readonly || b.has_ttl);
	assert_int_equal(b.ttl, 7);
	assert_true(b.limits.cpu == 2);
	assert_int_equal(b.limits.pids, 9);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "[]", "line 1: must be an object, not an array" },
		{ "{}", "line 1: argv: is required" },
		{ "{\"argv\":null}", "line 1: argv: must be an array of strings, not null" },
		{ "{\"argv\":[]}", "line 1: argv: must not be empty" },
		{ "{\"argv\":[\"a\",\n5]}", "line 2: argv: item 2 must be a string, not a number" },
		{ "{\"argv\":[\"a\"],\n\"nam\":1}",
		  "line 2: \"nam\": unknown field; did you mean \"name\"?" },
		{ "{\"limits\":{\"cpus\":1}}",
		  "line 1: limits.\"cpus\": unknown field; did you mean \"cpu\"?" },
		{ "{\"\\u001b[2J\\u00e9\":1}", "line 1: \"\\x1b[2J\\xc3\\xa9\": unknown field" },
		{ "{\"name\":\"\"}", "line 1: name: must not be empty" },
		{ "{\"name\":\"123456789\"}", "line 1: name: must have at most 8 bytes" },
		{ "{\"name\":5}", "line 1: name: must be a string, not a number" },
		{ "{\"name\":null}", "line 1: name: must be a string, not null" },
		{ "{\"readonly\":1}", "line 1: readonly: must be true or false, not a number" },
		{ "{\"ttl\":-1}", "line 1: ttl: must be a whole number of at least 0" },
		{ "{\"ttl\":1.5}", "line 1: ttl: must be a whole number of at least 0" },
		{ "{\"ttl\":\"1\"}", "line 1: ttl: must be a whole number, not a string" },
		{ "{\"limits\":{\"pids\":0}}", "line 1: limits.pids: must be a whole number from 1 to 4096" },
		{ "{\"limits\":{\"pids\":99999999999999999999}}",
		  "line 1: limits.pids: must be a whole number from 1 to 4096" },
		{ "{\"limits\":{\"cpu\":1e999}}", "line 1: limits.cpu: must be a number from 0.01 to 64" },
		{ "{\"limits\":{\"cpu\":0}}", "line 1: limits.cpu: must be a number from 0.01 to 64" },
		{ "{\"limits\":3}", "line 1: limits: must be an object, not a number" },
		{ "{\"env\":{\"A\":1}}", "line 1: env.\"A\": must be a string, not a number" },
		{ "{\"env\":[]}", "line 1: env: must be an object of strings, not an array" },
		{ "{\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}",
		  "line 1: env: must have at most 2 entries" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct body b = { 0 };
		struct err e = { 0 };

		assert_int_equal(read_body(cases[i].text, true, &b, &e), -1);
		assert_string_equal(e.msg, cases[i].msg);
		assert_int_equal(e.code, ERR_INVALID);
		assert_int_equal(read_body(cases[i].text, false, &b, &e), -1);
		assert_string_equal(e.msg, strchr(cases[i].msg, ':') + 2);
	}
}

static void test_no_line_for_made_values(void **state)
{
	struct json made = { .type = JSON_NUMBER, .text = VIEW("1") };
	struct body b = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(json_read(&arena, &made, &body_schema, &b, true, &e), -1);
	assert_string_equal(e.msg, "must be an object, not a number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_all_kinds, teardown),
		cmocka_unit_test_teardown(test_absent_keeps_defaults, teardown),
		cmocka_unit_test_teardown(test_errors, teardown),
		cmocka_unit_test_teardown(test_no_line_for_made_values, teardown),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests_name("json_schema", tests, NULL, NULL);
}
