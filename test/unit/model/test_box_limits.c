/*
 * The list of limits: whatever is made of it has every limit in it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "box_limits.h"
#include "wire_gen.h"
#include "poison.h"

static const struct box_limits sample = {
	.cpu_milli = 1500, .memory_mb = 512, .pids = 99, .nofile = 1000, .disk_mb = 7
};
static const struct box_limits_wish standard = {
	.cpu = 1, .memory_mb = 256, .pids = 64, .nofile = 128, .disk_mb = 5
};
static const struct box_limits_wish most = {
	.cpu = 2, .memory_mb = 4096, .pids = 1000, .nofile = 4096, .disk_mb = 100
};

static void other(struct box_limits *l, enum box_limit i)
{
	void *at = (char *)l + box_limits_rows[i].at;

	if (box_limits_rows[i].kind == BOX_LIMIT_CPU)
		++*(uint32_t *)at;
	else
		++*(uint64_t *)at;
}

/* Each limit alone makes a difference, and passes through each form unchanged. */
static void test_each(void **state)
{
	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		struct box_limits changed = sample, back;
		struct box_limits_wish w, again;
		struct wire_limits m;
		uint64_t disk;

		other(&changed, i);
		if (box_limits_equal(&sample, &changed))
			fail_msg("%s makes no difference", box_limits_rows[i].name);
		box_limits_to_wire(&changed, &m, &disk);
		assert_int_equal(box_limits_from_wire(&m, disk, &back), 0);
		assert_true(box_limits_equal(&back, &changed));
		box_limits_to_wish(&changed, &w);
		box_limits_of(&w, &back);
		assert_true(box_limits_equal(&back, &changed));

		box_limits_to_wish(&sample, &again);
		box_limits_override(&again, &w);
		box_limits_of(&again, &back);
		assert_true(box_limits_equal(&back, &changed));
	}
}

static void test_json(void **state)
{
	struct box_limits none = sample;
	struct buf b = BUF_INIT(1024);
	struct json_out o;

	json_out_init(&o, &b);
	json_write(&o, &box_limits_schema, &sample);
	assert_true(view_is(buf_view(&b), "{\"cpu\":1.5,\"memory_mb\":512,\"pids\":99,\"nofile\":1000,"
					  "\"disk_mb\":7}"));
	buf_clear(&b);
	none.disk_mb = 0;
	json_out_init(&o, &b);
	json_write(&o, &box_limits_schema, &none);
	assert_true(view_is(buf_view(&b), "{\"cpu\":1.5,\"memory_mb\":512,\"pids\":99,\"nofile\":1000}"));
	buf_clear(&b);
	json_out_init(&o, &b);
	json_write(&o, &box_limits_set_schema, &(struct box_limits_wish){ .pids = 3 });
	assert_true(view_is(buf_view(&b), "{\"pids\":3}"));
	buf_done(&b);
}

static void refused(const struct box_limits_wish *w, const char *message)
{
	struct box_limits l;
	struct err e = { 0 };

	assert_int_equal(box_limits_take(w, &standard, &most, &l, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.msg, message);
}

static void test_take(void **state)
{
	struct box_limits l;
	struct err e = { 0 };

	assert_int_equal(box_limits_take(&(struct box_limits_wish){ 0 }, &standard, &most, &l, &e), 0);
	assert_true(box_limits_equal(&l, &(struct box_limits){ 1000, 256, 64, 128, 5 }));
	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		const struct box_limit_row *r = &box_limits_rows[i];
		struct box_limits_wish w = { 0 };

		*(bool *)((char *)&w + r->has) = true;
		if (r->kind == BOX_LIMIT_CPU)
			w.cpu = r->min;
		else
			*(uint64_t *)(void *)((char *)&w + r->wished) = (uint64_t)r->min;
		assert_int_equal(box_limits_take(&w, &standard, &most, &l, &e), 0);
		assert_int_equal(box_limits_get(&l, i), box_limits_min(i));
	}
	refused(&(struct box_limits_wish){ .cpu = 0.0099, .has_cpu = true },
		"limits.cpu must be between 0.01 and 2");
	refused(&(struct box_limits_wish){ .cpu = 2.0004, .has_cpu = true },
		"limits.cpu must be between 0.01 and 2");
	refused(&(struct box_limits_wish){ .memory_mb = 15, .has_memory_mb = true },
		"limits.memory_mb must be between 16 and 4096");
	refused(&(struct box_limits_wish){ .pids = UINT64_MAX, .has_pids = true },
		"limits.pids must be between 4 and 1000");
	refused(&(struct box_limits_wish){ .nofile = 31, .has_nofile = true },
		"limits.nofile must be between 32 and 4096");
	refused(&(struct box_limits_wish){ .disk_mb = 0, .has_disk_mb = true },
		"limits.disk_mb must be between 1 and 100");
}

static void test_fit(void **state)
{
	const struct box_limits_wish low = { .cpu = 0.5, .memory_mb = 16, .pids = 4, .nofile = 32 };

	for (unsigned i = 0; i < BOX_LIMITS; i++) {
		struct box_limits_wish s = standard;
		struct box_limits a, b;
		bool judged = box_limits_rows[i].kind != BOX_LIMIT_DISK;

		assert_int_equal(box_limits_fit(i, &s, &low, true), !judged);
		assert_true(box_limits_fit(i, &s, &low, false));
		box_limits_of(&s, &a);
		box_limits_of(judged ? &low : &standard, &b);
		assert_int_equal(box_limits_get(&a, i), box_limits_get(&b, i));
	}
}

static void test_change(void **state)
{
	struct err e = { 0 };

	assert_int_equal(box_limits_check_change(&(struct box_limits_wish){ .has_cpu = true,
									    .has_memory_mb = true,
									    .has_pids = true,
									    .has_disk_mb = true },
						 &e),
			 0);
	assert_int_equal(box_limits_check_change(&(struct box_limits_wish){ .has_nofile = true }, &e), -1);
	assert_string_equal(e.msg, "limits.nofile cannot be changed: processes have it from their start");
}

/* What cannot be kept as it is said is refused, not rounded. */
static void test_wire_in_whole_mib(void **state)
{
	struct box_limits l;
	struct wire_limits m;
	uint64_t disk;

	box_limits_to_wire(&sample, &m, &disk);
	assert_int_equal(m.memory_bytes, 512u << 20);
	assert_int_equal(disk, 7u << 20);
	assert_int_equal(box_limits_from_wire(NULL, disk, &l), -EINVAL);
	assert_int_equal(box_limits_from_wire(&m, disk + 1, &l), -EINVAL);
	m.memory_bytes--;
	assert_int_equal(box_limits_from_wire(&m, disk, &l), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),   cmocka_unit_test(test_json),
		cmocka_unit_test(test_take),   cmocka_unit_test(test_fit),
		cmocka_unit_test(test_change), cmocka_unit_test(test_wire_in_whole_mib),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
