/*
 * Encodings: hex, base64 (the vectors of RFC 4648, and what it forbids), UTF-8 at
 * its edges, percent-encoding, quoting.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rnd.h"
#include "text.h"
#include "poison.h"

static void test_hex(void **state)
{
	char dst[7];
	text_hex("\x00\xfe\x7f", 3, dst);
	assert_string_equal(dst, "00fe7f");
	text_hex(NULL, 0, dst);
	assert_string_equal(dst, "");
	uint8_t bin[3];
	assert_int_equal(text_unhex(VIEW("00Fe7F"), bin, 3), 0);
	assert_memory_equal(bin, "\x00\xfe\x7f", 3);
	assert_int_equal(text_unhex(VIEW("00fe7"), bin, 3), -EINVAL);
	assert_int_equal(text_unhex(VIEW("00fe7f0"), bin, 3), -EINVAL);
	assert_int_equal(text_unhex(VIEW("00fe7g"), bin, 3), -EINVAL);
	assert_int_equal(text_unhex(VIEW("00fe 7"), bin, 3), -EINVAL);
	assert_int_equal(text_unhex(VIEW("00fe\xff\xff"), bin, 3), -EINVAL);
	assert_int_equal(text_unhex(VIEW(""), bin, 0), 0);
}

static void test_base64_vectors(void **state)
{
	static const struct {
		const char *plain, *coded;
	} rfc4648[] = { { "", "" },
			{ "f", "Zg==" },
			{ "fo", "Zm8=" },
			{ "foo", "Zm9v" },
			{ "foob", "Zm9vYg==" },
			{ "fooba", "Zm9vYmE=" },
			{ "foobar", "Zm9vYmFy" } };
	for (size_t i = 0; i < ELEMS(rfc4648); i++) {
		struct buf b = BUF_INIT(64), back = BUF_INIT(64);
		assert_int_equal(text_base64(&b, view_of(rfc4648[i].plain)), 0);
		assert_true(view_is(buf_view(&b), rfc4648[i].coded));
		assert_int_equal(text_unbase64(&back, view_of(rfc4648[i].coded)), 0);
		assert_true(view_is(buf_view(&back), rfc4648[i].plain));
		buf_done(&b);
		buf_done(&back);
	}
}

static void test_base64_round(void **state)
{
	char bytes[300];
	rnd_bytes(bytes, sizeof(bytes));
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		struct buf b = BUF_INIT(1024), back = BUF_INIT(1024);
		struct view in = { bytes, n };
		assert_int_equal(text_base64(&b, in), 0);
		assert_int_equal(buf_len(&b), (n + 2) / 3 * 4);
		assert_int_equal(text_unbase64(&back, buf_view(&b)), 0);
		assert_true(view_eq(buf_view(&back), in));
		buf_done(&b);
		buf_done(&back);
	}
	struct buf small = BUF_INIT(7);
	assert_int_equal(text_base64(&small, VIEW("abcd")), -ENOBUFS);
	assert_int_equal(buf_len(&small), 0);
	buf_clear(&small);
	assert_int_equal(text_unbase64(&small, VIEW("YWJjZGVmZ2g=")), -ENOBUFS);
	buf_done(&small);
}

static void test_base64_strict(void **state)
{
	static const char *const bad[] = {
		"Z",      "Zg",    "Zg=",   "Z===", "====", "=",       "Zg==Zg==", "Zm=v", "Zm8=Zm9v",
		"Zm9v\n", "Zm 9v", "Zm9v ", "Zm9-", "Zm9_", "Zm9\x80", "Z=g=",     "Zh==", /* bits behind the
											      end */
		"Zm9=",
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		struct buf b = BUF_INIT(64);
		if (text_unbase64(&b, view_of(bad[i])) != -EINVAL)
			fail_msg("accepted \"%s\"", bad[i]);
		buf_done(&b);
	}
	struct buf b = BUF_INIT(64);
	assert_int_equal(text_unbase64(&b, (struct view){ "Zm\0v", 4 }), -EINVAL);
	buf_done(&b);
}

