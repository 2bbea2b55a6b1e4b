/*
 * assegai.json: what is read, what is refused, and that each refusal names its field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "manifest.h"
#include "poison.h"

static struct arena arena = ARENA_INIT(1u << 22);

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static int read(const char *text, struct manifest *ret, struct err *e)
{
	struct json *doc;

	if (json_parse(&arena, view_of(text), &doc, e) < 0)
		return -1;
	return manifest_read(&arena, doc, ret, e);
}

#define HEAD "\"name\":\"A\",\"version\":\"1.0.0\",\"runtime\":\"node\",\"entrypoint\":\"index.js\""

static struct manifest good(const char *text)
{
	struct manifest m;
	struct err e = { 0 };

	if (read(text, &m, &e) < 0)
		fail_msg("refused: %s", e.msg);
	return m;
}

static void bad(const char *text, const char *names)
{
	struct manifest m;
	struct err e = { 0 };

	if (read(text, &m, &e) >= 0)
		fail_msg("taken: %s", text);
	if (!strstr(e.msg, names))
		fail_msg("\"%s\" does not name %s", e.msg, names);
}

static void test_contract(void **state)
{
	struct manifest m =
		good("{\"name\":\"My "
		     "Agent\",\"version\":\"1.0.0\",\"runtime\":\"node\",\"entrypoint\":\"index.js\","
		     "\"permissions\":{\"chains\":[\"eip155:1\",\"eip155:31337\"],"
		     "\"rpcs\":{\"eip155:31337\":\"http://host.docker.internal:8545\"},"
		     "\"apis\":[\"openai\",\"anthropic\"],\"contracts\":["
		     "\"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48\"]},"
		     "\"resources\":{\"memory\":\"512MB\",\"cpu\":\"0.5\"},"
		     "\"spending_limits\":{\"per_transaction\":\"0.1\",\"daily\":\"1.0\",\"weekly\":\"5.0\","
		     "\"monthly\":\"20.0\"}}");

	assert_int_equal(m.runtime, MANIFEST_NODE);
	assert_int_equal(m.resources.memory_mb, 512);
	assert_int_equal(m.resources.cpu_milli, 500);
	assert_true(manifest_has_chain(&m, VIEW("eip155:1")));
	assert_false(manifest_has_chain(&m, VIEW("eip155:10")));
	assert_true(manifest_has_api(&m, VIEW("anthropic")));
	assert_true(manifest_allows_contract(&m, VIEW("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")));
	assert_false(manifest_allows_contract(&m, VIEW("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb49")));
	assert_true(view_is(m.limits.monthly, "20.0"));
}

static void test_least(void **state)
{
	struct manifest m = good("{" HEAD "}");

	assert_int_equal(m.permissions.chains.n, 0);
	assert_false(manifest_has_api(&m, VIEW("openai")));
	assert_true(manifest_allows_contract(&m, VIEW("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")));
	assert_int_equal(m.resources.memory_mb, 0);
}

/* What is written reads as the same. */
static void test_round(void **state)
{
	struct manifest m = good("{" HEAD ",\"permissions\":{\"hosts\":[\"api.example.org:443\"],"
				 "\"chains\":[\"eip155:5\"],\"rpcs\":{\"eip155:5\":\"https://a.b/x?y=z\"}},"
				 "\"resources\":{\"memory\":\"2GB\",\"cpu\":\"1.25\"}}");
	struct buf once = BUF_INIT(1 << 16), twice = BUF_INIT(1 << 16);
	struct json_out o;

	assert_int_equal(m.resources.memory_mb, 2048);
	assert_int_equal(m.resources.cpu_milli, 1250);
	json_out_init(&o, &once);
	manifest_put(&o, &m);
	buf_putc(&once, 0);
	m = good(once.p);
	json_out_init(&o, &twice);
	manifest_put(&o, &m);
	buf_putc(&twice, 0);
	assert_string_equal(once.p, twice.p);
	buf_done(&once);
	buf_done(&twice);
}

