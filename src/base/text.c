/*
 * Encodings of text: see text.h.
 */
#include "text.h"

#include <errno.h>
#include <stdint.h>

#include "poison.h"

static const char hex_digits[] = "0123456789abcdef";

void text_hex(const void *p, size_t n, char *dst)
{
	const uint8_t *b = p;
	for (size_t i = 0; i < n; i++) {
		dst[2 * i] = hex_digits[b[i] >> 4];
		dst[2 * i + 1] = hex_digits[b[i] & 15];
	}
	dst[2 * n] = 0;
}

static int hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int text_unhex(struct view v, void *dst, size_t n)
{
	uint8_t *out = dst;
	if (v.n != 2 * n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_value(v.p[2 * i]), lo = hex_value(v.p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return -EINVAL;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

int text_base64(struct buf *out, struct view in)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)in.p;
	size_t size = (in.n + 2) / 3 * 4, i = 0;
	char *d = buf_reserve(out, size);
	if (!d)
		return out->bad;
	for (; i + 3 <= in.n; i += 3) {
		uint32_t w = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
		*d++ = set[w >> 18];
		*d++ = set[w >> 12 & 63];
		*d++ = set[w >> 6 & 63];
		*d++ = set[w & 63];
	}
	if (i < in.n) {
		bool two = in.n - i == 2;
		uint32_t w = (uint32_t)p[i] << 16 | (two ? (uint32_t)p[i + 1] << 8 : 0);
		*d++ = set[w >> 18];
		*d++ = set[w >> 12 & 63];
		*d++ = two ? set[w >> 6 & 63] : '=';
		*d++ = '=';
	}
	buf_commit(out, size);
	return 0;
}

static int base64_value(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int text_unbase64(struct buf *out, struct view in)
{
	if (in.n % 4)
		return -EINVAL;
	for (size_t i = 0; i < in.n; i += 4) {
		unsigned pad = 0;
		uint32_t w = 0;
		for (size_t k = 0; k < 4; k++) {
			char c = in.p[i + k];
			int v = base64_value(c);
			if (c == '=' && i + 4 == in.n && k >= 2) {
				pad++;
				v = 0;
			} else if (v < 0 || pad) {
				return -EINVAL;
			}
			w = w << 6 | (uint32_t)v;
		}
		/* The bits that padding leaves over must be zero: one text, one value. */
		if ((pad == 1 && (w & 0xff)) || (pad == 2 && (w & 0xffff)))
			return -EINVAL;
		char bytes[3] = { (char)(w >> 16), (char)(w >> 8), (char)w };
		buf_append(out, bytes, 3 - pad);
	}
	return out->bad;
}

/* Length of the character at p (n > 0), 0 when invalid, -1 when cut off by the end. */
static int utf8_char(const uint8_t *p, size_t n)
{
	uint8_t c = p[0];
	int len = c < 0x80                 ? 1
		  : c >= 0xc2 && c <= 0xdf ? 2
		  : (c & 0xf0) == 0xe0     ? 3
		  : c >= 0xf0 && c <= 0xf4 ? 4
					   : 0;
	if (len <= 1)
		return len;
	uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	for (int i = 1; i < len; i++) {
		if ((size_t)i >= n)
			return -1;
		if (p[i] < lo || p[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xbf;
	}
	return len;
}

bool text_utf8_begins(struct view v)
{
	return v.n && utf8_char((const uint8_t *)v.p, v.n) < 0;
}

bool text_is_utf8(struct view v)
{
	return text_utf8_prefix(v) == v.n;
}

bool text_is_plain(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		const char c = v.p[i];
		if (((uint8_t)c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return false;
	}
	return text_is_utf8(v);
}

size_t text_utf8_prefix(struct view v)
{
	const uint8_t *p = (const uint8_t *)v.p;
	size_t i = 0;
	while (i < v.n) {
		/* Eight plain bytes at a time: most text is ASCII. */
		uint64_t w;
		while (v.n - i >= 8 && (memcpy(&w, p + i, 8), (w & 0x8080808080808080ull) == 0))
			i += 8;
		if (i == v.n)
			break;
		int len = utf8_char(p + i, v.n - i);
		if (len <= 0)
			break;
		i += len;
	}
	return i;
}

int text_utf8_fix(struct buf *out, struct view in)
{
	while (in.n) {
		size_t whole = text_utf8_prefix(in);
		buf_add(out, view_head(in, whole));
		in = view_skip(in, whole);
		if (in.n) {
			buf_puts(out, "\xef\xbf\xbd");
			in = view_skip(in, 1);
		}
	}
	return out->bad;
}

int text_unpercent(struct buf *out, struct view in, bool plus_is_space)
{
	for (size_t i = 0; i < in.n; i++) {
		char c = in.p[i];
		if (c == '%') {
			if (in.n - i < 3)
				return -EINVAL;
			int hi = hex_value(in.p[i + 1]), lo = hex_value(in.p[i + 2]);
			if (hi < 0 || lo < 0)
				return -EINVAL;
			c = (char)(hi << 4 | lo);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		buf_putc(out, c);
	}
	return out->bad;
}

int text_percent(struct buf *out, struct view in)
{
	for (size_t i = 0; i < in.n; i++) {
		unsigned char c = in.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			     (c && strchr("-._~/", c));
		if (plain)
			buf_putc(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
	return out->bad;
}

int text_percent_all(struct buf *out, struct view in)
{
	for (struct view rest = in; rest.p;) {
		(void)text_percent(out, view_split(rest, '/', &rest));
		if (rest.p)
			buf_puts(out, "%2F");
	}
	return out->bad;
}

int text_quote(struct buf *out, struct view in, size_t max)
{
	buf_putc(out, '"');
	for (size_t i = 0; i < in.n && i < max; i++) {
		unsigned char c = in.p[i];
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c >= 0x20 && c < 0x7f)
			buf_putc(out, (char)c);
		else
			buf_printf(out, "\\x%02x", c);
	}
	if (in.n > max)
		buf_puts(out, "...");
	return buf_putc(out, '"');
}

int text_quote_word(struct buf *out, struct view in)
{
	buf_putc(out, '\'');
	for (const char *q; in.n && (q = memchr(in.p, '\'', in.n));) {
		size_t n = (size_t)(q - in.p);
		buf_add(out, view_head(in, n));
		buf_puts(out, "'\"'\"'");
		in = view_skip(in, n + 1);
	}
	buf_add(out, in);
	return buf_putc(out, '\'');
}
