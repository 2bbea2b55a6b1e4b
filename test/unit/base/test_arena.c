/*
 * Arenas: zeroed, aligned, bounded, reusable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena.h"
#include "poison.h"

static bool is_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void test_alloc(void **state)
{
	struct arena a = ARENA_INIT(8u << 20);
	char *all[600];
	for (size_t n = 0; n < ELEMS(all); n++) {
		all[n] = arena_alloc(&a, n * 7);
		assert_non_null(all[n]);
		assert_int_equal((uintptr_t)all[n] % _Alignof(max_align_t), 0);
		assert_true(is_zero(all[n], n * 7));
		memset(all[n], (int)n, n * 7);
	}
	/* None has overwritten another. */
	for (size_t n = 0; n < ELEMS(all); n++)
		for (size_t i = 0; i < n * 7; i++)
			assert_int_equal((unsigned char)all[n][i], (unsigned char)n);
	/* Larger than any block. */
	char *big = arena_alloc(&a, 1u << 20);
	assert_non_null(big);
	assert_true(is_zero(big, 1u << 20));
	arena_done(&a);
	assert_int_equal(a.used, 0);
	assert_non_null(arena_alloc(&a, 1)); /* usable again */
	arena_done(&a);
	arena_done(NULL);
}

static void test_max(void **state)
{
	struct arena a;
	arena_init(&a, 4096);
	assert_null(arena_alloc(&a, 4097));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 7));
	assert_int_equal(a.used, 0);
	unsigned n = 0;
	while (arena_alloc(&a, 16))
		n++;
	assert_int_equal(n, 4096 / 16);
	assert_null(arena_alloc(&a, 1));
	assert_true(a.used <= a.max);
	arena_reset(&a);
	assert_int_equal(a.used, 0);
	char *p = arena_alloc(&a, 4096);
	assert_non_null(p);
	arena_done(&a);

	/* Without a maximum there is nothing, not everything. */
	struct arena none = { 0 };
	assert_null(arena_alloc(&none, 1));
}

static void test_reset(void **state)
{
	struct arena a = ARENA_INIT(1u << 20);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 100; i++) {
			char *p = arena_alloc(&a, 1000);
			assert_non_null(p);
			assert_true(is_zero(p, 1000)); /* what a round before left there is gone */
			memset(p, 0xaa, 1000);
		}
		arena_reset(&a);
	}
	arena_done(&a);
	arena_reset(&a); /* of an empty one */
}

static void test_copies(void **state)
{
	struct arena a = ARENA_INIT(1024);
	char text[] = "abc";
	char *s = arena_str(&a, view_of(text));
	struct view v = arena_view(&a, (struct view){ text, 2 });
	text[0] = 'x';
	assert_string_equal(s, "abc");
	assert_true(view_is(v, "ab"));
	assert_non_null(arena_view(&a, VIEW_NONE).p);
	assert_string_equal(arena_str(&a, VIEW_NONE), "");
	assert_null(arena_view(&a, (struct view){ text, 5000 }).p); /* refused before it is read */
	assert_null(arena_str(&a, (struct view){ text, SIZE_MAX }));

	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_null(arena_array(&a, 1u << 16, 1u << 16));
	assert_non_null(arena_array(&a, 0, 8));
	assert_non_null(arena_array(&a, 4, 8));
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_max),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
