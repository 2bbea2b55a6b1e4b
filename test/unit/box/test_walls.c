/*
 * The table of walls: kinds are found by name, what a kind leaves out is refused, and what the machine
 * cannot give is no error but a posture.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sample_walls.h"
#include "poison.h"

static const struct walls_setup setup = { .parts = 3, .run = -1 };

static void test_table(void **state)
{
	struct walls_table t = { 0 };
	struct err e = { 0 };
	assert_null(walls_find(&t, VIEW("sample"), &e));
	assert_int_equal(walls_add(&t, &sample_walls, &setup, &e), 0);
	struct walls *w = walls_find(&t, VIEW("sample"), &e);
	assert_non_null(w);
	assert_string_equal(w->posture.parts[0].detail, "3 made ahead");
	/* Never the first by chance: no name, half of one, and more than one. */
	static const char *const bad[] = { "", "samp", "samples", "native", "sample\n" };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		assert_null(walls_find(&t, view_of(bad[i]), &e));
		assert_int_equal(e.code, ERR_INVALID);
		assert_string_equal(e.msg, "backend must be one of: sample");
	}
	while (t.n < WALLS_KINDS)
		assert_int_equal(walls_add(&t, &sample_walls, &setup, &e), 0);
	assert_int_equal(walls_add(&t, &sample_walls, &setup, &e), -1);
	walls_close(&t, true);
	assert_int_equal(t.n, 0);
}

static void test_box(void **state)
{
	struct walls_table t = { 0 };
	struct err e = { 0 };
	struct netns_gate gate = NETNS_GATE_NONE;
	assert_int_equal(walls_add(&t, &sample_walls, &setup, &e), 0);
	struct walls *w = t.all[0];
	struct walls_box b = { .walls = w, .id = "0123456789abcdefghij", .pidfd = -1 };
	assert_int_equal(walls_usable(w, &e), 0);
	assert_int_equal(w->ops->start(w, &(struct walls_start){ 0 }, &b, &gate, &e), -1);
	assert_int_equal(e.code, ERR_UNSUPPORTED);
	/* What it does not have is refused, or nothing. */
	struct walls_usage u = { .pids = 7 };
	assert_int_equal(walls_freeze(&b, true, 10), -EOPNOTSUPP);
	assert_false(walls_frozen(&b));
	assert_int_equal(walls_gate(&b, NETNS_PROXY, &gate), -EOPNOTSUPP);
	assert_int_equal(walls_snapshot(&b, -1, &e), 0);
	assert_int_equal(walls_usage(&b, &u), 0);
	assert_int_equal(u.pids, 0);
	posture_add(&w->posture, "sample.kernel", false, true, "none");
	assert_int_equal(walls_usable(w, &e), -1);
	assert_int_equal(e.code, ERR_WALLS);
	assert_non_null(strstr(e.msg, "sample.kernel: none"));
	walls_close(&t, false);
}

static int refuse_setup(struct walls *w, const struct walls_setup *s, struct err *e)
{
	return err_set(e, ERR_INVALID, "not this");
}

static void test_refused(void **state)
{
	struct walls_table t = { 0 };
	struct err e = { 0 };
	struct walls_ops ops = sample_walls;
	ops.probe = refuse_setup;
	assert_int_equal(walls_add(&t, &ops, &setup, &e), -1);
	assert_int_equal(t.n, 0);
	ops = sample_walls;
	ops.open = refuse_setup;
	assert_int_equal(walls_add(&t, &ops, &setup, &e), -1);
	walls_close(&t, true); /* what was half open */
	assert_int_equal(t.n, 0);
}

/* Clients know these. */
static void test_names(void **state)
{
	struct buf text = BUF_INIT(256);
	for (unsigned i = 0; i < WALLS_CANS; i++)
		if ((WALLS_OWN_KERNEL | WALLS_MEMORY_SNAPSHOTS | WALLS_PAUSE | WALLS_SNAPSHOTS) & 1u << i)
			buf_printf(&text, "%s ", walls_can_name(i));
	assert_true(view_is(buf_view(&text), "memory_snapshots own_kernel pause snapshots "));
	assert_string_equal(walls_can_name(0), "capture");
	assert_string_equal(walls_can_name(1), "disk_quota");
	assert_string_equal(walls_can_name(2), "foreign_snapshots");
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_box),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
