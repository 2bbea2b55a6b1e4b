/*
 * From a wish to a spec: what is refused, what is completed, and the JSON of the store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feature.h"
#include "spec_make.h"
#include "poison.h"

static const struct config config = {
	.defaults = {
		.image = VIEW("machine"), .user = VIEW("user"), .workdir = VIEW("/workspace"),
		.limits = { .cpu = 1, .memory_mb = 512, .pids = 256, .nofile = 1024 },
	},
	.max = { .limits = { .cpu = 2, .memory_mb = 4096, .pids = 1000, .nofile = 4096 } },
};

static struct arena arena = ARENA_INIT(SPEC_ARENA_MAX);

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static struct box_spec good(const struct box_wish *w, const struct config *c)
{
	struct box_spec s;
	struct err e = { 0 };
	if (spec_make(w, c, &arena, &s, &e) < 0)
		fail_msg("refused: %s", e.msg);
	return s;
}

static void bad(const struct box_wish *w, const char *names)
{
	struct box_spec s;
	struct err e = { 0 };
	assert_int_equal(spec_make(w, &config, &arena, &s, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	if (!strstr(e.msg, names))
		fail_msg("\"%s\" does not name %s", e.msg, names);
}

static void test_defaults(void **state)
{
	struct box_spec s = good(&(struct box_wish){ 0 }, &config);
	assert_true(view_is(s.image, "machine") && view_is(s.user, "user") &&
		    view_is(s.workdir, "/workspace"));
	assert_int_equal(s.name.n, 0);
	assert_int_equal(s.limits.cpu_milli, 1000);
	assert_int_equal(s.limits.memory_mb, 512);
	assert_int_equal(s.limits.pids, 256);
	assert_int_equal(s.limits.nofile, 1024);
	assert_int_equal(s.ttl_seconds, 0);
	assert_false(s.readonly_root);
}

static void test_nothing_borrowed(void **state)
{
	char name[] = "box", key[] = "k", value[] = "v";
	struct view k = { key, 1 }, v = { value, 1 };
	struct box_wish w = { .name = { name, 3 }, .metadata = { &k, &v, 1 }, .env = { &k, &v, 1 } };
	struct box_spec s = good(&w, &config);
	memset(name, 'x', 3);
	key[0] = value[0] = 'x';
	assert_true(view_is(s.name, "box"));
	assert_true(view_is(spec_map_get(&s.metadata, VIEW("k")), "v"));
	assert_true(view_is(spec_map_get(&s.env, VIEW("k")), "v"));
	assert_null(spec_map_get(&s.env, VIEW("x")).p);
}

static void test_limits_at_their_edges(void **state)
{
	struct box_wish w = { .limits = { .cpu = 0.01,
					  .memory_mb = 16,
					  .pids = 4,
					  .nofile = 32,
					  .has_cpu = true,
					  .has_memory_mb = true,
					  .has_pids = true,
					  .has_nofile = true } };
	struct box_spec s = good(&w, &config);
	assert_int_equal(s.limits.cpu_milli, 10);
	w.limits.cpu = 2;
	w.limits.memory_mb = 4096;
	w.limits.pids = 1000;
	w.limits.nofile = 4096;
	s = good(&w, &config);
	assert_int_equal(s.limits.cpu_milli, 2000);
	assert_int_equal(s.limits.memory_mb, 4096);

	static const double cpus[] = { 0, -1, 0.009, 2.01, 1e300, 0.0 / 0.0 };
	for (size_t i = 0; i < ELEMS(cpus); i++)
		bad(&(struct box_wish){ .limits = { .cpu = cpus[i], .has_cpu = true } }, "limits.cpu");
	static const uint64_t memory[] = { 0, 15, 4097, UINT64_MAX, UINT64_MAX / 1048576 };
	for (size_t i = 0; i < ELEMS(memory); i++)
		bad(&(struct box_wish){ .limits = { .memory_mb = memory[i], .has_memory_mb = true } },
		    "limits.memory_mb");
	bad(&(struct box_wish){ .limits = { .pids = (1ull << 32) + 5, .has_pids = true } }, "limits.pids");
	bad(&(struct box_wish){ .limits = { .nofile = 31, .has_nofile = true } }, "limits.nofile");
	bad(&(struct box_wish){ .limits = { .nofile = 5000, .has_nofile = true } }, "limits.nofile");
}

static void test_names(void **state)
{
	static const char *const yes[] = {
		"a", "A.b_c-d", "0", "x123456789012345678901234567890123456789012345678901234567890ab"
	};
	static const char *const no[] = {
		".",   "..",  "-a", "a/b",
		"a b", "a\n", "ä",  "x123456789012345678901234567890123456789012345678901234567890abc"
	};
	for (size_t i = 0; i < ELEMS(yes); i++)
		good(&(struct box_wish){ .name = view_of(yes[i]) }, &config);
	for (size_t i = 0; i < ELEMS(no); i++)
		bad(&(struct box_wish){ .name = view_of(no[i]) }, "name");
	bad(&(struct box_wish){ .name = { "a\0b", 3 } }, "name");
}

static void test_users_and_places(void **state)
{
	good(&(struct box_wish){ .user = VIEW("www-data"), .workdir = VIEW("/a/../b") }, &config);
	good(&(struct box_wish){ .user = VIEW("1000") }, &config);
	bad(&(struct box_wish){ .user = VIEW("a:b") }, "user");
	bad(&(struct box_wish){ .user = VIEW("-x") }, "user");
	bad(&(struct box_wish){ .workdir = VIEW("relative") }, "workdir");
	bad(&(struct box_wish){ .workdir = { "/a\0b", 4 } }, "workdir");
}

static void test_environment(void **state)
{
	struct view keys[] = { VIEW("A=B"), VIEW(""), { "A\0B", 3 } }, value = VIEW("x");
	for (size_t i = 0; i < ELEMS(keys); i++)
		bad(&(struct box_wish){ .env = { &keys[i], &value, 1 } }, "env");
	struct view ok = VIEW("A"), nul = { "x\0y", 3 };
	bad(&(struct box_wish){ .env = { &ok, &nul, 1 } }, "env");
	static char large[SPEC_ENV_BYTES];
	memset(large, 'x', sizeof(large));
	struct view much = { large, sizeof(large) };
	bad(&(struct box_wish){ .env = { &ok, &much, 1 } }, "env");
	bad(&(struct box_wish){ .metadata = { &ok, &much, 1 } }, "metadata");
	bad(&(struct box_wish){ .metadata = { &much, &ok, 1 } }, "metadata");
}

static void test_ttl(void **state)
{
	struct config bounded = config;
	bounded.max.ttl_seconds = 100;
	assert_int_equal(good(&(struct box_wish){ .has_ttl = true, .ttl_seconds = 60 }, &config).ttl_seconds,
			 60);
	assert_int_equal(good(&(struct box_wish){ .has_ttl = true }, &config).ttl_seconds, 0);
	bad(&(struct box_wish){ .has_ttl = true, .ttl_seconds = UINT64_MAX }, "ttl_seconds");
	/* Where boxes must have an end, no wish is the longest one. */
	assert_int_equal(good(&(struct box_wish){ 0 }, &bounded).ttl_seconds, 100);
	struct box_spec s;
	struct err e = { 0 };
	assert_int_equal(spec_make(&(struct box_wish){ .has_ttl = true }, &bounded, &arena, &s, &e), -1);
	assert_int_equal(spec_make(&(struct box_wish){ .has_ttl = true, .ttl_seconds = 101 }, &bounded,
				   &arena, &s, &e),
			 -1);
}

