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

struct kept_step;

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
	char (*keys)[TEMPLATES_KEY + 1]; /* of its steps, each with those before; NULL: none */
	char parent[TEMPLATES_KEY + 1];  /* of the state that was kept last; "": none */
	struct kept_step *from;          /* what its box is being made from */
	struct kept_step *keeping;       /* what it waits for */
};

/* Where a build begins: behind the steps that need not run. Both NULL: at its base. */
struct template_origin {
	const struct template_build *build;
	struct kept_step *kept;
};

/* ---- templates_build.c ---- */
void templates_build_fail(struct template_run *r, const char *step,
			  const char *why);            /* and its end: r is gone */
void templates_build_finalize(struct template_run *r); /* all steps are done */

/* ---- templates_cache.c ---- */
/* From whose files it can begin, and r->at behind the steps that need not run. */
struct template_origin templates_cache_find(struct template_run *r, const struct template_plan *p);

/* ---- templates_steps.c ---- */
/* Says which steps were run before. */
void templates_steps_skipped(struct template_run *r);
/* The steps of a plan, checked and copied. */
int templates_steps_take(struct template_run *r, const struct template_plan *p, struct err *e) _must_check_;
/* Runs them, beginning at r->at, from the loop. */
void templates_steps_run(struct template_run *r);
int templates_steps_set_env(struct template_build *b, struct view key, struct view value) _must_check_;
