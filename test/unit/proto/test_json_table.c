/*
 * Tables both ways: writing, equality, copies, differences and descriptions.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "json_table_sample.h"

#include "poison.h"

#define ROUNDS 2000

static struct arena arena;
static struct buf out = BUF_INIT(1 << 20);

static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	buf_done(&out);
	return 0;
}

static const char *text_of(const struct json_schema *s, const void *in)
{
	struct json_out o;

	buf_clear(&out);
	json_out_init(&o, &out);
	json_write(&o, s, in);
	buf_append(&out, "", 1);
	assert_int_equal(out.bad, 0);
	return out.p;
}

static int read_sample(const char *text, struct sample *ret, struct err *e)
{
	struct json *j;

	assert_int_equal(json_parse(&arena, view_of(text), &j, e), 0);
	return json_read(&arena, j, &sample_schema, ret, false, e);
}

/* ---- writing ---- */

static void test_nothing(void **state)
{
	struct sample s = { 0 };

	(void)state;
	assert_string_equal(text_of(&sample_schema, &s),
			    "{\"name\":\"\",\"on\":false,\"big\":0,\"share\":0,\"limits\":{\"cpu\":0},"
			    "\"argv\":null,\"extra\":null,\"u16\":null,\"i64\":0,\"exit_code\":null,"
			    "\"z\":null,\"id\":\"\",\"color\":\"red\",\"most\":null,\"rules\":[],"
			    "\"first\":[],\"cpu\":0,\"at\":null}");
}

static void test_every_kind(void **state)
{
	struct view argv[] = { VIEW("ls"), VIEW("-l") }, keys[] = { VIEW("A") }, values[] = { VIEW("\n") };
	struct sample_limits most = { .cpu = 2, .has_pids = true };
	struct sample_rule rules[] = { { VIEW("a"), 80, "t" }, { .host = VIEW("b") } };
	uint16_t ports[] = { 1, 65535 };
	struct json extra = { .type = JSON_BOOL, .boolean = true };
	struct sample s = { .name = VIEW("box"),
			    .on = true,
			    .big = UINT64_MAX,
			    .share = 0.25,
			    .limits = { .cpu = 1.5, .pids = 7, .has_pids = true },
			    .env = { keys, values, 1 },
			    .argv = { argv, 2 },
			    .extra = &extra,
			    .u32 = UINT32_MAX,
			    .u16 = UINT16_MAX,
			    .i64 = INT64_MIN,
			    .has_exit_code = true,
			    .z = "zed",
			    .id = "1234567",
			    .color = SAMPLE_BLUE,
			    .features = 5,
			    .most = &most,
			    .rules = { rules, 2 },
			    .ports = { ports, 2 },
			    .first = { { .host = VIEW("c") } },
			    .n_first = 1,
			    .cpu_milli = 500,
			    .at_ms = 1763194372123,
			    .raw = VIEW("[1]"),
			    .range = { 1, 2 },
			    .password = VIEW("pw") };

	(void)state;
	assert_string_equal(
		text_of(&sample_schema, &s),
		"{\"name\":\"box\",\"on\":true,\"big\":18446744073709551615,\"share\":0.25,"
		"\"limits\":{\"cpu\":1.5,\"pids\":7},\"env\":{\"A\":\"\\n\"},\"argv\":[\"ls\",\"-l\"],"
		"\"extra\":true,\"u32\":4294967295,\"u16\":65535,\"i64\":-9223372036854775808,"
		"\"exit_code\":0,\"z\":\"zed\",\"id\":\"1234567\",\"color\":\"blue\","
		"\"features\":[\"lsm\",\"seccomp\"],\"most\":{\"cpu\":2,\"pids\":0},"
		"\"rules\":[{\"host\":\"a\",\"port\":80,\"token\":\"t\"},{\"host\":\"b\"}],"
		"\"ports\":[1,65535],\"first\":[{\"host\":\"c\"}],\"cpu\":0.5,"
		"\"at\":\"2025-11-15T08:12:52.123Z\",\"raw\":[1],\"range\":\"1-2\",\"password\":\"pw\"}");
}

struct rules {
	bool unused;
	struct view text, kept;
	bool has_text, has_other, has_null;
	uint64_t other, null;
	struct sample_limits limits;
	enum sample_color color;
};

