/*
 * Memory that is freed all at once. Everything decoded from one message or one request lives in one
 * arena. An arena has a maximum; allocations beyond it return NULL.
 */
#pragma once

#include "view.h"

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used, max;
	bool secret; /* what it held is overwritten when it is given back */
};

#define ARENA_INIT(limit) ((struct arena){ .max = (limit) })

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);                /* accepts NULL; reusable afterwards */
void arena_reset(struct arena *a);               /* empties, keeps one block */
void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for any type */
void *arena_array(struct arena *a, size_t n, size_t size);
char *arena_str(struct arena *a, struct view v);        /* a terminated copy */
struct view arena_view(struct arena *a, struct view v); /* a copy; p is never NULL on success */
