/*
 * The JSON reader: what it makes of values, and each thing that it refuses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "json.h"

#include "poison.h"

#define ARENA_MAX (64u << 20)

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static struct json *parse_view(struct view text)
{
	struct json *j = NULL;
	struct err e = { 0 };

	if (json_parse(&arena, text, &j, &e) < 0)
		fail_msg("%.*s: %s", (int)MIN(text.n, 80), text.p, e.msg);
	return j;
}

static struct json *parse(const char *text)
{
	return parse_view(view_of(text));
}

static void assert_text(const struct json *j, struct view want)
{
	assert_int_equal(j->text.n, want.n);
	assert_memory_equal(j->text.p, want.p, want.n);
}

static void test_scalars(void **state)
{
	(void)state;
	assert_int_equal(parse("null")->type, JSON_NULL);
	assert_int_equal(parse(" true ")->type, JSON_BOOL);
	assert_true(parse("true")->boolean);
	assert_false(parse("false")->boolean);
	assert_int_equal(parse("-12.50e+3")->type, JSON_NUMBER);
	assert_text(parse("-12.50e+3"), VIEW("-12.50e+3"));
	assert_text(parse("9007199254740993"), VIEW("9007199254740993"));
	assert_int_equal(parse("\"\"")->type, JSON_STRING);
	assert_int_equal(parse("\"\"")->text.n, 0);
}

static void test_strings(void **state)
{
	(void)state;
	assert_text(parse("\"plain text of some length\""), VIEW("plain text of some length"));
	assert_text(parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), VIEW("\"\\/\b\f\n\r\t"));
	assert_text(parse("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\""),
		    VIEW("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
	assert_text(parse("\"\xc3\xa9\\n\xf0\x9f\x98\x80\""), VIEW("\xc3\xa9\n\xf0\x9f\x98\x80"));
	assert_text(parse("\"1234567\\n12345678\\u000112\""), VIEW("1234567\n12345678\x01"
								   "12"));
}

/* Every length and every place of an escape, around the word-wise scan. */
static void test_string_lengths(void **state)
{
	char text[64], want[64];

	(void)state;
	for (size_t n = 0; n < 40; n++) {
		for (size_t at = 0; at <= n; at++) {
			char *t = text, *w = want;

			*t++ = '"';
			for (size_t i = 0; i < n; i++) {
				if (i == at) {
					*t++ = '\\';
					*t++ = 'n';
					*w++ = '\n';
				} else {
					*w++ = *t++ = (char)('a' + i % 26);
				}
			}
			*t++ = '"';
			assert_text(parse_view((struct view){ text, (size_t)(t - text) }),
				    (struct view){ want, (size_t)(w - want) });
		}
		arena_reset(&arena);
	}
}

static void test_containers(void **state)
{
	const struct json *j = parse("{\"a\":[1,[],{\"b\":null}],\n \"c\" : {} }");
	const struct json *a;

	(void)state;
	assert_int_equal(j->type, JSON_OBJECT);
	assert_int_equal(j->n, 2);
	assert_true(view_is(j->members[0].key, "a"));
	assert_true(view_is(j->members[1].key, "c"));
	a = json_get(j, "a");
	assert_int_equal(a->type, JSON_ARRAY);
	assert_int_equal(a->n, 3);
	assert_text(&a->items[0], VIEW("1"));
	assert_int_equal(a->items[1].n, 0);
	assert_int_equal(json_get(&a->items[2], "b")->type, JSON_NULL);
	assert_int_equal(json_get(j, "c")->line, 2);
	assert_int_equal(a->line, 1);
	assert_null(json_get(j, "d"));
	assert_null(json_get(a, "a"));
	assert_null(json_get(NULL, "a"));
}

/* The document must not lean on the text that it came from. */
static void test_text_may_go(void **state)
{
	char text[] = "{\"key\":[\"value\",12]}";
	const struct json *j = parse_view(view_of(text));

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_text(&json_get(j, "key")->items[0], VIEW("value"));
	assert_text(&json_get(j, "key")->items[1], VIEW("12"));
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "", "line 1, column 1: expected a value, found the end of the text" },
		{ "{\"a\":1,\n \"b\":}", "line 2, column 6: expected a value, found '}'" },
		{ "[1,]", "line 1, column 4: expected a value, found ']'" },
		{ "{\"a\":1,}", "line 1, column 8: expected a key in double quotes, found '}'" },
		{ "[1 2]", "line 1, column 4: expected ',' or ']', found '2'" },
		{ "{\"a\" 1}", "line 1, column 6: expected ':', found '1'" },
		{ "{} {}", "line 1, column 4: expected the end of the text, found '{'" },
		{ "01", "line 1, column 1: a number with a leading zero" },
		{ "-", "line 1, column 1: a malformed number" },
		{ "1.", "line 1, column 1: a malformed number" },
		{ "\"a\nb\"", "line 1, column 3: a control character in a string must be escaped" },
		{ "\"abc", "line 1, column 1: a string without its closing quote" },
		{ "\"\\x\"", "line 1, column 2: unknown escape in a string" },
		{ "\"\\u12\"", "line 1, column 2: \\u needs four hexadecimal digits" },
		{ "\"\\ud800\"", "line 1, column 2: half of a surrogate pair" },
		{ "\"\\udc00\\ud800\"", "line 1, column 2: half of a surrogate pair" },
		{ "\"\\u0000\"", "line 1, column 2: \\u0000 is not accepted in strings" },
		{ "\"\xc3\xa9\xff\"", "line 1, column 3: invalid UTF-8 in a string" },
		{ "{\"a\":1,\"b\":2,\n\"\\u0061\":3}", "line 2: the key \"a\" appears twice in one object" },
		{ "{\"\\u001b\":1,\"\\u001b\":2}", "line 1: the key \"\\x1b\" appears twice in one object" },
		{ "tru", "line 1, column 1: expected a value, found 't'" },
		{ "\x01", "line 1, column 1: expected a value, found byte 0x01" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct json *j = NULL;
		struct err e = { 0 };

		if (json_parse(&arena, view_of(cases[i].text), &j, &e) == 0)
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(e.msg, cases[i].msg);
		assert_int_equal(e.code, ERR_BAD_REQUEST);
		assert_null(j);
	}
}

