/*
 * Native walls: a plan carried out with namespaces, mounts, control groups,
 * capabilities, seccomp and Landlock.
 *
 * All namespaces but the user namespace belong to the host's user namespace. The
 * child builds its world as host root and only then enters a user namespace of
 * its own id range, drops what is left, loads the filter and executes PID 1. So
 * root in the box has no power over its mounts, links and host name even where
 * the filter would have a hole.
 */
#pragma once

#include <sys/types.h>

#include "cgroup.h"
#include "seccomp.h"
#include "walls.h"

#define NATIVE_NETS 256
/* In the root of `empty_ns`, beside a file for each of gauge_names: what hides files and directories. */
#define NATIVE_NULL  "null"
#define NATIVE_EMPTY "empty"
/* The control groups of the next box, where they can be renamed. */
#define NATIVE_NEXT "next"

struct native_next;

/* What all boxes of one keeper share; made once. */
struct native {
	struct walls walls; /* native_walls.c */
	int run;            /* likewise: the keeper's run directory, borrowed */
	struct cgroup_host cgroups;
	struct seccomp_filter filter;
	struct seccomp_filter filter_asking; /* of boxes whose PID 1 answers for the kernel: native_space.h */
	bool asks;                           /* this kernel can, and is to */
	uint32_t without; /* FEATURE_BITs that boxes do not get, though the kernel has them */
	bool spared;      /* the kernel prefers others to us when memory runs out (OOMScoreAdjust=) */
	int scratch;      /* a tmpfs of the keeper's own: templates of /sys */
	int empty_ns;     /* a mount namespace with a read-only root that has nothing of the machine */
	int init;         /* paddock-init in a sealed memfd */
	int tools;        /* a tree of ours over the image's, for boxes with sudo; -1: native_tools */
	int cpuset;       /* a group that all boxes are in, or -1: native_sys.h */
	int group_views[CGROUP_TREES]; /* native_sys.c; or -1 */
	int cpuset_tasks;              /* how they join it */
	/* Files of /proc, or -1: native_gauge.h */
	int gauge_devs[GAUGE_FILES], gauge_mounts[GAUGE_FILES];
	/* What this kernel's /proc has that boxes must not see. */
	struct native_mask {
		char name[24];
		bool dir;
	} masks[PLAN_MASKS];
	unsigned n_masks;
	/* Network namespaces made ahead: the dearest part of a start, and the same for all. */
	int host_net;
	enum netns_capture capture; /* of those to come: native_capture */
	struct native_net {
		int ns;
		struct netns_gate gate; /* its sockets for the gate */
	} nets[NATIVE_NETS];
	unsigned n_nets, wanted_nets; /* wanted: set by the keeper, at most NATIVE_NETS */
	bool swept;                   /* groups of daemons that are gone */
	struct native_next *next;     /* of the next box: native_prepare; or NULL */
	/* Detached mounts whose closing waits for an RCU grace period: closed when there is time. */
	int late[128];
	unsigned n_late;
};

struct native_box {
	pid_t pid;
	int pidfd;
	struct netns_gate gate; /* the caller's; none when its namespace was not made ahead */
};

/* The caller is root in a mount namespace of its own. `scratch` is an empty
 * directory on which the templates' tmpfs is mounted (seen by this namespace only). */
int native_open(struct native *n, const char *scratch, const char *init_path, struct err *e) _must_check_;
void native_close(struct native *n);
/* Makes the tree usr/bin/{sudo,su} (the same program as PID 1) in `dir`/tools, on the disk of the boxes: its
 * owners must be mappable. Without it no box has sudo. */
int native_tools(struct native *n, int dir, struct err *e) _must_check_;

struct native_files {
	int storage; /* the box's own directory */
	int listener;
	const int *workspaces; /* of PLAN_WORKSPACE, by index */
	const int *hosts;      /* of PLAN_HOST */
	bool prepared;         /* native_prepare was called with this storage, and a plan that is the same but
				* for its names */
};
/* The mount of a box's /dev, in no namespace. */
int native_dev(uint64_t attr) _must_check_;
/* Starts the box; the listener becomes PID 1's fd 3. On failure nothing of it is left. */
int native_start(struct native *n, const struct plan *p, const struct plan_image *image,
		 const struct native_files *files, struct native_box *ret, struct err *e) _must_check_;
/* Makes ahead what a box with this plan needs, whatever its id and its host name: groups, user namespace,
 * mounts. There is one such set at most; native_forget gives it up. */
int native_prepare(struct native *n, const struct plan *p, const struct plan_image *image,
		   const struct native_files *files, struct err *e) _must_check_;
void native_forget(struct native *n);
/* When there is time: closes what native_start left for later, but for `leave` of it. */
void native_tidy(struct native *n, unsigned leave);
/* Makes one namespace ahead; true when there is more to do. A start without one makes its own. */
bool native_refill(struct native *n);
/* The gate's sockets in the namespace of a box's PID 1; -ESRCH when that is gone. */
int native_gate(struct native *n, pid_t pid, int pidfd, enum netns_capture how,
		struct netns_gate *ret) _must_check_;
/* How boxes' connections come to the gate from now on: as `wish` says, or by the first way that works here
 * ("auto"). Adds what was found to the posture. */
int native_capture(struct native *n, struct view wish, struct posture *p, struct err *e) _must_check_;
