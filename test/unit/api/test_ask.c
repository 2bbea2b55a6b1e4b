/*
 * Requests to providers: which are known, what they ask for, what is sent on; and prices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prices.h"
#include "poison.h"

static const char *name_of(enum ask_provider p, const char *method, const char *path)
{
	const struct ask_endpoint *ep = ask_endpoint(p, view_of(method), view_of(path));
	return ep ? ep->name : "none";
}

static void test_endpoints(void **state)
{
	assert_string_equal(name_of(ASK_OPENAI, "POST", "/v1/chat/completions"), "chat/completions");
	assert_string_equal(name_of(ASK_OPENAI, "GET", "/v1/models/gpt-4o"), "models");
	assert_string_equal(name_of(ASK_ANTHROPIC, "POST", "/v1/messages/count_tokens"),
			    "messages/count_tokens");
	assert_string_equal(name_of(ASK_ANTHROPIC, "POST", "/v1/messages"), "messages");
	static const char *const none[] = { "/v1/files",
					    "/v1/chat/completions/x",
					    "/v1/messages/batches",
					    "/v1//responses",
					    "/v1/models/../files",
					    "/v1/models/%2e%2e/files",
					    "/v1/models/.",
					    "v1/models",
					    "",
					    "/v1/responses/",
					    "/v1/modelsx" };
	for (size_t i = 0; i < ELEMS(none); i++) {
		assert_string_equal(name_of(ASK_OPENAI, "POST", none[i]), "none");
		assert_string_equal(name_of(ASK_OPENAI, "GET", none[i]), "none");
	}
	assert_string_equal(name_of(ASK_NONE, "GET", "/v1/models"), "none");
}

static void test_fits(void **state)
{
	assert_true(ask_fits(VIEW("gpt-4o*"), VIEW("gpt-4o-mini")));
	assert_true(ask_fits(VIEW("*"), VIEW("")));
	assert_true(ask_fits(VIEW("a*c*e"), VIEW("abcde")));
	assert_true(ask_fits(VIEW("*ab"), VIEW("aab")));
	assert_false(ask_fits(VIEW("a*c"), VIEW("abcd")));
	assert_false(ask_fits(VIEW(""), VIEW("a")));
	assert_false(ask_fits(VIEW("gpt-4"), VIEW("gpt-4o")));
}

static int read_body(const char *text, struct ask *ret, struct buf *out, struct err *e)
{
	const struct ask_endpoint *ep = ask_endpoint(ASK_OPENAI, VIEW("POST"), VIEW("/v1/chat/completions"));
	static struct arena a;

	arena_done(&a);
	a = ARENA_INIT(1 << 20);
	int r = ask_read(&a, ep, view_of(text), ret, e);
	return r < 0 ? r : ask_body(ep, ret, view_of(text), out, e);
}

static void check_body(const char *text, const char *want)
{
	struct buf out = BUF_INIT(4096);
	struct err e = { 0 };
	struct ask k;

	assert_int_equal(read_body(text, &k, &out, &e), 0);
	if (!view_is(buf_view(&out), want))
		fail_msg("%.*s", VIEW_ARG(buf_view(&out)));
	buf_done(&out);
}

static void test_bodies(void **state)
{
	check_body("{\"model\":\"m\",\"tools\":[{\"type\":\"bash_20250124\"},{\"name\":\"x\"}],\"service_"
		   "tier\":\"auto\"}",
		   "{\"model\":\"m\",\"tools\":[{\"type\":\"bash_20250124\"},{\"name\":\"x\"}],\"service_"
		   "tier\":\"auto\"}");
	check_body("{\"model\":\"m\",\"temperature\":1.0}", "{\"model\":\"m\",\"temperature\":1.0}");
	check_body(
		"{\"model\":\"m\",\"stream\":true,\"x\":1.00}",
		"{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"x\":1.00}");
	check_body("{\"a\":{\"stream_options\":1},\"stream_options\" : {\"include_usage\":false} "
		   ",\"model\":\"m\",\"stream\":true}",
		   "{\"a\":{\"stream_options\":1},\"stream_options\" "
		   ":{\"include_usage\":true},\"model\":\"m\",\"stream\":true}");
	check_body("{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		   "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
	check_body("{\"model\":\"m\",\"stream\":true,\"stream_options\":null}",
		   "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
}

static void check_refused(const char *text, enum err_code code)
{
	struct buf out = BUF_INIT(4096);
	struct err e = { 0 };
	struct ask k;

	assert_true(read_body(text, &k, &out, &e) < 0);
	assert_int_equal(e.code, code);
	buf_done(&out);
}

static void test_refused(void **state)
{
	check_refused("{\"model\":\"a\",\"model\":\"b\"}", ERR_BAD_REQUEST);
	check_refused("{\"mod\\u0065l\":\"a\",\"model\":\"b\"}", ERR_BAD_REQUEST);
	check_refused("{}", ERR_INVALID);
	check_refused("[]", ERR_INVALID);
	check_refused("{\"model\":\"a\",\"stream\":\"yes\"}", ERR_INVALID);
	check_refused("{\"model\":\"a\",\"max_tokens\":-1}", ERR_INVALID);
	check_refused("{\"model\":\"a\",\"background\":true}", ERR_FORBIDDEN);
	check_refused(
		"{\"model\":\"a\",\"tools\":[{\"type\":\"function\"},{\"type\":\"web_search_20250305\"}]}",
		ERR_FORBIDDEN);
	check_refused("{\"model\":\"a\",\"tools\":[{\"type\":1}]}", ERR_FORBIDDEN);
	check_refused("{\"model\":\"a\",\"mcp_servers\":[]}", ERR_FORBIDDEN);
	check_refused("{\"model\":\"a\",\"service_tier\":\"priority\"}", ERR_FORBIDDEN);
	check_refused("{\"model\":\"a\",\"stream\":true,\"stream_\\u006fptions\":{}}", ERR_BAD_REQUEST);
}

static void test_sizes(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct err e = { 0 };
	struct ask k;

	assert_int_equal(read_body("{\"model\":\"m\",\"n\":3,\"max_tokens\":10,\"max_completion_tokens\":7}",
				   &k, &out, &e),
			 0);
	assert_int_equal(k.max_output, 10);
	assert_int_equal(k.choices, 3);
	assert_true(k.input_tokens >= 10);
	buf_done(&out);
}

static void test_prices(void **state)
{
	struct arena a = ARENA_INIT(1 << 20);
	struct prices p = { 0 };
	struct json *j;
	struct err e = { 0 };

	assert_int_equal(json_parse(&a,
				    VIEW("[{\"provider\":\"openai\",\"model\":\"gpt-4o-mini*\",\"input\":0."
					 "15,\"output\":0.6,"
					 "\"cache_read\":0.075,\"max_output\":16384},"
					 "{\"provider\":\"anthropic\",\"model\":\"*\",\"input\":3,\"output\":"
					 "15,\"request\":0.01}]"),
				    &j, &e),
			 0);
	assert_int_equal(prices_read(&a, j, &p, &e), 0);
	assert_int_equal(p.n, 2);
	const struct price *one = prices_find(&p, ASK_OPENAI, VIEW("gpt-4o-mini-2024-07-18"));
	assert_non_null(one);
	assert_int_equal(
		prices_cost(one, &(struct meter_usage){ .input = 1000, .cache_read = 1000, .output = 1000 }),
		825000);
	assert_null(prices_find(&p, ASK_OPENAI, VIEW("gpt-4o")));
	one = prices_find(&p, ASK_ANTHROPIC, VIEW("x"));
	assert_int_equal(prices_cost(one, &(struct meter_usage){ .cache_write = 2, .output = 1 }),
			 10000000 + 6000 + 15000);
	/* Too many tokens to be true do not become a small sum. */
	assert_true(prices_cost(one, &(struct meter_usage){ .output = UINT64_MAX }) > PRICES_DOLLAR);
	assert_int_equal(json_parse(&a, VIEW("[{\"provider\":\"x\",\"model\":\"*\",\"input\":3}]"), &j, &e),
			 0);
	assert_true(prices_read(&a, j, &p, &e) < 0);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endpoints), cmocka_unit_test(test_fits),  cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_sizes), cmocka_unit_test(test_prices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
