/*
 * Placeholders: see place.h.
 */
#include "place.h"

#include <errno.h>

#include "text.h"
#include "poison.h"

/* Braces as they are, and in both spellings of an escape. */
static const struct {
	struct view open, close;
} forms[] = {
	{ VIEW("{{secret."), VIEW("}}") },
	{ VIEW("%7B%7Bsecret."), VIEW("%7D%7D") },
	{ VIEW("%7b%7bsecret."), VIEW("%7d%7d") },
};

static bool is_name(char c, bool first)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
	return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

static size_t name_length(struct view v)
{
	size_t n = 0;
	while (n < v.n && n < PLACE_NAME && is_name(v.p[n], n == 0))
		n++;
	return n;
}

static bool starts(struct view text, struct view word)
{
	return text.n >= word.n && memcmp(text.p, word.p, word.n) == 0;
}

bool place_find(struct view text, size_t from, struct place *ret)
{
	for (size_t at = from; at < text.n; at++) {
		if (text.p[at] != '{' && text.p[at] != '%')
			continue;
		struct view here = view_skip(text, at);
		for (size_t i = 0; i < ELEMS(forms); i++) {
			if (!starts(here, forms[i].open))
				continue;
			struct view rest = view_skip(here, forms[i].open.n);
			size_t n = name_length(rest);
			if (n && starts(view_skip(rest, n), forms[i].close)) {
				*ret = (struct place){ at, forms[i].open.n + n + forms[i].close.n,
						       view_head(rest, n) };
				return true;
			}
		}
	}
	return false;
}

/* Whether all of `v` can still become a placeholder. */
static bool may_become(struct view v)
{
	for (size_t i = 0; i < ELEMS(forms); i++) {
		struct view open = forms[i].open, close = forms[i].close;
		if (v.n <= open.n) {
			if (starts(open, v))
				return true;
			continue;
		}
		if (!starts(v, open))
			continue;
		struct view rest = view_skip(v, open.n);
		size_t n = name_length(rest);
		struct view end = view_skip(rest, n);
		if (end.n < close.n && (n || !end.n) && starts(close, end))
			return true;
	}
	return false;
}

size_t place_open_end(struct view text)
{
	size_t most = MIN(text.n, PLACE_NAME + 32);

	for (size_t k = most; k > 0; k--) {
		struct view end = view_skip(text, text.n - k);
		if ((end.p[0] == '{' || end.p[0] == '%') && may_become(end))
			return k;
	}
	return 0;
}

int place_fill(struct view text, bool percent, place_value *value, void *arg, struct buf *out,
	       struct view *ret_name)
{
	struct place p;
	size_t at = 0;

	while (place_find(text, at, &p)) {
		struct view v;
		if (!value(arg, p.name, &v)) {
			*ret_name = p.name;
			return -ENOENT;
		}
		buf_add(out, view_head(view_skip(text, at), p.at - at));
		if (percent)
			text_percent_all(out, v); /* a value never changes the path that was judged */
		else
			buf_add(out, v);
		at = p.at + p.n;
	}
	return buf_add(out, view_skip(text, at));
}