#define AT(f) offsetof(struct rules, f)
static const struct json_field rules_fields[] = {
	{ "text", JSON_F_STRING, AT(text), AT(has_text) },
	{ "other", JSON_F_U64, AT(other), AT(has_other), .skip = JSON_SKIP_EMPTY },
	{ "null", JSON_F_U64, AT(null), AT(has_null), .skip = JSON_NULL_EMPTY },
	{ "limits", JSON_F_OBJECT, AT(limits), .sub = &sample_limits_schema, .skip = JSON_SKIP_EMPTY },
	{ "asked", JSON_F_STRING, AT(kept), .write_only = true },
	{ "kept", JSON_F_STRING, AT(kept), .read_only = true },
};
#undef AT
static const struct json_schema rules_schema = { JSON_SCHEMA(rules_fields) };

static void test_skip_rules(void **state)
{
	struct rules r = { .text = VIEW("x"), .other = 1, .null = 2, .kept = VIEW("k") };

	(void)state;
	/* Without presence there is no value, whatever is in the struct. */
	assert_string_equal(text_of(&rules_schema, &r), "{\"null\":null,\"kept\":\"k\"}");
	/* With presence there is one, even if it is zero; an object in which a member is present is not
	 * empty. */
	r = (struct rules){ .has_text = true, .has_other = true, .has_null = true, .limits.has_pids = true };
	assert_string_equal(
		text_of(&rules_schema, &r),
		"{\"text\":\"\",\"other\":0,\"null\":0,\"limits\":{\"cpu\":0,\"pids\":0},\"kept\":\"\"}");
}

static void test_members_and_keys(void **state)
{
	struct sample_limits l = { .cpu = 1 };
	struct json_out o;

	(void)state;
	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_kz(&o, "before", "b");
	json_write_members(&o, &sample_limits_schema, &l);
	json_out_kwrite(&o, "limits", &sample_limits_schema, &l);
	json_out_kz(&o, "after", "a");
	json_out_end(&o, '}');
	assert_true(view_is(buf_view(&out),
			    "{\"before\":\"b\",\"cpu\":1,\"limits\":{\"cpu\":1},\"after\":\"a\"}"));
}

static void test_enum_without_name(void **state)
{
	struct sample s = { .color = SAMPLE_HOLE };

	(void)state;
	assert_non_null(strstr(text_of(&sample_schema, &s), "\"color\":null"));
	s.color = (enum sample_color)77;
	assert_non_null(strstr(text_of(&sample_schema, &s), "\"color\":null"));
}

/* ---- reading the new kinds ---- */

