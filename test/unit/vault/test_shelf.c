/*
 * The secrets on disk: versions, removal, another key, files that are not what they say.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "shelf.h"

#include "poison.h"

static char place[] = "/tmp/test_shelf_XXXXXX";
static int dir = -1;
static struct shelf_keys keys;
static struct shelf shelf;

static void set_key(unsigned i, uint8_t fill)
{
	uint8_t bytes[SEAL_KEY];
	memset(bytes, fill, sizeof(bytes));
	seal_key_set(&keys.key[i], bytes);
}

static int set_up(void **state)
{
	struct err e = { 0 };

	memcpy(place + sizeof(place) - 7, "XXXXXX", 6);
	if (!mkdtemp(place))
		return -1;
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	set_key(0, 1);
	keys.n = 1;
	return shelf_open(&shelf, dir, &keys, &e);
}

static int tear_down(void **state)
{
	char command[64];

	shelf_close(&shelf);
	close(dir);
	snprintf(command, sizeof(command), "rm -rf %s", place);
	return system(command);
}

static void put(const char *tenant, const char *box, const char *name, const char *value)
{
	struct err e = { 0 };
	assert_non_null(shelf_put(
		&shelf,
		&(struct shelf_new){ view_of(tenant), view_of(box), view_of(name), view_of(value), NULL },
		&(struct shelf_total){ 0 }, &e));
}

static void expect(const char *tenant, const char *box, const char *name, uint32_t version, const char *value)
{
	struct buf out = BUF_INIT(SEAL_VALUE);
	struct err e = { 0 };
	const struct shelf_secret *s = shelf_find(&shelf, view_of(tenant), view_of(box), view_of(name));

	assert_non_null(s);
	int r = shelf_read(&shelf, s, version, &out, &e);
	assert_int_equal(r, value ? 0 : -1);
	if (value)
		assert_true(view_is(buf_view(&out), value));
	buf_done(&out);
}

static void again(void)
{
	struct err e = { 0 };
	shelf_close(&shelf);
	assert_int_equal(shelf_open(&shelf, dir, &keys, &e), 0);
}

static void test_versions(void **state)
{
	char text[16];

	for (int i = 1; i <= 12; i++) {
		snprintf(text, sizeof(text), "v%d", i);
		put("t", "", "A", text);
	}
	for (int round = 0; round < 2; round++, again()) {
		expect("t", "", "A", 0, "v12");
		expect("t", "", "A", 5, "v5");
		expect("t", "", "A", 4, NULL);
		expect("t", "", "A", 13, NULL);
	}
}

static void test_owners_are_apart(void **state)
{
	struct err e = { 0 };

	put("t", "", "A", "tenant");
	put("t", "b", "A", "box");
	put("u", "", "A", "other");
	again();
	expect("t", "", "A", 0, "tenant");
	expect("t", "b", "A", 0, "box");
	expect("u", "", "A", 0, "other");
	shelf_remove_box(&shelf, VIEW("b"));
	assert_null(shelf_find(&shelf, VIEW("t"), VIEW("b"), VIEW("A")));
	assert_int_equal(shelf_remove(&shelf, shelf_find(&shelf, VIEW("t"), VIEW(""), VIEW("A")), &e), 0);
	again();
	assert_null(shelf_find(&shelf, VIEW("t"), VIEW(""), VIEW("A")));
	expect("u", "", "A", 0, "other");
}

static void test_reseal(void **state)
{
	put("t", "", "A", "one");
	put("t", "", "A", "two");
	keys.key[1] = keys.key[0];
	set_key(0, 2);
	keys.n = 2;
	expect("t", "", "A", 0, "two");
	assert_int_equal(shelf_reseal(&shelf), 2);
	assert_int_equal(shelf_reseal(&shelf), 0);
	keys.n = 1;
	again();
	expect("t", "", "A", 1, "one");
	set_key(0, 3);
	expect("t", "", "A", 1, NULL);
}

static void test_leftovers_and_strangers(void **state)
{
	put("t", "", "A", "one");
	int fd = openat(dir, "0123456789012345678901234567890123456789.1.abcdefgh", O_CREAT | O_WRONLY, 0600);
	close(fd);
	fd = openat(dir, "rubbish", O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "PDKVLT1\n", 8), 8);
	close(fd);
	again();
	expect("t", "", "A", 0, "one");
	assert_int_equal(faccessat(dir, "0123456789012345678901234567890123456789.1.abcdefgh", F_OK, 0), -1);
}

/* The files of two secrets change places: neither is opened as the other. */
static void test_swapped_files(void **state)
{
	char command[160];

	put("t", "", "A", "one");
	put("t", "", "B", "two");
	snprintf(command, sizeof(command),
		 "cd %s && set -- * && [ $# = 2 ] && mv $1 ../%s.x && mv $2 $1 && mv ../%s.x $2", place,
		 place + 5, place + 5);
	assert_int_equal(system(command), 0);
	expect("t", "", "A", 0, NULL);
	expect("t", "", "B", 0, NULL);
}

