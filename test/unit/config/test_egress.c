/*
 * Egress policies: what is read, what is refused, the one form that is written, sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "egress.h"
#include "poison.h"

static struct arena arena = ARENA_INIT(8u << 20);

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static const struct json *doc(const char *text)
{
	struct json *j;
	struct err e = { 0 };
	if (json_parse(&arena, view_of(text), &j, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return j;
}

static const char SETS[] = "{\"pypi\":[\"a.test\",\"*.b.test:8443\"],\"net\":[\"192.0.2.0/24\"],\"none\":[]}";

static struct egress_policy good(const char *text)
{
	struct egress_policy p;
	struct err e = { 0 };
	if (egress_read(&arena, doc(text), doc(SETS), &p, &e) < 0)
		fail_msg("%s was refused: %s", text, e.msg);
	return p;
}

static void is_written(const struct egress_policy *p, const char *want)
{
	struct buf out = BUF_INIT(EGRESS_TEXT_MAX);
	struct egress_policy again;
	struct err e = { 0 };

	assert_int_equal(egress_write(p, &out), 0);
	if (!view_is(buf_view(&out), want))
		fail_msg("written as %.*s", VIEW_ARG(buf_view(&out)));
	/* What is written is read as the same. */
	assert_int_equal(egress_parse(&arena, buf_view(&out), &egress_any_set, &again, &e), 0);
	assert_int_equal(again.n_rules, p->n_rules);
	for (size_t i = 0; i < p->n_rules; i++) {
		assert_true(egress_rule_eq(&again.rules[i], &p->rules[i]));
		assert_int_equal(again.rules[i].verdict, p->rules[i].verdict);
	}
	buf_done(&out);
}

#define NO_LIMITS                                                                                            \
	"\"limits\":{\"connections\":0,\"connections_per_second\":0,\"bytes_per_second\":0,\"bytes\":0}}"

static void test_nothing(void **state)
{
	struct egress_policy p = good("{}");
	assert_int_equal(p.otherwise, EGRESS_DENY);
	assert_int_equal(p.n_rules, 0);
	is_written(&p, "{\"default\":\"deny\",\"rules\":[]," NO_LIMITS);
}

static void test_order(void **state)
{
	struct egress_policy p = good("{\"default\":\"allow\",\"allow\":[\"x.test\"],\"deny\":[\"y.test\"],"
				      "\"rules\":[{\"action\":\"allow\",\"host\":\"z.test\"}]}");
	is_written(&p, "{\"default\":\"allow\",\"rules\":[{\"action\":\"allow\",\"host\":\"z.test\"},"
		       "{\"action\":\"deny\",\"host\":\"y.test\"},{\"action\":\"allow\",\"host\":\"x.test\"}]"
		       "," NO_LIMITS);
}

static void test_long_form(void **state)
{
	struct egress_policy p =
		good("{\"rules\":[{\"action\":\"allow\",\"host\":\"*.EXAMPLE.Test.\",\"cidr\":\"10.1.0.0/"
		     "16\",\"protocol\":\"http\","
		     "\"ports\":[80,\"8000-8100\"],\"methods\":[\"GET\"],\"paths\":[\"/"
		     "v1\"]},{\"action\":\"deny\",\"set\":\"pypi\"}],"
		     "\"limits\":{\"connections\":5,\"bytes\":7,\"bytes_per_second\":null}}");
	is_written(&p, "{\"default\":\"deny\",\"rules\":[{\"action\":\"allow\",\"host\":\"*.example.test\","
		       "\"cidr\":\"10.1.0.0/16\","
		       "\"protocol\":\"http\",\"ports\":[80,\"8000-8100\"],\"methods\":[\"GET\"],\"paths\":["
		       "\"/v1\"]},"
		       "{\"action\":\"deny\",\"set\":\"pypi\"}],"
		       "\"limits\":{\"connections\":5,\"connections_per_second\":0,\"bytes_per_second\":0,"
		       "\"bytes\":7}}");
}

static void test_ech(void **state)
{
	struct egress_policy p = good("{\"ech\":\"refuse\",\"allow\":[\"a.test\"]}");
	assert_true(p.refuse_ech);
	is_written(&p, "{\"default\":\"deny\",\"rules\":[{\"action\":\"allow\",\"host\":\"a.test\"}],"
		       "\"limits\":{\"connections\":0,\"connections_per_second\":0,\"bytes_per_second\":0,"
		       "\"bytes\":0},\"ech\":\"refuse\"}");
	p = good("{\"ech\":\"intercept\"}");
	assert_false(p.refuse_ech);
	is_written(&p, "{\"default\":\"deny\",\"rules\":[]," NO_LIMITS);
	p = good("{\"ech\":null}");
	assert_false(p.refuse_ech);
}

