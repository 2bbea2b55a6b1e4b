/*
 * The hash map: many keys, keys with any bytes, deleting while walking.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "map.h"
#include "poison.h"

#define MANY 10000

struct thing {
	struct map_node node;
	char key[24];
	unsigned seen;
};

static struct thing *make(struct map *m)
{
	struct thing *t = calloc(MANY, sizeof(*t));
	assert_non_null(t);
	for (int i = 0; i < MANY; i++) {
		snprintf(t[i].key, sizeof(t[i].key), "key-%d", i);
		assert_int_equal(map_put(m, &t[i].node, view_of(t[i].key)), 0);
	}
	return t;
}

static void test_many(void **state)
{
	struct map m;
	map_init(&m);
	assert_null(map_get(&m, VIEW("key-1")));
	assert_null(map_first(&m));
	struct thing *t = make(&m);
	assert_int_equal(m.n, MANY);
	assert_true(m.n_slots >= MANY); /* so that chains stay short */
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(&m, view_of(t[i].key)), &t[i].node);
	struct map_node again;
	assert_int_equal(map_put(&m, &again, VIEW("key-77")), -EEXIST);
	assert_int_equal(m.n, MANY);
	assert_null(map_get(&m, VIEW("key-10000")));
	assert_null(map_get(&m, VIEW_NONE));
	/* No chain is long: the hash spreads. */
	for (size_t i = 0; i < m.n_slots; i++) {
		unsigned chain = 0;
		for (struct map_node *n = m.slots[i]; n; n = n->next)
			chain++;
		assert_true(chain < 12);
	}
	for (int i = 0; i < MANY; i += 2)
		map_del(&m, &t[i].node);
	map_del(&m, &t[0].node); /* again: harmless */
	assert_int_equal(m.n, MANY / 2);
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(map_get(&m, view_of(t[i].key)), i % 2 ? &t[i].node : NULL);
	map_done(&m);
	assert_null(map_get(&m, VIEW("key-1")));
	assert_null(map_first(&m));
	map_del(&m, &t[1].node);
	free(t);
}

static void test_walk(void **state)
{
	struct map m;
	map_init(&m);
	struct thing *t = make(&m);
	for (struct map_node *n = map_first(&m); n; n = map_next(&m, n))
		CONTAINER(n, struct thing, node)->seen++;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(t[i].seen, 1);
	/* The next one is taken before the one at hand is deleted (and may be freed). */
	unsigned seen = 0;
	for (struct map_node *n = map_first(&m), *next; n; n = next) {
		next = map_next(&m, n);
		if (CONTAINER(n, struct thing, node)->key[4] != '7') {
			map_del(&m, n);
			memset(n, 0xff, sizeof(*n));
		}
		seen++;
	}
	assert_int_equal(seen, MANY);
	assert_int_equal(m.n, 1111); /* 7, 7x, 7xx, 7xxx */
	for (struct map_node *n = map_first(&m), *next; n; n = next) {
		next = map_next(&m, n);
		map_del(&m, n);
	}
	assert_int_equal(m.n, 0);
	assert_null(map_first(&m));
	map_done(&m);
	free(t);
}

static void test_any_bytes(void **state)
{
	struct map m;
	map_init(&m);
	struct map_node a, b, c;
	assert_int_equal(map_put(&m, &a, VIEW_NONE), 0);
	assert_int_equal(map_put(&m, &b, VIEW("x\0")), 0);
	assert_int_equal(map_put(&m, &c, VIEW("x")), 0);
	assert_ptr_equal(map_get(&m, VIEW("")), &a);
	assert_ptr_equal(map_get(&m, VIEW("x\0")), &b);
	assert_ptr_equal(map_get(&m, VIEW("x")), &c);
	map_done(&m);
}

/* Names come from outside: where they fall must not be known ahead. */
static void test_seed(void **state)
{
	struct map a, b;
	struct map_node x, y;
	map_init(&a);
	map_init(&b);
	assert_int_equal(map_put(&a, &x, VIEW("name")), 0);
	assert_int_equal(map_put(&b, &y, VIEW("name")), 0);
	assert_true(x.hash != y.hash);
	map_done(&a);
	map_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_seed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
