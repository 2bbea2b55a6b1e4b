/*
 * What paddock-ai may have: what was lent, once, for a while.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tickets.h"

#include "poison.h"

static const struct tickets_what what = { VIEW("t"), VIEW("box1"), VIEW("KEY"), VIEW("api.example.com") };

static struct view id_of(const char id[TICKETS_ID])
{
	return (struct view){ id, TICKETS_ID };
}

static void test_once(void **state)
{
	struct tickets t;
	char one[TICKETS_ID], two[TICKETS_ID];

	tickets_init(&t);
	assert_int_equal(tickets_add(&t, &what, 1000, one), 0);
	assert_int_equal(tickets_add(&t, &what, 1000, two), 0);
	assert_memory_not_equal(one, two, TICKETS_ID);
	struct ticket *got = tickets_take(&t, id_of(one), 1001);
	assert_non_null(got);
	assert_true(view_eq(got->what.tenant, what.tenant) && view_eq(got->what.box, what.box));
	assert_true(view_eq(got->what.secret, what.secret) && view_eq(got->what.host, what.host));
	tickets_free(got);
	assert_null(tickets_take(&t, id_of(one), 1001));
	assert_null(tickets_take(&t, VIEW(""), 1001));
	assert_null(tickets_take(&t, (struct view){ two, TICKETS_ID - 1 }, 1001));
	two[TICKETS_ID - 1] ^= 1;
	assert_null(tickets_take(&t, id_of(two), 1001));
	two[TICKETS_ID - 1] ^= 1;
	got = tickets_take(&t, id_of(two), 1001);
	assert_non_null(got);
	tickets_free(got);
	assert_int_equal(t.n, 0);
	tickets_done(&t);
}

static void test_time_and_number(void **state)
{
	struct tickets t;
	char id[TICKETS_ID], last[TICKETS_ID];

	tickets_init(&t);
	assert_int_equal(tickets_add(&t, &what, 1000, id), 0);
	assert_null(tickets_take(&t, id_of(id), 1000 + TICKETS_MS));
	for (int i = 0; i < TICKETS_MAX; i++)
		assert_int_equal(tickets_add(&t, &what, 2000, last), 0);
	assert_int_equal(tickets_add(&t, &what, 2000 + TICKETS_MS - 1, id), -ENOSPC);
	assert_int_equal(tickets_add(&t, &what, 2000 + TICKETS_MS, id), 0);
	assert_int_equal(t.n, 1);
	assert_null(tickets_take(&t, id_of(last), 2000));
	tickets_done(&t);
	assert_null(tickets_take(&t, id_of(id), 2000));
}

static void test_boxes_and_bad_ones(void **state)
{
	struct tickets t;
	struct tickets_what other = what;
	char one[TICKETS_ID], two[TICKETS_ID], host[300];

	tickets_init(&t);
	other.box = VIEW("box2");
	assert_int_equal(tickets_add(&t, &what, 0, one), 0);
	assert_int_equal(tickets_add(&t, &other, 0, two), 0);
	tickets_remove_box(&t, VIEW("box1"));
	assert_null(tickets_take(&t, id_of(one), 0));
	struct ticket *got = tickets_take(&t, id_of(two), 0);
	assert_non_null(got);
	tickets_free(got);
	memset(host, 'a', sizeof(host));
	other.host = VIEW("");
	assert_int_equal(tickets_add(&t, &other, 0, one), -EINVAL);
	other.host = (struct view){ host, sizeof(host) };
	assert_int_equal(tickets_add(&t, &other, 0, one), -EINVAL);
	other = what;
	other.secret = VIEW("");
	assert_int_equal(tickets_add(&t, &other, 0, one), -EINVAL);
	other = what;
	other.tenant = VIEW("");
	assert_int_equal(tickets_add(&t, &other, 0, one), -EINVAL);
	tickets_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_time_and_number),
		cmocka_unit_test(test_boxes_and_bad_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
