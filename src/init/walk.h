/*
 * Walking a directory tree by descriptors: never by path, never through a link,
 * one entry at a time, so that the caller can stop and go on in another round of
 * the loop. The way down is a stack of levels of which only the deepest keep
 * their descriptor; the way back up then goes through "..", which must be the
 * directory that we came from.
 *
 * All with the rights of whoever calls.
 */
#pragma once

#include <dirent.h>
#include <limits.h>

#include "dents.h"

enum { WALK_END, WALK_ENTRY, WALK_LEAVE };

struct walk_level {
	int fd; /* -1: closed to save descriptors */
	dev_t dev;
	ino_t ino;
	off_t pos;     /* where to go on after a subdirectory */
	size_t path_n; /* of this directory's own path */
};

struct walk {
	struct walk_level *levels;
	size_t n, cap;
	struct dents dents;
	char path[PATH_MAX]; /* of the entry at hand, relative to the root, terminated */
	size_t path_n;
	off_t after; /* the entry at hand */
	bool entry;  /* there is one */
	bool strict; /* a path that does not fit is an error; else the entry is passed over */
	bool cut;    /* and this says so */
};

struct walk_entry {
	int dir;          /* that holds it; the walk's */
	const char *name; /* in it; good until the next call */
	uint8_t type;     /* DT_*, never DT_UNKNOWN */
};

/* Takes fd, an open directory. -errno: it is closed. */
int walk_start(struct walk *w, int fd) _must_check_;
void walk_done(struct walk *w); /* accepts a zeroed one */
/* WALK_ENTRY, WALK_LEAVE (a directory that was entered is done; it is the entry), WALK_END, -errno. */
int walk_next(struct walk *w, struct walk_entry *ret) _must_check_;
/* Goes into the directory that WALK_ENTRY gave. -errno: the walk goes on behind it. */
int walk_enter(struct walk *w) _must_check_;
/* How deep the entry at hand is: 1 for what is in the root. After WALK_ENTRY. */
static inline size_t walk_depth(const struct walk *w)
{
	return w->n;
}
/* A directory, not through a link; -errno. */
int walk_open(int dir, const char *name) _must_check_;
