/*
 * The posture: one required part that fails makes the whole fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "landlock.h"
#include "posture.h"
#include "poison.h"

static void test_add(void **state)
{
	struct posture p = { .ok = true };
	posture_add(&p, "a", true, true, "fine");
	posture_add(&p, "b", false, false, "not needed");
	assert_true(p.ok);
	posture_add(&p, "c", false, true, "%s", "missing");
	assert_false(p.ok);
	posture_add(&p, "d", true, true, "fine"); /* does not make it good again */
	assert_false(p.ok);
	assert_string_equal(p.parts[2].detail, "missing");
	/* Details are cut, and there is an end to the parts; a failure past it still counts. */
	char text[400];
	memset(text, 'x', sizeof(text));
	p = (struct posture){ .ok = true };
	for (unsigned i = 0; i < POSTURE_PARTS; i++)
		posture_add(&p, "n", true, true, "%.*s", 399, text);
	assert_int_equal(strlen(p.parts[0].detail), sizeof(p.parts[0].detail) - 1);
	assert_true(p.ok);
	posture_add(&p, "last", false, true, "x");
	assert_int_equal(p.n, POSTURE_PARTS);
	assert_false(p.ok);
}

static const struct posture_part *part(const struct posture *p, const char *name)
{
	for (unsigned i = 0; i < p->n; i++)
		if (strcmp(p->parts[i].name, name) == 0)
			return &p->parts[i];
	fail_msg("no part %s", name);
	return NULL;
}

static void test_probe(void **state)
{
	/* Controllers that are nowhere: said so, each with its reason. */
	struct cgroup_host none = { .unified = -1 };
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		snprintf(none.why[c], sizeof(none.why[c]), "reason %u", c);
	struct posture p;
	posture_probe(&p, &none, 0);
	assert_false(p.ok);
	assert_true(p.n < POSTURE_PARTS);
	static const char *const limits[] = { "limit.memory", "limit.cpu", "limit.pids" };
	for (unsigned i = 0; i < 3; i++) {
		char want[16];
		snprintf(want, sizeof(want), "reason %u", i);
		assert_false(part(&p, limits[i])->ok);
		assert_true(part(&p, limits[i])->required);
		assert_string_equal(part(&p, limits[i])->detail, want);
	}
	assert_false(part(&p, "limit.swap")->ok);
	assert_false(part(&p, "cgroup.kill")->required);
	assert_int_equal(part(&p, "root")->ok, geteuid() == 0);
	static const char *const walls[] = { "namespace.user",   "namespace.pid", "namespace.mount",
					     "namespace.net",    "namespace.ipc", "namespace.uts",
					     "namespace.cgroup", "landlock",      "seccomp" };
	for (size_t i = 0; i < ELEMS(walls); i++)
		assert_true(part(&p, walls[i])->required);
	for (unsigned i = 0; i < p.n; i++)
		assert_true(strlen(p.parts[i].detail) > 0);

	if (geteuid() != 0) {
		print_message("# the rest needs root\n");
		skip();
	}
	/* Probing leaves this process where it was. */
	struct cgroup_host h;
	struct err e = { 0 };
	char instance[32], before[64] = "", after[64] = "";
	snprintf(instance, sizeof(instance), "posture-%d", getpid());
	assert_true(readlink("/proc/self/ns/mnt", before, sizeof(before) - 1) > 0);
	assert_int_equal(cgroup_open(&h, "paddock-test", instance, &e), 0);
	posture_probe(&p, &h, 0);
	assert_true(readlink("/proc/self/ns/mnt", after, sizeof(after) - 1) > 0);
	assert_string_equal(before, after);
	for (unsigned c = 0; c < 3; c++)
		assert_int_equal(part(&p, limits[c])->ok, !h.why[c][0]);
	cgroup_close(&h);
}

