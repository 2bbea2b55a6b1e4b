/*
 * Walls: how a box is kept apart from its machine. Each kind (a "backend") is a struct of
 * functions; the keeper opens each kind once, holds them in a table by name, and calls them
 * through this header only. A new kind is a folder of its own and one line in src/keeper/serve.c.
 *
 * What every kind may rely on: the keeper has made a plan (plan.h), the box's storage with the
 * plan's directories, and a run directory for the box that only root can enter. What every kind
 * owes: one process of the host (pid, pidfd) whose end is the end of the box, also after a restart
 * of the keeper, and a stream to the box's PID 1, which is always paddock-init.
 */
#pragma once

#include <sys/types.h>

#include "cgroup.h"
#include "gauge.h"
#include "netns.h"
#include "plan.h"
#include "posture.h"

#define WALLS_KINDS 8

/* What a kind can do on this machine. Clients see the names. */
enum walls_can {
	WALLS_CAPTURE = 1u << 0,           /* "capture": every connection of a box comes to the gate */
	WALLS_DISK_QUOTA = 1u << 1,        /* "disk_quota": a limit for a box's files */
	WALLS_FOREIGN_SNAPSHOTS = 1u << 2, /* "foreign_snapshots": starts from those of other backends */
	WALLS_MEMORY_SNAPSHOTS = 1u << 3,  /* "memory_snapshots": processes are part of a snapshot */
	WALLS_OWN_KERNEL = 1u << 4,        /* "own_kernel": a box does not share the host's */
	WALLS_PAUSE = 1u << 5,             /* "pause" */
	WALLS_SNAPSHOTS = 1u << 6,         /* "snapshots": of a box's files */
};
#define WALLS_CANS 7

struct walls_ops;

/* One kind of walls, opened. The first member of the kind's own struct. */
struct walls {
	const struct walls_ops *ops;
	unsigned can;               /* enum walls_can; set by probe and open */
	enum netns_capture capture; /* how the boxes to come reach the gate */
	struct posture posture;     /* what this machine gives; boxes start when it is ok */
	struct posture untried;     /* the same before the keeper's trial box */
};

struct walls_setup {
	const char *run_path; /* the keeper's run directory */
	int run;
	const char *init; /* the path of paddock-init */
	struct view cgroup_parent;
	struct view capture; /* egress.capture */
	unsigned parts;      /* how many of each part are made ahead */
	uint32_t without;    /* FEATURE_BITs that boxes do not get: posture.without */
};

/* What a start is given. The fds stay the caller's. */
struct walls_start {
	const struct plan *plan;
	const struct plan_image *image;
	int storage;           /* the box's own directory */
	int run;               /* the box's run directory */
	const int *workspaces; /* of the plan's PLAN_WORKSPACE, by index */
	const int *hosts;      /* of PLAN_HOST */
	bool prepared; /* with what `prepare` made for this storage, and a plan that differs in names alone */
};

/* A box that runs, as its walls know it. */
struct walls_box {
	struct walls *walls;
	const char *id;
	pid_t pid;                  /* 0: reaped */
	int pidfd;                  /* the keeper's to close; -1: none */
	enum netns_capture capture; /* what its network was made for; it stays so */
	void *own;                  /* the kind's, made by start or adopt, freed by clear */
};

struct walls_usage {
	uint64_t memory_bytes, cpu_usec, pids, oom_kills, net_rx_bytes, net_tx_bytes;
};

/* What an instance of paddock-gauge is given. */
struct walls_gauge {
	int devices[GAUGE_FILES]; /* the caller's to close */
	int dirs[CGROUP_TREES];   /* of control groups, below which a box has its id as a name; borrowed */
	unsigned n_dirs;
};

struct walls_ops {
	const char *name; /* the backend's: [a-z0-9-], less than SPEC_BACKEND characters */
	size_t size;      /* of the kind's own struct, which is zeroed memory at first */

	/* What this machine can give: fills posture and can, holds nothing that open does not need.
	 * Fails only for a setup that cannot be. */
	int (*probe)(struct walls *w, const struct walls_setup *s, struct err *e);
	/* Makes what all boxes share. Fails only for a setup that cannot be; a machine that
	 * cannot give it is a required part of the posture that is not ok. */
	int (*open)(struct walls *w, const struct walls_setup *s, struct err *e);
	/* The boxes' disk is there: makes what boxes have of it. May be NULL. */
	int (*furnish)(struct walls *w, int disk, struct err *e);
	/* `empty`: no box lives, so nothing of ours has to stay on the machine. */
	void (*close)(struct walls *w, bool empty);