static void test_errors(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "{\"u32\":4294967296}", "u32: must be a whole number from 0 to 4294967295" },
		{ "{\"u16\":65536}", "u16: must be a whole number from 0 to 65535" },
		{ "{\"i64\":1.5}",
		  "i64: must be a whole number from -9223372036854775808 to 9223372036854775807" },
		{ "{\"i64\":\"1\"}", "i64: must be a whole number, not a string" },
		{ "{\"exit_code\":256}", "exit_code: must be a whole number from -1 to 255" },
		{ "{\"exit_code\":-2}", "exit_code: must be a whole number from -1 to 255" },
		{ "{\"z\":1}", "z: must be a string, not a number" },
		{ "{\"id\":\"12345678\"}", "id: must have at most 7 bytes" },
		{ "{\"color\":\"green\"}", "color: must be red or blue" },
		{ "{\"color\":1}", "color: must be a string, not a number" },
		{ "{\"features\":[\"lsm\",\"x\"]}", "features[1]: must be lsm, seccomp or userns" },
		{ "{\"features\":[1]}", "features[0]: must be a string, not a number" },
		{ "{\"features\":\"lsm\"}", "features: must be an array of strings, not a string" },
		{ "{\"most\":{\"cpu\":65}}", "most.cpu: must be a number from 0 to 64" },
		{ "{\"most\":1}", "most: must be an object, not a number" },
		{ "{\"rules\":{}}", "rules: must be an array, not an object" },
		{ "{\"rules\":[{\"host\":\"a\"},{\"port\":1}]}", "rules[1].host: is required" },
		{ "{\"rules\":[1]}", "rules[0]: must be an object, not a number" },
		{ "{\"rules\":[{\"host\":\"a\",\"hots\":1}]}",
		  "rules[0].\"hots\": unknown field; did you mean \"host\"?" },
		{ "{\"rules\":[{},{},{},{},{}]}", "rules: must have at most 4 items" },
		{ "{\"first\":[{},{},{},{}]}", "first: must have at most 3 items" },
		{ "{\"ports\":[1,0]}", "ports[1]: must be a whole number from 1 to 65535" },
		{ "{\"cpu\":64.5}", "cpu: must be a number from 0 to 64" },
		{ "{\"cpu\":\"1\"}", "cpu: must be a number, not a string" },
		{ "{\"at\":\"today\"}", "at: must be a time such as 2026-11-15T08:12:52Z" },
		{ "{\"range\":\"5\"}", "range: must be FROM-TO" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct sample s = { 0 };
		struct err e = { 0 };

		assert_int_equal(read_sample(cases[i].text, &s, &e), -1);
		assert_string_equal(e.msg, cases[i].msg);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

static void test_read_only_is_unknown(void **state)
{
	struct rules r = { 0 };
	struct err e = { 0 };
	struct json *j;

	(void)state;
	assert_int_equal(json_parse(&arena, VIEW("{\"asked\":\"a\"}"), &j, &e), 0);
	assert_int_equal(json_read(&arena, j, &rules_schema, &r, false, &e), 0);
	assert_true(view_is(r.kept, "a"));
	assert_int_equal(json_parse(&arena, VIEW("{\"kept\":\"a\"}"), &j, &e), 0);
	assert_int_equal(json_read(&arena, j, &rules_schema, &r, false, &e), -1);
	assert_string_equal(e.msg, "\"kept\": unknown field");
}

/* ---- properties over random structs ---- */

static void read_back(const char *text, struct sample *ret)
{
	struct err e = { 0 };

	*ret = (struct sample){ 0 };
	if (read_sample(text, ret, &e) < 0)
		fail_msg("%s: %s", e.msg, text);
}

static void test_written_reads_back_equal(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < ROUNDS; i++) {
		struct sample s, back;
		const char *text;
		char *first;

		sample_random(&arena, &seed, &s);
		text = text_of(&sample_schema, &s);
		first = arena_str(&arena, view_of(text));
		read_back(first, &back);
		assert_true(json_equal(&sample_schema, &s, &back));
		assert_true(json_equal(&sample_schema, &back, &s));
		assert_string_equal(text_of(&sample_schema, &back), first);
		arena_reset(&arena);
	}
}

static int count_difference(void *arg, const char *path, struct view before, struct view after)
{
	size_t *n = arg;

	assert_true(path[0] && path[0] != '.');
	++*n;
	return 0;
}

/* Equal structs are written alike, and those that are written alike are equal. */
static void test_equal_as_written(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < ROUNDS; i++) {
		struct sample a, b;
		uint64_t again = seed;
		size_t n = 0;
		char *first;
		bool alike;

		sample_random(&arena, &seed, &a);
		if (sample_next(&seed, 2))
			seed = again;
		sample_random(&arena, &seed, &b);
		if (sample_next(&seed, 2))
			b = a;
		if (sample_next(&seed, 2))
			b.u16 ^= 1;
		first = arena_str(&arena, view_of(text_of(&sample_schema, &a)));
		alike = strcmp(first, text_of(&sample_schema, &b)) == 0;
		assert_int_equal(json_equal(&sample_schema, &a, &b), alike);
		assert_int_equal(json_diff(&sample_schema, &a, &b, count_difference, &n), 0);
		assert_int_equal(n > 0, !alike);
		arena_reset(&arena);
	}
}

static void test_copies_stand_alone(void **state)
{
	struct arena other = ARENA_INIT(1 << 20);
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < ROUNDS; i++) {
		struct sample s, copy = { 0 };
		struct buf before = BUF_INIT(1 << 20);

		sample_random(&other, &seed, &s);
		assert_int_equal(json_copy(&arena, &sample_schema, &s, &copy), 0);
		assert_true(json_equal(&sample_schema, &s, &copy));
		buf_puts(&before, text_of(&sample_schema, &s));
		buf_append(&before, "", 1);
		other.secret = true; /* overwritten: whoever still points there shows it */
		arena_done(&other);
		other.secret = false;
		assert_string_equal(text_of(&sample_schema, &copy), before.p);
		buf_done(&before);
		arena_reset(&arena);
	}
	arena_done(&other);
}

