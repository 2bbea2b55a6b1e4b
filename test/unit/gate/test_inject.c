/*
 * Placeholders, however the bytes are cut.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "place.h"
#include "text.h"

#include "poison.h"

/* ---- placeholders ---- */

static bool value(void *arg, struct view name, struct view *ret)
{
	if (!view_is(name, "A") && !view_is(name, "long.name-1"))
		return false;
	*ret = view_is(name, "A") ? VIEW("v/1 &") : VIEW("second");
	return true;
}

static void expect_fill(const char *text, bool percent, int result, const char *want)
{
	struct buf out = BUF_INIT(4096);
	struct view missing = VIEW("");

	assert_int_equal(place_fill(view_of(text), percent, value, NULL, &out, &missing), result);
	if (result == 0)
		assert_true(view_is(buf_view(&out), want));
	else
		assert_true(view_is(missing, want));
	buf_done(&out);
}

static void test_fill(void **state)
{
	expect_fill("plain {{ text }} {secret.A}", false, 0, "plain {{ text }} {secret.A}");
	expect_fill("a {{secret.A}} b {{secret.long.name-1}}{{secret.A}}", false, 0, "a v/1 & b secondv/1 &");
	expect_fill("/x/{{secret.A}}", true, 0, "/x/v%2F1%20%26");
	expect_fill("%7B%7Bsecret.A%7D%7D %7b%7bsecret.A%7d%7d", true, 0, "v%2F1%20%26 v%2F1%20%26");
	expect_fill("{{{secret.A}}}", false, 0, "{v/1 &}");
	expect_fill("{{secret.}} {{secret.1}} {{secret.A} }", false, 0,
		    "{{secret.}} {{secret.1}} {{secret.A} }");
	expect_fill("x {{secret.NONE}} y", false, -ENOENT, "NONE");
}

/* A text in pieces, as a body comes: what place_open_end holds back is put before the next one. */
static void fill_pieces(struct view text, size_t piece, struct buf *out)
{
	struct buf held = BUF_INIT(4096);
	struct view missing;

	for (size_t at = 0; at < text.n; at += piece) {
		buf_add(&held, view_head(view_skip(text, at), piece));
		size_t keep = at + piece >= text.n ? 0 : place_open_end(buf_view(&held)),
		       go = buf_len(&held) - keep;
		assert_int_equal(
			place_fill(view_head(buf_view(&held), go), false, value, NULL, out, &missing), 0);
		buf_consume(&held, go);
	}
	buf_done(&held);
}

static void test_pieces(void **state)
{
	const struct view text = VIEW(
		"{{{secret.A}}{{secret.{{secret.A}} %7B%7Bsecret.A%7D%7D {{secret.long.name-1}} {{secret.A");

	for (size_t piece = 1; piece <= text.n; piece++) {
		struct buf out = BUF_INIT(4096);
		fill_pieces(text, piece, &out);
		assert_true(view_is(buf_view(&out), "{v/1 &{{secret.v/1 & v/1 & second {{secret.A"));
		buf_done(&out);
	}
}

static void test_open_end(void **state)
{
	assert_int_equal(place_open_end(VIEW("nothing")), 0);
	assert_int_equal(place_open_end(VIEW("x{")), 1);
	assert_int_equal(place_open_end(VIEW("x{{secret.AB")), 11);
	assert_int_equal(place_open_end(VIEW("x{{secret.AB}")), 12);
	assert_int_equal(place_open_end(VIEW("x{{secret.AB}}")), 0);
	assert_int_equal(place_open_end(VIEW("x{{other")), 0);
	assert_int_equal(place_open_end(VIEW("50%")), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_open_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
