/*
 * YAML into the document: types of scalars, lines, and everything that is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "config_yaml.h"

#include "poison.h"

struct fixture {
	struct arena arena;
	struct json *doc;
	struct err e;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .arena = ARENA_INIT(16u << 20) };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_done(&f->arena);
	return 0;
}

static int parse_view(struct fixture *f, struct view text)
{
	f->doc = NULL;
	f->e = (struct err){ 0 };
	return config_yaml_parse(&f->arena, text, &f->doc, &f->e);
}

static const struct json *parse(struct fixture *f, const char *text)
{
	if (parse_view(f, view_of(text)) != 0)
		fail_msg("%s: %s", text, f->e.msg);
	return f->doc;
}

static void refused(struct fixture *f, const char *text, const char *message)
{
	assert_int_equal(parse_view(f, view_of(text)), -1);
	assert_int_equal(f->e.code, ERR_INVALID);
	assert_null(f->doc);
	if (strncmp(f->e.msg, message, strlen(message)) != 0)
		fail_msg("%s\ngave   %s\nnot    %s", text, f->e.msg, message);
}

static void test_plain_scalars(void **state)
{
	static const struct {
		const char *yaml;
		enum json_type type;
		const char *text; /* of a number or string */
	} cases[] = {
		{ "12", JSON_NUMBER, "12" },
		{ "0", JSON_NUMBER, "0" },
		{ "-12", JSON_NUMBER, "-12" },
		{ "+12", JSON_NUMBER, "12" },
		{ "0.5", JSON_NUMBER, "0.5" },
		{ ".5", JSON_NUMBER, "0.5" },
		{ "-.5", JSON_NUMBER, "-0.5" },
		{ "5.", JSON_NUMBER, "5" },
		{ "1e3", JSON_NUMBER, "1e3" },
		{ "1.5E-7", JSON_NUMBER, "1.5e-7" },
		{ "0x1F", JSON_NUMBER, "31" },
		{ "0o17", JSON_NUMBER, "15" },
		{ "0xffffffffffffffff", JSON_NUMBER, "18446744073709551615" },
		{ "18446744073709551616", JSON_NUMBER, "18446744073709551616" },
		{ "null", JSON_NULL, NULL },
		{ "~", JSON_NULL, NULL },
		{ "", JSON_NULL, NULL },
		{ "plain text", JSON_STRING, "plain text" },
		{ "yes", JSON_STRING, "yes" },
		{ "off", JSON_STRING, "off" },
		{ "nUll", JSON_STRING, "nUll" },
		{ "0x", JSON_STRING, "0x" },
		{ "0o8", JSON_STRING, "0o8" },
		{ "1e", JSON_STRING, "1e" },
		{ ".", JSON_STRING, "." },
		{ "+", JSON_STRING, "+" },
		{ "1_000", JSON_STRING, "1_000" },
		{ "12:30:45", JSON_STRING, "12:30:45" },
		{ "127.0.0.1:7080", JSON_STRING, "127.0.0.1:7080" },
		{ "\"12\"", JSON_STRING, "12" },
		{ "'true'", JSON_STRING, "true" },
		{ "\"\"", JSON_STRING, "" },
		{ "'~'", JSON_STRING, "~" },
		{ "\"\\u00e9\\n\"", JSON_STRING, "\xc3\xa9\n" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ELEMS(cases); i++) {
		const struct json *j;
		char text[80];

		snprintf(text, sizeof(text), "k: %s\n", cases[i].yaml);
		j = json_get(parse(f, text), "k");
		assert_non_null(j);
		if (j->type != cases[i].type)
			fail_msg("%s is %s", cases[i].yaml, json_type_name(j->type));
		if (cases[i].text && !view_is(j->text, cases[i].text))
			fail_msg("%s is \"%.*s\"", cases[i].yaml, VIEW_ARG(j->text));
	}
}

