/*
 * Masking: see mask.h.
 */
#include "mask.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"
#include "poison.h"

#define FORM_MAX    (512u * 1024)
#define SIZE_DIGITS 8 /* of a chunk */

void mask_init(struct mask *m)
{
	*m = (struct mask){ .held = { .max = FORM_MAX, .secret = true } };
}

void mask_done(struct mask *m)
{
	while (m->words) {
		struct mask_word *w = m->words;
		m->words = w->next;
		explicit_bzero(w, sizeof(*w) + w->n);
		free(w);
	}
	buf_done(&m->held);
	m->longest = m->told = 0;
}

static int add_word(struct mask *m, struct view v)
{
	if (v.n < MASK_LEAST)
		return 0;
	for (const struct mask_word *w = m->words; w; w = w->next)
		if (view_eq((struct view){ w->bytes, w->n }, v))
			return 0;
	struct mask_word *w = malloc(sizeof(*w) + v.n);
	if (!w)
		return -ENOMEM;
	w->n = v.n;
	memcpy(w->bytes, v.p, v.n);
	w->next = m->words;
	m->words = w;
	m->longest = MAX(m->longest, v.n);
	return 0;
}

/* Within a longer text the value may begin at each of three places of a group; what the bytes beside it
 * have a part in is left out. */
static int add_base64(struct mask *m, struct view value)
{
	static const size_t front[] = { 0, 2, 3 };

	for (size_t shift = 0; shift < 3; shift++) {
		_cleanup_(buf_done) struct buf plain = { .max = FORM_MAX, .secret = true }, coded = plain;
		buf_append(&plain, "\0\0", shift);
		buf_add(&plain, value);
		size_t whole = (shift + value.n) / 3 * 4 + ((shift + value.n) % 3 * 4 + 1) / 3;
		size_t tail = (shift + value.n) % 3 ? 1 : 0;
		if (text_base64(&coded, buf_view(&plain)) < 0 || whole < front[shift] + tail + 2 * MASK_LEAST)
			continue;
		struct view core =
			view_head(view_skip(buf_view(&coded), front[shift]), whole - front[shift] - tail);
		int r = add_word(m, core);
		for (size_t i = 0; r == 0 && i < core.n; i++) /* the alphabet of URLs */
			if (core.p[i] == '+' || core.p[i] == '/')
				((char *)core.p)[i] = core.p[i] == '+' ? '-' : '_';
		if (r == 0)
			r = add_word(m, core);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Percent-encoded: with the slash as it is, and as we put it into targets ourselves; in both cases of the
 * digits. */
static int add_percent(struct mask *m, struct view value, bool slash)
{
	_cleanup_(buf_done) struct buf out = { .max = FORM_MAX, .secret = true };

	if ((slash ? text_percent_all(&out, value) : text_percent(&out, value)) < 0)
		return 0;
	int r = add_word(m, buf_view(&out));
	for (size_t i = 0; i + 2 < out.n; i++)
		for (size_t k = i + 1; out.p[i] == '%' && k <= i + 2; k++)
			if (out.p[k] >= 'A' && out.p[k] <= 'F')
				out.p[k] += 32;
	return r == 0 ? add_word(m, buf_view(&out)) : r;
}

/* As JSON has it, where some escape the slash, too. */
static int add_json(struct mask *m, struct view v, bool slash)
{
	_cleanup_(buf_done) struct buf out = { .max = FORM_MAX, .secret = true };

	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] == '"' || v.p[i] == '\\' || (slash && v.p[i] == '/'))
			buf_putc(&out, '\\');
		buf_putc(&out, v.p[i]);
	}
	return out.bad ? 0 : add_word(m, buf_view(&out));
}

/* As HTML has it: nobody agrees about the quote. */
static int add_html(struct mask *m, struct view v, const char *quote)
{
	_cleanup_(buf_done) struct buf out = { .max = FORM_MAX, .secret = true };

	for (size_t i = 0; i < v.n; i++)
		switch (v.p[i]) {
		case '&':
			buf_puts(&out, "&amp;");
			break;
		case '<':
			buf_puts(&out, "&lt;");
			break;
		case '>':
			buf_puts(&out, "&gt;");
			break;
		case '"':
			buf_puts(&out, "&quot;");
			break;
		case '\'':
			buf_puts(&out, quote);
			break;
		default:
			buf_putc(&out, v.p[i]);
		}
	return out.bad ? 0 : add_word(m, buf_view(&out));
}

static int add_hex(struct mask *m, struct view v, const char *digits)
{
	_cleanup_(buf_done) struct buf out = { .max = FORM_MAX, .secret = true };

	for (size_t i = 0; i < v.n; i++) {
		buf_putc(&out, digits[(uint8_t)v.p[i] >> 4]);
		buf_putc(&out, digits[v.p[i] & 15]);
	}
	return out.bad ? 0 : add_word(m, buf_view(&out));
}

int mask_add(struct mask *m, struct view value)
{
	int r = add_word(m, value);

	for (int slash = 0; r == 0 && slash < 2; slash++) {
		r = add_percent(m, value, slash);
		if (r == 0)
			r = add_json(m, value, slash);
		if (r == 0)
			r = add_html(m, value, slash ? "&#x27;" : "&#39;");
		if (r == 0)
			r = add_hex(m, value, slash ? "0123456789ABCDEF" : "0123456789abcdef");
	}
	return r == 0 ? add_base64(m, value) : r;
}

