/*
 * What the core itself sees and does of boxes: see box.h. boxes.c has the index and the lists,
 * create.c and remove.c the two ways that change it.
 */
#pragma once

#include "box.h"
#include "guest.h"
#include "history.h"
#include "job.h"
#include "policies.h"
#include "quotas.h"
#include "spec.h"
#include "store.h"
#include "trust.h"

struct allowance_doc;
struct contexts;
struct farewell;
struct mounts;
struct core;
struct tenant;
struct workspace;

/* The index. */
struct boxes {
	struct map by_id, by_name;
	struct list all;   /* by (created, id) */
	unsigned n;        /* that are in the list */
	unsigned n_hidden; /* that are not */
};

/* Of creates: create.c. */
struct rush {
	uint64_t since_ms, until_ms; /* counted since; it lasts until */
	unsigned n, under_way;
};

/* core_retire: retire.c. */
struct retire {
	unsigned waits;
	void (*done)(void *arg);
	void *arg;
};

struct life {
	enum life_step step;
	struct call call;
	struct list waiters;          /* jobs */
	struct life_storing *storing; /* the last step, until the store has it */
	bool resume_after;            /* somebody wants to use it that is being paused */
	bool remove_after;            /* its removal waits for the end of this */
	struct err failed;            /* of a start that is being undone */
};

/* What of a box only the core sees. */
struct box_inside {
	struct core *core;
	struct arena arena;  /* of the spec */
	struct arena labels; /* of metadata that were changed */
	struct guest guest;
	struct life life;
	struct list shells;                                /* shells.c */
	struct list bridges;                               /* bridges.c */
	struct contexts *contexts;                         /* contexts.c; NULL until the first use */
	struct workspace *workspaces[SPEC_WORKSPACES_MAX]; /* of the spec's; NULL: it is gone */
	int64_t used_stored_ms;                            /* the last use that the store knows */
	bool for_pool;                                     /* and is nobody's while it is made */
	bool hidden;  /* ours, for an import or a workspace's files: known by its id only, in no store, in no
			 list */
	bool expired; /* its time is over: it is being removed */
	bool pooled;  /* warm, waiting to be claimed: indexed, but seen by nobody (pool.c) */
	bool early;   /* box_wish.early was called, and exec_ahead by it */
	bool readied; /* and has what was wanted for those that wait (pool_ready) */
	struct list pool; /* of its image's pool */
	struct quota_mark quota;
	struct box_egress egress;
	struct allowance_doc *ai; /* allowances.c; NULL: nothing was said */
	struct history history;
	bool indexed, named;
	struct map_node by_id, by_name;
	struct list order;
	struct loop_timer expiry;  /* its end; then the retries of its removal */
	struct creation *creation; /* create.c, while it is being made */
	struct farewell *farewell; /* farewell.c, while its program runs */
	struct mounts *mounts;     /* mounts.c, while something is being mounted */
	bool in_vault;             /* the vault knows it */
	bool granted;              /* the gate may have secrets for it */
	bool trusts;               /* it was told of the installation's authority */
	struct box_trust browsers; /* trust.c */
	struct call destroy;       /* remove.c from here on */
	struct list waiters;       /* jobs */
	enum box_status before;
	bool unwanted; /* removal is retried until it works */
	struct loop_task freeing;
};

/* A box is one piece of memory: what everybody sees, then what only the core sees. */
struct box_whole {
	struct box box;
	struct box_inside in;
};
/* The box that has this among its own. */
#define BOX_OF(ptr, member) (&CONTAINER(ptr, struct box_whole, in.member)->box)
/* An internal box for an import: in no list. The caller removes it. */
struct job *create_hidden(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* The same, to reach the files of a workspace; who asks has been judged. */
struct job *create_helper(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* The same, for the pool: it is nobody's. */
struct job *create_for_pool(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			    void *arg, struct err *e) _must_check_;
/* A box with the files of another: `snapshot` is the keeper's. */
struct create_twin {
	const char *snapshot;
	struct view image, digest, origin;
};
struct job *create_fork(struct core *c, const struct actor *a, const struct box_wish *w,
			const struct create_twin *twin, job_done *done, void *arg,
			struct err *e) _must_check_;
/* A client's create begins or ends. Many at once, or one upon another, are a rush (core.rush): whatever is
 * not needed for them can wait. */
void create_rush(struct core *c, bool begins);
/* A creation is over: for the metrics. */
void create_count(struct core *c, uint64_t began_ns, bool failed);
/* BoxCreate for this box: new, or with the files that it has. */
int create_ask_keeper(struct box *b, struct call *call, const char *snapshot, bool existing) _must_check_;
/* Nobody wants it any more: tries until it works. */
void remove_unwanted(struct box *b);
/* tied.c. After a start: removes those whose connection was broken by it. */
void tied_sweep(struct core *c);
/* The same, and says when the first try is over. NULL: nobody will be told. */
struct job *remove_unwanted_then(struct box *b, job_done *done, void *arg) _must_check_;
/* retire.c. One of the pool that was being made when core_retire was called; NULL: it could not be made. */
void retire_made(struct core *c, struct box *b);
/* The keeper has ended it in its own way (ImageCommit). */
void remove_gone(struct box *b);
/* What life.c was about is over. */
void remove_go_on(struct box *b);

struct box *boxes_new(struct core *c, const struct tenant *t);
/* Into the indexes and the list (a hidden one by its id alone); ERR_CONFLICT when the name is taken. */
int boxes_index(struct box *b, struct err *e) _must_check_;
void boxes_unindex(struct box *b);
/* At the end of the batch: whatever is on the stack may still look at it. */
void boxes_free_later(struct box *b);
void boxes_set_status(struct box *b, enum box_status s, bool store);
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
void boxes_exited(struct core *c, struct view id, unsigned signo, bool oom);
int boxes_load(struct core *c, const struct store_box *row, struct err *e) _must_check_;
void boxes_stop(struct core *c); /* ends every link */
void boxes_done(struct core *c);
