/*
 * Text in pieces: see text_pieces.h.
 */
#include "text_pieces.h"

#include <string.h>

#include "poison.h"

/* How many bytes at the end are the beginning of a character that is not whole yet: 0 … 3. */
static size_t split_tail(struct view v)
{
	for (size_t n = 1; n <= MIN(v.n, 3u); n++) {
		unsigned char c = (unsigned char)v.p[v.n - n];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t whole = c >= 0xf0 && c <= 0xf4  ? 4
			       : c >= 0xe0 && c < 0xf0 ? 3
			       : c >= 0xc2 && c < 0xe0 ? 2
						       : 0;
		return whole > n ? n : 0;
	}
	return 0;
}

/* Passes on the bytes that were held back, with the first ones of `data` that complete their character. */
static struct view join_tail(struct text_pieces *p, struct view data,
			     void (*put)(void *arg, struct view piece), void *arg)
{
	char joined[8];
	size_t n = p->n, take = 0;

	if (n == 0)
		return data;
	memcpy(joined, p->tail, n);
	/* Up to the end of the character: continuation bytes, at most three. */
	while (take < data.n && n < 4 && ((unsigned char)data.p[take] & 0xc0) == 0x80)
		joined[n++] = data.p[take++];
	struct view v = { joined, n };
	if (take == data.n && split_tail(v) == n) { /* still not whole */
		memcpy(p->tail, joined, n);
		p->n = n;
		return VIEW("");
	}
	p->n = 0;
	put(arg, v);
	return view_skip(data, take);
}

void text_pieces_add(struct text_pieces *p, struct view data, void (*put)(void *arg, struct view piece),
		     void *arg)
{
	data = join_tail(p, data, put, arg);
	size_t tail = split_tail(data);
	if (data.n > tail)
		put(arg, view_head(data, data.n - tail));
	if (tail) {
		memcpy(p->tail, data.p + data.n - tail, tail);
		p->n = tail;
	}
}

void text_pieces_end(struct text_pieces *p, void (*put)(void *arg, struct view piece), void *arg)
{
	size_t n = p->n;

	p->n = 0;
	if (n)
		put(arg, (struct view){ p->tail, n });
}
