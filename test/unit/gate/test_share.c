/*
 * Who loses a connection when there are too many.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "share.h"

#include "poison.h"

static void the_tenant_with_most(void **state)
{
	struct map tenants;
	struct share one = { 0 }, two = { 0 }, three = { 0 }, four = { 0 };

	map_init(&tenants);
	share_flows(&one, 150); /* before its tenant is known */
	assert_int_equal(share_join(&tenants, &one, VIEW("few")), 0);
	assert_int_equal(share_join(&tenants, &two, VIEW("many")), 0);
	assert_int_equal(share_join(&tenants, &three, VIEW("many")), 0);
	share_flows(&two, 100);
	share_flows(&three, 120);
	share_flows(&four, 160);
	assert_true(share_is_more(&three, &one) &&
		    share_is_more(&two, &one)); /* 220 together, in spite of the 150 of one box */
	assert_true(share_is_more(&three, &two) && !share_is_more(&two, &three));
	assert_true(share_is_more(&two, &four) &&
		    share_is_more(&four, &one)); /* a box of nobody counts by itself */
	assert_false(share_is_more(&one, &one) || share_is_more(&one, &three));
	share_flows(&three, -100);
	assert_true(share_is_more(&one, &two) && share_is_more(&one, &three));
	share_leave(&tenants, &one);
	share_leave(&tenants, &two);
	share_leave(&tenants, &three);
	assert_int_equal(tenants.n, 0);
	map_done(&tenants);
}

static void moving(void **state)
{
	struct map tenants;
	struct share one = { 0 }, two = { 0 };
	char name[80];

	map_init(&tenants);
	share_flows(&one, 3);
	share_flows(&two, 5);
	assert_int_equal(share_join(&tenants, &one, VIEW("a")), 0);
	assert_int_equal(share_join(&tenants, &two, VIEW("b")), 0);
	assert_int_equal(share_join(&tenants, &one, VIEW("")), 0);
	assert_string_equal(one.tenant->id, "a");
	assert_int_equal(share_join(&tenants, &one, VIEW("b")), 0);
	assert_int_equal(share_join(&tenants, &one, VIEW("b")), 0);
	assert_int_equal(tenants.n, 1); /* nobody is left in "a" */
	assert_ptr_equal(one.tenant, two.tenant);
	assert_int_equal(one.tenant->n_flows, 8);
	assert_int_equal(one.tenant->n_boxes, 2);
	memset(name, 'x', sizeof(name));
	assert_int_equal(share_join(&tenants, &one, (struct view){ name, sizeof(name) }), -ENAMETOOLONG);
	share_leave(&tenants, &one);
	assert_int_equal(two.tenant->n_flows, 5);
	share_leave(&tenants, &two);
	share_leave(&tenants, &two);
	assert_int_equal(tenants.n, 0);
	map_done(&tenants);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_tenant_with_most),
					    cmocka_unit_test(moving) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