static void test_booleans(void **state)
{
	static const char *const spelled[] = { "true", "True", "TRUE", "false", "False", "FALSE" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ELEMS(spelled); i++) {
		char text[32];
		const struct json *j;

		snprintf(text, sizeof(text), "k: %s\n", spelled[i]);
		j = json_get(parse(f, text), "k");
		assert_int_equal(j->type, JSON_BOOL);
		assert_int_equal(j->boolean, i < 3);
	}
}

static void test_structure_and_lines(void **state)
{
	const struct json *doc = parse(*state, "# a comment\n"
					       "listen: 127.0.0.1:7080\n"
					       "\n"
					       "defaults:\n"
					       "  image: machine\n"
					       "  limits: {cpu: 2, pids: 5}\n"
					       "list:\n"
					       "  - 1\n"
					       "  - two\n"
					       "empty:\n"
					       "text: |\n"
					       "  a\n"
					       "  b\n");
	const struct json *defaults = json_get(doc, "defaults"), *list = json_get(doc, "list");
	const struct json *limits = json_get(defaults, "limits");

	assert_int_equal(doc->type, JSON_OBJECT);
	assert_int_equal(doc->n, 5);
	assert_true(view_is(doc->members[0].key, "listen"));
	assert_int_equal(json_get(doc, "listen")->line, 2);
	assert_int_equal(defaults->line, 4);
	assert_int_equal(json_get(defaults, "image")->line, 5);
	assert_int_equal(limits->type, JSON_OBJECT);
	assert_int_equal(json_get(limits, "pids")->line, 6);
	assert_int_equal(list->type, JSON_ARRAY);
	assert_int_equal(list->n, 2);
	assert_int_equal(list->items[1].line, 9);
	assert_true(view_is(list->items[1].text, "two"));
	assert_int_equal(json_get(doc, "empty")->type, JSON_NULL);
	assert_int_equal(json_get(doc, "empty")->line, 10);
	assert_true(view_is(json_get(doc, "text")->text, "a\nb\n"));
}

static void test_empty_documents(void **state)
{
	static const char *const texts[] = { "", "\n", "# nothing\n", "---\n", "---\n...\n", "~\n", "{}" };

	for (size_t i = 0; i < ELEMS(texts); i++) {
		const struct json *doc = parse(*state, texts[i]);

		assert_int_equal(doc->type, JSON_OBJECT);
		assert_int_equal(doc->n, 0);
	}
	assert_int_equal(parse_view(*state, VIEW_NONE), 0);
}

static void test_json_is_yaml(void **state)
{
	const struct json *doc = parse(*state, "{\n  \"listen\": \"x\",\n  \"max\": {\"boxes\": 10}\n}\n");

	assert_int_equal(json_get(json_get(doc, "max"), "boxes")->line, 3);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;

	refused(f, "a: 1\nb: &x 2\n", "line 2: anchors (&name) are not allowed");
	refused(f, "a: 1\nb: &x [2]\n", "line 2: anchors (&name) are not allowed");
	refused(f, "a: 1\n&x b: 2\n", "line 2: anchors (&name) are not allowed");
	refused(f, "a: *x\n", "line 1: aliases (*name) are not allowed");
	refused(f, "\n*x : 2\n", "line 2: aliases (*name) are not allowed");
	refused(f, "a: !!str 2\n", "line 1: tags (!name) are not allowed");
	refused(f, "a: ! 2\n", "line 1: tags (!name) are not allowed");
	refused(f, "a: !x {b: 1}\n", "line 1: tags (!name) are not allowed");
	refused(f, "a: 1\n\n\nb: 2\na: 3\n", "line 5: key \"a\" stands here twice, first on line 1");
	refused(f, "x:\n  \"a\": 1\n  a: 1\n", "line 3: key \"a\" stands here twice, first on line 2");
	refused(f, "{a: 1, a: 2}", "line 1: key \"a\" stands here twice, first on line 1");
	refused(f, "a: 1\n---\nb: 2\n", "line 2: a second document");
	refused(f, "<<: {a: 1}\n", "line 1: merge keys");
	refused(f, "? [a]\n: b\n", "line 1: a key must be plain text");
	refused(f, "a: 1\n\"\": b\n", "line 2: an empty key");
	refused(f, "a: 1\nb: 010\n", "line 2: a number with leading zeros");
	refused(f, "b: -.inf\n", "line 1: infinities and NaN");
	refused(f, "b: .NaN\n", "line 1: infinities and NaN");
	refused(f, "b: 0x10000000000000000\n", "line 1: a number that is too large");
	refused(f, "a: 1\nb: \"x\\0y\"\n", "line 2: a string with a NUL");
	refused(f, "a: 1\n\"x\\0y\": 1\n", "line 2: a key with a NUL");
}