static void test_names(void **state)
{
	const char *good[] = { "A", "_x", "a.b-c_1" },
		   *bad[] = { "", "1a", "a b", "a/b", "-x", ".x", "\xc3\xa4" };

	for (size_t i = 0; i < ELEMS(good); i++)
		assert_true(shelf_is_name(view_of(good[i])));
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_false(shelf_is_name(view_of(bad[i])));
}

/* What a tenant may have: a number, and bytes of all versions that are kept. */
static void test_limits(void **state)
{
	const struct shelf_total two = { .secrets = 2 }, any = { 0 };
	char value[1000];
	struct err e = { 0 };

	memset(value, 'x', sizeof(value));
	const struct shelf_new large = { VIEW("v"), VIEW(""), VIEW("A"), { value, sizeof(value) }, NULL };
	put("t", "", "A", "1");
	put("t", "box", "B", "1");
	assert_null(shelf_put(&shelf, &(struct shelf_new){ VIEW("t"), VIEW(""), VIEW("C"), VIEW("1"), NULL },
			      &two, &e));
	assert_int_equal(e.code, ERR_QUOTA);
	assert_non_null(shelf_put(
		&shelf, &(struct shelf_new){ VIEW("t"), VIEW(""), VIEW("A"), VIEW("2"), NULL }, &two, &e));
	assert_non_null(shelf_put(
		&shelf, &(struct shelf_new){ VIEW("u"), VIEW(""), VIEW("C"), VIEW("1"), NULL }, &two, &e));
	for (int i = 0; i < SHELF_VERSIONS; i++)
		assert_non_null(shelf_put(&shelf, &large, &any, &e));
	struct shelf_total has = shelf_total(&shelf, VIEW("v"));
	assert_int_equal(has.secrets, 1);
	assert_true(has.bytes > SHELF_VERSIONS * sizeof(value));
	/* The oldest version makes room; another secret finds none. */
	assert_non_null(shelf_put(&shelf, &large, &has, &e));
	assert_int_equal(shelf_total(&shelf, VIEW("v")).bytes, has.bytes);
	has.secrets = 10;
	assert_null(shelf_put(&shelf, &(struct shelf_new){ VIEW("v"), VIEW(""), VIEW("B"), VIEW("1"), NULL },
			      &has, &e));
	assert_int_equal(e.code, ERR_QUOTA);
	again();
	assert_int_equal(shelf_total(&shelf, VIEW("v")).bytes, has.bytes);
}

static struct view notes_of(const char *name)
{
	const struct shelf_secret *x = shelf_find(&shelf, VIEW("t"), VIEW(""), view_of(name));
	assert_non_null(x);
	return buf_view(&x->notes);
}

/* They are the newest version's, in its file, whichever key that is sealed with. */
static void test_notes(void **state)
{
	const struct view first = VIEW("a\0b\0"), second = VIEW("a\0other\0"), none = VIEW("");
	struct shelf_new w = { VIEW("t"), VIEW(""), VIEW("A"), VIEW("1"), &first };
	const struct shelf_total any = { 0 };
	struct err e = { 0 };

	put("t", "", "B", "without");
	assert_non_null(shelf_put(&shelf, &w, &any, &e));
	assert_true(view_eq(notes_of("A"), first) && notes_of("B").n == 0);
	assert_int_equal(shelf_total(&shelf, VIEW("t")).notes, first.n);
	put("t", "", "A", "2");
	again();
	assert_true(view_eq(notes_of("A"), first) && notes_of("B").n == 0);
	w.notes = &second;
	assert_non_null(shelf_put(&shelf, &w, &any, &e));
	set_key(1, 1);
	set_key(0, 2);
	keys.n = 2;
	assert_int_equal(shelf_reseal(&shelf), 4);
	keys.n = 1;
	again();
	assert_true(view_eq(notes_of("A"), second));
	expect("t", "", "A", 2, "2");
	w.notes = &none;
	assert_non_null(shelf_put(&shelf, &w, &any, &e));
	again();
	assert_int_equal(notes_of("A").n, 0);
	/* Bounded for one and for a tenant. */
	static char many[SEAL_NOTES + 1];
	struct view most = { many, SEAL_NOTES }, more = { many, SEAL_NOTES + 1 };
	w.notes = &more;
	assert_null(shelf_put(&shelf, &w, &any, &e));
	assert_int_equal(e.code, ERR_INVALID);
	w.notes = &most;
	unsigned fit = 0;
	for (char name[8]; fit < 100; fit++) {
		snprintf(name, sizeof(name), "N%u", fit);
		w.name = view_of(name);
		if (!shelf_put(&shelf, &w, &any, &e))
			break;
	}
	assert_int_equal(fit, SHELF_NOTES / SEAL_NOTES);
	assert_int_equal(e.code, ERR_QUOTA);
	w.name = VIEW("N0");
	assert_non_null(shelf_put(&shelf, &w, &any, &e)); /* what it replaces does not count */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_versions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_owners_are_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reseal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leftovers_and_strangers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_swapped_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_notes, set_up, tear_down),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
