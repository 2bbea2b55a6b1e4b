/*
 * Masking, however the bytes are cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mask.h"
#include "text.h"

#include "poison.h"

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
	static const char *const forms[] = { "s3/\"'<&\\Az",
					     "s3/%22%27%3C%26%5CAz",
					     "s3%2F%22%27%3C%26%5CAz",
					     "s3%2f%22%27%3c%26%5cAz",
					     "s3/\\\"'<&\\\\Az",
					     "s3\\/\\\"'<&\\\\Az",
					     "s3/&quot;&#39;&lt;&amp;\\Az",
					     "s3/&quot;&#x27;&lt;&amp;\\Az",
					     "73332f22273c265c417a",
					     "73332F22273C265C417A" };

	for (size_t i = 0; i < ELEMS(forms); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			struct buf text = BUF_INIT(256), out = BUF_INIT(256);
			struct mask m;
			mask_init(&m);
			assert_int_equal(mask_add(&m, VIEW("s3/\"'<&\\Az")), 0);
			buf_printf(&text, "before %s after", forms[i]);
			masked(&m, buf_view(&text), piece, &out);
			struct view got = buf_view(&out);
			if (got.n != text.n || !view_starts(got, "before ***") ||
			    !view_is(view_skip(got, got.n - 9), "*** after"))
				fail_msg("%s: %.*s", forms[i], VIEW_ARG(got));
			buf_done(&text);
			buf_done(&out);
			mask_done(&m);
		}
}

static void test_mask_base64(void **state)
{
	const struct view secret = VIEW("canary-0123456789abcdef");
	static const char *const before[] = { "", "x", "xy", "user:", "longer before " }, *const after[] = {
		"", "z", "zz", "zzz"
	};

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

/* ---- between the chunks of HTTP ---- */

#define KEY "sk-a1\\b2/0123456789"

/* The text in chunks of `size` bytes. */
static void put_chunks(struct buf *out, struct view text, size_t size)
{
	buf_puts(out, "HTTP/1.1 200 OK\r\nx-key: ok\r\n\r\n");
	for (size_t at = 0; at < text.n; at += size) {
		struct view chunk = view_head(view_skip(text, at), size);
		buf_printf(out, "%zx\r\n%.*s\r\n", chunk.n, VIEW_ARG(chunk));
	}
	buf_puts(out, "0\r\n\r\n");
}

/* Chunks and reads of every size: the same bytes, but for those of the key. */
static void test_mask_chunks(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "data: {\"a\": \"" KEY "\"}\n\n1\r\nsk-a1 12\r\n",
		  "data: {\"a\": \"*******************\"}\n\n1\r\nsk-a1 12\r\n" },
		{ "s" KEY KEY "\r\n" KEY "\r\n\r\nsk",
		  "s**************************************\r\n*******************\r\n\r\nsk" },
		{ "sk-a1\\\\b2/0123456789 sk-a1%5cb2%2f0123456789",
		  "******************** ***********************" },
		{ "12345678\r\n123456789\r\n12\r\r\n\r\nab", "12345678\r\n123456789\r\n12\r\r\n\r\nab" },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		for (size_t size = 1; size < 24; size++) {
			struct buf raw = BUF_INIT(4096), want = BUF_INIT(4096);
			put_chunks(&raw, view_of(cases[i].text), size);
			put_chunks(&want, view_of(cases[i].want), size);
			for (size_t piece = 1; piece <= raw.n; piece += piece < 40 ? 1 : 97) {
				struct buf out = BUF_INIT(4096);
				struct mask m;
				mask_init(&m);
				assert_int_equal(mask_add(&m, VIEW(KEY)), 0);
				for (size_t at = 0; at < raw.n; at += piece)
					assert_int_equal(
						mask_put_chunked(
							&m, view_head(view_skip(buf_view(&raw), at), piece),
							&out),
						0);
				assert_int_equal(mask_end(&m, &out), 0);
				if (!view_eq(buf_view(&out), buf_view(&want)))
					fail_msg("%zu, %zu, %zu: %.*s", i, size, piece,
						 VIEW_ARG(buf_view(&out)));
				buf_done(&out);
				mask_done(&m);
			}
			buf_done(&raw);
			buf_done(&want);
		}
}

/* Nothing waits but what may be the beginning: not the end of a head, of an event, of a chunk or of all of
 * them. */
static void test_mask_chunks_hold_no_more_than_they_must(void **state)
{
	static const struct {
		const char *text;
		size_t held;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\n\r\n", 0 },
		{ "5\r\ndata:\r\n", 0 },
		{ "2\r\n\n\n\r\n10", 0 },
		{ "0\r\n\r\n", 0 },
		{ "\r", 0 },
		{ "a s", 1 },
		{ "a sk-\r\n1\r\na", 9 },
		{ "a sk-\r\n1", 6 },
		{ "a sk-\r\nx", 0 },
		{ "sk-sk-", 3 },
		{ "sk-a1!", 0 },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct buf out = BUF_INIT(256);
		struct mask m;
		mask_init(&m);
		assert_int_equal(mask_add(&m, VIEW(KEY)), 0);
		assert_int_equal(mask_put_chunked(&m, view_of(cases[i].text), &out), 0);
		if (buf_len(&out) + cases[i].held != strlen(cases[i].text))
			fail_msg("%s: %zu came through", cases[i].text, buf_len(&out));
		assert_int_equal(mask_end(&m, &out), 0);
		assert_true(view_is(buf_view(&out), cases[i].text));
		buf_done(&out);
		mask_done(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_mask_forms),
		cmocka_unit_test(test_mask_base64),
		cmocka_unit_test(test_mask_holds_no_more_than_it_must),
		cmocka_unit_test(test_mask_chunks),
		cmocka_unit_test(test_mask_chunks_hold_no_more_than_they_must),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
