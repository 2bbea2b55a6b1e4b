/*
 * The child's half of native.c, between clone and exec. It shares the parent's
 * memory while the parent waits.
 */
#pragma once

#include "btrfs.h"
#include "native_sys.h"

/* Disks of a box: its own, and one of each named workspace, in their order. */
enum { NATIVE_OWN, NATIVE_NAMED, NATIVE_DISKS = NATIVE_NAMED + SPEC_WORKSPACES };

struct native_child {
	const struct native *native;
	const struct plan *plan;
	int listener, userns, v2;
	int net; /* a network namespace made ahead, or -1: cloned into a new one */
	int mounts[ELEMS(((struct plan *)0)->mounts)]; /* by the plan's index; -1: the child's own business */
	struct native_view views[NATIVE_VIEWS];
	unsigned n_views;
	int tasks[CGROUP_TREES];
	unsigned n_tasks;
	int figures[NATIVE_DISKS][BTRFS_FIGURES]; /* or -1: native_space.h */

	/* The answer: which step failed, or NULL. */
	const char *failed_step;
	int failed_errno;
	const char *failed_point; /* a path that the client chose and that cannot be mounted on, or NULL */
};

/* native_prepare: the parts of a box that has no name yet. */
struct native_next {
	struct plan plan;
	struct native_child child;
};

/*
 * Should: build the mounts, become the box's root, drop, execute PID 1.
 * Mustn't: allocate, log, touch the parent's data but for the answer, go on
 * after a step that failed, resolve a path of the image through a symlink.
 */
int native_child_main(void *arg);
/* In a network namespace of its own, whose /proc/sys is below `proc`. Also for native_refill. */
int native_child_network(int proc);
