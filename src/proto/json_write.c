/*
 * The JSON writer. What it appends is always valid UTF-8 and, when the calls were
 * balanced, one valid document. A failed append leaves its mark in the buf; the
 * calls after it do nothing, so that one check at the end is enough.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "json_scan.h"

#include "poison.h"

#define PIECE       4096
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_out_init(struct json_out *o, struct buf *b)
{
	*o = (struct json_out){ .b = b };
}

static uint64_t level_bit(const struct json_out *o)
{
	return o->depth > 0 && o->depth <= JSON_DEPTH ? UINT64_C(1) << (o->depth - 1) : 0;
}

/* The comma before an item, except the first and the value of a key. */
static void separate(struct json_out *o)
{
	static_assert(JSON_DEPTH <= 64, "a bit for each level");

	if (o->after_key) {
		o->after_key = false;
		return;
	}
	if (o->nonempty & level_bit(o))
		buf_putc(o->b, ',');
	o->nonempty |= level_bit(o);
}

static void open_container(struct json_out *o, char bracket)
{
	separate(o);
	buf_putc(o->b, bracket);
	if (++o->depth > JSON_DEPTH && !o->b->bad)
		o->b->bad = -EOVERFLOW;
	o->nonempty &= ~level_bit(o);
}

void json_out_object(struct json_out *o)
{
	open_container(o, '{');
}

void json_out_array(struct json_out *o)
{
	open_container(o, '[');
}

void json_out_end(struct json_out *o, char bracket)
{
	assert(o->depth > 0 && !o->after_key && (bracket == '}' || bracket == ']'));
	o->depth--;
	buf_putc(o->b, bracket);
}

