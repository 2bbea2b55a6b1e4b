/*
 * Control groups, version 1, version 2 and both at once, detected per
 * controller. A `struct cgroup_host` says where each controller lives and where
 * our subtree begins in it; a group is a name that is made in every hierarchy.
 *
 * What cannot be set is an error that names it, never a warning.
 */
#pragma once

#include "buf.h"
#include "err.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_CPUACCT, CGROUP_CONTROLLERS };

/* One hierarchy in which we make groups. */
struct cgroup_tree {
	int dir; /* our subtree: the directory in which groups are made */
	bool v2;
	unsigned controllers; /* bits of enum cgroup_controller */
	char path[256];       /* of dir, for messages */
};

#define CGROUP_TREES (CGROUP_CONTROLLERS + 1)

struct cgroup_host {
	struct cgroup_tree trees[CGROUP_TREES];
	unsigned n;
	int lock;                /* cgroup_lock, or -1 */
	int unified;             /* index of the v2 tree (kill, and birth in the group), or -1 */
	bool swap_limit;         /* swap can be limited, or there is none */
	bool socket_limit;       /* buffers of sockets can be limited */
	bool no_kill, no_freeze; /* cgroup.kill and cgroup.freeze are not used, though they are there */
	char why[CGROUP_CONTROLLERS][96]; /* "" or the reason why a controller cannot be had */
};

struct cgroup_limits {
	uint64_t memory_bytes;
	uint32_t cpu_milli, pids;
};

struct cgroup_usage {
	uint64_t memory_bytes, cpu_usec, pids, oom_kills;
};

/* Finds the controllers and makes `parent`/`instance` below our own group in each
 * hierarchy. Missing controllers are noted in `why`, they fail at cgroup_make. */
int cgroup_open(struct cgroup_host *h, const char *parent, const char *instance, struct err *e) _must_check_;
/* Where the subtrees are, as text, and back: a later start, perhaps from another
 * group, must find the groups of boxes that live on. -ENOENT when one is gone. */
int cgroup_save(const struct cgroup_host *h, struct buf *out) _must_check_;
int cgroup_restore(struct cgroup_host *h, struct view text) _must_check_;
/* Says that our subtrees are in use, until cgroup_close. -ESTALE: one was removed meanwhile. */
int cgroup_lock(struct cgroup_host *h) _must_check_;
/* Removes empty groups beside our subtrees whose daemon is gone; only a few where there are many. */
void cgroup_remove_stale(const struct cgroup_host *h);
/* Removes our (empty) subtree directories and closes. */
void cgroup_close(struct cgroup_host *h);

/* Makes the group in all hierarchies with its limits. On failure nothing is left. */
int cgroup_make(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l,
		struct err *e) _must_check_;
/* Version 1 can rename groups. There they can be made before it is known whom they are for; version 2's are
 * made then (cgroup_take, which leaves nothing on failure). */
bool cgroup_renames(const struct cgroup_host *h);
int cgroup_make_ahead(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l,
		      struct err *e) _must_check_;
int cgroup_take(const struct cgroup_host *h, const char *ahead, const char *name,
		const struct cgroup_limits *l, struct err *e) _must_check_;
/* Other limits for a group that is there. -EBUSY: more memory is in use than that. */
int cgroup_limit(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l) _must_check_;
/* A group's part of the processors is `times` that of one as it was made. */
int cgroup_weigh(const struct cgroup_host *h, const char *name, unsigned times) _must_check_;
/* By what a child joins: the "tasks" files of v1, to which it writes "0" (ret_tasks, *ret_n of them, the
 * caller closes), and the directory of v2 to be born in (or -1). */
int cgroup_task_fds(const struct cgroup_host *h, const char *name, int ret_tasks[CGROUP_TREES],
		    unsigned *ret_n, struct err *e) _must_check_;
int cgroup_unified_fd(const struct cgroup_host *h, const char *name, int *ret, struct err *e) _must_check_;
/* Kills everything in the group; does not wait. 0 also when it is gone already. */
int cgroup_kill(const struct cgroup_host *h, const char *name) _must_check_;
/* Stops or lets go everything in the group; returns when it stands still (at most
 * wait_ms, then -ETIMEDOUT and it runs again). -EOPNOTSUPP without a v2 tree. */
int cgroup_freeze(const struct cgroup_host *h, const char *name, bool freeze, int wait_ms) _must_check_;
int cgroup_frozen(const struct cgroup_host *h, const char *name, bool *ret) _must_check_;
/* -EBUSY while something lives in it; 0 when it is gone. */
int cgroup_remove(const struct cgroup_host *h, const char *name) _must_check_;
int cgroup_usage(const struct cgroup_host *h, const char *name, struct cgroup_usage *ret) _must_check_;
/* Calls fn for every group of our subtree in any hierarchy (a name may come several times). */
void cgroup_each(const struct cgroup_host *h, void (*fn)(void *arg, const char *name), void *arg);
