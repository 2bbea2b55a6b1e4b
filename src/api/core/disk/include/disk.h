/*
 * Snapshots, forks and workspaces: files that outlive a box or that a box starts with.
 */
#pragma once

#include "index.h"
#include "list.h"
#include "map.h"

struct actor;
struct core;
struct tenant;

/*
 * ---- snapshots.c ----
 * Snapshots: the files of a box at one moment, named and immutable; boxes start from
 * them. The keeper has the files, the store the names, memory both.
 */

#define SNAPSHOTS_FORKS_MAX 64

struct snapshot {
	char id[BOX_ID + 1], name[SPEC_NAME_MAX + 1]; /* name may be empty */
	char source[BOX_ID + 1]; /* the box whose files it has, which may be gone; "": not known */
	const struct tenant *tenant;
	char *image, *digest;
	char backend[SPEC_BACKEND_MAX + 1]; /* of the box that it was taken of */
	uint64_t bytes, stopped_us;
	int64_t created_ms;

	/* private to src/api/core */
	bool ready; /* the keeper and the store have it */
	struct map_node by_id;
	struct list order;
};

/* By id, or by name within the actor's tenant. */
struct snapshot *snapshots_find(struct core *c, const struct actor *a, int act, struct view id_or_name,
				struct err *e) _must_check_;
/* In the order of their making. */
int snapshots_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct snapshot *s),
		   void *arg, struct err *e) _must_check_;
/* The result is a const struct snapshot *. An empty name: none. */
struct job *snapshots_create(struct core *c, const struct actor *a, struct view box, struct view name,
			     job_done *done, void *arg, struct err *e) _must_check_;
struct job *snapshots_remove(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			     void *arg, struct err *e) _must_check_;

/*
 * ---- workspaces.c ----
 * Workspaces: directories with a name of their own, which outlive boxes and are
 * mounted in those that ask for them, at /workspace or elsewhere. The keeper has the files, the
 * store the names. One box at a time may write; any number may read.
 */

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
/* The boxes that refer to it, stopped ones too; once for each place where they have it. */
void workspaces_each_user(struct core *c, const struct workspace *w,
			  void (*each)(void *arg, const struct box *b, const struct spec_workspace *at),
			  void *arg);

/*
 * ---- workspace_token.c ----
 * What opens the files of one workspace, without a key: as the tokens of a box (index.h).
 */

void workspace_token_of(const struct core *c, const struct workspace *w, char ret[TOKENS_SIZE]);
/* The workspace with this id, and somebody of its tenant. ERR_UNAUTHORIZED, also where there is none. */
const struct workspace *workspace_token_opens(const struct core *c, struct view id, struct view given,
					      struct actor *ret, struct err *e) _must_check_;