/* Writes the escape of c, at most 6 bytes; the end of it. */
static char *put_escape(char *p, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char short_form[256] = {
		['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
		['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
	};

	*p++ = '\\';
	if (short_form[c]) {
		*p++ = short_form[c];
		return p;
	}
	memcpy(p, "u00", 3);
	p[3] = hex[c >> 4];
	p[4] = hex[c & 15];
	return p + 5;
}

/* Bytes of v from `at` that need no escape, up to the first that is not plain ASCII. */
static size_t plain_run(struct view v, size_t at)
{
	size_t i = at;
	uint64_t w;

	while (v.n - i >= sizeof(w)) {
		memcpy(&w, v.p + i, sizeof(w));
		if (json_scan_special(w))
			break;
		i += sizeof(w);
	}
	while (i < v.n && (unsigned char)v.p[i] >= 0x20 && (unsigned char)v.p[i] < 0x80 && v.p[i] != '"' &&
	       v.p[i] != '\\')
		i++;
	return i - at;
}

int json_out_escape(struct buf *b, struct view v, size_t n, size_t *ret_used)
{
	char *start = buf_reserve(b, 6 * n + 8), *p = start;
	size_t i = 0;

	if (!start)
		return b->bad;
	while (i < n) {
		unsigned char c = (unsigned char)v.p[i];
		size_t character = c < 0x80 ? 1 : json_scan_utf8(v.p + i, v.n - i);

		if (c < 0x20 || c == '"' || c == '\\') {
			p = put_escape(p, c);
		} else if (character == 0) {
			memcpy(p, REPLACEMENT, 3);
			p += 3;
			character = 1;
		} else {
			memcpy(p, v.p + i, character);
			p += character;
		}
		i += character;
	}
	buf_commit(b, (size_t)(p - start));
	*ret_used = i;
	return 0;
}

uint64_t json_out_escaped(struct view v)
{
	uint64_t n = 0;
	char room[8];

	for (size_t i = 0; i < v.n;) {
		unsigned char c = (unsigned char)v.p[i];
		size_t character = c < 0x80 ? 1 : json_scan_utf8(v.p + i, v.n - i);

		if (c < 0x20 || c == '"' || c == '\\')
			n += (size_t)(put_escape(room, c) - room);
		else
			n += character ? character : strlen(REPLACEMENT);
		i += character ? character : 1;
	}
	return n;
}

static void put_string(struct buf *b, struct view v)
{
	size_t used;

	if (plain_run(v, 0) == v.n) { /* most strings: one piece */
		char *p = buf_reserve(b, v.n + 2);

		if (!p)
			return;
		p[0] = p[v.n + 1] = '"';
		if (v.n > 0)
			memcpy(p + 1, v.p, v.n);
		buf_commit(b, v.n + 2);
		return;
	}
	/* In pieces with room for the worst case, so that output full of line ends is quick too. */
	buf_putc(b, '"');
	while (v.n) {
		if (json_out_escape(b, v, MIN(v.n, PIECE), &used) < 0)
			return;
		v = view_skip(v, used);
	}
	buf_putc(b, '"');
}

void json_out_key_view(struct json_out *o, struct view key)
{
	assert(o->depth > 0 && !o->after_key);
	separate(o);
	put_string(o->b, key);
	buf_putc(o->b, ':');
	o->after_key = true;
}

void json_out_key(struct json_out *o, const char *key)
{
	json_out_key_view(o, view_of(key));
}

void json_out_str(struct json_out *o, struct view v)
{
	separate(o);
	put_string(o->b, v);
}

void json_out_u64(struct json_out *o, uint64_t v)
{
	char digits[20], *p = digits + sizeof(digits);

	separate(o);
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	buf_append(o->b, p, (size_t)(digits + sizeof(digits) - p));
}

void json_out_i64(struct json_out *o, int64_t v)
{
	separate(o);
	buf_printf(o->b, "%" PRId64, v);
}

void json_out_double(struct json_out *o, double v)
{
	char text[40];

	separate(o);
	if (!isfinite(v)) {
		buf_puts(o->b, "null");
		return;
	}
	if (fabs(v) < 1e15 && v == (double)(int64_t)v) {
		buf_printf(o->b, "%.0f", v);
		return;
	}
	/* What people write has few digits, so the search is short; 17 always suffice. */
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_puts(o->b, text);
}

void json_out_bool(struct json_out *o, bool v)
{
	separate(o);
	buf_puts(o->b, v ? "true" : "false");
}

void json_out_null(struct json_out *o)
{
	separate(o);
	buf_puts(o->b, "null");
}

void json_out_raw(struct json_out *o, struct view json)
{
	separate(o);
	buf_add(o->b, json);
}

void json_out_value(struct json_out *o, const struct json *j)
{
	if (o->b->bad) {
		o->after_key = false;
		return; /* ends the recursion into a tree that is too deep */
	}
	switch (j->type) {
	case JSON_NULL:
		json_out_null(o);
		break;
	case JSON_BOOL:
		json_out_bool(o, j->boolean);
		break;
	case JSON_NUMBER:
		separate(o);
		buf_add(o->b, j->text);
		break;
	case JSON_STRING:
		json_out_str(o, j->text);
		break;
	case JSON_ARRAY:
		json_out_array(o);
		for (size_t i = 0; i < j->n; i++)
			json_out_value(o, &j->items[i]);
		json_out_end(o, ']');
		break;
	case JSON_OBJECT:
		json_out_object(o);
		for (size_t i = 0; i < j->n; i++) {
			json_out_key_view(o, j->members[i].key);
			json_out_value(o, &j->members[i].value);
		}
		json_out_end(o, '}');
		break;
	}
}

void json_out_kstr(struct json_out *o, const char *key, struct view v)
{
	json_out_key(o, key);
	json_out_str(o, v);
}

void json_out_kz(struct json_out *o, const char *key, const char *z)
{
	json_out_key(o, key);
	if (z)
		json_out_str(o, view_of(z));
	else
		json_out_null(o);
}

void json_out_kstr_any(struct json_out *o, const char *key, struct view v)
{
	json_out_key(o, key);
	if (v.n)
		json_out_str(o, v);
	else
		json_out_null(o);
}

void json_out_ku64_any(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	if (v)
		json_out_u64(o, v);
	else
		json_out_null(o);
}

void json_out_ku64(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	json_out_u64(o, v);
}

void json_out_ki64(struct json_out *o, const char *key, int64_t v)
{
	json_out_key(o, key);
	json_out_i64(o, v);
}

void json_out_kbool(struct json_out *o, const char *key, bool v)
{
	json_out_key(o, key);
	json_out_bool(o, v);
}

void json_out_kmap(struct json_out *o, const char *key, const struct json_strmap *m)
{
	json_out_key(o, key);
	json_out_object(o);
	for (size_t i = 0; i < m->n; i++) {
		json_out_key_view(o, m->keys[i]);
		json_out_str(o, m->values[i]);
	}
	json_out_end(o, '}');
}
