/*
 * Starting processes: a child that shares our memory and runs at once while we
 * wait (no page tables are copied), user namespaces, and what tells one process
 * from a later one with the same pid.
 */
#pragma once

#include <sys/types.h>

#include "defs.h"

struct spawn {
	uint64_t flags;       /* CLONE_NEW*; CLONE_VM|CLONE_VFORK|CLONE_PIDFD are added */
	int cgroup;           /* fd of a v2 cgroup to be born in, or -1 */
	int (*fn)(void *arg); /* on a stack of its own, in shared memory: no malloc, no stdio */
	void *arg;
};

/* Returns when the child has executed something or exited. */
int spawn_vfork(const struct spawn *s, pid_t *ret_pid, int *ret_pidfd) _must_check_;

/* A user namespace that maps 0..size-1 to base.., owned by `base` (so that the
 * per-user kernel limits are the box's own). The caller is root with
 * SECBIT_NO_SETUID_FIXUP. The short-lived process in which it was made ends by
 * itself; it is collected by the next call or by spawn_collect. */
int spawn_userns(uint32_t base, uint32_t size, int *ret_fd) _must_check_;
/* The same with maps of one line each, for idmapped mounts: `inside` is what is on the disk. */
struct spawn_map {
	uint32_t inside, outside, n;
};
int spawn_userns_mapped(uint32_t base, const struct spawn_map *uids, const struct spawn_map *gids,
			int *ret_fd) _must_check_;
void spawn_collect(void);

/* Start time in clock ticks since boot, from /proc/PID/stat. */
int spawn_start_time(pid_t pid, uint64_t *ret) _must_check_;
