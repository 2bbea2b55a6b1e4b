/*
 * Writing out what boxes have not written yet, before a snapshot stops one of them:
 * in a process of its own (the same program, role "flush"), since it takes as long
 * as the disk does. What is left for the moment in which the box stands still is
 * what it wrote since.
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
