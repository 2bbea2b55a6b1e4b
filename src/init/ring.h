/*
 * The last bytes of an output, by absolute offset. Memory is mapped with the
 * first byte and touched page by page; a ring that holds nothing costs nothing.
 *
 * The ring does not know its readers: whoever appends says (`floor`) which
 * bytes must not be overwritten, and what lies before may go when there is need.
 */
#pragma once

#include "view.h"

struct ring {
	char *p;             /* mapped while there is something in it */
	size_t size;         /* the most that it holds */
	size_t at;           /* place of the oldest byte */
	uint64_t begin, end; /* offsets of the oldest byte, and behind the newest */
};

void ring_init(struct ring *r, size_t size);
/* How many bytes may be appended without touching those from `floor` on. */
size_t ring_room(const struct ring *r, uint64_t floor);
/* Where to read at most *ret_n bytes into (what is there in one piece); NULL: no room, or no memory. */
char *ring_reserve(struct ring *r, uint64_t floor, size_t *ret_n);
void ring_commit(struct ring *r, size_t n); /* drops of the oldest what the new ones have overwritten */
/* What is there in one piece from an offset (not before begin) on. */
struct view ring_peek(const struct ring *r, uint64_t offset);
void ring_drop(struct ring *r, uint64_t before); /* what nobody will ask for again */
void ring_skip(struct ring *r, uint64_t n);      /* bytes that came and could not be kept: a gap */
void ring_forget(struct ring *r);                /* drops everything and gives the memory back */