static void test_features(void **state)
{
	/* Names are the API's: unique, found, and none else. */
	for (unsigned f = 0; f < FEATURES; f++) {
		const struct feature_text *t = &feature_texts[f];
		assert_true(strlen(t->gives) > 0 && strlen(t->lacks) > 0 && strlen(t->needs) > 0);
		assert_int_equal(feature_named(view_of(t->name)), f);
	}
	assert_int_equal(feature_named(VIEW("landlock")), FEATURES);
	assert_int_equal(feature_named(VIEW("")), FEATURES);

	/* There, not there, there but left out. */
	struct posture p = { .ok = true };
	struct err e = { 0 };
	posture_feature(&p, FEATURE_FREEZER, true, 0, NULL);
	posture_feature(&p, FEATURE_LANDLOCK_SCOPES, false, 0, NULL);
	posture_feature(&p, FEATURE_CGROUP_KILL, true, FEATURE_BIT(FEATURE_CGROUP_KILL), NULL);
	assert_true(p.ok); /* none of them is needed by itself */
	assert_int_equal(p.features, FEATURE_BIT(FEATURE_FREEZER));
	assert_non_null(strstr(part(&p, "landlock.scopes")->detail, "needs Linux 6.12"));
	assert_non_null(strstr(part(&p, "cgroup.kill")->detail, "posture.without"));
	assert_false(part(&p, "cgroup.kill")->ok);

	assert_int_equal(posture_require(&p, 0, &e), 0);
	assert_int_equal(posture_require(&p, FEATURE_BIT(FEATURE_FREEZER), &e), 0);
	assert_true(posture_require(&p, FEATURE_BIT(FEATURE_FREEZER) | FEATURE_BIT(FEATURE_LANDLOCK_SCOPES),
				    &e) < 0);
	assert_int_equal(e.code, ERR_WALLS);
	assert_non_null(strstr(e.msg, "landlock.scopes is required"));
	assert_non_null(strstr(e.msg, "6.12"));
	/* One that was never looked at is not there. */
	assert_true(posture_require(&p, FEATURE_BIT(FEATURE_DISK_QUOTA), &e) < 0);
}

static void test_without(void **state)
{
	struct cgroup_host none = { .unified = -1 };
	struct posture p, less;
	uint32_t without = FEATURE_BIT(FEATURE_LANDLOCK_SCOPES) | FEATURE_BIT(FEATURE_LANDLOCK_TRUNCATE);
	posture_probe(&p, &none, 0);
	posture_probe(&less, &none, without);
	assert_int_equal(less.features, p.features & ~without);
	assert_int_equal(posture_landlock(0), LANDLOCK_PARTS);
	assert_int_equal(posture_landlock(without), LANDLOCK_IOCTL_DEV);
}

static void test_privilege(void **state)
{
	static const char all[] = "         0          0 4294967295\n",
			  part_of[] = "         0     100000      65536\n";
	struct err e = { 0 };
	assert_int_equal(posture_judge(view_of(all), 0, ~0ull, &e), 0);
	assert_int_equal(posture_judge(view_of(all), 0, POSTURE_CAPS, &e), 0);
	assert_true(posture_judge(view_of(all), 1000, ~0ull, &e) < 0);
	assert_non_null(strstr(e.msg, "must run as root"));
	assert_true(posture_judge(view_of(part_of), 0, ~0ull, &e) < 0);
	assert_non_null(strstr(e.msg, "user namespace"));
	assert_true(posture_judge(VIEW(""), 0, ~0ull, &e) < 0);
	/* A container's usual set: every capability that is missing is named. */
	assert_true(posture_judge(view_of(all), 0, 0xa80425fbull, &e) < 0);
	assert_non_null(strstr(e.msg, "sys_admin, net_admin"));
	assert_non_null(strstr(e.msg, "privileged container"));
	for (unsigned c = 0; c < 64; c++)
		if (POSTURE_CAPS & 1ull << c)
			assert_true(posture_judge(view_of(all), 0, ~(1ull << c), &e) < 0);
}

static void test_lsm(void **state)
{
	static const struct {
		struct posture_lsm in;
		const char *name, *says;
	} cases[] = {
		{ { VIEW(""), VIEW(""), VIEW(""), VIEW("") }, "lsm", "neither" },
		{ { VIEW("1"), VIEW(""), VIEW(""), VIEW("system_u:system_r:init_t:s0\0") },
		  "selinux",
		  "enforcing: sandboxes run in paddockd's domain (system_u:system_r:init_t:s0)" },
		{ { VIEW("0"), VIEW(""), VIEW(""), VIEW("kernel") }, "selinux", "permissive" },
		{ { VIEW(""), VIEW("Y\n"), VIEW("unconfined\n"), VIEW("") }, "apparmor", "not confined" },
		{ { VIEW(""), VIEW("Y\n"), VIEW(""), VIEW("docker-default (enforce)\n") },
		  "apparmor",
		  "profile docker-default (enforce)" },
		{ { VIEW(""), VIEW("Y\n"), VIEW("mine (complain)\n"), VIEW("") },
		  "apparmor",
		  "not confined" },
		{ { VIEW(""), VIEW("N\n"), VIEW(""), VIEW("") }, "lsm", "neither" },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct posture p = { .ok = true };
		posture_judge_lsm(&p, &cases[i].in);
		assert_int_equal(p.n, 1);
		assert_true(p.ok);
		assert_non_null(strstr(part(&p, cases[i].name)->detail, cases[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_add),       cmocka_unit_test(test_probe),
					    cmocka_unit_test(test_features),  cmocka_unit_test(test_without),
					    cmocka_unit_test(test_privilege), cmocka_unit_test(test_lsm) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
