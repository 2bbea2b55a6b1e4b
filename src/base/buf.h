/*
 * A growable run of bytes that knows its maximum from birth. Appending past the
 * maximum fails with -ENOBUFS and marks the buffer (`bad`), as does a failed
 * allocation (-ENOMEM), so that a chain of appends needs one check at its end.
 */
#pragma once

#include <stdarg.h>

#include "view.h"

struct buf {
	char *p;
	size_t n, cap, max;
	size_t head; /* bytes consumed at the front, see buf_consume */
	int bad;     /* 0 or the first -errno */
	bool secret; /* what it held is overwritten when it is consumed, moved or given back */
};

#define BUF_INIT(limit) ((struct buf){ .max = (limit) })

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b); /* accepts NULL; leaves an empty buffer of the same maximum */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_add(struct buf *b, struct view v);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) _printf_(2, 0);
/* Room for at least n more bytes, to be followed by buf_commit; NULL when there is none. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
/* Drops n bytes at the front; cheap, memory moves only now and then. */
void buf_consume(struct buf *b, size_t n);
void buf_clear(struct buf *b);
/* Gives memory back when the buffer is empty and large. */
void buf_shrink(struct buf *b);

static inline struct view buf_view(const struct buf *b)
{
	return (struct view){ b->head ? b->p + b->head : b->p, b->n - b->head }; /* p may be NULL */
}
static inline size_t buf_len(const struct buf *b)
{
	return b->n - b->head;
}
static inline size_t buf_room(const struct buf *b)
{
	return b->max - (b->n - b->head);
}
