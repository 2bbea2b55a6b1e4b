/*
 * See ring.h.
 */
#include "ring.h"

#include <sys/mman.h>

#include "poison.h"

void ring_init(struct ring *r, size_t size)
{
	*r = (struct ring){ .size = size };
}

void ring_forget(struct ring *r)
{
	if (r->p)
		(void)munmap(r->p, r->size);
	r->p = NULL;
	r->begin = r->end;
	r->at = 0;
}

void ring_skip(struct ring *r, uint64_t n)
{
	r->end += n;
	ring_forget(r);
}

size_t ring_room(const struct ring *r, uint64_t floor)
{
	return r->size - (size_t)(r->end - MIN(MAX(floor, r->begin), r->end));
}

static size_t place(const struct ring *r, uint64_t offset)
{
	return (r->at + (size_t)(offset - r->begin)) % r->size;
}

static bool map(struct ring *r)
{
	void *p = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	if (p == MAP_FAILED)
		return false;
	/* A huge page for the first byte of an idle shell would be a thousandfold waste. */
	(void)madvise(p, r->size, MADV_NOHUGEPAGE);
	r->p = p;
	return true;
}

char *ring_reserve(struct ring *r, uint64_t floor, size_t *ret_n)
{
	size_t room = ring_room(r, floor);
	if (room == 0 || (!r->p && !map(r)))
		return NULL;
	if (room == r->size && r->begin == r->end)
		r->at = 0; /* in one piece, and where the cache is warm */
	size_t to = place(r, r->end);
	*ret_n = MIN(room, r->size - to);
	return r->p + to;
}

void ring_commit(struct ring *r, size_t n)
{
	r->end += n;
	if (r->end - r->begin <= r->size)
		return;
	size_t drop = (size_t)(r->end - r->begin) - r->size;
	r->at = (r->at + drop) % r->size;
	r->begin += drop;
}

void ring_drop(struct ring *r, uint64_t before)
{
	if (before <= r->begin)
		return;
	r->at = place(r, before);
	r->begin = before;
}

struct view ring_peek(const struct ring *r, uint64_t offset)
{
	assert(offset >= r->begin);
	if (offset >= r->end)
		return VIEW_NONE;
	size_t from = place(r, offset);
	return (struct view){ r->p + from, MIN((size_t)(r->end - offset), r->size - from) };
}
