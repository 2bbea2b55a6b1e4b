/*
 * Who loses a connection when there are too many.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>

#include "gate.h"

#include "poison.h"

static struct box *add(struct gate *g, const char *id, const char *tenant, int flows)
{
	struct box *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->gate = g;
	assert_int_equal(view_to_str(view_of(id), b->id, sizeof(b->id)), 0);
	assert_int_equal(map_put(&g->boxes, &b->node, view_of(b->id)), 0);
	box_flows(b, flows); /* they are there before the tenant is known, or after */
	assert_int_equal(box_set_tenant(b, view_of(tenant)), 0);
	return b;
}

static void the_tenant_with_most(void **state)
{
	struct gate *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	map_init(&g->boxes);
	map_init(&g->tenants);
	struct box *one = add(g, "one", "few", 150), *two = add(g, "two", "many", 100), *three = add(g, "three", "many", 120),
		   *four = add(g, "four", "", 110), *five = add(g, "five", "few", 1);

	assert_int_equal(g->n_flows, 481);
	assert_ptr_equal(box_most(one), three); /* 220 of "many", in spite of the 150 of one box */
	assert_ptr_equal(box_most(five), three);
	assert_ptr_equal(box_most(two), three);
	assert_ptr_equal(box_most(three), three);
	assert_ptr_equal(box_most(four), three);
	box_flows(three, -100);
	assert_ptr_equal(box_most(five), one); /* 151 of "few", 120 of "many" */
	assert_ptr_equal(box_most(one), one);
	box_flows(one, -100);
	box_flows(two, -80);
	assert_ptr_equal(box_most(one), four); /* a box of nobody counts by itself */
	assert_int_equal(box_set_tenant(four, view_of("many")), 0);
	assert_int_equal(four->tenant->n_flows, 150);
	assert_int_equal(box_set_tenant(four, view_of("few")), 0);
	assert_int_equal(two->tenant->n_flows, 40);
	assert_int_equal(one->tenant->n_flows, 161);
	assert_int_equal(box_set_tenant(two, view_of("few")), 0);
	assert_int_equal(box_set_tenant(three, view_of("few")), 0);
	assert_int_equal(g->tenants.n, 1); /* nobody is left in "many" */
	assert_int_equal(one->tenant->n_boxes, 5);
	free(two);
	free(three);
	free(four);
	free(five);
	free(one->tenant);
	free(one);
	map_done(&g->boxes);
	map_done(&g->tenants);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_tenant_with_most) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
