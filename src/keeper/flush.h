/*
 * Writes out the dirty data of boxes before a snapshot freezes one of them. A separate process does it
 * (the same program with the role "flush"), because it takes as long as the disk does. While the box
 * is frozen, only the data written since then is left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "spec.h"

struct keeper;

struct flush_wish {
	uint32_t stream; /* of the call that waits; 0 when nobody does any more */
	char id[SPEC_ID + 1], box[SPEC_ID + 1];
};

/* Whether the machine has so much unwritten that a snapshot would wait for it. */
bool flush_worthwhile(void);
/* Flushes the file system of `dir` (which stays the caller's); `done` is called from the loop, also when
 * it failed: a snapshot flushes what is left. Not called when the api has gone meanwhile. */
int flush_start(struct keeper *k, int dir, const struct flush_wish *w,
		void (*done)(struct keeper *k, const struct flush_wish *w)) _must_check_;
void flush_forget_calls(struct keeper *k);
/* The role itself: fd 3 is a directory. */
int flush_main(void);
