/*
 * Scanning that the reader and the writer of JSON share: runs of plain
 * characters a word at a time, one UTF-8 character, a number.
 */
#pragma once

#include "view.h"

/* Readable bytes that must follow the text given to json_scan_plain. */
#define JSON_SCAN_SLACK 8

#define JSON_SCAN_ONES 0x0101010101010101u
#define JSON_SCAN_HIGH 0x8080808080808080u

/* High bits where a byte of w is a quote, a backslash, below 0x20 or above 0x7f.
 * Exact up to the first such byte, which is all that matters. */
static inline uint64_t json_scan_special(uint64_t w)
{
	uint64_t quote = w ^ (JSON_SCAN_ONES * '"'), slash = w ^ (JSON_SCAN_ONES * '\\');

	return ((w - JSON_SCAN_ONES * 0x20) | (quote - JSON_SCAN_ONES) | (slash - JSON_SCAN_ONES) | w) &
	       JSON_SCAN_HIGH;
}

/* Bytes before the first that is special; the text must contain one or end in a zero byte. */
static inline size_t json_scan_plain(const char *s)
{
	for (size_t n = 0;; n += 8) {
		uint64_t w, special;

		memcpy(&w, s + n, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		w = __builtin_bswap64(w);
#endif
		special = json_scan_special(w);
		if (special)
			return n + (size_t)__builtin_ctzll(special) / 8;
	}
}

/* Length of the character of two to four bytes that s begins with; 0 when it is not valid. */
static inline size_t json_scan_utf8(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;

	if (n >= 2 && u[0] >= 0xc2 && u[0] <= 0xdf && (u[1] & 0xc0) == 0x80)
		return 2;
	if (n >= 3 && (u[0] & 0xf0) == 0xe0 && (u[1] & 0xc0) == 0x80 && (u[2] & 0xc0) == 0x80 &&
	    (u[0] != 0xe0 || u[1] >= 0xa0) && (u[0] != 0xed || u[1] <= 0x9f))
		return 3;
	if (n >= 4 && u[0] >= 0xf0 && u[0] <= 0xf4 && (u[1] & 0xc0) == 0x80 && (u[2] & 0xc0) == 0x80 &&
	    (u[3] & 0xc0) == 0x80 && (u[0] != 0xf0 || u[1] >= 0x90) && (u[0] != 0xf4 || u[1] <= 0x8f))
		return 4;
	return 0;
}

/* Length of the JSON number that s begins with, 0 for none. s ends in a byte that is no digit. */
static inline size_t json_scan_number(const char *s)
{
	const char *p = s;

	if (*p == '-')
		p++;
	if (*p == '0') {
		p++;
	} else if (*p >= '1' && *p <= '9') {
		while (*p >= '0' && *p <= '9')
			p++;
	} else {
		return 0;
	}
	if (*p == '.') {
		if (p[1] < '0' || p[1] > '9')
			return 0;
		for (p++; *p >= '0' && *p <= '9'; p++)
			;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '+' || *p == '-')
			p++;
		if (*p < '0' || *p > '9')
			return 0;
		while (*p >= '0' && *p <= '9')
			p++;
	}
	return (size_t)(p - s);
}
