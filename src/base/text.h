/*
 * Hex, base64, UTF-8, percent-encoding, and quoting for logs.
 */
#pragma once

#include "buf.h"

void text_hex(const void *p, size_t n, char *dst);               /* writes 2n characters and a NUL */
int text_unhex(struct view v, void *dst, size_t n) _must_check_; /* exactly n bytes, -EINVAL */
int text_base64(struct buf *out, struct view in);
int text_unbase64(struct buf *out, struct view in) _must_check_; /* strict, padded; -EINVAL */
bool text_is_utf8(struct view v);  /* strict: no surrogates, no overlong forms */
bool text_is_plain(struct view v); /* and no control characters but those that space it out */
/* Length of the longest prefix that is whole UTF-8 (cuts a split character at the end). */
size_t text_utf8_prefix(struct view v);
/* Whether all of it is the beginning of one character. */
bool text_utf8_begins(struct view v);
/* The same text with U+FFFD for every byte that is not part of a character. */
int text_utf8_fix(struct buf *out, struct view in);
/* %XX decoding; plus_is_space for query strings. -EINVAL for a bad escape. */
int text_unpercent(struct buf *out, struct view in, bool plus_is_space) _must_check_;
int text_percent(struct buf *out, struct view in);     /* everything but unreserved and '/' */
int text_percent_all(struct buf *out, struct view in); /* '/', too */
/* For logs: "…" with control and non-ASCII bytes as \xNN, cut at `max` bytes. */
int text_quote(struct buf *out, struct view in, size_t max);
/* One word for sh, whatever it holds: 'a b'. */
int text_quote_word(struct buf *out, struct view in);
