/*
 * Views and intrusive lists.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "list.h"
#include "view.h"
#include "poison.h"

static void test_equal(void **state)
{
	assert_true(view_eq(VIEW_NONE, VIEW("")));
	assert_true(view_eq(VIEW("a\0b"), (struct view){ "a\0b", 3 }));
	assert_false(view_eq(VIEW("a\0b"), VIEW("a\0c")));
	assert_false(view_eq(VIEW("ab"), VIEW("abc")));
	assert_true(view_is(VIEW("abc"), "abc"));
	assert_true(view_is(VIEW_NONE, ""));
	assert_false(view_is(VIEW("abc"), "ab"));
	assert_true(view_starts(VIEW("abc"), "ab"));
	assert_true(view_starts(VIEW("abc"), ""));
	assert_false(view_starts(VIEW("a"), "ab"));
	assert_int_equal(view_of(NULL).n, 0);

	assert_true(view_eq_nocase(VIEW("Content-LENGTH"), VIEW("content-length")));
	assert_false(view_eq_nocase(VIEW("a"), VIEW("ab")));
	/* Only letters have a case: '@' and '`', '[' and '{' differ by 32 as well. */
	assert_false(view_eq_nocase(VIEW("@"), VIEW("`")));
	assert_false(view_eq_nocase(VIEW("["), VIEW("{")));

	assert_true(view_eq_secret(VIEW("secret"), VIEW("secret")));
	assert_true(view_eq_secret(VIEW_NONE, VIEW_NONE));
	assert_false(view_eq_secret(VIEW("secret"), VIEW("secreT")));
	assert_false(view_eq_secret(VIEW("Secret"), VIEW("secret")));
	assert_false(view_eq_secret(VIEW("secret"), VIEW("secre")));
}

static void test_parts(void **state)
{
	struct view rest, v = VIEW("a=b=c");
	assert_true(view_is(view_split(v, '=', &rest), "a"));
	assert_true(view_is(rest, "b=c"));
	assert_true(view_is(view_split(rest, '=', &rest), "b"));
	assert_true(view_is(view_split(rest, '=', &rest), "c"));
	assert_null(rest.p);
	assert_true(view_is(view_split(VIEW("a="), '=', &rest), "a"));
	assert_non_null(rest.p); /* an empty rest is not the same as none */
	assert_int_equal(rest.n, 0);
	assert_int_equal(view_split(VIEW_NONE, '=', &rest).n, 0);
	assert_null(rest.p);

	assert_true(view_is(view_trim(VIEW(" \t a b\t ")), "a b"));
	assert_int_equal(view_trim(VIEW(" \t ")).n, 0);
	assert_true(view_is(view_trim(VIEW("\na\n")), "\na\n")); /* spaces and tabs only */
	assert_true(view_is(view_skip(v, 2), "b=c"));
	assert_int_equal(view_skip(v, 99).n, 0);
	assert_true(view_is(view_head(v, 1), "a"));
	assert_true(view_is(view_head(v, 99), "a=b=c"));
}

static void test_to_str(void **state)
{
	char dst[4] = "xyz";
	assert_int_equal(view_to_str(VIEW("abcd"), dst, sizeof(dst)), -ENAMETOOLONG);
	assert_int_equal(view_to_str(VIEW("a\0b"), dst, sizeof(dst)), -EINVAL);
	assert_string_equal(dst, "xyz"); /* untouched on failure */
	assert_int_equal(view_to_str(VIEW("abc"), dst, sizeof(dst)), 0);
	assert_string_equal(dst, "abc");
	assert_int_equal(view_to_str(VIEW_NONE, dst, sizeof(dst)), 0);
	assert_string_equal(dst, "");
	assert_int_equal(view_to_str(VIEW_NONE, dst, 0), -ENAMETOOLONG);
}

struct item {
	int n;
	struct list link;
};

static void test_list(void **state)
{
	struct list head = LIST_INIT(head);
	struct item items[10];
	assert_true(list_empty(&head));
	for (int i = 0; i < 10; i++) {
		items[i].n = i;
		list_append(&head, &items[i].link);
	}
	int sum = 0, last = -1;
	LIST_EACH (it, &head) {
		struct item *i = CONTAINER(it, struct item, link);
		assert_true(i->n > last); /* in order */
		last = i->n;
		if (i->n % 2)
			list_del(it); /* while walking */
	}
	LIST_EACH (it, &head)
		sum += CONTAINER(it, struct item, link)->n;
	assert_int_equal(sum, 0 + 2 + 4 + 6 + 8);
	assert_true(list_empty(&items[1].link));
	list_del(&items[1].link); /* again: harmless */
	list_append(&head, &items[1].link);
	assert_ptr_equal(head.prev, &items[1].link);
	LIST_EACH (it, &head)
		list_del(it);
	assert_true(list_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_to_str),
		cmocka_unit_test(test_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
