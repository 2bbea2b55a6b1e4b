/*
 * The JSON writer: commas, escapes, numbers that read back, errors that stick.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "json.h"
#include "rnd.h"

#include "poison.h"

static struct buf out;
static struct json_out o;

static int setup(void **state)
{
	(void)state;
	buf_init(&out, 1 << 20);
	json_out_init(&o, &out);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_done(&out);
	return 0;
}

static void assert_out(const char *want)
{
	assert_int_equal(out.bad, 0);
	buf_putc(&out, 0);
	assert_string_equal(buf_view(&out).p, want);
	buf_clear(&out);
	json_out_init(&o, &out);
}

static void test_shape(void **state)
{
	(void)state;
	json_out_object(&o);
	json_out_kz(&o, "name", "a");
	json_out_kz(&o, "none", NULL);
	json_out_key(&o, "list");
	json_out_array(&o);
	json_out_end(&o, ']');
	json_out_key(&o, "more");
	json_out_array(&o);
	json_out_u64(&o, UINT64_MAX);
	json_out_i64(&o, INT64_MIN);
	json_out_object(&o);
	json_out_end(&o, '}');
	json_out_object(&o);
	json_out_kbool(&o, "yes", true);
	json_out_end(&o, '}');
	json_out_null(&o);
	json_out_end(&o, ']');
	json_out_ku64(&o, "n", 0);
	json_out_ki64(&o, "m", -5);
	json_out_kstr(&o, "s", VIEW("x"));
	json_out_end(&o, '}');
	assert_out("{\"name\":\"a\",\"none\":null,\"list\":[],\"more\":[18446744073709551615,"
		   "-9223372036854775808,{},{\"yes\":true},null],\"n\":0,\"m\":-5,\"s\":\"x\"}");
}

static void test_strings(void **state)
{
	(void)state;
	json_out_str(&o, VIEW_NONE);
	assert_out("\"\"");
	json_out_str(&o, VIEW("\"\\/\b\f\n\r\t\x01\x1f\x7f"));
	assert_out("\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
	json_out_str(&o, VIEW("a\0b"));
	assert_out("\"a\\u0000b\"");
	json_out_str(&o, VIEW("0123456789abcdef\xc3\xa9 0123456789\"\xf0\x9f\x98\x80"));
	assert_out("\"0123456789abcdef\xc3\xa9 0123456789\\\"\xf0\x9f\x98\x80\"");
}

static void test_invalid_utf8(void **state)
{
	(void)state;
	json_out_str(&o, VIEW("a\xff\xc3"));
	assert_out("\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	json_out_str(&o, VIEW("\xed\xa0\x80z"));
	assert_out("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"");
	json_out_str(&o, VIEW("\xc3\xa9\xc0\xaf"));
	assert_out("\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_doubles_look_short(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 1, "1" },
		{ 0.1, "0.1" },
		{ 1.5, "1.5" },
		{ 100, "100" },
		{ 1e14, "100000000000000" },
		{ 1e20, "1e+20" },
		{ 5e-324, "5e-324" },
		{ 1e300, "1e+300" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ NAN, "null" },
		{ -INFINITY, "null" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		json_out_double(&o, cases[i].v);
		assert_out(cases[i].text);
	}
}

static void test_doubles_read_back(void **state)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct json *j;
		struct err e;
		double v, again = 0;

		rnd_bytes(&v, sizeof(v));
		if (!isfinite(v))
			continue;
		json_out_double(&o, v);
		assert_int_equal(json_parse(&a, buf_view(&out), &j, &e), 0);
		assert_int_equal(json_to_double(j, &again), 0);
		assert_memory_equal(&v, &again, sizeof(v));
		buf_clear(&out);
		json_out_init(&o, &out);
		arena_reset(&a);
	}
}

static void test_value(void **state)
{
	static const char text[] = "{\"a\":[1,2.50,\"\\n\",null,true,{}],\"\":{\"b\":[[]]},\"n\":1e400}";
	_cleanup_(arena_done) struct arena a = ARENA_INIT(1 << 20);
	struct json *j;
	struct err e;

	(void)state;
	assert_int_equal(json_parse(&a, view_of(text), &j, &e), 0);
	json_out_value(&o, j);
	assert_out(text);
}

static void test_depth(void **state)
{
	(void)state;
	for (int i = 0; i < JSON_DEPTH; i++)
		json_out_array(&o);
	assert_int_equal(out.bad, 0);
	json_out_array(&o);
	assert_int_equal(out.bad, -EOVERFLOW);
	for (int i = 0; i <= JSON_DEPTH; i++)
		json_out_end(&o, ']');
	assert_int_equal(out.bad, -EOVERFLOW);
}

static void test_error_sticks(void **state)
{
	struct buf small = BUF_INIT(8);
	struct json_out so;

	(void)state;
	json_out_init(&so, &small);
	json_out_array(&so);
	json_out_str(&so, VIEW("more than eight"));
	json_out_u64(&so, 1);
	json_out_end(&so, ']');
	assert_int_equal(small.bad, -ENOBUFS);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_invalid_utf8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubles_look_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubles_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_value, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_sticks, setup, teardown),
	};

	return cmocka_run_group_tests_name("json_write", tests, NULL, NULL);
}