static void test_depth(void **state)
{
	char text[2 * (JSON_DEPTH + 1) + 1];
	struct json *j;
	struct err e;

	(void)state;
	for (int depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		int rc = json_parse(&arena, (struct view){ text, 2 * (size_t)depth }, &j, &e);
		assert_int_equal(rc, depth <= JSON_DEPTH ? 0 : -1);
	}
	assert_string_equal(e.msg, "line 1, column 65: nested too deeply");
}

/* A hundred thousand members cost a sort; five billion comparisons would take half a minute. */
static void test_many_members(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4 << 20);
	struct json *j;
	struct err e;
	uint64_t start;

	(void)state;
	buf_putc(&b, '{');
	for (int i = 0; i < 100000; i++)
		buf_printf(&b, "\"key-%05d\":%d,", i, i);
	buf_puts(&b, "\"last\":0}");
	start = clock_mono_ns();
	j = parse_view(buf_view(&b));
	assert_true(clock_mono_ns() - start < 5 * UINT64_C(1000000000));
	assert_int_equal(j->n, 100001);
	assert_text(json_get(j, "key-99999"), VIEW("99999"));

	b.n -= strlen("\"last\":0}");
	buf_puts(&b, "\n\"key-05000\":0}");
	assert_int_equal(json_parse(&arena, buf_view(&b), &j, &e), -1);
	assert_string_equal(e.msg, "line 2: the key \"key-05000\" appears twice in one object");
}

/* A small body that would become a large document is stopped by the arena's maximum. */
static void test_memory_limit(void **state)
{
	_cleanup_(arena_done) struct arena small = ARENA_INIT(64 * 1024);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct json *j;
	struct err e;

	(void)state;
	buf_putc(&b, '[');
	for (int i = 0; i < 10000; i++)
		buf_puts(&b, "0,");
	buf_puts(&b, "0]");
	assert_int_equal(json_parse(&small, buf_view(&b), &j, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(parse_view(buf_view(&b))->n, 10001);
}

static void test_whole_numbers(void **state)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "9007199254740993", 0, 9007199254740993 },
		{ "1e3", 0, 1000 },
		{ "5.0", 0, 5 },
		{ "1e300", -ERANGE, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "-1", -ERANGE, 0 },
		{ "-0", 0, 0 },
		{ "\"1\"", -EINVAL, 0 },
		{ "null", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		uint64_t v = 0;

		assert_int_equal(json_to_u64(parse(cases[i].text), &v), cases[i].rc);
		assert_int_equal(v, cases[i].value);
	}
}

static void test_signed_numbers(void **state)
{
	int64_t v = 0;

	(void)state;
	assert_int_equal(json_to_i64(parse("-9223372036854775808"), &v), 0);
	assert_true(v == INT64_MIN);
	assert_int_equal(json_to_i64(parse("9223372036854775808"), &v), -ERANGE);
	assert_int_equal(json_to_i64(parse("-2e2"), &v), 0);
	assert_int_equal(v, -200);
	assert_int_equal(json_to_i64(parse("0.25"), &v), -EINVAL);
}

static void test_doubles(void **state)
{
	struct json foreign = { .type = JSON_NUMBER, .text = VIEW("0x10") };
	double d = 0;

	(void)state;
	assert_int_equal(json_to_double(parse("-2.5e-1"), &d), 0);
	assert_true(d == -0.25);
	assert_int_equal(json_to_double(parse("1e309"), &d), -ERANGE);
	assert_int_equal(json_to_double(parse("true"), &d), -EINVAL);
	assert_int_equal(json_to_double(&foreign, &d), -EINVAL);
	foreign.text = VIEW("inf");
	assert_int_equal(json_to_double(&foreign, &d), -EINVAL);
	assert_true(json_is_number(VIEW("-1.5e3")));
	assert_false(json_is_number(VIEW("")));
	assert_false(json_is_number(VIEW("1 ")));
	assert_false(json_is_number(VIEW("1\0")));
	assert_false(json_is_number(VIEW("0x1")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_scalars, teardown),
		cmocka_unit_test_teardown(test_strings, teardown),
		cmocka_unit_test_teardown(test_string_lengths, teardown),
		cmocka_unit_test_teardown(test_containers, teardown),
		cmocka_unit_test_teardown(test_text_may_go, teardown),
		cmocka_unit_test_teardown(test_refusals, teardown),
		cmocka_unit_test_teardown(test_depth, teardown),
		cmocka_unit_test_teardown(test_many_members, teardown),
		cmocka_unit_test_teardown(test_memory_limit, teardown),
		cmocka_unit_test_teardown(test_whole_numbers, teardown),
		cmocka_unit_test_teardown(test_signed_numbers, teardown),
		cmocka_unit_test_teardown(test_doubles, teardown),
	};

	arena_init(&arena, ARENA_MAX);
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