/* What is UTF-8, by the definition: decode, and look at the value. */
static size_t oracle_char(const unsigned char *p, size_t n)
{
	if (p[0] < 0x80)
		return 1;
	size_t len = (p[0] & 0xe0) == 0xc0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : (p[0] & 0xf8) == 0xf0 ? 4 : 0;
	if (!len || len > n)
		return 0;
	uint32_t c = p[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : len;
}

static size_t oracle_prefix(const unsigned char *p, size_t n)
{
	size_t i = 0, k;
	while (i < n && (k = oracle_char(p + i, n - i)))
		i += k;
	return i;
}

static void check_utf8(const unsigned char *p, size_t n)
{
	struct view v = { (const char *)p, n };
	size_t want = oracle_prefix(p, n);
	if (text_utf8_prefix(v) != want || text_is_utf8(v) != (want == n)) {
		char hex[65] = "";
		text_hex(p, n > 32 ? 32 : n, hex);
		fail_msg("%s: prefix %zu, not %zu", hex, text_utf8_prefix(v), want);
	}
}

static void test_utf8(void **state)
{
	unsigned char p[32];
	/* Every first and second byte, with edges behind them, at each alignment of the fast path. */
	static const unsigned char tails[] = { 0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff };
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++)
			for (size_t t = 0; t < ELEMS(tails); t++)
				for (size_t n = 1; n <= 4; n++) {
					const unsigned char c[] = { (unsigned char)a, (unsigned char)b,
								    tails[t], tails[(t + 3) % ELEMS(tails)] };
					memcpy(p, c, 4);
					check_utf8(p, n);
				}
	static const char *const edges[] = { "\x7f",         "\xc2\x80",         "\xdf\xbf",
					     "\xe0\xa0\x80", "\xed\x9f\xbf",     "\xee\x80\x80",
					     "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };
	for (size_t e = 0; e < ELEMS(edges); e++)
		for (size_t before = 0; before < 20; before++) {
			size_t n = strlen(edges[e]);
			memset(p, 'a', sizeof(p));
			memcpy(p + before, edges[e], n);
			assert_true(text_is_utf8((struct view){ (char *)p, before + n }));
			for (size_t cut = 1; cut < n; cut++) { /* split at the end: what is before is whole */
				assert_int_equal(
					text_utf8_prefix((struct view){ (char *)p, before + n - cut }),
					before);
				assert_true(text_utf8_begins((struct view){ edges[e], n - cut }));
			}
			assert_false(text_utf8_begins((struct view){ edges[e], n }));
			check_utf8(p, before + n + 8);
		}
	assert_true(text_is_utf8(VIEW_NONE));
	assert_false(text_utf8_begins(VIEW_NONE));
	assert_false(text_utf8_begins(VIEW("\xff")));
	assert_false(text_utf8_begins(VIEW("\xe2\x28")));
	assert_true(text_is_utf8(VIEW("a\0b")));
	assert_false(text_is_utf8(VIEW("\xed\xa0\x80")));     /* a surrogate */
	assert_false(text_is_utf8(VIEW("\xc0\xaf")));         /* an overlong '/' */
	assert_false(text_is_utf8(VIEW("\xf4\x90\x80\x80"))); /* past U+10FFFF */
}

static void test_percent(void **state)
{
	struct buf b = BUF_INIT(2048);
	assert_int_equal(text_unpercent(&b, VIEW("a%20b%2Fc%2f+d%00"), false), 0);
	assert_true(view_eq(buf_view(&b), VIEW("a b/c/+d\0")));
	buf_clear(&b);
	assert_int_equal(text_unpercent(&b, VIEW("a+b%2B"), true), 0);
	assert_true(view_is(buf_view(&b), "a b+"));
	static const char *const bad[] = {
		"%", "%2", "a%", "a%2", "%g0", "%0g", "%%20", "% 0", "%+1", "%-1"
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		buf_clear(&b);
		assert_int_equal(text_unpercent(&b, view_of(bad[i]), false), -EINVAL);
	}
	buf_clear(&b);
	assert_int_equal(text_percent(&b, VIEW("/a-b_c.d~e/\xc3\xa4?#&=%+ \0")), 0);
	assert_true(view_is(buf_view(&b), "/a-b_c.d~e/%C3%A4%3F%23%26%3D%25%2B%20%00"));
	/* Every byte comes back. */
	char all[256];
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	buf_clear(&b);
	assert_int_equal(text_percent(&b, (struct view){ all, 256 }), 0);
	struct buf back = BUF_INIT(256);
	assert_int_equal(text_unpercent(&back, buf_view(&b), true), 0);
	assert_true(view_eq(buf_view(&back), (struct view){ all, 256 }));
	buf_clear(&back);
	back.max = 3;
	assert_int_equal(text_unpercent(&back, VIEW("abcd"), false), -ENOBUFS);
	buf_done(&back);
	buf_done(&b);
}

static void test_quote(void **state)
{
	struct buf b = BUF_INIT(256);
	assert_int_equal(text_quote(&b, VIEW("a\"b\\c\nd\x1b[2J\x7f\xc3\xa4\0"), 99), 0);
	assert_true(view_is(buf_view(&b), "\"a\\\"b\\\\c\\x0ad\\x1b[2J\\x7f\\xc3\\xa4\\x00\""));
	buf_clear(&b);
	assert_int_equal(text_quote(&b, VIEW("abcdef"), 3), 0);
	assert_true(view_is(buf_view(&b), "\"abc...\""));
	buf_clear(&b);
	assert_int_equal(text_quote(&b, VIEW("abc"), 3), 0);
	assert_true(view_is(buf_view(&b), "\"abc\""));
	buf_clear(&b);
	assert_int_equal(text_quote(&b, VIEW_NONE, 3), 0);
	assert_true(view_is(buf_view(&b), "\"\""));
	buf_done(&b);
	b.max = 4;
	assert_int_equal(text_quote(&b, VIEW("abc"), 9), -ENOBUFS);
	buf_done(&b);
}

static void test_quote_word(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = { { "", "''" },
		      { "a b$c`", "'a b$c`'" },
		      { "it's", "'it'\"'\"'s'" },
		      { "''", "''\"'\"''\"'\"''" } };

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct buf b = BUF_INIT(64);
		assert_int_equal(text_quote_word(&b, view_of(cases[i].in)), 0);
		assert_true(view_is(buf_view(&b), cases[i].out));
		buf_done(&b);
	}
	struct buf small = BUF_INIT(3);
	assert_int_equal(text_quote_word(&small, VIEW("abc")), -ENOBUFS);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hex),          cmocka_unit_test(test_base64_vectors),
		cmocka_unit_test(test_base64_round), cmocka_unit_test(test_base64_strict),
		cmocka_unit_test(test_utf8),         cmocka_unit_test(test_percent),
		cmocka_unit_test(test_quote),        cmocka_unit_test(test_quote_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
