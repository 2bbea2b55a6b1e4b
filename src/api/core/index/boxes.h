/*
 * The index of boxes, for the core itself: see index.h. A box is found here by its id, its name or in turn,
 * whoever made it; what becomes of it is the business of the rooms above. What such a room keeps of each box
 * is a part of the box (struct box_part), which it registers: this room knows none of them.
 */
#pragma once

#include "arena.h"
#include "index.h"
#include "job.h"
#include "list.h"
#include "loop.h"
#include "map.h"
#include "spec.h"
#include "store.h"

struct core;
struct tenant;

/*
 * What a room keeps of every box, and what it wants to hear of it. Every member may be left out. The table of
 * all parts stands in core.c; they are called in its order.
 */
struct box_part {
	size_t slot, size; /* of the pointer in struct box_inside, and of what it points to, zeroed */
	void (*init)(struct box *b);
	/* It is being made: finds what its spec names. */
	int (*make)(struct box *b, struct err *e);
	/* It is about to start: whether it can. */
	int (*start)(struct box *b, struct err *e);
	/* From its spec, when it is made, claimed or loaded; a part that was taken before is replaced. */
	int (*take)(struct box *b, struct err *e);
	/* It was found in the store, and nothing is refused any more. */
	void (*loaded)(struct box *b);
	/* Somebody was permitted to use it. */
	int (*use)(struct box *b, struct err *e);
	/* Whether it is there, its status, its limits or its tenant changed. */
	void (*changed)(struct box *b);
	/* It is BOX_RUNNING from now on. */
	void (*runs)(struct box *b);
	/* Its row is deleted next: whatever else has to go with it, in the same transaction. */
	void (*row_goes)(struct box *b);
	/* It goes; `why` is what somebody is told who waits for something. Accepts a half-built box. */
	void (*forget)(struct box *b, const struct err *why);
};

/* The index. */
struct boxes {
	const struct box_part *const *parts; /* to the first that is NULL */
	struct map by_id, by_name;
	struct list all;   /* by (created, id) */
	unsigned n;        /* that are in the list */
	unsigned n_hidden; /* that are not */
	unsigned n_pool;   /* of both, that wait in the pool or are made for it */
};

/* Many creates at once: whatever is not needed for them can wait (create.c). */
struct rush {
	uint64_t since_ms, until_ms; /* counted since; it lasts until */
	unsigned n, under_way;
};

/* What of a box only the core sees. */
struct box_inside {
	struct core *core;
	struct arena arena;     /* of the spec */
	struct arena labels;    /* of metadata that were changed */
	int64_t used_stored_ms; /* the last use that the store knows */
	bool for_pool;          /* and is nobody's while it is made */
	bool hidden;  /* ours, for an import or a workspace's files: known by its id only, in no store, in no
			 list */
	bool expired; /* its time is over: it is being removed */
	bool pooled;  /* warm, waiting to be claimed: indexed, but seen by nobody (pool.c) */
	bool early;   /* box_wish.early was called, and exec_ahead by it */
	bool readied; /* and has what was wanted for those that wait (pool_ready) */
	bool indexed, named;
	enum life_step step;    /* that is under way: life.c */
	enum box_status before; /* while it is BOX_DELETING: what it was */
	bool in_vault;          /* the vault knows it */
	bool granted;           /* the gate may have secrets for it */
	bool trusts;            /* it was told of the installation's authority */
	struct map_node by_id, by_name;
	struct list order;
	struct loop_task freeing;
	/* Parts. A room that may not include another's header sees a pointer without contents. */
	struct guest *guest;
	struct life *life;
	struct quota_mark *quota;
	struct history *history;
	struct box_egress *egress;
	struct box_trust *browsers;
	struct list pool;                                  /* of its image's pool */
	struct list shells;                                /* shells.c */
	struct list bridges;                               /* bridges.c */
	struct workspace *workspaces[SPEC_WORKSPACES_MAX]; /* of the spec's; NULL: it is gone */
	struct contexts *contexts;                         /* contexts.c; NULL until the first use */
	struct allowance_doc *ai;                          /* allowances.c; NULL: nothing was said */
	struct creation *creation;                         /* create.c, while it is being made */
	struct farewell *farewell;                         /* farewell.c, while its program runs */
	struct mounts *mounts;                             /* mounts.c, while something is being mounted */
};

/* A box is one piece of memory: what everybody sees, what only the core sees, then the parts. */
struct box_whole {
	struct box box;
	struct box_inside in;
};
/* The box that has this among its own. */
#define BOX_OF(ptr, member) (&CONTAINER(ptr, struct box_whole, in.member)->box)

void boxes_init(struct core *c, const struct box_part *const *parts);
struct box *boxes_new(struct core *c, const struct tenant *t);
/* Into the indexes and the list (a hidden one by its id alone); ERR_CONFLICT when the name is taken. */
int boxes_index(struct box *b, struct err *e) _must_check_;
void boxes_unindex(struct box *b);
/* At the end of the batch: whatever is on the stack may still look at it. */
void boxes_free_later(struct box *b);
/* Ask or tell its parts: see struct box_part. */
int boxes_make(struct box *b, struct err *e) _must_check_;
int boxes_start(struct box *b, struct err *e) _must_check_;
int boxes_take(struct box *b, struct err *e) _must_check_;
void boxes_changed(struct box *b);
void boxes_row_goes(struct box *b);
void boxes_set_status(struct box *b, enum box_status s, bool store);
int boxes_load(struct core *c, const struct store_box *row, struct err *e) _must_check_;
void boxes_done(struct core *c);

/*
 * ---- boxes_row.c ----
 * Its row in the store.
 */

#define BOXES_POOL_STATUS "pool" /* of one that waits to be claimed */

/* How far the store's knowledge of the last use may be behind. */
#define BOXES_USED_LAG_MS 1000

/* Writes the status to the store; false: this box is not there, and done is not called. */
bool boxes_store_status(const struct box *b, store_done *done, void *arg);
/* The box as a row: `write` is store_box_put or store_box_claim. `done` when it is written. */
typedef void boxes_write(struct store *s, const struct store_box *row, store_done *done, void *arg);
int boxes_write_row(struct box *b, const char *status, boxes_write *write, store_done *done, void *arg,
		    struct err *e) _must_check_;
/* Writes spec, metadata and deadlines to the store. */
int boxes_store_change(struct box *b, store_done *done, void *arg, struct err *e) _must_check_;
/* The same for a client that waits; the result is the box. */
struct job *boxes_keep_change(struct box *b, job_done *done, void *arg, struct err *e) _must_check_;