static void test_refused(void **state)
{
	static const struct {
		const char *tail, *names;
	} cases[] = {
		{ ",\"dockerfile\":\"x\"", "dockerfile" },
		{ ",\"permissions\":{\"chain\":[]}", "permissions.\"chain\"" },
		{ ",\"permissions\":{\"chains\":[\"solana:1\"]}", "permissions.chains[0]" },
		{ ",\"permissions\":{\"chains\":[\"eip155:01\"]}", "permissions.chains[0]" },
		{ ",\"permissions\":{\"chains\":[\"eip155:99999999999999999999\"]}",
		  "permissions.chains[0]" },
		{ ",\"permissions\":{\"chains\":[\"eip155:1\",\"eip155:1\"]}", "permissions.chains[1]" },
		{ ",\"permissions\":{\"chains\":[1]}", "permissions.chains" },
		{ ",\"permissions\":{\"rpcs\":{\"eip155:1\":\"https://a.b\"}}", "permissions.rpcs" },
		{ ",\"permissions\":{\"chains\":[\"eip155:1\"],\"rpcs\":{\"eip155:1\":\"file:///etc/"
		  "passwd\"}}",
		  "permissions.rpcs.eip155:1" },
		{ ",\"permissions\":{\"chains\":[\"eip155:1\"],\"rpcs\":{\"eip155:1\":\"http://u:p@a.b/\"}}",
		  "permissions.rpcs.eip155:1" },
		{ ",\"permissions\":{\"chains\":[\"eip155:1\"],\"rpcs\":{\"eip155:1\":\"http://a.b/\\r\\nX: "
		  "y\"}}",
		  "permissions.rpcs.eip155:1" },
		{ ",\"permissions\":{\"apis\":[\"gemini\"]}", "permissions.apis[0]" },
		{ ",\"permissions\":{\"apis\":[\"openai\",\"openai\"]}", "permissions.apis[1]" },
		{ ",\"permissions\":{\"contracts\":[\"0x12\"]}", "permissions.contracts[0]" },
		{ ",\"permissions\":{\"contracts\":[\"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB4g\"]}",
		  "permissions.contracts[0]" },
		{ ",\"permissions\":{\"hosts\":[\"*\"]}", "permissions.hosts[0]" },
		{ ",\"permissions\":{\"hosts\":[\"*.example.org\"]}", "permissions.hosts[0]" },
		{ ",\"permissions\":{\"hosts\":[\"10.0.0.0/8\"]}", "permissions.hosts[0]" },
		{ ",\"permissions\":{\"hosts\":[\"169.254.169.254\"]}", "permissions.hosts[0]" },
		{ ",\"resources\":{\"memory\":\"512\"}", "resources.memory" },
		{ ",\"resources\":{\"memory\":\"8MB\"}", "resources.memory" },
		{ ",\"resources\":{\"memory\":\"-1GB\"}", "resources.memory" },
		{ ",\"resources\":{\"memory\":\"18446744073709551615GB\"}", "resources.memory" },
		{ ",\"resources\":{\"memory\":512}", "resources.memory" },
		{ ",\"resources\":{\"cpu\":\"1e3\"}", "resources.cpu" },
		{ ",\"resources\":{\"cpu\":\"0\"}", "resources.cpu" },
		{ ",\"resources\":{\"cpu\":\"4294968.0\"}", "resources.cpu" },
		{ ",\"spending_limits\":{\"daily\":\"1e18\"}", "spending_limits.daily" },
		{ ",\"spending_limits\":{\"daily\":\"-1\"}", "spending_limits.daily" },
		{ ",\"spending_limits\":{\"daily\":\"0.1234567890123456789\"}", "spending_limits.daily" },
		{ ",\"spending_limits\":{\"daily\":1}", "spending_limits.daily" },
		{ ",\"spending_limits\":{\"yearly\":\"1\"}", "spending_limits.\"yearly\"" },
		{ ",\"name\":\"B\"", "" }, /* twice */
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[1024];
		snprintf(text, sizeof(text), "{" HEAD "%s}", cases[i].tail);
		bad(text, cases[i].names);
	}
}

static void test_refused_head(void **state)
{
#define OF(name, version, runtime, entry)                                                                    \
	"{\"name\":\"" name "\",\"version\":\"" version "\",\"runtime\":\"" runtime                          \
	"\",\"entrypoint\":\"" entry "\"}"
	bad("[]", "");
	bad("{}", "name");
	bad(OF("", "1.0.0", "node", "a.js"), "name");
	bad(OF("a\\u001b[31m", "1.0.0", "node", "a.js"), "name");
	bad(OF("a\\u202egnp.exe", "1.0.0", "node", "a.js"), "name");
	bad(OF("a\\u0085", "1.0.0", "node", "a.js"), "name");
	bad(OF("a", "1.0", "node", "a.js"), "version");
	bad(OF("a", "1.0.0; rm", "node", "a.js"), "version");
	bad(OF("a", "1.0.0", "ruby", "a.rb"), "runtime");
	bad(OF("a", "1.0.0", "node", "../a.js"), "entrypoint");
	bad(OF("a", "1.0.0", "node", "/etc/a.js"), "entrypoint");
	bad(OF("a", "1.0.0", "node", "a//b.js"), "entrypoint");
	bad(OF("a", "1.0.0", "node", "-e.js"), "entrypoint");
	bad(OF("a", "1.0.0", "node", "$(x).js"), "entrypoint");
	bad(OF("a", "1.0.0", "node", "a.py"), "entrypoint");
	bad(OF("a", "1.0.0", "python", "a.js"), "entrypoint");
	good(OF("a", "1.0.0-rc.1", "python", "src/main.py"));
#undef OF
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_contract, teardown),
		cmocka_unit_test_teardown(test_least, teardown),
		cmocka_unit_test_teardown(test_round, teardown),
		cmocka_unit_test_teardown(test_refused, teardown),
		cmocka_unit_test_teardown(test_refused_head, teardown),
	};
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