static void test_copy_without_memory(void **state)
{
	uint64_t seed = 5;
	size_t failed = 0;
	struct sample s, copy;

	(void)state;
	sample_random(&arena, &seed, &s);
	for (size_t max = 0;; max += 16) {
		struct arena small = ARENA_INIT(max);
		int rc = json_copy(&small, &sample_schema, &s, &copy);

		arena_done(&small);
		if (rc == 0)
			break;
		assert_int_equal(rc, -12 /* ENOMEM */);
		failed++;
	}
	assert_true(failed > 10);
}

/* ---- equality and differences ---- */

static void test_maps_in_any_order(void **state)
{
	struct view one[] = { VIEW("A"), VIEW("B") }, other[] = { VIEW("B"), VIEW("A") };
	struct sample a = { .env = { one, one, 2 } }, b = { .env = { other, other, 2 } };

	(void)state;
	assert_true(json_equal(&sample_schema, &a, &b));
	b.env.values = one;
	assert_false(json_equal(&sample_schema, &a, &b));
}

static void test_absent_is_equal(void **state)
{
	struct rules a = { .text = VIEW("x") }, b = { .text = VIEW("y") };

	(void)state;
	assert_true(json_equal(&rules_schema, &a, &b));
	a.has_text = true;
	assert_false(json_equal(&rules_schema, &a, &b));
	b.has_text = true;
	assert_false(json_equal(&rules_schema, &a, &b));
	b.text = a.text;
	assert_true(json_equal(&rules_schema, &a, &b));
}

static int put_difference(void *arg, const char *path, struct view before, struct view after)
{
	return buf_printf(arg, "%s: %.*s -> %.*s\n", path, VIEW_ARG(before), VIEW_ARG(after));
}

static void test_differences(void **state)
{
	struct sample_limits most = { .cpu = 1 }, more = { .cpu = 2 };
	struct sample_rule old_rule = { VIEW("a"), 1, "old" }, new_rule = { VIEW("a"), 1, "new" };
	struct sample a = { .name = VIEW("a"),
			    .limits = { .cpu = 1 },
			    .most = &most,
			    .rules = { &old_rule, 1 },
			    .password = VIEW("secret1") },
		      b = { .name = VIEW("b"),
			    .limits = { .cpu = 1, .pids = 5, .has_pids = true },
			    .most = &more,
			    .rules = { &new_rule, 1 },
			    .password = VIEW("secret2"),
			    .u32 = 9 };

	(void)state;
	assert_int_equal(json_diff(&sample_schema, &a, &b, put_difference, &out), 0);
	buf_append(&out, "", 1);
	assert_string_equal(out.p, "name: \"a\" -> \"b\"\n"
				   "limits.pids:  -> 5\n"
				   "u32:  -> 9\n"
				   "most.cpu: 1 -> 2\n"
				   "rules: [{\"host\":\"a\",\"port\":1,\"token\":\"***\"}] -> "
				   "[{\"host\":\"a\",\"port\":1,\"token\":\"***\"}]\n"
				   "password: \"***\" -> \"***\"\n");
	buf_clear(&out);
	b.most = NULL;
	a = b;
	a.most = &most;
	assert_int_equal(json_diff(&sample_schema, &a, &b, put_difference, &out), 0);
	assert_true(view_is(buf_view(&out), "most: {\"cpu\":1} -> \n"));
}

static int stop_at_once(void *arg, const char *path, struct view before, struct view after)
{
	assert_string_equal(path, "name");
	return -77;
}

static void test_differences_can_end(void **state)
{
	struct sample a = { .name = VIEW("a") }, b = { .name = VIEW("b"), .on = true };

	(void)state;
	assert_int_equal(json_diff(&sample_schema, &a, &b, stop_at_once, NULL), -77);
}

static void test_values(void **state)
{
	struct json *a, *b, *c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(json_parse(&arena, VIEW("{\"a\":[1,\"x\"],\"b\":{\"c\":null}}"), &a, &e), 0);
	assert_int_equal(json_parse(&arena, VIEW("{\"b\":{\"c\":null},\"a\":[1,\"x\"]}"), &b, &e), 0);
	assert_int_equal(json_parse(&arena, VIEW("{\"b\":{\"c\":null},\"a\":[\"x\",1]}"), &c, &e), 0);
	assert_true(json_value_equal(a, b));
	assert_false(json_value_equal(a, c));
	assert_true(json_value_equal(json_value_copy(&arena, a), b));
	assert_false(json_value_equal(a, NULL));
	assert_true(json_value_equal(&(struct json){ .type = JSON_NULL }, NULL));
}

