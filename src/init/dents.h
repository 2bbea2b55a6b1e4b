/*
 * The entries of a directory, as the kernel gives them: no DIR, no allocation,
 * and a position that can be returned to.
 */
#pragma once

#include <sys/types.h>

#include "defs.h"

#define DENTS_SIZE 8192

struct dents {
	size_t at, n;
	char room[DENTS_SIZE] __attribute__((aligned(8)));
};

struct dents_entry {
	const char *name; /* good until the next call */
	uint8_t type;     /* DT_* */
	off_t after;      /* lseek here to go on behind it */
};

static inline void dents_reset(struct dents *d)
{
	d->at = d->n = 0;
}
/* 1: an entry (never "." and ".."), 0: the end, -errno. */
int dents_next(struct dents *d, int fd, struct dents_entry *ret) _must_check_;
