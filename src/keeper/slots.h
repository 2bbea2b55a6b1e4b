/*
 * Uid ranges, one per running box, unique on the whole machine: several keepers
 * share one table in a file, each record naming the run directory that holds the
 * range. A record whose run directory is gone is free, so nothing leaks when a
 * keeper is killed.
 */
#pragma once

#include "err.h"

struct slots {
	int fd;
	uint32_t n;
	uint32_t next; /* where to look first */
};

/* /run/paddock-uids.<base>: keepers with the same base share it. */
int slots_open(struct slots *s, uint32_t base, uint32_t n, struct err *e) _must_check_;
void slots_close(struct slots *s);
/* `holder` is a path that exists as long as the range is used (a box's run directory). */
int slots_take(struct slots *s, const char *holder, uint32_t *ret, struct err *e) _must_check_;
/* The directory that holds a range moves, and holds it as `holder`. */
int slots_move(struct slots *s, uint32_t slot, const char *holder, int from_dir, const char *from, int to_dir,
	       const char *to) _must_check_;
/* After the holder is gone: saves the next taker the look at it. */
void slots_free(struct slots *s, uint32_t slot);
