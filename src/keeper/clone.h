/*
 * Copies a unit where storage is plain directories (`data.backend: copy`). A separate process does it
 * (the same program with the role "copy", which drops privileges and executes cp), because it takes as
 * long as there are files. A copy gets its name when it is complete.
 */
#pragma once

#include "list.h"
#include "loop.h"
#include "spec.h"

struct keeper;

struct clone {
	void (*done)(struct clone *c, int error); /* set by the caller, which frees it then */
	uint32_t stream;                          /* of the call that waits; 0 when nobody does any more */
	char name[SPEC_ID + 1];                   /* of the copy */

	/* private to clone.c */
	struct keeper *k;
	struct list node;
	struct loop_io exit;
	pid_t pid;
	int dir;
};

/* Copies what is in the directory `from` to dir/NAME; both stay the caller's. Embedded,
 * zeroed but for the first three. `done` is called from the loop, always, once. */
int clone_start(struct keeper *k, int from, int dir, struct clone *c) _must_check_;
/* Those that a keeper which was killed has left. */
void clone_clear(int dir, int trash);
void clone_forget_calls(struct keeper *k);
/* The role itself: fd 3 is the source, 4 the empty directory that becomes its copy. */
int clone_main(void);
