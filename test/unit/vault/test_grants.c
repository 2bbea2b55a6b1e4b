/*
 * What the gate may have: exactly what was said for this box, this secret and this host.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "grants.h"
#include "wire_gen.h"

#include "poison.h"

static void test_hosts(void **state)
{
	static const struct {
		const char *pattern, *host;
		bool allowed;
	} cases[] = {
		{ "api.example.com", "API.Example.COM", true },
		{ "api.example.com", "api.example.com.evil.org", false },
		{ "*.example.com", "a.b.example.com", true },
		{ "*.example.com", "example.com", false },
		{ "*", "example.com", false }, /* a name, whatever the api says */
		{ "", "", false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct view pattern = view_of(cases[i].pattern);
		struct wire_vault_grant grant = { .secret = VIEW("A"), .hosts = { &pattern, 1 } };
		struct wire_vault_box box = { .id = VIEW("b"), .tenant = VIEW("t"), .grants = { &grant, 1 } };
		struct grants g;

		grants_init(&g);
		assert_int_equal(grants_put(&g, &box), 0);
		assert_int_equal(grants_allows(grants_box(&g, VIEW("b")), VIEW("A"), view_of(cases[i].host)),
				 cases[i].allowed);
		grants_done(&g);
	}
}

static void test_triples(void **state)
{
	struct view one[] = { VIEW("one.example") }, two[] = { VIEW("*.two.example"), VIEW("one.example") };
	struct wire_vault_grant grants[] = { { .secret = VIEW("A"), .hosts = { one, 1 } },
					     { .secret = VIEW("B"), .hosts = { two, 2 } } };
	struct wire_vault_box box = { .id = VIEW("box1"), .tenant = VIEW("t"), .grants = { grants, 2 } };
	struct grants g;

	grants_init(&g);
	assert_int_equal(grants_put(&g, &box), 0);
	const struct grants_box *b = grants_box(&g, VIEW("box1"));
	assert_non_null(b);
	assert_null(grants_box(&g, VIEW("box2")));
	assert_true(grants_allows(b, VIEW("A"), VIEW("one.example")));
	assert_false(grants_allows(b, VIEW("A"), VIEW("x.two.example")));
	assert_true(grants_allows(b, VIEW("B"), VIEW("x.two.example")));
	assert_false(grants_allows(b, VIEW("C"), VIEW("one.example")));
	box.grants.n = 1; /* said again: what was said before is over */
	assert_int_equal(grants_put(&g, &box), 0);
	assert_false(grants_allows(grants_box(&g, VIEW("box1")), VIEW("B"), VIEW("one.example")));
	grants_remove(&g, VIEW("box1"));
	assert_null(grants_box(&g, VIEW("box1")));
	box.tenant = VIEW("");
	assert_int_equal(grants_put(&g, &box), -EINVAL);
	grants_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts), cmocka_unit_test(test_triples) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
