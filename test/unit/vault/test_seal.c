/*
 * Sealed files: what goes in comes out, and nothing else does.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "seal.h"

#include "poison.h"

static const struct seal_label label = {
	VIEW("tenant"), VIEW("box"), VIEW("NAME"), 7, 1700000000000, VIEW("")
};

static struct seal_key key_of(uint8_t fill)
{
	uint8_t bytes[SEAL_KEY];
	struct seal_key k = { 0 };

	memset(bytes, fill, sizeof(bytes));
	seal_key_set(&k, bytes);
	return k;
}

static void test_round_trip(void **state)
{
	const struct seal_key k = key_of(1);
	const struct view values[] = { VIEW("x"), VIEW("a longer value\0with a NUL") };

	for (size_t i = 0; i < ELEMS(values); i++) {
		struct buf file = BUF_INIT(SEAL_FILE), out = BUF_INIT(SEAL_VALUE);
		struct sealed s;
		struct seal_label noted = label;
		noted.notes = i ? VIEW("notes\0are\0") : VIEW("");
		assert_int_equal(seal_close(&k, &noted, values[i], &file), 0);
		if (i) /* a single byte may well be there by chance */
			assert_null(memmem(file.p, file.n, values[i].p, values[i].n));
		assert_int_equal(seal_parse(buf_view(&file), &s), 0);
		assert_true(view_is(s.label.tenant, "tenant") && view_is(s.label.box, "box") &&
			    view_is(s.label.name, "NAME"));
		assert_true(view_eq(s.label.notes, noted.notes));
		assert_int_equal(s.label.version, 7);
		assert_int_equal(s.label.created_ms, 1700000000000);
		assert_int_equal(seal_open(&k, &s, &out), 0);
		assert_true(view_eq(buf_view(&out), values[i]));
		buf_done(&file);
		buf_done(&out);
	}
}

static void every_changed_bit(const struct seal_label *l)
{
	const struct seal_key k = key_of(1);
	struct buf file = BUF_INIT(SEAL_FILE);

	assert_int_equal(seal_close(&k, l, VIEW("value"), &file), 0);
	for (size_t bit = 0; bit < 8 * file.n; bit++) {
		struct buf out = BUF_INIT(SEAL_VALUE);
		struct sealed s;
		file.p[bit / 8] ^= (char)(1 << bit % 8);
		int r = seal_parse(buf_view(&file), &s);
		if (r == 0)
			r = seal_open(&k, &s, &out);
		assert_true(r == -EBADMSG || (r == -ENOKEY && bit / 8 >= 8 && bit / 8 < 16));
		assert_int_equal(buf_len(&out), 0);
		buf_done(&out);
		file.p[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t n = 0; n < file.n; n++) {
		struct buf out = BUF_INIT(SEAL_VALUE);
		struct sealed s;
		assert_true(seal_parse(view_head(buf_view(&file), n), &s) < 0 ||
			    seal_open(&k, &s, &out) == -EBADMSG);
		buf_done(&out);
	}
	buf_done(&file);
}

static void test_every_changed_bit_is_noticed(void **state)
{
	struct seal_label noted = label;
	noted.notes = VIEW("team\0billing\0");
	every_changed_bit(&label);
	every_changed_bit(&noted);
}

static void test_another_key(void **state)
{
	const struct seal_key right = key_of(1), wrong = key_of(2), none = { 0 };
	struct buf file = BUF_INIT(SEAL_FILE), out = BUF_INIT(SEAL_VALUE);
	struct sealed s;

	assert_int_equal(seal_close(&none, &label, VIEW("value"), &file), -EINVAL);
	assert_int_equal(seal_close(&right, &label, VIEW("value"), &file), 0);
	assert_int_equal(seal_parse(buf_view(&file), &s), 0);
	assert_int_equal(seal_open(&wrong, &s, &out), -ENOKEY);
	assert_int_equal(seal_open(&none, &s, &out), -ENOKEY);
	buf_done(&file);
	buf_done(&out);
}

static void test_nonces_differ(void **state)
{
	const struct seal_key k = key_of(1);
	struct buf a = BUF_INIT(SEAL_FILE), b = BUF_INIT(SEAL_FILE);

	assert_int_equal(seal_close(&k, &label, VIEW("value"), &a), 0);
	assert_int_equal(seal_close(&k, &label, VIEW("value"), &b), 0);
	assert_memory_not_equal(a.p + 16, b.p + 16, SEAL_NONCE);
	buf_done(&a);
	buf_done(&b);
}

static void test_limits(void **state)
{
	static char many[SEAL_VALUE + 1];
	const struct seal_key k = key_of(1);
	struct buf file = BUF_INIT(SEAL_FILE);
	struct seal_label l = label;

	assert_int_equal(seal_close(&k, &l, (struct view){ many, SEAL_VALUE + 1 }, &file), -EINVAL);
	assert_int_equal(seal_close(&k, &l, VIEW(""), &file), -EINVAL);
	l.name = VIEW("");
	assert_int_equal(seal_close(&k, &l, VIEW("x"), &file), -EINVAL);
	l.name = (struct view){ many, SEAL_NAME + 1 };
	assert_int_equal(seal_close(&k, &l, VIEW("x"), &file), -EINVAL);
	assert_int_equal(seal_close(&k, &label, (struct view){ many, SEAL_VALUE }, &file), 0);
	buf_done(&file);
	/* There is no version 0: to readers it means the newest. */
	struct sealed s;
	l = label;
	l.version = 0;
	assert_int_equal(seal_close(&k, &l, VIEW("x"), &file), -EINVAL);
	assert_int_equal(seal_close(&k, &label, VIEW("x"), &file), 0);
	memset(file.p + 28, 0, 4); /* its place in the file */
	assert_int_equal(seal_parse(buf_view(&file), &s), -EBADMSG);
	buf_done(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_every_changed_bit_is_noticed),
		cmocka_unit_test(test_another_key), cmocka_unit_test(test_nonces_differ),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
