/*
 * Placeholders and masking, however the bytes are cut.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mask.h"
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
	expect_fill("{{secret.}} {{secret.1}} {{secret.A} }", false, 0, "{{secret.}} {{secret.1}} {{secret.A} }");
	expect_fill("x {{secret.NONE}} y", false, -ENOENT, "NONE");
}

/* A text in pieces, as a body comes: what place_open_end holds back is put before the next one. */
static void fill_pieces(struct view text, size_t piece, struct buf *out)
{
	struct buf held = BUF_INIT(4096);
	struct view missing;

	for (size_t at = 0; at < text.n; at += piece) {
		buf_add(&held, view_head(view_skip(text, at), piece));
		size_t keep = at + piece >= text.n ? 0 : place_open_end(buf_view(&held)), go = buf_len(&held) - keep;
		assert_int_equal(place_fill(view_head(buf_view(&held), go), false, value, NULL, out, &missing), 0);
		buf_consume(&held, go);
	}
	buf_done(&held);
}

static void test_pieces(void **state)
{
	const struct view text = VIEW("{{{secret.A}}{{secret.{{secret.A}} %7B%7Bsecret.A%7D%7D {{secret.long.name-1}} {{secret.A");

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

/* ---- masking ---- */

static void masked(struct mask *m, struct view text, size_t piece, struct buf *out)
{
	for (size_t at = 0; at < text.n; at += piece)
		assert_int_equal(mask_put(m, view_head(view_skip(text, at), piece), out), 0);
	assert_int_equal(mask_end(m, out), 0);
}

static void test_mask(void **state)
{
	struct mask m;
	const struct view text = VIEW("aaab aaabc s3cr3t/\"x s3cr3t/\"x! s3cr3t%2F%22x s3cr3t/\\\"x s3cr3t/");

	for (size_t piece = 1; piece <= text.n; piece++) {
		struct buf out = BUF_INIT(4096);
		mask_init(&m);
		assert_int_equal(mask_add(&m, VIEW("s3cr3t/\"x")), 0);
		assert_int_equal(mask_add(&m, VIEW("aabc")), 0);
		masked(&m, text, piece, &out);
		assert_int_equal(buf_len(&out), text.n);
		assert_null(memmem(out.p, out.n, "s3cr3t/\"x", 9));
		assert_null(memmem(out.p, out.n, "s3cr3t/\\\"x", 10));
		assert_true(view_starts(buf_view(&out), "aaab a**** ********* *********! "));
		assert_true(view_is(view_skip(buf_view(&out), out.n - 7), "s3cr3t/"));
		buf_done(&out);
		mask_done(&m);
	}
}

/* Other ways in which servers say what they were told. */
static void test_mask_forms(void **state)
{
	static const char *const forms[] = { "s3/\"'<&\\Az", "s3/%22%27%3C%26%5CAz", "s3%2F%22%27%3C%26%5CAz", "s3%2f%22%27%3c%26%5cAz",
					     "s3/\\\"'<&\\\\Az", "s3\\/\\\"'<&\\\\Az", "s3/&quot;&#39;&lt;&amp;\\Az",
					     "s3/&quot;&#x27;&lt;&amp;\\Az", "73332f22273c265c417a", "73332F22273C265C417A" };

	for (size_t i = 0; i < ELEMS(forms); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			struct buf text = BUF_INIT(256), out = BUF_INIT(256);
			struct mask m;
			mask_init(&m);
			assert_int_equal(mask_add(&m, VIEW("s3/\"'<&\\Az")), 0);
			buf_printf(&text, "before %s after", forms[i]);
			masked(&m, buf_view(&text), piece, &out);
			struct view got = buf_view(&out);
			if (got.n != text.n || !view_starts(got, "before ***") || !view_is(view_skip(got, got.n - 9), "*** after"))
				fail_msg("%s: %.*s", forms[i], VIEW_ARG(got));
			buf_done(&text);
			buf_done(&out);
			mask_done(&m);
		}
}

static void test_mask_base64(void **state)
{
	const struct view secret = VIEW("canary-0123456789abcdef");
	static const char *const before[] = { "", "x", "xy", "user:", "longer before " }, *const after[] = { "", "z", "zz", "zzz" };

	for (size_t i = 0; i < ELEMS(before); i++)
		for (size_t k = 0; k < ELEMS(after); k++) {
			struct buf plain = BUF_INIT(256), coded = BUF_INIT(512), out = BUF_INIT(512);
			struct mask m;
			mask_init(&m);
			assert_int_equal(mask_add(&m, secret), 0);
			buf_puts(&plain, before[i]);
			buf_add(&plain, secret);
			buf_puts(&plain, after[k]);
			assert_int_equal(text_base64(&coded, buf_view(&plain)), 0);
			masked(&m, buf_view(&coded), 7, &out);
			/* Nearly all of it is stars. */
			size_t stars = 0;
			for (size_t at = 0; at < out.n; at++)
				stars += out.p[at] == '*';
			assert_true(stars >= secret.n * 4 / 3 - 4);
			buf_done(&plain);
			buf_done(&coded);
			buf_done(&out);
			mask_done(&m);
		}
}

static void test_mask_holds_no_more_than_it_must(void **state)
{
	struct buf out = BUF_INIT(256);
	struct mask m;

	mask_init(&m);
	assert_int_equal(mask_add(&m, VIEW("secret")), 0);
	assert_int_equal(mask_put(&m, VIEW("data: hello\n\n"), &out), 0);
	assert_true(view_is(buf_view(&out), "data: hello\n\n"));
	assert_int_equal(mask_put(&m, VIEW("and sec"), &out), 0);
	assert_true(view_is(buf_view(&out), "data: hello\n\nand "));
	assert_int_equal(mask_put(&m, VIEW("ond"), &out), 0);
	assert_true(view_is(buf_view(&out), "data: hello\n\nand second"));
	buf_done(&out);
	mask_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),	    cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_open_end),    cmocka_unit_test(test_mask),
		cmocka_unit_test(test_mask_forms),  cmocka_unit_test(test_mask_base64), cmocka_unit_test(test_mask_holds_no_more_than_it_must),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
