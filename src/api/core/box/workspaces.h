/*
 * Workspaces: directories with a name of their own, which outlive boxes and are
 * mounted at /workspace in those that ask for them. The keeper has the files, the
 * store the names. One box at a time may write; any number may read.
 *
 * workspace_helper.c: the files without a box. A hidden box mounts the workspace and
 * is kept for a while.
 */
#pragma once

#include "boxes.h"

struct workspace {
	char id[BOX_ID + 1], name[SPEC_NAME_MAX + 1];
	const struct tenant *tenant;
	uint64_t disk_mb; /* 0: no quota */
	int64_t created_ms;
	bool readonly; /* a snapshot of another: it never changes */

	/* private to src/api/core */
	bool ready; /* the keeper and the store have it, and nobody removes it */
	struct map_node by_id;
	struct list order;
	struct box *helper;
	bool making;         /* the helper is being made */
	struct list waiters; /* jobs, for the helper */
};

struct workspace_info {
	const struct workspace *workspace;
	uint64_t used_bytes;
};

struct workspace_wish {
	struct view name, clone_of; /* clone_of empty: none */
	uint64_t disk_mb;
	bool has_disk_mb, readonly;
};

/* By name within the actor's tenant, or by id. */
struct workspace *workspaces_find(struct core *c, const struct actor *a, int act, struct view name_or_id,
				  struct err *e) _must_check_;
/* The result is a const struct workspace_info *. */
struct job *workspaces_create(struct core *c, const struct actor *a, const struct workspace_wish *w,
			      job_done *done, void *arg, struct err *e) _must_check_;
struct job *workspaces_show(struct core *c, const struct actor *a, struct view name, job_done *done,
			    void *arg, struct err *e) _must_check_;
struct job *workspaces_remove(struct core *c, const struct actor *a, struct view name, job_done *done,
			      void *arg, struct err *e) _must_check_;
/* The result is a const struct workspace_list *, in the order of their making. */
struct workspace_list {
	const struct workspace_info *items;
	size_t n;
};
struct job *workspaces_list(struct core *c, const struct actor *a, job_done *done, void *arg,
			    struct err *e) _must_check_;
/* The boxes that refer to it, stopped ones too. */
void workspaces_each_user(struct core *c, const struct workspace *w,
			  void (*each)(void *arg, const struct box *b), void *arg);

/* The files of a workspace are below /workspace of the box that this gives: a const struct box *,
 * hidden, known to boxes_find by its id. `act` is ACT_WORKSPACE_READ or ACT_WORKSPACE_WRITE. */
struct job *workspace_helper(struct core *c, const struct actor *a, int act, struct view name, job_done *done,
			     void *arg, struct err *e) _must_check_;

/* ---- for the core itself ---- */

int workspaces_load(struct core *c, const struct store_workspace *row, struct err *e) _must_check_;
struct workspace *workspaces_by_id(const struct core *c, struct view id);
struct workspace *workspaces_by_name(const struct core *c, const struct tenant *t, struct view name);
/* Whether the box may use its workspace now: ERR_CONFLICT when another one writes there. */
int workspaces_check(const struct box *b, struct err *e) _must_check_;
/* A box is going. */
void workspaces_forget(struct box *b);
/* The keeper may forget it; nobody waits. */
void workspaces_drop(struct core *c, struct view id);
void workspaces_done(struct core *c);