	/* Makes what the next start needs, whatever its box is called: at most one such set, which `start`
	 * takes or `forget` gives up. Both or neither may be NULL. */
	int (*prepare)(struct walls *w, const struct walls_start *s, struct err *e);
	void (*forget)(struct walls *w);
	/* The box runs, or nothing of it is left. ret_gate: its sockets for the gate where they were
	 * made ahead, else none. */
	int (*start)(struct walls *w, const struct walls_start *s, struct walls_box *ret,
		     struct netns_gate *ret_gate, struct err *e);
	/* After a restart of the keeper: id, pid, pidfd and capture are known. NULL: nothing else is needed.
	 */
	int (*adopt)(struct walls *w, struct walls_box *b, int run);
	/* A connected stream to PID 1, never blocking; or -errno. */
	int (*connect)(struct walls *w, const struct walls_box *b, int run);
	/* Ends it without waiting. Also one that was started halfway: then nothing but its id is known. */
	void (*kill)(struct walls *w, const struct walls_box *b);
	/* Removes what is left of a box that has ended. -EBUSY: not yet, sweep tries again. */
	int (*clear)(struct walls *w, struct walls_box *b);
	/* Ends and clears boxes that are not `known`; true: something is left for later. May be NULL. */
	bool (*sweep)(struct walls *w, bool (*known)(void *arg, const char *id), void *arg);

	/* Stops it or lets it go on; returns when that is so. -ETIMEDOUT: it goes on. With WALLS_PAUSE. */
	int (*freeze)(struct walls *w, const struct walls_box *b, bool on, int wait_ms);
	int (*frozen)(struct walls *w, const struct walls_box *b, bool *ret);
	/* Other limits, at once. -EBUSY: it uses more memory than that. NULL: they stay as they are. */
	int (*limit)(struct walls *w, const struct walls_box *b, const struct box_limits *l);
	/* Of a frozen box: puts what a snapshot needs besides the files into the storage. NULL: nothing. */
	int (*snapshot)(struct walls *w, const struct walls_box *b, int storage, struct err *e);
	int (*usage)(struct walls *w, const struct walls_box *b, struct walls_usage *ret);
	/* New sockets for the gate; -ESRCH when the box is gone. NULL: its boxes have no way out. */
	int (*gate)(struct walls *w, const struct walls_box *b, enum netns_capture how,
		    struct netns_gate *ret);

	/* -EOPNOTSUPP: boxes have no such files. NULL: the same. */
	int (*gauge)(struct walls *w, struct walls_gauge *ret);
	/* Whether there are requests that no instance has read. */
	bool (*gauge_waits)(struct walls *w);

	/* When there is time: makes one part ahead (true: there is more to do); closes what start
	 * left open, but for so many. Each may be NULL. */
	bool (*refill)(struct walls *w);
	void (*tidy)(struct walls *w, unsigned leave);
};

/* ---- the table ---- */

struct walls_table {
	struct walls *all[WALLS_KINDS];
	unsigned n;
};

/* Probes and opens a kind and adds it. What the machine cannot give is in its posture. */
int walls_add(struct walls_table *t, const struct walls_ops *ops, const struct walls_setup *s,
	      struct err *e) _must_check_;
/* NULL and ERR_INVALID with the names that there are. */
struct walls *walls_find(const struct walls_table *t, struct view backend, struct err *e);
void walls_close(struct walls_table *t, bool empty);
const char *walls_can_name(unsigned bit); /* 0 … WALLS_CANS - 1 */

/* ---- one kind, one box ---- */

/* ERR_WALLS with the part of the posture that is missing. */
int walls_usable(const struct walls *w, struct err *e) _must_check_;
int walls_freeze(const struct walls_box *b, bool on, int wait_ms) _must_check_;      /* or -EOPNOTSUPP */
int walls_limit(const struct walls_box *b, const struct box_limits *l) _must_check_; /* or -EOPNOTSUPP */
bool walls_frozen(const struct walls_box *b);
int walls_usage(const struct walls_box *b, struct walls_usage *ret) _must_check_;
int walls_snapshot(const struct walls_box *b, int storage, struct err *e) _must_check_;
int walls_gate(const struct walls_box *b, enum netns_capture how, struct netns_gate *ret) _must_check_;
/* Makes the plan's directories in a box's storage, where they are not there yet. */
int walls_storage(const struct plan *p, int storage, struct err *e) _must_check_;
