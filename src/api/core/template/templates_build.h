/*
 * A build that is under way: what templates_build.c (its box, its snapshot, its end) and
 * templates_steps.c (what is run in the box) share.
 */
#pragma once

#include "exec.h"
#include "templates.h"
#include "who.h"

#define TEMPLATES_LINE_MAX 4096
#define TEMPLATES_TEXT_MAX (512u * 1024)

struct template_run {
	struct core *core;
	struct actor actor;
	struct template_build *build;
	struct arena arena; /* of the steps */
	struct template_step *steps;
	size_t n, at;
	char box[BOX_ID + 1];
	struct exec exec;
	struct loop_task task;
	struct job *job;
	struct buf lines[2], text; /* of its output; what a step says to us */
	struct template_layer *layer;
	uint64_t offset;
	int64_t saved_ms;
	char key[TEMPLATES_KEY + 1]; /* of all its steps */
};

/* ---- templates_build.c ---- */
void templates_build_fail(struct template_run *r, const char *step,
			  const char *why);            /* and its end: r is gone */
void templates_build_finalize(struct template_run *r); /* all steps are done */

/* ---- templates_cache.c ---- */
/* The build from whose files it can begin, and r->at behind the steps that need not run; NULL: none. */
const struct template_build *templates_cache_find(struct template_run *r, const struct template_plan *p);

/* ---- templates_steps.c ---- */
/* Says which steps were run before. */
void templates_steps_skipped(struct template_run *r);
/* The steps of a plan, checked and copied. */
int templates_steps_take(struct template_run *r, const struct template_plan *p, struct err *e) _must_check_;
/* Runs them, beginning at r->at, from the loop. */
void templates_steps_run(struct template_run *r);
int templates_steps_set_env(struct template_build *b, struct view key, struct view value) _must_check_;