static void star_out(const struct mask *m, char *p, size_t n)
{
	for (const struct mask_word *w = m->words; w; w = w->next) {
		char *at = p;
		while ((at = memmem(at, n - (size_t)(at - p), w->bytes, w->n))) {
			/* By the letter, so that a longer form that holds it is still found: each word is
			 * looked for in what is there, and what is a star was one of them. */
			memset(at, '*', w->n);
			at += w->n;
		}
	}
}

/* How much of the end may be the beginning of a word. */
static size_t open_end(const struct mask *m, const char *p, size_t n)
{
	size_t most = m->longest ? MIN(m->longest - 1, n) : 0;

	for (size_t k = most; k > 0; k--)
		for (const struct mask_word *w = m->words; w; w = w->next)
			if (k < w->n && p[n - k] == w->bytes[0] && memcmp(p + n - k, w->bytes, k) == 0)
				return k;
	return 0;
}

int mask_through(const struct mask *m, struct buf *held, struct view data, struct buf *out)
{
	if (!m->words && !buf_len(held))
		return buf_add(out, data);
	int r = buf_add(held, data);
	if (r < 0)
		return r;
	star_out(m, held->p + held->head, buf_len(held));
	size_t keep = open_end(m, held->p + held->head, buf_len(held)), go = buf_len(held) - keep;
	r = buf_add(out, view_head(buf_view(held), go));
	buf_consume(held, go);
	return r;
}

int mask_put(struct mask *m, struct view data, struct buf *out)
{
	return mask_through(m, &m->held, data, out);
}

/* ---- in the chunks of HTTP, by their looks ---- */

/* The length of what stands between two chunks, CRLF size CRLF; 0: that is not here. `ret_open`: it may
 * become one. */
static size_t border(struct view v, bool *ret_open)
{
	size_t n = 2;

	*ret_open = false;
	if (v.p[0] != '\r' || (v.n > 1 && v.p[1] != '\n'))
		return 0;
	while (n < v.n && n < 2 + SIZE_DIGITS && isxdigit((unsigned char)v.p[n]))
		n++;
	if (n < v.n && (n == 2 || v.p[n] != '\r'))
		return 0;
	*ret_open = n + 1 >= v.n;
	return !*ret_open && v.p[n + 1] == '\n' ? n + 2 : 0;
}

/* Everything but borders. `ret_open`: where one may have begun that is not over, `ret_before`: how much
 * stands before it. */
static int flatten(struct view raw, struct buf *out, size_t *ret_open, size_t *ret_before)
{
	bool open;

	*ret_open = raw.n;
	*ret_before = 0;
	for (size_t i = 0; i < raw.n;) {
		size_t n = border(view_skip(raw, i), &open);
		if (open && *ret_open == raw.n) {
			*ret_open = i;
			*ret_before = buf_len(out);
		}
		if (!n)
			buf_putc(out, raw.p[i++]);
		i += n;
	}
	if (*ret_open == raw.n)
		*ret_before = buf_len(out);
	return out->bad;
}

/* Back between the borders; where the byte `stop` of it has come to. */
static size_t unflatten(char *raw, size_t n, struct view flat, size_t stop)
{
	size_t at = n, k = 0;
	bool open;

	for (size_t i = 0; i < n;) {
		size_t skip = border((struct view){ raw + i, n - i }, &open);
		if (!skip && k == stop)
			at = i;
		if (!skip)
			raw[i++] = flat.p[k++];
		i += skip;
	}
	return at;
}

/* A border that is not over has gone on already, where no word stands open before it: nothing waits for it.
 * It is remembered all the same, as what comes next is read differently behind a size. */
int mask_put_chunked(struct mask *m, struct view data, struct buf *out)
{
	_cleanup_(buf_done) struct buf flat = { .max = FORM_MAX, .secret = true };
	size_t open, before;
	int r = m->words ? buf_add(&m->held, data) : buf_add(out, data);

	if (r < 0 || !m->words || !buf_len(&m->held))
		return r;
	r = flatten(buf_view(&m->held), &flat, &open, &before);
	if (r < 0)
		return r;
	size_t hold = 0;
	if (flat.n) {
		star_out(m, flat.p, flat.n);
		size_t across = open_end(m, flat.p, before); /* goes on behind the border, if that is one */
		hold = flat.n - open_end(m, flat.p, flat.n);
		hold = across ? MIN(hold, before - across) : hold;
	}
	size_t go = unflatten(m->held.p + m->held.head, buf_len(&m->held), buf_view(&flat), hold),
	       keep = MIN(go, open);
	r = buf_add(out, view_skip(view_head(buf_view(&m->held), go), m->told));
	buf_consume(&m->held, keep);
	m->told = go - keep;
	return r;
}

int mask_text(const struct mask *m, struct view text, struct buf *out)
{
	size_t before = buf_len(out);
	int r = buf_add(out, text);

	if (r == 0 && text.n)
		star_out(m, out->p + out->head + before, text.n);
	return r;
}

int mask_end(struct mask *m, struct buf *out)
{
	int r = buf_add(out, view_skip(buf_view(&m->held), m->told));

	buf_clear(&m->held);
	m->told = 0;
	return r;
}
