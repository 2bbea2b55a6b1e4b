/*
 * The ring against a plain array: whatever is appended, dropped and skipped, the
 * bytes at an offset are those that were written there, and none from the
 * floor on is overwritten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ring.h"
#include "rnd.h"
#include "poison.h"

static char byte_at(uint64_t offset)
{
	return (char)(offset * 2654435761u >> 24);
}

/* As much as fits in one piece, at most n. */
static size_t append(struct ring *r, uint64_t floor, size_t n)
{
	size_t room = 0;
	char *p = ring_reserve(r, floor, &room);
	if (!p)
		return 0;
	n = MIN(n, room);
	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(r->end + i);
	ring_commit(r, n);
	return n;
}

static void check(const struct ring *r, uint64_t from)
{
	uint64_t at = from;
	while (at < r->end) {
		struct view v = ring_peek(r, at);
		assert_true(v.n > 0);
		for (size_t i = 0; i < v.n; i++)
			assert_int_equal(v.p[i], byte_at(at + i));
		at += v.n;
	}
	assert_int_equal(at, r->end);
	assert_int_equal(ring_peek(r, r->end).n, 0);
}

static void test_costs_nothing_when_empty(void **state)
{
	(void)state;
	struct ring r;
	ring_init(&r, 4096);
	assert_null(r.p);
	assert_int_equal(ring_room(&r, 0), 4096);
	assert_int_equal(append(&r, 0, 100), 100);
	assert_non_null(r.p);
	ring_forget(&r);
	assert_null(r.p);
	assert_int_equal(r.begin, 100);
	assert_int_equal(r.end, 100);
	assert_int_equal(append(&r, 0, 5000), 4096);
	check(&r, 100);
	ring_forget(&r);
}

static void test_floor(void **state)
{
	(void)state;
	struct ring r;
	ring_init(&r, 4096);
	assert_int_equal(append(&r, 0, 4096), 4096);
	assert_int_equal(append(&r, 0, 1), 0);
	assert_int_equal(ring_room(&r, 1000), 1000);
	assert_int_equal(append(&r, 1000, 4096), 1000);
	assert_int_equal(r.begin, 1000);
	check(&r, 1000);
	/* Nobody needs anything: all of it may go, but only what must goes. */
	assert_int_equal(append(&r, UINT64_MAX, 10), 10);
	assert_int_equal(r.begin, 1010);
	check(&r, 1010);
	ring_skip(&r, 77);
	assert_int_equal(r.begin, r.end);
	assert_int_equal(r.end, 5106 + 77);
	ring_forget(&r);
}

static void test_random(void **state)
{
	(void)state;
	struct ring r;
	uint32_t dice[3];
	uint64_t floor = 0;
	ring_init(&r, 8192);
	for (int i = 0; i < 5000; i++) {
		rnd_bytes(dice, sizeof(dice));
		uint64_t end = r.end, room = ring_room(&r, floor);
		size_t n = append(&r, floor, dice[0] % 9000);
		assert_true(n <= room);
		assert_int_equal(r.end, end + n);
		assert_true(r.begin <= floor || r.begin == r.end);
		assert_true(r.end - r.begin <= r.size);
		floor = MAX(floor, r.begin) + dice[1] % (r.end - MAX(floor, r.begin) + 1);
		if (dice[2] % 4 == 0)
			ring_drop(&r, floor);
		check(&r, r.begin);
	}
	assert_true(r.end > 1000000);
	ring_forget(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs_nothing_when_empty),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests_name("init_ring", tests, NULL, NULL);
}