/* ---- description ---- */

static void test_description(void **state)
{
	struct json_out o;

	(void)state;
	json_out_init(&o, &out);
	json_describe(&o, &sample_schema);
	buf_append(&out, "", 1);
	assert_string_equal(
		out.p,
		"{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\",\"maxLength\":64},"
		"\"on\":{\"type\":\"boolean\"},"
		"\"big\":{\"type\":\"integer\",\"minimum\":0},"
		"\"share\":{\"type\":\"number\"},"
		"\"limits\":{\"$ref\":\"#/components/schemas/Limits\"},"
		"\"env\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
		"\"argv\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}},"
		"\"extra\":{},"
		"\"u32\":{\"type\":\"integer\",\"minimum\":0},"
		"\"u16\":{\"type\":[\"integer\",\"null\"],\"minimum\":0},"
		"\"i64\":{\"type\":\"integer\"},"
		"\"exit_code\":{\"type\":[\"integer\",\"null\"],\"minimum\":-1,\"maximum\":255},"
		"\"z\":{\"type\":[\"string\",\"null\"]},"
		"\"id\":{\"type\":\"string\",\"maxLength\":7},"
		"\"color\":{\"type\":\"string\",\"enum\":[\"red\",\"blue\"]},"
		"\"features\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		"\"enum\":[\"lsm\",\"seccomp\",\"userns\"]}},"
		"\"most\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/Limits\"},{\"type\":\"null\"}]},"
		"\"rules\":{\"type\":\"array\",\"maxItems\":4,\"items\":{\"type\":\"object\",\"properties\":{"
		"\"host\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8},"
		"\"port\":{\"type\":\"integer\",\"minimum\":0},"
		"\"token\":{\"type\":\"string\",\"maxLength\":7,\"format\":\"password\"}},"
		"\"required\":[\"host\"],\"additionalProperties\":false}},"
		"\"ports\":{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1}},"
		"\"first\":{\"type\":\"array\",\"maxItems\":3,\"items\":{\"type\":\"object\",\"properties\":{"
		"\"host\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8},"
		"\"port\":{\"type\":\"integer\",\"minimum\":0},"
		"\"token\":{\"type\":\"string\",\"maxLength\":7,\"format\":\"password\"}},"
		"\"required\":[\"host\"],\"additionalProperties\":false}},"
		"\"cpu\":{\"type\":\"number\",\"minimum\":0,\"maximum\":64},"
		"\"at\":{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"},"
		"\"raw\":{},"
		"\"range\":{\"type\":\"string\"},"
		"\"password\":{\"type\":\"string\",\"format\":\"password\"}},"
		"\"additionalProperties\":false}");
	buf_clear(&out);
	json_out_init(&o, &out);
	json_describe_field(&o, &rules_fields[4]);
	assert_true(view_is(buf_view(&out), "{\"type\":\"string\",\"writeOnly\":true}"));
	buf_clear(&out);
	json_out_init(&o, &out);
	json_describe_field(&o, &rules_fields[5]);
	assert_true(view_is(buf_view(&out), "{\"type\":\"string\",\"readOnly\":true}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_nothing, teardown),
		cmocka_unit_test_teardown(test_every_kind, teardown),
		cmocka_unit_test_teardown(test_skip_rules, teardown),
		cmocka_unit_test_teardown(test_members_and_keys, teardown),
		cmocka_unit_test_teardown(test_enum_without_name, teardown),
		cmocka_unit_test_teardown(test_errors, teardown),
		cmocka_unit_test_teardown(test_read_only_is_unknown, teardown),
		cmocka_unit_test_teardown(test_written_reads_back_equal, teardown),
		cmocka_unit_test_teardown(test_equal_as_written, teardown),
		cmocka_unit_test_teardown(test_copies_stand_alone, teardown),
		cmocka_unit_test_teardown(test_copy_without_memory, teardown),
		cmocka_unit_test_teardown(test_maps_in_any_order, teardown),
		cmocka_unit_test_teardown(test_absent_is_equal, teardown),
		cmocka_unit_test_teardown(test_differences, teardown),
		cmocka_unit_test_teardown(test_differences_can_end, teardown),
		cmocka_unit_test_teardown(test_values, teardown),
		cmocka_unit_test_teardown(test_description, teardown),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests_name("json_table", tests, NULL, NULL);
}
