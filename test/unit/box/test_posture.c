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
	posture_probe(&p, &none);
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
					     "namespace.cgroup", "landlock",      "seccomp",
					     "overlay" };
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
	posture_probe(&p, &h);
	assert_true(readlink("/proc/self/ns/mnt", after, sizeof(after) - 1) > 0);
	assert_string_equal(before, after);
	for (unsigned c = 0; c < 3; c++)
		assert_int_equal(part(&p, limits[c])->ok, !h.why[c][0]);
	cgroup_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_add), cmocka_unit_test(test_probe) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