static void test_asks_names(void **state)
{
	struct egress_policy p = good("{\"default\":\"allow\",\"allow\":[\"192.0.2.0/24\"]}");
	assert_false(egress_asks_names(&p));
	p = good("{\"deny\":[\"a.test\"],\"default\":\"allow\"}");
	assert_true(egress_asks_names(&p));
	p = good("{\"allow\":[\"pypi\"]}");
	assert_true(egress_asks_names(&p));
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *names;
	} cases[] = {
		{ "[]", "object" },
		{ "{\"x\":1}", "x" },
		{ "{\"default\":\"maybe\"}", "default" },
		{ "{\"rules\":{}}", "rules" },
		{ "{\"rules\":[{}]}", "rules[0]: action" },
		{ "{\"rules\":[{\"action\":\"allow\"}]}", "rules[0]" },
		{ "{\"rules\":[{\"action\":\"ALLOW\",\"host\":\"a.b\"}]}", "rules[0]: action" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\"},{\"action\":\"deny\",\"host\":\"\"}]}",
		  "rules[1]: host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"set\":\"pypi\"}]}", "rules[0]" },
		{ "{\"rules\":[{\"action\":\"allow\",\"set\":\"nope\"}]}", "rules[0]: set" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a b\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a..b\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.*\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"127.0.0.1\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.0x7f\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"2130706433\"}]}", "host" },
		{ "{\"rules\":[{\"action\":\"allow\",\"cidr\":\"10.0.0.1/8\"}]}", "cidr" },
		{ "{\"rules\":[{\"action\":\"allow\",\"cidr\":\"10.0.0.0/33\"}]}", "cidr" },
		{ "{\"rules\":[{\"action\":\"allow\",\"cidr\":\"::ffff:10.0.0.0/104\"}]}", "cidr" },
		{ "{\"rules\":[{\"action\":\"allow\",\"cidr\":\"64:ff9b::/96\"}]}", "cidr" },
		{ "{\"rules\":[{\"action\":\"allow\",\"cidr\":\"2002:7f00::/24\"}]}", "cidr" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"ports\":[]}]}", "ports" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"ports\":[0]}]}", "ports" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"ports\":[65536]}]}", "ports" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"ports\":[\"9-8\"]}]}", "ports" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"ports\":[1.5]}]}", "ports" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"protocol\":\"udp\"}]}", "protocol" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"methods\":[\"get\"]}]}", "methods" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"paths\":[\"v1\"]}]}", "paths" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"paths\":[\"/a/../b\"]}]}", "paths" },
		{ "{\"rules\":[{\"action\":\"allow\",\"host\":\"a.b\",\"protocol\":\"tcp\",\"paths\":[\"/"
		  "\"]}]}",
		  "paths" },
		{ "{\"allow\":[\"nope\"]}", "allow" },
		{ "{\"deny\":[\"pypi:443\"]}", "deny" },
		{ "{\"limits\":{\"connections\":-1}}", "limits.connections" },
		{ "{\"ech\":\"pass\"}", "ech" },
		{ "{\"ech\":true}", "ech" },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct egress_policy p;
		struct err e = { 0 };
		if (egress_read(&arena, doc(cases[i].text), doc(SETS), &p, &e) >= 0)
			fail_msg("%s was read", cases[i].text);
		assert_int_equal(e.code, ERR_INVALID);
		if (!strstr(e.msg, cases[i].names))
			fail_msg("%s: \"%s\" does not name %s", cases[i].text, e.msg, cases[i].names);
	}
}

static void test_too_many(void **state)
{
	struct buf b = BUF_INIT(1u << 20);
	struct egress_policy p;
	struct err e = { 0 };

	buf_puts(&b, "{\"allow\":[\"a.test\"");
	for (int i = 0; i < EGRESS_RULES_MAX; i++)
		buf_puts(&b, ",\"a.test\"");
	buf_puts(&b, "]}");
	buf_putc(&b, 0);
	assert_int_equal(egress_read(&arena, doc(b.p), NULL, &p, &e), -1);
	buf_done(&b);
}

