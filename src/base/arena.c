/*
 * Arenas: see arena.h. Blocks double in size; a request rarely needs two.
 */
#include "arena.h"

#include <stdlib.h>

#include "poison.h"

#define FIRST_BLOCK   1024
#define LARGEST_BLOCK (256u * 1024)
#define ALIGN         16

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	char data[] __attribute__((aligned(ALIGN)));
};

void arena_init(struct arena *a, size_t max)
{
	*a = ARENA_INIT(max);
}

void arena_done(struct arena *a)
{
	if (!a)
		return;
	for (struct arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		if (a->secret)
			explicit_bzero(b->data, b->used);
		free(b);
	}
	a->blocks = NULL;
	a->used = 0;
}

void arena_reset(struct arena *a)
{
	struct arena_block *keep = a->blocks;
	if (!keep)
		return;
	a->blocks = keep->next;
	arena_done(a);
	keep->next = NULL;
	if (a->secret)
		explicit_bzero(keep->data, keep->used);
	keep->used = 0;
	a->blocks = keep;
}

static struct arena_block *add_block(struct arena *a, size_t need)
{
	size_t size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
	if (size > LARGEST_BLOCK)
		size = LARGEST_BLOCK;
	if (size < need)
		size = need;
	struct arena_block *b = malloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	b->used = 0;
	b->size = size;
	b->next = a->blocks;
	a->blocks = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > a->max)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (size > a->max - a->used)
		return NULL;
	struct arena_block *b = a->blocks;
	if (!b || size > b->size - b->used) {
		b = add_block(a, size);
		if (!b)
			return NULL;
	}
	void *p = b->data + b->used;
	b->used += size;
	a->used += size;
	return memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		return NULL;
	return arena_alloc(a, total ? total : 1);
}

char *arena_str(struct arena *a, struct view v)
{
	char *p = v.n < SIZE_MAX ? arena_alloc(a, v.n + 1) : NULL;
	if (p && v.n)
		memcpy(p, v.p, v.n);
	return p;
}

struct view arena_view(struct arena *a, struct view v)
{
	char *p = arena_str(a, v);
	return p ? (struct view){ p, v.n } : VIEW_NONE;
}
