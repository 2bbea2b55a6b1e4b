/*
 * What a build has after each of its steps, kept so that another build need not run them: a snapshot that
 * only we know, with the variables, user and directory that the next step begins with. It outlives the build,
 * also one that failed, and a restart; it is dropped with the template that made it, when there is too much
 * of it (the longest unused first), and when the tenant's quota of disk needs the room.
 */
#pragma once

#include "money.h"
#include "templates_build.h"

struct store_setting;

struct kept_step {
	struct list order; /* of templates.kept_steps: the longest unused first */
	struct core *core;
	const struct tenant *tenant;
	char key[TEMPLATES_KEY + 1],
		parent[TEMPLATES_KEY + 1]; /* parent: what it was made from; "": the base */
	char snapshot[BOX_ID + 1], template[BOX_ID + 1], backend[SPEC_BACKEND_MAX + 1];
	struct arena arena;
	struct view image, digest, user, workdir;
	struct json_strmap env;
	uint64_t bytes;   /* of all its files: those of its parent are shared with it */
	unsigned holders; /* boxes that are being made from it */

	struct template_run *run; /* that waits for it */
	struct call call;
};

/* Keeps the state behind r->at and goes on with the next step, whether it could be kept or not. */
void templates_kept_save(struct template_run *r);
struct kept_step *templates_kept_find(const struct core *c, const struct tenant *t, const char *key);
void templates_kept_hold(struct kept_step *k); /* and it was used now */
void templates_kept_release(struct kept_step *k);

uint64_t templates_kept_held(const struct core *c, const struct tenant *t, enum ledger_item i);
/* Makes room of so many MiB, as far as that is there. */
void templates_kept_shrink(struct core *c, const struct tenant *t, uint64_t mb);
void templates_kept_forget(struct core *c, const struct template *t);
void templates_kept_forget_image(struct core *c, struct view digest);

/* A row of the settings; others' are passed over. */
int templates_kept_load(struct core *c, const struct store_setting *s) _must_check_;
bool templates_kept_has(const struct core *c, struct view snapshot);
/* What the keeper has: without its files nothing is kept. */
void templates_kept_verify(struct core *c, const struct view *snapshots, size_t n);
void templates_kept_done(struct core *c);