static void target(const char *text, const char *want)
{
	struct buf out = BUF_INIT(4096);
	struct egress_rule r;
	struct err e = { 0 };
	struct json_out o;

	if (egress_target(&arena, view_of(text), doc(SETS), &r, &e) < 0)
		fail_msg("%s was refused: %s", text, e.msg);
	r.verdict = EGRESS_ALLOW;
	json_out_init(&o, &out);
	egress_put_rule(&o, &r);
	struct view got = view_skip(buf_view(&out), strlen("{\"action\":\"allow\","));
	if (!view_is(got, want))
		fail_msg("%s is %.*s", text, VIEW_ARG(got));
	buf_done(&out);
}

static void test_targets(void **state)
{
	target("pypi", "\"set\":\"pypi\"}");
	target("Example.ORG", "\"host\":\"example.org\"}");
	target("example.org.:443", "\"host\":\"example.org\",\"ports\":[443]}");
	target("*.example.org:8000-8010", "\"host\":\"*.example.org\",\"ports\":[\"8000-8010\"]}");
	target("*", "\"host\":\"*\"}");
	target("192.0.2.1", "\"cidr\":\"192.0.2.1/32\"}");
	target("192.0.2.0/24:5432", "\"cidr\":\"192.0.2.0/24\",\"ports\":[5432]}");
	target("2001:db8::1", "\"cidr\":\"2001:db8::1/128\"}");
	target("[2001:db8::]/32", "\"cidr\":\"2001:db8::/32\"}");
	target("[2001:db8::1]:443", "\"cidr\":\"2001:db8::1/128\",\"ports\":[443]}");
	target("https://a.test", "\"host\":\"a.test\",\"protocol\":\"tls\",\"ports\":[443]}");
	target("https://a.test:8443/v1/*",
	       "\"host\":\"a.test\",\"protocol\":\"tls\",\"ports\":[8443],\"paths\":[\"/v1\"]}");
	target("http://a.test/", "\"host\":\"a.test\",\"protocol\":\"http\",\"ports\":[80]}");
	target("tcp://192.0.2.0/24:22", "\"cidr\":\"192.0.2.0/24\",\"protocol\":\"tcp\",\"ports\":[22]}");
}

static void test_no_targets(void **state)
{
	static const char *const bad[] = { "",          "localhost", "a..b",       "-a.b",           "a.b:",
					   "a.b:0",     "a.b:99999", "10.0.0.1/8", "1.2.3",          "0x7f.1",
					   "1.2.3.4.5", "a.b/c",     "ftp://a.b",  ":443",           "[::1",
					   "a.b:1:2",   "a\nb.c",    "https://",   "https://a.b/x?y" };

	for (size_t i = 0; i < ELEMS(bad); i++) {
		struct egress_rule r;
		struct err e = { 0 };
		if (egress_target(&arena, view_of(bad[i]), doc(SETS), &r, &e) >= 0)
			fail_msg("%s was read", bad[i]);
		assert_int_equal(e.code, ERR_INVALID);
		assert_null(strchr(e.msg, '\n'));
	}
}

