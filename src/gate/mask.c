/*
 * Masking: see mask.h.
 */
#include "mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "place.h"
#include "text.h"
#include "poison.h"

#define FORM_MAX (512u * 1024)

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
	m->longest = 0;
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
		struct view core = view_head(view_skip(buf_view(&coded), front[shift]), whole - front[shift] - tail);
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

/* Percent-encoded: with the slash as it is, and as we put it into targets ourselves; in both cases of the digits. */
static int add_percent(struct mask *m, struct view value, bool slash)
{
	_cleanup_(buf_done) struct buf out = { .max = FORM_MAX, .secret = true };

	if (slash)
		place_percent(&out, value);
	else
		(void)text_percent(&out, value);
	if (out.bad)
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
			/* By the letter, so that a longer form that holds it is still found: each word is looked
			 * for in what is there, and what is a star was one of them. */
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
	int r = buf_add(out, buf_view(&m->held));

	buf_clear(&m->held);
	return r;
}