static void test_json_and_back(void **state)
{
	struct view keys[] = { VIEW("A"), VIEW("ü\"\\") }, values[] = { VIEW(""), VIEW("\n\x01 €") };
	struct box_wish w = { .user = VIEW("root"),
			      .workdir = VIEW("/tmp"),
			      .env = { keys, values, 2 },
			      .metadata = { keys, values, 2 },
			      .readonly_root = true,
			      .require =
				      FEATURE_BIT(FEATURE_LANDLOCK_SCOPES) | FEATURE_BIT(FEATURE_DISK_QUOTA),
			      .has_ttl = true,
			      .ttl_seconds = 9 };
	struct box_spec s = good(&w, &config), t;
	struct buf spec = BUF_INIT(65536), meta = BUF_INIT(65536);
	struct err e = { 0 };

	assert_int_equal(spec_to_json(&s, &spec), 0);
	assert_int_equal(spec_metadata_to_json(&s, &meta), 0);
	if (spec_from_json(&arena, buf_view(&spec), buf_view(&meta), &t, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(view_eq(s.user, t.user) && view_eq(s.workdir, t.workdir));
	/* Not as bytes: there are some between the members. */
	assert_int_equal(s.limits.cpu_milli, t.limits.cpu_milli);
	assert_int_equal(s.limits.memory_mb, t.limits.memory_mb);
	assert_int_equal(s.limits.pids, t.limits.pids);
	assert_int_equal(s.limits.nofile, t.limits.nofile);
	assert_int_equal(s.limits.disk_mb, t.limits.disk_mb);
	assert_int_equal(t.ttl_seconds, 9);
	assert_true(t.readonly_root);
	assert_int_equal(t.require, FEATURE_BIT(FEATURE_LANDLOCK_SCOPES) | FEATURE_BIT(FEATURE_DISK_QUOTA));
	for (size_t i = 0; i < 2; i++) {
		assert_true(view_eq(spec_map_get(&t.env, keys[i]), values[i]));
		assert_true(view_eq(spec_map_get(&t.metadata, keys[i]), values[i]));
	}
	buf_done(&spec);
	buf_done(&meta);
}

/* As version 0.1 wrote it before there was a table, with all that it could have. */
static void test_row_of_older_version(void **state)
{
	static const char row[] =
		"{\"user\":\"u\",\"workdir\":\"/"
		"w\",\"env\":{\"A\":\"b\"},\"cpu_milli\":1500,\"memory_mb\":512,"
		"\"pids\":99,\"nofile\":100,\"disk_mb\":7,\"ttl_seconds\":60,\"idle_seconds\":5,\"on_end\":"
		"\"pause\","
		"\"auto_resume\":true,\"readonly_root\":true,\"no_sudo\":true,\"timezone\":\"UTC\","
		"\"require\":[\"cgroup.kill\"],\"snapshot\":\"s\",\"origin\":\"o\",\"workspaces\":[{\"name\":"
		"\"w\","
		"\"path\":\"/"
		"data\",\"mode\":\"ro\"}],\"secrets\":[{\"name\":\"k\",\"env\":\"K\",\"version\":3}],"
		"\"mounts\":[{\"source\":\"/srv/a\",\"path\":\"/"
		"a\",\"mode\":\"rw\"}],\"tied\":true,\"farewell\":true,"
		"\"ports_public\":true,\"mask_host\":\"h\",\"links\":[{\"id\":\"l1\",\"to\":\"b2\",\"port\":"
		"80,"
		"\"listen\":8080}],\"egress\":\"{\\\"default\\\":\\\"deny\\\",\\\"rules\\\":[{\\\"action\\\""
		":\\\"allow\\\",\\\"host\\\":\\\"example.org\\\"}],\\\"limits\\\":{\\\"connections\\\":0,"
		"\\\"connections_per_second\\\":0,\\\"bytes_per_second\\\":0,\\\"bytes\\\":0}}\",\"ai\":\"{}"
		"\",\"ai_"
		"token\":2,"
		"\"ai_token_ends_ms\":9}";
	static const char oldest[] = "{\"user\":\"u\",\"workdir\":\"/"
				     "\",\"cpu_milli\":10,\"memory_mb\":16,\"pids\":4,\"nofile\":32,"
				     "\"workspace\":\"mine\",\"workspace_readonly\":true,\"links\":null}";
	struct buf again = BUF_INIT(65536);
	struct box_spec s;
	struct err e = { 0 };

	if (spec_from_json(&arena, view_of(row), VIEW("{\"m\":\"n\"}"), &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(view_is(s.user, "u") && view_is(s.workdir, "/w") && view_is(s.timezone, "UTC"));
	assert_true(view_is(spec_map_get(&s.env, VIEW("A")), "b"));
	assert_true(view_is(spec_map_get(&s.metadata, VIEW("m")), "n"));
	assert_true(box_limits_equal(&s.limits, &(struct box_limits){ 1500, 512, 99, 100, 7 }));
	assert_int_equal(s.ttl_seconds, 60);
	assert_int_equal(s.idle_seconds, 5);
	assert_int_equal(s.on_end, SPEC_END_PAUSE);
	assert_true(s.auto_resume && s.readonly_root && s.no_sudo && s.tied && s.farewell && s.ports_public);
	assert_int_equal(s.require, FEATURE_BIT(FEATURE_CGROUP_KILL));
	assert_true(view_is(s.snapshot, "s") && view_is(s.origin, "o") && view_is(s.mask_host, "h"));
	assert_int_equal(s.workspaces.n, 1);
	assert_true(view_is(s.workspaces.items[0].path, "/data") && s.workspaces.items[0].readonly);
	assert_int_equal(s.secrets.n, 1);
	assert_true(view_is(s.secrets.items[0].env, "K") && s.secrets.items[0].version == 3);
	assert_int_equal(s.mounts.n, 1);
	assert_true(view_is(s.mounts.items[0].source, "/srv/a") && !s.mounts.items[0].readonly);
	assert_int_equal(s.n_links, 1);
	assert_true(s.links[0].port == 80 && s.links[0].listen == 8080);
	assert_string_equal(s.links[0].to, "b2");
	assert_non_null(s.egress);
	assert_int_equal(s.ai_token, 2);
	assert_int_equal(s.ai_token_ends_ms, 9);
	/* What is written has the same members and values, in whatever order. */
	struct json *before, *after;
	assert_int_equal(spec_to_json(&s, &again), 0);
	assert_int_equal(json_parse(&arena, view_of(row), &before, &e), 0);
	assert_int_equal(json_parse(&arena, buf_view(&again), &after, &e), 0);
	if (!json_value_equal(before, after))
		fail_msg("%.*s", VIEW_ARG(buf_view(&again)));
	buf_done(&again);

	if (spec_from_json(&arena, view_of(oldest), VIEW("{}"), &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(s.workspaces.n, 1);
	assert_true(view_is(s.workspaces.items[0].name, "mine") && s.workspaces.items[0].readonly);
	assert_true(view_is(s.workspaces.items[0].path, SPEC_WORKSPACE_PATH));
	assert_int_equal(s.on_end, SPEC_END_DELETE);
	assert_int_equal(s.n_links, 0);
	assert_null(s.egress);
}

static void test_rows_that_make_no_sense(void **state)
{
	static const char *const rows[][2] = {
		{ "", "{}" },
		{ "{}", "{}" },
		{ "[]", "{}" },
		{ "{\"user\":\"u\",\"workdir\":\"/"
		  "\",\"cpu_milli\":1,\"memory_mb\":1,\"pids\":1,\"nofile\":1}",
		  "[]" },
		{ "{\"user\":\"u\",\"workdir\":\"/"
		  "\",\"cpu_milli\":1,\"memory_mb\":1,\"pids\":1,\"nofile\":1}",
		  "{\"a\":1}" },
	};
	for (size_t i = 0; i < ELEMS(rows); i++) {
		struct box_spec s;
		struct err e = { 0 };
		assert_int_equal(spec_from_json(&arena, view_of(rows[i][0]), view_of(rows[i][1]), &s, &e),
				 -1);
		assert_int_not_equal(e.code, ERR_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_nothing_borrowed),
		cmocka_unit_test(test_limits_at_their_edges),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_users_and_places),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_ttl),
		cmocka_unit_test(test_json_and_back),
		cmocka_unit_test(test_row_of_older_version),
		cmocka_unit_test(test_rows_that_make_no_sense),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
