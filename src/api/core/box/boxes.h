/*
 * The boxes: an index in memory over what the store holds and the keeper runs.
 * boxes.c has the index and the lists, create.c and remove.c the two ways that
 * change it, life.c and lifetime.c what happens in between.
 */
#pragma once

#include "guest.h"
#include "history.h"
#include "job.h"
#include "policies.h"
#include "quotas.h"
#include "spec.h"
#include "store.h"
#include "trust.h"

struct actor;
struct allowance_doc;
struct contexts;
struct mounts;
struct core;
struct tenant;
struct workspace;

#define BOX_ID 20

enum box_status { BOX_NONE, BOX_CREATING, BOX_RUNNING, BOX_PAUSED, BOX_STOPPED, BOX_DELETING, BOX_STATUSES };

/* What is; the wish is in spec. */
struct box_state {
	enum box_status status;
	int64_t created_ms, expires_ms; /* expires_ms 0: never */
	int64_t used_ms;                /* the last use */
	int64_t disk_used;              /* bytes, when it was last asked for; negative: not known */
};

/* A change between running, paused and stopped that is under way: life.c. */
enum life_step { LIFE_NONE, LIFE_PAUSE, LIFE_RESUME, LIFE_STOP, LIFE_START };
struct life {
	enum life_step step;
	struct call call;
	struct list waiters; /* jobs */
	bool resume_after;   /* somebody wants to use it that is being paused */
	bool remove_after;   /* its removal waits for the end of this */
	struct err failed;   /* of a start that is being undone */
};

struct box {
	char id[BOX_ID + 1];
	const struct tenant *tenant;
	struct box_spec spec;
	struct box_state state;

	/* private to src/api/core */
	struct core *core;
	struct arena arena;  /* of the spec */
	struct arena labels; /* of metadata that were changed */
	struct guest guest;
	struct life life;
	struct list shells;          /* shells.c */
	struct list bridges;         /* bridges.c */
	struct contexts *contexts;   /* contexts.c; NULL until the first use */
	struct workspace *workspace; /* a named one, or NULL */
	int64_t used_stored_ms;      /* the last use that the store knows */
	bool hidden; /* ours, for an import or a workspace's files: known by its id only, in no store, in no
			list */
	bool pooled; /* warm, waiting to be claimed: indexed, but seen by nobody (pool.c) */
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

const char *boxes_status_name(enum box_status s);
enum box_status boxes_status(struct view name); /* BOX_NONE for what is none */
/* ERR_NOT_FOUND, always in the same words. */
int boxes_unknown(struct err *e);

/* By id, or by name within the actor's tenant. NULL and e when there is none that `act` is permitted on. */
struct box *boxes_find(struct core *c, const struct actor *a, int act, struct view id_or_name,
		       struct err *e) _must_check_;

/* To change it, which must wait until it is made. */
struct box *boxes_find_made(struct core *c, const struct actor *a, struct view id_or_name,
			    struct err *e) _must_check_;

/* The first that a client may know of and that fits; NULL: none. What finds it must prove that it may. */
const struct box *boxes_match(const struct core *c, bool (*fits)(void *arg, const struct box *b), void *arg);

/* Learns what the box has on disk (state.disk_used). The result is a const struct box *. */
struct job *boxes_measure(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			  void *arg, struct err *e) _must_check_;

#define BOXES_PAGE_MAX    1000
#define BOXES_CURSOR_SIZE 48
struct box_filter {
	enum box_status status;      /* BOX_NONE: any */
	struct json_strmap metadata; /* all of these */
	struct view cursor;          /* `next` of the page before */
	unsigned limit;              /* 1 … BOXES_PAGE_MAX; for the core's own count any */
	bool newest_first;
	/* What else is asked of it; may be NULL. */
	bool (*fits)(const struct box *b, const void *arg);
	const void *fits_arg;
};
/* A page in the order of creation, or against it. ret_next is "" on the last one. */
int boxes_list(struct core *c, const struct actor *a, const struct box_filter *f,
	       void (*each)(void *arg, const struct box *b), void *arg, char ret_next[BOXES_CURSOR_SIZE],
	       struct err *e) _must_check_;

/* create.c. The result is a const struct box *. When the job is abandoned the box is removed again. */
struct job *create_box(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
		       void *arg, struct err *e) _must_check_;
/* An internal box for an import: in no list. The caller removes it. */
struct job *create_hidden(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* The same, to reach the files of a workspace; who asks has been judged. */
struct job *create_helper(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* A box with the files of another: `snapshot` is the keeper's. */
struct create_twin {
	const char *snapshot;
	struct view image, digest, origin;
};
struct job *create_fork(struct core *c, const struct actor *a, const struct box_wish *w,
			const struct create_twin *twin, job_done *done, void *arg,
			struct err *e) _must_check_;
/* BoxCreate for this box: new, or with the files that it has. */
int create_ask_keeper(struct box *b, struct call *call, const char *snapshot, bool existing) _must_check_;

/* remove.c */
struct job *remove_box(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
		       void *arg, struct err *e) _must_check_;
/* Nobody wants it any more: tries until it works. */
void remove_unwanted(struct box *b);
/* The same, and says when the first try is over. NULL: nobody will be told. */
struct job *remove_unwanted_then(struct box *b, job_done *done, void *arg) _must_check_;
/* The keeper has ended it in its own way (ImageCommit). */
void remove_gone(struct box *b);
/* What life.c was about is over. */
void remove_go_on(struct box *b);

/* ---- for the core itself ---- */

struct box *boxes_new(struct core *c, const struct tenant *t);
/* Into the indexes and the list (a hidden one by its id alone); ERR_CONFLICT when the name is taken. */
int boxes_index(struct box *b, struct err *e) _must_check_;
void boxes_unindex(struct box *b);
/* At the end of the batch: whatever is on the stack may still look at it. */
void boxes_free_later(struct box *b);
void boxes_set_status(struct box *b, enum box_status s, bool store);
/* Writes spec, metadata and deadlines to the store. */
int boxes_store_change(struct box *b, store_done *done, void *arg, struct err *e) _must_check_;
void boxes_exited(struct core *c, struct view id, unsigned signo, bool oom);
int boxes_load(struct core *c, const struct store_box *row, struct err *e) _must_check_;
struct box *boxes_by_id(struct core *c, struct view id);
void boxes_stop(struct core *c); /* ends every link */
void boxes_done(struct core *c);