static void test_syntax_errors(void **state)
{
	struct fixture *f = *state;

	refused(f, "a: 1\n\tb: 2\n", "line 2: ");
	refused(f, "a: [1, 2\nb: 3\n", "line 2: ");
	refused(f, "a: \"open\n\n\n", "line 4: ");
	refused(f, "a: b: c\n", "line 1: mapping values are not allowed");
	refused(f, "a: 1\nb: \xff\n", "line 2: ");
	refused(f, "a: 1\nb: 2\nc: \x01\n", "line 3: ");
	refused(f, "a: @x\n", "line 1: ");
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	static char text[CONFIG_YAML_MAX + 2];

	memset(text, '[', JSON_DEPTH + 1);
	memset(text + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
	assert_int_equal(parse_view(f, (struct view){ text + 1, 2 * JSON_DEPTH }), 0);
	assert_int_equal(parse_view(f, (struct view){ text, 2 * JSON_DEPTH + 2 }), -1);
	assert_non_null(strstr(f->e.msg, "nested deeper than 64 levels"));

	memset(text, '\n', sizeof(text));
	assert_int_equal(parse_view(f, (struct view){ text, CONFIG_YAML_MAX }), 0);
	assert_int_equal(parse_view(f, (struct view){ text, CONFIG_YAML_MAX + 1 }), -1);
	assert_int_equal(f->e.code, ERR_TOO_LARGE);

	text[0] = '[';
	for (size_t i = 0; i < CONFIG_YAML_ENTRIES + 1; i++)
		memcpy(text + 1 + 2 * i, "1,", 2);
	text[1 + 2 * CONFIG_YAML_ENTRIES] = ']';
	assert_int_equal(parse_view(f, (struct view){ text, 2 + 2 * CONFIG_YAML_ENTRIES }), 0);
	assert_int_equal(f->doc->n, CONFIG_YAML_ENTRIES);
	memcpy(text + 1 + 2 * CONFIG_YAML_ENTRIES, "1]", 2);
	assert_int_equal(parse_view(f, (struct view){ text, 3 + 2 * CONFIG_YAML_ENTRIES }), -1);
	assert_non_null(strstr(f->e.msg, "more than 1024 entries"));
}

/* Every allocation may be the one that does not fit. */
static void test_small_arenas(void **state)
{
	const char *text = "a: [1, two, {b: c}]\nd: {e: 0x10}\n";
	bool fitted = false;

	(void)state;
	for (size_t max = 0; max < 16384 && !fitted; max += 16) {
		struct arena a = ARENA_INIT(max);
		struct json *doc = NULL;
		struct err e = { 0 };

		fitted = config_yaml_parse(&a, view_of(text), &doc, &e) == 0;
		if (!fitted) {
			assert_null(doc);
			assert_int_equal(e.code, ERR_TOO_LARGE);
		}
		arena_done(&a);
	}
	assert_true(fitted);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_plain_scalars),   T(test_booleans),     T(test_structure_and_lines),
		T(test_empty_documents), T(test_json_is_yaml), T(test_refused),
		T(test_syntax_errors),   T(test_limits),       T(test_small_arenas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
