/*
 * Images. The keeper stores them; the core keeps the list and resolves names.
 */
#pragma once

#include "config_sets.h"
#include "job.h"
#include "json.h"

struct actor;
struct core;

/*
 * ---- images.c ----
 * Images: the keeper keeps them, the core keeps the list of them and gives names
 * a meaning.
 */

struct image {
	struct view digest;
	struct view *names;
	size_t n_names;
	int64_t created_ms;
	bool machine;
	bool seeded;             /* of a snapshot */
	bool surveyed;           /* what it says about where packages come from is known */
	struct config_sets sets; /* as it says; none: the machine's */
	/* How it is run, of one that was made elsewhere: image_config.h. */
	struct view user, workdir;
	struct json_strmap env;
	struct json_strlist entrypoint, cmd;
};

/* The digest that a name or a digest stands for; ERR_INVALID names the field. */
int images_resolve(struct core *c, struct view name, struct view *ret_digest, struct err *e) _must_check_;
int images_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct image *i),
		void *arg, struct err *e) _must_check_;
/* NULL when there is none. */
const struct image *images_find(const struct core *c, struct view name);
/* Asks the keeper anew, and has those surveyed that were not. Also the end of remove and import. */
struct job *images_refresh(struct core *c, job_done *done, void *arg, struct err *e) _must_check_;
struct job *images_remove(struct core *c, const struct actor *a, struct view name, job_done *done, void *arg,
			  struct err *e) _must_check_;
/* An image with the files of a snapshot. The result is a const struct image *. */
struct job *images_of_snapshot(struct core *c, const struct actor *a, struct view name, struct view snapshot,
			       job_done *done, void *arg, struct err *e) _must_check_;
/* Whether an image may get this name. */
int images_check_name(struct core *c, struct view name, struct err *e) _must_check_;