static void test_private(void **state)
{
	static const struct {
		const char *net;
		bool is;
	} cases[] = {
		{ "10.0.0.0/8", true },
		{ "169.254.169.254", true },
		{ "127.0.0.1", true },
		{ "192.168.7.0/24", true },
		{ "100.64.0.0/10", true },
		{ "fd00::/8", true },
		{ "::1", true },
		{ "fe80::/10", true },
		{ "0.0.0.0/0", false },
		{ "::/0", false },
		{ "192.0.2.0/24", false },
		{ "8.0.0.0/6", false },
		{ "2001:db8::/32", false },
		{ "172.0.0.0/8", false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct egress_rule r;
		struct err e = { 0 };
		assert_int_equal(egress_target(&arena, view_of(cases[i].net), NULL, &r, &e), 0);
		if (egress_rule_is_private(&r) != cases[i].is)
			fail_msg("%s", cases[i].net);
	}
}

static void test_flatten(void **state)
{
	struct egress_policy p = good(
		"{\"rules\":[{\"action\":\"allow\",\"set\":\"pypi\",\"ports\":[443],\"protocol\":\"tls\"},"
		"{\"action\":\"deny\",\"set\":\"none\"},{\"action\":\"deny\",\"host\":\"x.test\"},"
		"{\"action\":\"deny\",\"set\":\"net\"}]}");
	struct egress_policy flat;
	struct err e = { 0 };

	assert_int_equal(egress_flatten(&arena, &p, doc(SETS), &flat, &e), 0);
	is_written(&flat,
		   "{\"default\":\"deny\",\"rules\":["
		   "{\"action\":\"allow\",\"host\":\"a.test\",\"protocol\":\"tls\",\"ports\":[443]},"
		   "{\"action\":\"allow\",\"host\":\"*.b.test\",\"protocol\":\"tls\",\"ports\":[8443]},"
		   "{\"action\":\"deny\",\"host\":\"x.test\"},{\"action\":\"deny\",\"cidr\":\"192.0.2.0/"
		   "24\"}]," NO_LIMITS);
	/* A set that is gone allows nothing, and is no error. */
	assert_int_equal(egress_flatten(&arena, &p, NULL, &flat, &e), 0);
	assert_int_equal(flat.n_rules, 1);
}

/* With every part that a policy can have; what it was copied from is gone when the copy is looked at. */
static void test_copy(void **state)
{
	static const char text[] =
		"{\"default\":\"allow\",\"ech\":\"refuse\",\"limits\":{\"connections\":7,\"bytes\":9},"
		"\"rules\":["
		"{\"action\":\"allow\",\"host\":\"z.test\",\"ports\":[443,\"8000-8100\"],\"methods\":["
		"\"GET\"],"
		"\"paths\":[\"/v1\",\"/"
		"v2\"],\"protocol\":\"tls\",\"inject\":[{\"secret\":\"K\",\"header\":\"x-key\","
		"\"prefix\":\"Bearer \"},{\"secret\":\"Q\",\"query\":\"key\"}]},"
		"{\"action\":\"deny\",\"cidr\":\"192.0.2.0/24\"},{\"action\":\"allow\",\"set\":\"pypi\"}]}";
	struct arena first = ARENA_INIT(1u << 20), second = ARENA_INIT(1u << 20), tiny = ARENA_INIT(64);
	struct buf want = BUF_INIT(EGRESS_TEXT_MAX), got = BUF_INIT(EGRESS_TEXT_MAX);
	struct egress_policy p, copy;
	char *said = arena_str(&first, view_of(text));

	assert_int_equal(egress_parse(&first, view_of(said), &egress_any_set, &p, NULL), 0);
	assert_int_equal(egress_write(&p, &want), 0);
	assert_true(egress_copy(&tiny, &p, &copy) < 0);
	assert_int_equal(egress_copy(&second, &p, &copy), 0);
	memset(said, 'x', sizeof(text) - 1);
	arena_done(&first);
	assert_int_equal(egress_write(&copy, &got), 0);
	assert_int_equal(want.n, got.n);
	assert_memory_equal(want.p, got.p, want.n);
	arena_done(&second);
	arena_done(&tiny);
	buf_done(&want);
	buf_done(&got);
}

static void test_sets(void **state)
{
	static const char *const bad[] = { "[]",
					   "{\"A\":[]}",
					   "{\"a\":\"b.c\"}",
					   "{\"a\":[1]}",
					   "{\"a\":[\"b\"],\"b\":[]}",
					   "{\"a\":[\"b..c\"]}" };
	struct err e = { 0 };

	assert_int_equal(egress_check_sets(&arena, doc(SETS), &e), 0);
	assert_int_equal(egress_check_sets(&arena, NULL, &e), 0);
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (egress_check_sets(&arena, doc(bad[i]), &e) >= 0)
			fail_msg("%s was accepted", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_nothing, teardown),
		cmocka_unit_test_teardown(test_order, teardown),
		cmocka_unit_test_teardown(test_long_form, teardown),
		cmocka_unit_test_teardown(test_refused, teardown),
		cmocka_unit_test_teardown(test_ech, teardown),
		cmocka_unit_test_teardown(test_asks_names, teardown),
		cmocka_unit_test_teardown(test_too_many, teardown),
		cmocka_unit_test_teardown(test_targets, teardown),
		cmocka_unit_test_teardown(test_no_targets, teardown),
		cmocka_unit_test_teardown(test_private, teardown),
		cmocka_unit_test_teardown(test_flatten, teardown),
		cmocka_unit_test_teardown(test_copy, teardown),
		cmocka_unit_test_teardown(test_sets, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
