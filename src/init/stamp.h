/*
 * What tells whether a file is still the one that it was, unchanged. The time of a change cannot be set by
 * anybody in the box.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct stamp {
	dev_t dev;
	ino_t ino; /* 0: there is no such file */
	mode_t mode;
	off_t size;
	struct timespec changed;
};

struct stamp stamp_take(const char *path);
/* Which file it is, whatever is in it. */
struct stamp stamp_take_place(const char *path);
bool stamp_same(const struct stamp *a, const struct stamp *b);
