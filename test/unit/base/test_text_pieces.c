/*
 * Text in pieces: whatever the portions, what comes out is what went in, and no character is split.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "buf.h"
#include "text.h"
#include "text_pieces.h"
#include "poison.h"

struct sink {
	struct buf all;
	bool split; /* a piece was no whole text */
};

static void put(void *arg, struct view piece)
{
	struct sink *s = arg;

	assert_true(piece.n > 0);
	s->split |= !text_is_utf8(piece);
	buf_add(&s->all, piece);
}

static struct sink cut(struct view text, size_t step)
{
	struct sink s = { .all = BUF_INIT(4096) };
	struct text_pieces p = { 0 };

	for (struct view rest = text; rest.n; rest = view_skip(rest, step))
		text_pieces_add(&p, view_head(rest, step), put, &s);
	text_pieces_end(&p, put, &s);
	return s;
}

static void test_text(void **state)
{
	struct view text = VIEW("aö€😀zß𝄞€ö😀😀");

	for (size_t step = 1; step <= text.n; step++) {
		struct sink s = cut(text, step);
		assert_true(view_eq(buf_view(&s.all), text));
		assert_false(s.split);
		buf_done(&s.all);
	}
}

static void test_other_bytes(void **state)
{
	static const char *const cases[] = { "\xff\xfe",
					     "\xc3",
					     "a\xe2\x82",
					     "\xf0\x9f\x98",
					     "\x80\x80\x80\x80\x80",
					     "\xe2\x28\xa1",
					     "\xf0\x9f\x41\x98\x80",
					     "\xc0\xaf\xf5\x80" };

	for (size_t i = 0; i < ELEMS(cases); i++)
		for (size_t step = 1; step <= 5; step++) {
			struct sink s = cut(view_of(cases[i]), step);
			assert_true(view_eq(buf_view(&s.all), view_of(cases[i])));
			buf_done(&s.all);
		}
}

static void test_nothing(void **state)
{
	struct sink s = cut(VIEW(""), 1);
	assert_int_equal(buf_len(&s.all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
