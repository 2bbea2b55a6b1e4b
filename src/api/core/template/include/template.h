/*
 * Templates: named starting points of boxes. A build runs its steps in a box of the tenant. Its result
 * is a snapshot together with the settings that boxes of the template get besides their files.
 */
#pragma once

#include "box.h"
#include "config_sets.h"
#include "list.h"

struct actor;
struct core;
struct snapshot;
struct template;
struct template_layer;
struct template_run;
struct tenant;

/*
 * ---- templates.c ----
 * Templates: names for what boxes start from. A build runs steps in a box of the
 * tenant's own and ends as a snapshot with what such boxes have besides their files
 * (environment, user, directory, the command that is started in them). A tag of a
 * template is one of its builds.
 *
 * templates.c has the index and the tags, templates_rows.c the rows, templates_build.c runs the steps,
 * templates_layer.c holds uploaded files until then, templates_start.c starts and awaits
 * a template's command. The store has all of them; a build that a restart interrupts ends with that reason.
 */

#define TEMPLATES_TAGS_MAX  32
#define TEMPLATES_STEPS_MAX 500
#define TEMPLATES_PAGE      100 /* log entries of an answer */
#define TEMPLATES_HASH_MAX  128
#define TEMPLATES_BUILD_ID  36
#define TEMPLATES_KEY       64

enum template_status { TEMPLATE_WAITING, TEMPLATE_BUILDING, TEMPLATE_READY, TEMPLATE_ERROR };
enum template_level { TEMPLATE_DEBUG, TEMPLATE_INFO, TEMPLATE_WARN, TEMPLATE_FAILURE };

struct template_log {
	int64_t at_ms;
	enum template_level level;
	char *text;
};

struct template_build {
	char id[TEMPLATES_BUILD_ID + 1]; /* a UUID: clients parse it as one */
	char snapshot[BOX_ID + 1];       /* "" until it is ready */
	struct template *of;
	enum template_status status;
	int64_t created_ms, updated_ms;
	uint64_t cpu, memory_mb;                          /* of its boxes; 0: the default */
	char tags[TEMPLATES_TAGS_MAX][SPEC_NAME_MAX + 1]; /* that it has, or will have when it is ready */
	size_t n_tags;
	/* of its boxes, in the arena */
	struct arena arena;
	struct json_strmap env;
	struct view user, workdir, start, ready;
	struct view record;      /* what its files say about where packages come from: see config_sets.h */
	struct config_sets sets; /* and what that means; none: as its image says */
	struct template_log *logs;
	size_t n_logs;
	char reason[192], step[16];  /* why and where it failed */
	char key[TEMPLATES_KEY + 1]; /* of what it was made from: see templates_cache.c */

	/* private to src/api/core */
	size_t log_bytes;
	struct list order;
	struct template_run *run;
	bool interrupted; /* by a restart; the store does not know yet */
};

struct template
{
	char id[BOX_ID + 1], name[SPEC_NAME_MAX + 1];
	const struct tenant *tenant;
	int64_t created_ms;
	struct list builds; /* in the order of their making */

	/* private to src/api/core */
	struct core *core;
	struct list order;
	bool removing;
};

#define TEMPLATES_EACH_BUILD(b, t)                                                                           \
	for (struct template_build *b = CONTAINER((t)->builds.next, struct template_build, order);           \
	     &b->order != &(t)->builds; b = CONTAINER(b->order.next, struct template_build, order))

/* By id, or by name within the actor's tenant. */
struct template *templates_find(struct core *c, const struct actor *a, int act, struct view id_or_name,
				struct err *e) _must_check_;
/* "name", "name:tag" or the same with an id: a build that is ready. */
const struct template_build *templates_resolve(struct core *c, const struct actor *a, struct view ref,
					       struct err *e) _must_check_;
struct template_build *templates_build(struct core *c, const struct actor *a, struct view template,
				       struct view build, struct err *e) _must_check_;
int templates_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct template *t),
		   void *arg, struct err *e) _must_check_;
enum template_status templates_status(const struct template_build *b);
/* The newest; NULL: they are all gone. */
const struct template_build *templates_newest(const struct template *t);
/* What the box was made from; NULL: no template, or none that still is. */
const struct template_build *templates_of_box(const struct core *c, const struct box *b);
bool templates_own_snapshot(const struct core *c, const struct snapshot *s);
/* Whether the box is there for a build. */
bool templates_is_builder(const struct core *c, const struct box *b);

struct template_wish {
	struct view name;         /* "name" or "name:tag" */
	struct json_strlist tags; /* more of them; with none at all it is "default" */
	uint64_t cpu, memory_mb;
};
/* A build that waits for its steps; the template, where there is none of this name. The result is a const
 * struct template_build *. */
struct job *templates_request(struct core *c, const struct actor *a, const struct template_wish *w,
			      job_done *done, void *arg, struct err *e) _must_check_;

struct template_step {
	struct view type; /* RUN, COPY, ENV, WORKDIR, USER */
	struct json_strlist args;
	struct view hash; /* COPY: of the upload */
	bool force;       /* it and those that follow are run, whatever was run before */
};
struct template_plan {
	struct view image, snapshot;       /* one of them, or none: the default image */
	const struct template_build *base; /* whose environment and so on it begins with; may be NULL */
	struct view start, ready;
	struct template_step *steps;
	size_t n;
	bool force;                         /* all of them */
	const struct egress_policy *egress; /* of its box, judged by policies_wish; NULL: as of any box */
};
int templates_begin(struct core *c, const struct actor *a, struct template_build *b,
		    const struct template_plan *p, struct err *e) _must_check_;

/* The result is a const struct template_build *. */
struct job *templates_tag(struct core *c, const struct actor *a, struct view target,
			  const struct json_strlist *tags, job_done *done, void *arg,
			  struct err *e) _must_check_;
/* A build that has lost its last tag is removed. */
struct job *templates_untag(struct core *c, const struct actor *a, struct view name,
			    const struct json_strlist *tags, job_done *done, void *arg,
			    struct err *e) _must_check_;
/* Boxes that were made from it live on. */
struct job *templates_remove(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			     void *arg, struct err *e) _must_check_;

/* What a box of this build starts with, under what the wish says itself. The arena is the wish's. */
int templates_to_wish(const struct template_build *b, struct arena *a, struct box_wish *w,
		      struct err *e) _must_check_;

/* ---- templates_start.c ---- */

/* Starts what the template starts, and waits until it says that it is ready. The result is a const struct
 * box *. Unless it is `trial` (in the box of the build itself), a failure removes the box. */
struct job *templates_start(struct core *c, const struct actor *a, struct view box,
			    const struct template_build *b, bool trial, job_done *done, void *arg,
			    struct err *e) _must_check_;

/* ---- templates_layer.c ---- */

/* Whether the files of this hash are there. */
bool templates_layer_present(const struct core *c, const struct template *t, struct view hash);
int templates_layer_sign(struct core *c, const struct actor *a, struct view template, struct view hash,
			 char ret_signature[65], int64_t *ret_expires, struct err *e) _must_check_;
/* An upload, by whoever has the signature. */
struct template_layer *templates_layer_open(struct core *c, struct view template, struct view hash,
					    struct view expires, struct view signature,
					    struct err *e) _must_check_;
int templates_layer_write(struct template_layer *l, struct view data, struct err *e) _must_check_;
void templates_layer_commit(struct template_layer *l);
void templates_layer_abort(struct template_layer *l);
