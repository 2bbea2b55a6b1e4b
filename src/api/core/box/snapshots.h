/*
 * Snapshots: the files of a box at one moment, named and immutable; boxes start from
 * them. The keeper has the files, the store the names, memory both. fork.c makes
 * several boxes of one, by a snapshot that nobody sees.
 */
#pragma once

#include "boxes.h"

#define SNAPSHOTS_FORKS_MAX 64

struct snapshot {
	char id[BOX_ID + 1], name[SPEC_NAME_MAX + 1]; /* name may be empty */
	char source[BOX_ID + 1]; /* the box whose files it has, which may be gone; "": not known */
	const struct tenant *tenant;
	char *image, *digest;
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

/* ---- for the core itself ---- */

int snapshots_load(struct core *c, const struct store_snapshot *row, struct err *e) _must_check_;
struct snapshot *snapshots_by_id(const struct core *c, struct view id);
bool snapshots_use_image(const struct core *c, struct view digest);
/* The keeper may forget it; nobody waits. */
void snapshots_drop(struct core *c, struct view id);
void snapshots_done(struct core *c);

/* ---- fork.c ---- */

struct fork_wish {
	uint64_t count; /* 1 … SNAPSHOTS_FORKS_MAX */
	struct json_strmap metadata;
	bool has_metadata;       /* else those of the original */
	struct view name_prefix; /* the names are PREFIX-1, …; empty: none */
	bool has_ttl;            /* else as the original had at first */
	uint64_t ttl_seconds;
};

struct fork_result {
	const struct box *const *boxes;
	size_t n;
	uint64_t stopped_us; /* how long the original stood still */
};

/* The result is a const struct fork_result *. All or none. When the job is abandoned they are removed. */
struct job *fork_box(struct core *c, const struct actor *a, struct view box, const struct fork_wish *w,
		     job_done *done, void *arg, struct err *e) _must_check_;
