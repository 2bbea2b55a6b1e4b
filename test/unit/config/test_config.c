/*
 * The configuration: defaults, validation as a whole, overriding, the way through
 * JSON and back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "config.h"
#include "config_schema.h"
#include "feature.h"

#include "poison.h"

static struct arena arena;

static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static struct config read_ok(const char *text)
{
	struct config c;
	struct err e = { 0 };

	if (config_from_json(&arena, view_of(text), &c, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return c;
}

static void assert_view(struct view v, const char *want)
{
	if (!view_is(v, want))
		fail_msg("\"%.*s\" is not \"%s\"", VIEW_ARG(v), want);
}

static void test_defaults(void **state)
{
	struct config c = read_ok("{}");

	(void)state;
	assert_view(c.listen, "127.0.0.1:7080");
	assert_view(c.data_dir, "/var/lib/paddock");
	assert_view(c.run_dir, "/run/paddock");
	assert_view(c.log_level, "info");
	assert_int_equal(c.tls.cert.n, 0);
	assert_view(c.defaults.image, "machine");
	assert_view(c.defaults.user, "user");
	assert_view(c.defaults.workdir, "/workspace");
	assert_int_equal(c.defaults.ttl_seconds, 0);
	assert_int_equal(c.defaults.limits.pids, 256);
	assert_int_equal(c.defaults.limits.nofile, 1024);
	assert_true(c.max.limits.cpu == (double)sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(c.max.limits.memory_mb > 0);
	assert_true(c.max.limits.memory_mb <
		    (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20);
	assert_int_equal(c.max.limits.pids, 4096);
	assert_int_equal(c.max.limits.nofile, 16384);
	assert_int_equal(c.max.boxes, 4000);
	assert_int_equal(c.max.exec_timeout_ms, 600000);
	assert_int_equal(c.max.exec_output_bytes, 8388608);
	assert_int_equal(c.max.body_bytes, 4194304);
	assert_int_equal(c.max.connections, 4096);
	assert_int_equal(c.uids.api, 59000);
	assert_int_equal(c.uids.base, 1879048192);
	assert_int_equal(c.uids.slots, 4000);
	assert_view(c.cgroup.parent, "paddock");
	assert_view(c.egress.capture, "auto");
}

static void test_captures(void **state)
{
	static const char *const known[] = { "auto", "sk_lookup", "nft", "proxy" };

	(void)state;
	for (size_t i = 0; i < ELEMS(known); i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"egress\":{\"capture\":\"%s\"}}", known[i]);
		assert_view(read_ok(text).egress.capture, known[i]);
	}
}

static void test_posture(void **state)
{
	struct config c = read_ok("{\"posture\":{\"require\":[\"landlock.scopes\",\"limit.disk\"],"
				  "\"without\":[\"overlay.detached\"]}}");

	assert_int_equal(c.posture.required,
			 FEATURE_BIT(FEATURE_LANDLOCK_SCOPES) | FEATURE_BIT(FEATURE_DISK_QUOTA));
	assert_int_equal(c.posture.left_out, FEATURE_BIT(FEATURE_DETACHED_LAYERS));
	c = read_ok("{\"posture\":null}");
	assert_int_equal(c.posture.required | c.posture.left_out, 0);
}

static void test_over_the_defaults(void **state)
{
	struct config c =
		read_ok("{\"listen\":\"[::1]:0\",\"defaults\":{\"limits\":{\"cpu\":0.5}},\"max\":null,"
			"\"tls\":{\"cert\":\"/c.pem\",\"key\":\"/k.pem\"}}");

	(void)state;
	assert_view(c.listen, "[::1]:0");
	assert_true(c.defaults.limits.cpu == 0.5);
	assert_int_equal(c.defaults.limits.pids, 256);
	assert_view(c.tls.key, "/k.pem");
}

/* A ceiling below a default that nobody set lowers the default. */
static void test_defaults_follow_ceilings(void **state)
{
	struct config c =
		read_ok("{\"max\":{\"limits\":{\"cpu\":0.25,\"memory_mb\":64,\"pids\":16,\"nofile\":32},"
			"\"ttl_seconds\":60}}");

	(void)state;
	assert_true(c.defaults.limits.cpu == 0.25);
	assert_int_equal(c.defaults.limits.memory_mb, 64);
	assert_int_equal(c.defaults.limits.pids, 16);
	assert_int_equal(c.defaults.limits.nofile, 32);
	assert_int_equal(c.defaults.ttl_seconds, 60);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "{", "line 1, column 2: expected a key in double quotes, found the end of the text" },
		{ "[]", "line 1: must be an object, not an array" },
		{ "{\n\"listn\":1}", "line 2: \"listn\": unknown field; did you mean \"listen\"?" },
		{ "{\"max\":{\n\n\"box\":1}}",
		  "line 3: max.\"box\": unknown field; did you mean \"boxes\"?" },
		{ "{\"listen\":7080}", "line 1: listen: must be a string, not a number" },
		{ "{\"listen\":null}", "line 1: listen: must be a string, not null" },
		{ "{\"data_dir\":\"var\"}", "line 1: data_dir: must be an absolute path" },
		{ "{\n\"data_dir\":\"/a/../b\"}", "line 2: data_dir: must not contain \"..\"" },
		{ "{\"run_dir\":\"//\"}", "line 1: run_dir: must not be the root directory" },
		{ "{\"run_dir\":\"/x\",\"data_dir\":\"/x\"}",
		  "line 1: run_dir: must not be the data directory" },
		{ "{\"run_dir\":\"/x\\ny\"}", "line 1: run_dir: must not contain control characters" },
		{ "{\"defaults\":{\n\"user\":\"a\\u001b\"}}",
		  "line 2: defaults.user: must not contain control characters" },
		{ "{\"log_level\":\"loud\"}", "line 1: log_level: must be error, warn, info or debug" },
		{ "{\"tls\":{\n\"cert\":\"/c\"}}",
		  "line 2: tls.cert: tls needs both cert and key, or neither of them" },
		{ "{\"tls\":{\"cert\":\"/c\",\"key\":\"k\"}}", "line 1: tls.key: must be an absolute path" },
		{ "{\"defaults\":{\"user\":\"Root!\"}}",
		  "line 1: defaults.user: is not a user name (a-z, 0-9, _ and -)" },
		{ "{\"defaults\":{\"image\":\"../x\"}}",
		  "line 1: defaults.image: is not the name of an image" },
		{ "{\"defaults\":{\"workdir\":\"x\"}}",
		  "line 1: defaults.workdir: must be an absolute path" },
		{ "{\"cgroup\":{\"parent\":\"/x\"}}",
		  "line 1: cgroup.parent: must be a relative path without \"..\"" },
		{ "{\"cgroup\":{\"parent\":\"a/../..\"}}",
		  "line 1: cgroup.parent: must be a relative path without \"..\"" },
		{ "{\"defaults\":{\n\"limits\":{\n\"pids\":5000}}}",
		  "line 3: defaults.limits.pids: must not exceed max.limits.pids" },
		{ "{\"defaults\":{\"limits\":{\"cpu\":2}},\"max\":{\"limits\":{\"cpu\":1}}}",
		  "line 1: defaults.limits.cpu: must not exceed max.limits.cpu" },
		{ "{\"defaults\":{\"ttl_seconds\":0},\"max\":{\"ttl_seconds\":5}}",
		  "line 1: defaults.ttl_seconds: must not be 0 when max.ttl_seconds is set" },
		{ "{\"defaults\":{\"ttl_seconds\":9},\"max\":{\"ttl_seconds\":5}}",
		  "line 1: defaults.ttl_seconds: must not exceed max.ttl_seconds" },
		{ "{\"defaults\":{\"limits\":{\"cpu\":0}}}",
		  "line 1: defaults.limits.cpu: must be a number from 0.01 to 4096" },
		{ "{\"egress\":{\n\"capture\":\"ebpf\"}}",
		  "line 2: egress.capture: must be auto, sk_lookup, nft or proxy" },
		{ "{\"posture\":{\"require\":\"landlock.scopes\"}}",
		  "line 1: posture.require: must be an array of names, not a string" },
		{ "{\"posture\":{\n\"require\":[\"landlock.scopes\",\"landlock.scope\"]}}",
		  "line 2: posture.require: has a name that is no feature of the walls: see "
		  "paddock.yaml(5)" },
		{ "{\"posture\":{\"require\":[1]}}", "line 1: posture.require: has a name that is no feature "
						     "of the walls: see paddock.yaml(5)" },
		{ "{\"posture\":{\"without\":[\"limit.disk\"]}}",
		  "line 1: posture.without: limit.disk cannot be left out here" },
		{ "{\"posture\":{\"require\":[\"cgroup.kill\"],\"without\":[\"cgroup.kill\"]}}",
		  "line 1: posture.without: leaves out what posture.require asks for" },
		{ "{\"uids\":{\"api\":0}}", "line 1: uids.api: must be a whole number from 1 to 4294967294" },
		{ "{\"uids\":{\"base\":99999}}",
		  "line 1: uids.base: must be a whole number from 100000 to 4294967294" },
		{ "{\"uids\":{\"base\":4294900000}}",
		  "line 1: uids.base: base + slots * 65664 must stay below 2^32 - 1" },
		{ "{\"uids\":{\"signer\":59003}}", "line 1: uids.signer: uids.signer must be nobody else's" },
		{ "{\"uids\":{\"signer\":1879048200}}",
		  "line 1: uids.signer: uids.signer must not lie in the range of the sandboxes" },
		{ "{\"uids\":{\"base\":100000,\"slots\":65408}}",
		  "line 1: uids.slots: base + slots * 65664 must stay below 2^32 - 1" },
		{ "{\"uids\":{\"api\":1879048192}}",
		  "line 1: uids.api: uids.api must not lie in the range of the sandboxes" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct config c;
		struct err e = { 0 };

		if (config_from_json(&arena, view_of(cases[i].text), &c, &e) == 0)
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void test_uid_edges(void **state)
{
	char text[160];
	struct config c;
	struct err e;
	uint64_t last = UINT32_MAX - UINT64_C(10) * CONFIG_UID_STRIDE;

	(void)state;
	for (int over = 0; over <= 1; over++) {
		snprintf(text, sizeof(text), "{\"uids\":{\"base\":%llu,\"slots\":10}}",
			 (unsigned long long)last + over);
		assert_int_equal(config_from_json(&arena, view_of(text), &c, &e), -over);
	}
	/* The api's uid just before and just behind the ranges. */
	read_ok("{\"uids\":{\"base\":200000,\"slots\":1,\"api\":199999}}");
	read_ok("{\"uids\":{\"base\":200000,\"slots\":1,\"api\":265664}}");
	assert_int_equal(config_from_json(&arena,
					  VIEW("{\"uids\":{\"base\":200000,\"slots\":1,\"api\":265663}}"), &c,
					  &e),
			 -1);
}

static void test_listen(void **state)
{
	static const char *const wrong[] = { "",
					     "7080",
					     ":7080",
					     "localhost:80",
					     "1.2.3.4",
					     "1.2.3.4:",
					     "1.2.3.4:65536",
					     "1.2.3.4:-1",
					     "1.2.3.4:+1",
					     "::1:80",
					     "[::1]",
					     "[::1]80",
					     "[]:80",
					     "[1.2.3.4]:80",
					     "1.2.3:80",
					     "1.2.3.4:80 ",
					     "[fe80::1%lo]:1",
					     " 1.2.3.4:80" };
	struct sockaddr_storage ss;
	socklen_t len;

	(void)state;
	assert_int_equal(config_listen(VIEW("10.1.2.3:65535"), &ss, &len), 0);
	assert_int_equal(len, sizeof(struct sockaddr_in));
	assert_int_equal(ss.ss_family, AF_INET);
	assert_int_equal(ntohs(((struct sockaddr_in *)&ss)->sin_port), 65535);
	assert_int_equal(ntohl(((struct sockaddr_in *)&ss)->sin_addr.s_addr), 0x0a010203);
	assert_int_equal(config_listen(VIEW("[::1]:0"), &ss, &len), 0);
	assert_int_equal(len, sizeof(struct sockaddr_in6));
	assert_int_equal(ss.ss_family, AF_INET6);
	for (size_t i = 0; i < ELEMS(wrong); i++)
		if (config_listen(view_of(wrong[i]), &ss, &len) == 0)
			fail_msg("accepted: \"%s\"", wrong[i]);
}

static int override(struct json *doc, const char *variable, const char *value, struct err *e)
{
	return config_override(&arena, doc, variable, view_of(value), e);
}

static void test_override(void **state)
{
	struct json *doc;
	struct config c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(
		json_parse(&arena,
			   VIEW("{\"listen\":\"1.1.1.1:1\",\"defaults\":{\"user\":\"me\"},\"max\":null}"),
			   &doc, &e),
		0);
	assert_int_equal(override(doc, "LISTEN", "2.2.2.2:2", &e), 0);
	assert_int_equal(override(doc, "DEFAULTS_LIMITS_CPU", "0.75", &e), 0);
	assert_int_equal(override(doc, "DEFAULTS_TTL_SECONDS", "30", &e), 0);
	assert_int_equal(override(doc, "MAX_EXEC_OUTPUT_BYTES", "100", &e), 0);
	assert_int_equal(override(doc, "DATA_DIR", "/data", &e), 0);
	assert_int_equal(override(doc, "DATA_DIR", "/data2", &e), 0);
	assert_int_equal(config_from_doc(&arena, doc, true, &c, &e), 0);
	assert_view(c.listen, "2.2.2.2:2");
	assert_view(c.defaults.user, "me");
	assert_true(c.defaults.limits.cpu == 0.75);
	assert_int_equal(c.defaults.ttl_seconds, 30);
	assert_int_equal(c.max.exec_output_bytes, 100);
	assert_view(c.data_dir, "/data2");

	/* Judged with the rest; a value from outside the file has no line. */
	assert_int_equal(override(doc, "MAX_BOXES", "0", &e), 0);
	assert_int_equal(config_from_doc(&arena, doc, true, &c, &e), -1);
	assert_string_equal(e.msg, "max.boxes: must be a whole number from 1 to 1000000");
}

static void test_override_refusals(void **state)
{
	static const struct {
		const char *variable, *value, *msg;
	} cases[] = {
		{ "LISTENER", "x", "no such setting" },
		{ "listen", "x", "no such setting" },
		{ "", "x", "no such setting" },
		{ "DEFAULTS", "x", "no such setting" },
		{ "DEFAULTS_", "x", "no such setting" },
		{ "DEFAULTS_LIMITS", "x", "no such setting" },
		{ "DEFAULTS_LIMITS_CPUS", "1", "no such setting" },
		{ "LISTEN_X", "1", "no such setting" },
		{ "MAX_BOXES", "many", "must be a number" },
		{ "MAX_BOXES", "", "must be a number" },
		{ "DATA_DIR", "/\xff", "must be UTF-8 text" },
		{ "TLS_CERT", "/x", "the configuration has a number where \"tls\" should be an object" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct json *doc;
		struct err e = { 0 };

		assert_int_equal(json_parse(&arena, VIEW("{\"tls\":5}"), &doc, &e), 0);
		assert_int_equal(override(doc, cases[i].variable, cases[i].value, &e), -1);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void assert_same(const struct json_schema *s, const char *a, const char *b)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct json_field *f = &s->fields[i];
		const void *x = a + f->offset, *y = b + f->offset;

		if (f->kind == JSON_F_OBJECT)
			assert_same(f->sub, x, y);
		else if (f->kind == JSON_F_STRING)
			assert_true(view_eq(*(const struct view *)x, *(const struct view *)y));
		else if (f->kind == JSON_F_BOOL)
			assert_true(*(const bool *)x == *(const bool *)y);
		else
			assert_memory_equal(x, y, 8); /* a double or a uint64_t */
	}
}

static void test_explorer(void **state)
{
	static const struct {
		const char *url, *msg;
	} cases[] = {
		{ "http://explorer.example", "explorer: must begin with https://" },
		{ "javascript:alert(1)", "explorer: must begin with https://" },
		{ "https://a@explorer.example", "explorer: must name a host, without a user and a password" },
		{ "https://explorer.example/?x=", "explorer: must have no query" },
		{ "https://explorer.example/a\\\"b", "explorer: has characters that must be escaped" },
	};
	struct config c =
		read_ok("{\"agents\":{\"chains\":{\"eip155:1\":{\"rpc\":[\"http://n\"],\"explorer\":"
			"\"https://explorer.example/a/\"}}}}");

	(void)state;
	assert_view(c.agents.chain_list[0].explorer, "https://explorer.example/a");
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[256];
		struct err e = { 0 };

		snprintf(text, sizeof(text),
			 "{\"agents\":{\"chains\":{\"eip155:1\":{\"rpc\":[\"http://"
			 "n\"],\"explorer\":\"%s\"}}}}",
			 cases[i].url);
		assert_int_equal(config_from_json(&arena, view_of(text), &c, &e), -1);
		assert_non_null(strstr(e.msg, cases[i].msg));
	}
}

static void test_symbol(void **state)
{
	struct config c = read_ok("{\"agents\":{\"chains\":{\"eip155:1\":{\"rpc\":[\"http://n\"]},"
				  "\"eip155:56\":{\"rpc\":[\"http://n\"],\"symbol\":\"tBNB.2\"},"
				  "\"eip155:77\":{\"rpc\":[\"http://n\"]}}}}");
	struct err e = { 0 };

	(void)state;
	assert_view(c.agents.chain_list[0].symbol, "ETH");
	assert_view(c.agents.chain_list[1].symbol, "tBNB.2");
	assert_null(c.agents.chain_list[2].symbol.p);
	assert_int_equal(
		config_from_json(&arena,
				 VIEW("{\"agents\":{\"chains\":{\"eip155:1\":{\"rpc\":[\"http://n\"],"
				      "\"symbol\":\"<b>\"}}}}"),
				 &c, &e),
		-1);
	assert_non_null(strstr(e.msg, "symbol: must be letters, digits and dots"));
}

static void test_walletconnect(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "{\"relay\":\"ws://relay.example\"}",
		  "agents.walletconnect.relay: must begin with wss:// unless it is on this machine" },
		{ "{\"relay\":\"https://relay.example\"}",
		  "agents.walletconnect.relay: must begin with wss:// or ws://" },
		{ "{\"project_id\":\"a b\"}",
		  "agents.walletconnect.project_id must have letters, digits, - and _ only" },
	};
	struct config c = read_ok("{}");

	(void)state;
	assert_view(c.agents.walletconnect.project_id, "");
	assert_view(c.agents.walletconnect.at.host, "relay.walletconnect.org");
	assert_int_equal(c.agents.walletconnect.at.port, 443);
	assert_true(c.agents.walletconnect.at.tls);
	c = read_ok(
		"{\"agents\":{\"walletconnect\":{\"relay\":\"ws://127.0.0.1:5555\",\"project_id\":\"0a\"}}}");
	assert_false(c.agents.walletconnect.at.tls);
	assert_int_equal(c.agents.walletconnect.at.port, 5555);
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[256];
		struct err e = { 0 };

		snprintf(text, sizeof(text), "{\"agents\":{\"walletconnect\":%s}}", cases[i].text);
		assert_int_equal(config_from_json(&arena, view_of(text), &c, &e), -1);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void test_agents(void **state)
{
	struct config c = read_ok("{\"agents\":{\"chains\":{\"eip155:31337\":{\"name\":\"Anvil\",\"rpc\":["
				  "\"http://localhost:8545\",\"https://node.example.org:8443/v1/key?x=y\"]}},"
				  "\"rpcs\":[\"https://a.example.org\"]}}");
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "{\"eip155:0\":{\"rpc\":[\"http://a\"]}}",
		  "agents.chains.eip155:0: the name of a chain must be such as \"eip155:1\"" },
		{ "{\"eip155:1\":{\"rpc\":[\"ws://a\"]}}",
		  "agents.chains.eip155:1: rpc[0]: must begin with https:// or http://" },
		{ "{\"eip155:1\":{\"rpc\":[\"http://u:p@a\"]}}",
		  "agents.chains.eip155:1: rpc[0]: has no port between 1 and 65535" },
		{ "{\"eip155:1\":{\"rpc\":[\"http://u@a\"]}}",
		  "agents.chains.eip155:1: rpc[0]: must name a host, without a user and a password" },
		{ "{\"eip155:1\":{\"rpc\":[\"http://a/ b\"]}}",
		  "agents.chains.eip155:1: rpc[0]: has characters that must be escaped" },
		{ "[]", "agents.chains must be an object of at most 64 chains" },
	};

	(void)state;
	assert_int_equal(c.agents.n_chains, 1);
	assert_view(c.agents.chain_list[0].id, "eip155:31337");
	assert_int_equal(c.agents.chain_list[0].n_rpc, 2);
	assert_int_equal(c.agents.chain_list[0].rpc[0].port, 8545);
	assert_view(c.agents.chain_list[0].rpc[0].target, "/");
	assert_view(c.agents.chain_list[0].rpc[1].host, "node.example.org");
	assert_view(c.agents.chain_list[0].rpc[1].target, "/v1/key?x=y");
	assert_true(c.agents.chain_list[0].rpc[1].tls);
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char text[256];
		struct err e = { 0 };

		snprintf(text, sizeof(text), "{\"agents\":{\"chains\":%s}}", cases[i].text);
		assert_int_equal(config_from_json(&arena, view_of(text), &c, &e), -1);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void test_round_trip(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"listen\":\"[::]:1\",\"data_dir\":\"/d\\u00e9 "
		"x\",\"run_dir\":\"/r\\\"\",\"log_level\":\"debug\","
		"\"tls\":{\"cert\":\"/c\",\"key\":\"/k\"},\"defaults\":{\"image\":\"py:3\",\"user\":\"root\","
		"\"workdir\":\"/"
		"\",\"ttl_seconds\":10,\"limits\":{\"cpu\":0.1,\"memory_mb\":33,\"pids\":44,\"nofile\":55}},"
		"\"max\":{\"limits\":{\"cpu\":1.7,\"memory_mb\":3333,\"pids\":4444,\"nofile\":5555},"
		"\"boxes\":7,"
		"\"ttl_seconds\":11,\"exec_timeout_ms\":12,\"exec_output_bytes\":13,\"body_bytes\":1400,"
		"\"connections\":99},"
		"\"uids\":{\"api\":15,\"base\":160000,\"slots\":17},\"cgroup\":{\"parent\":\"a/b\"}}",
	};

	(void)state;
	for (size_t i = 0; i < ELEMS(texts); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT(1 << 16);
		struct config first = read_ok(texts[i]), second;
		struct err e = { 0 };

		assert_int_equal(config_to_json(&first, &out), 0);
		assert_int_equal(config_from_json(&arena, buf_view(&out), &second, &e), 0);
		assert_same(&config_schema, (const char *)&first, (const char *)&second);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_defaults, teardown),
		cmocka_unit_test_teardown(test_captures, teardown),
		cmocka_unit_test_teardown(test_posture, teardown),
		cmocka_unit_test_teardown(test_over_the_defaults, teardown),
		cmocka_unit_test_teardown(test_defaults_follow_ceilings, teardown),
		cmocka_unit_test_teardown(test_refusals, teardown),
		cmocka_unit_test_teardown(test_uid_edges, teardown),
		cmocka_unit_test_teardown(test_listen, teardown),
		cmocka_unit_test_teardown(test_override, teardown),
		cmocka_unit_test_teardown(test_override_refusals, teardown),
		cmocka_unit_test_teardown(test_agents, teardown),
		cmocka_unit_test_teardown(test_walletconnect, teardown),
		cmocka_unit_test_teardown(test_explorer, teardown),
		cmocka_unit_test_teardown(test_symbol, teardown),
		cmocka_unit_test_teardown(test_round_trip, teardown),
	};

	arena_init(&arena, 1 << 20);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
