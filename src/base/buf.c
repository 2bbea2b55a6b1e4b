/*
 * Buffers with a maximum: see buf.h.
 */
#include "buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "poison.h"

#define BUF_KEEP 16384 /* what buf_shrink leaves allocated */

void buf_init(struct buf *b, size_t max)
{
	*b = BUF_INIT(max);
}

static void wipe(const struct buf *b, size_t from, size_t to)
{
	if (b->secret && b->p && to > from)
		explicit_bzero(b->p + from, to - from);
}

void buf_done(struct buf *b)
{
	if (!b)
		return;
	wipe(b, 0, b->cap);
	free(b->p);
	*b = (struct buf){ .max = b->max, .secret = b->secret };
}

void buf_clear(struct buf *b)
{
	wipe(b, 0, b->n);
	b->n = b->head = 0;
	b->bad = 0;
}

void buf_shrink(struct buf *b)
{
	if (b->n == b->head && b->cap > BUF_KEEP)
		buf_done(b);
}

static int fail(struct buf *b, int error)
{
	if (!b->bad)
		b->bad = error;
	return error;
}

/* Moves what is left to the front when that makes the room, else grows. `spare`
 * bytes are wanted behind the n, outside of the maximum: printf's NUL. */
static int make_room(struct buf *b, size_t n, size_t spare)
{
	size_t len = b->n - b->head;
	if (n > b->max - len || len > b->max)
		return fail(b, -ENOBUFS);
	if (n + spare <= b->cap - b->n)
		return 0;
	if (b->head && (n + spare <= b->cap - len) && b->head >= len) {
		memmove(b->p, b->p + b->head, len);
		wipe(b, len, b->n);
		b->n = len;
		b->head = 0;
		return 0;
	}
	size_t want = len + n + spare, cap = b->cap ? b->cap : 64;
	while (cap < want)
		cap *= 2;
	if (cap > b->max)
		cap = b->max > want ? b->max : want;
	char *p = malloc(cap);
	if (!p)
		return fail(b, -ENOMEM);
	if (len)
		memcpy(p, b->p + b->head, len);
	wipe(b, 0, b->n);
	free(b->p);
	b->p = p;
	b->cap = cap;
	b->n = len;
	b->head = 0;
	return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	if (b->bad)
		return b->bad;
	if (n == 0)
		return 0;
	int r = make_room(b, n, 0);
	if (r < 0)
		return r;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

int buf_add(struct buf *b, struct view v)
{
	return buf_append(b, v.p, v.n);
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	if (b->bad)
		return b->bad;
	va_list again;
	va_copy(again, ap);
	/* Most of what is printed is short: try the room that is there. */
	size_t room = b->cap - b->n;
	int n = vsnprintf(b->p ? b->p + b->n : NULL, b->p ? room : 0, fmt, ap);
	int r = n < 0 ? fail(b, -EINVAL) : 0;
	if (r == 0)
		r = make_room(b, (size_t)n, 1);
	if (r == 0 && (size_t)n >= room)
		vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
	va_end(again);
	if (r == 0)
		b->n += n;
	return r;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (b->bad || make_room(b, n, 0) < 0)
		return NULL;
	return b->n ? b->p + b->n : b->p;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->n);
	b->n += n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->n - b->head);
	wipe(b, b->head, b->head + n);
	b->head += n;
	if (b->head == b->n)
		b->head = b->n = 0;
}
