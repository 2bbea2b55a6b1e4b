/*
 * Builds a template in a box of the tenant. The box counts against the quota, has the tenant's network
 * access, and expires by itself. The build runs the steps (templates_steps.c), takes a snapshot, and
 * tries the template's start command. See templates.h.
 */
#include "templates_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "create.h"
#include "images.h"
#include "log.h"
#include "remove.h"
#include "snapshots.h"
#include "templates_kept.h"
#include "who.h"
#include "poison.h"

#define PLAN_BYTES (4u * 1024 * 1024)
#define TTL_S      7200
#define USER       "user"
#define HOME       "/home/user"

void templates_run_free(struct template_run *r)
{
	if (!r)
		return;
	r->build->run = NULL;
	job_abandon(r->job);
	templates_kept_release(r->from);
	if (r->keeping)
		r->keeping->run = NULL;
	loop_cancel(r->core->loop, &r->task);
	exec_cancel(&r->exec);
	templates_layer_release(r->layer);
	buf_done(&r->lines[0]);
	buf_done(&r->lines[1]);
	buf_done(&r->text);
	arena_done(&r->arena);
	free(r);
}

bool templates_is_builder(const struct core *c, const struct box *b)
{
	LIST_EACH (it, &c->templates->all) {
		const struct template *t = CONTAINER(it, struct template, order);
		TEMPLATES_EACH_BUILD(one, t)
		if (one->run && strcmp(one->run->box, b->id) == 0)
			return true;
	}
	return false;
}

/* ---- the end ---- */

static void drop_box(struct template_run *r)
{
	struct box *b = r->box[0] && !r->core->stopping ? boxes_by_id(r->core, view_of(r->box)) : NULL;

	if (b && b->state.status != BOX_DELETING)
		remove_unwanted(b);
	r->box[0] = 0;
}

static void end(struct template_run *r)
{
	struct template *t = r->build->of;
	struct core *c = r->core;
	bool more = false;

	templates_run_free(r);
	c->templates->on_built(c, t);
	TEMPLATES_EACH_BUILD(b, t)
	more |= b->status == TEMPLATE_WAITING || b->run;
	if (!more)
		templates_layer_forget(c, t);
}

static void on_failure_stored(void *arg, const struct err *e)
{
	struct template_run *r = arg;

	core_store_result(r->core, e);
	end(r);
}

/* It is told when the store has it, and with it the steps that were kept before: see templates_status. */
static void end_failed(struct template_run *r)
{
	drop_box(r);
	job_abandon(r->job);
	r->job = NULL;
	loop_cancel(r->core->loop, &r->task);
	exec_cancel(&r->exec);
	if (r->core->stopping)
		end(r);
	else
		templates_put_row(r->build->of, on_failure_stored, r);
}

void templates_build_fail(struct template_run *r, const char *step, const char *why)
{
	struct template_build *b = r->build;

	b->status = TEMPLATE_ERROR;
	b->updated_ms = clock_wall_ms();
	snprintf(b->reason, sizeof(b->reason), "%s", why);
	snprintf(b->step, sizeof(b->step), "%s", step);
	templates_log(b, TEMPLATE_FAILURE, view_of(why));
	b->env = (struct json_strmap){ 0 };
	b->user = b->workdir = b->start = b->ready = b->record = VIEW("");
	b->sets = (struct config_sets){ 0 };
	arena_done(&b->arena);
	log_info("template %s: build %s failed: %s", b->of->id, b->id, log_quoted(view_of(why)));
	end_failed(r);
}

static void on_published(void *arg, const struct err *e)
{
	struct template_run *r = arg;

	core_store_result(r->core, e);
	if (e) {
		templates_build_fail(r, "finalize", e->msg);
		return;
	}
	templates_log(r->build, TEMPLATE_INFO, VIEW("The template is ready"));
	struct template *t = r->build->of;
	end(r);
	templates_save(t);
}

static void publish(struct template_run *r)
{
	drop_box(r);
	if (r->keys && r->n)
		memcpy(r->build->key, r->keys[r->n - 1], sizeof(r->build->key));
	templates_publish(r->build, on_published, r);
}

static void on_tried(void *arg, const void *result, const struct err *e)
{
	struct template_run *r = arg;

	r->job = NULL;
	if (!e) {
		publish(r);
		return;
	}
	struct err ignored = { 0 };
	if (!r->core->stopping &&
	    !snapshots_remove(r->core, &r->actor, view_of(r->build->snapshot), NULL, NULL, &ignored))
		log_warn("snapshot %s: not removed: %s", r->build->snapshot, ignored.msg);
	r->build->snapshot[0] = 0;
	templates_build_fail(r, "finalize", e->msg);
}

static void try_it(struct template_run *r)
{
	struct template_build *b = r->build;
	struct err failed = { 0 };

	if (!b->start.n && !b->ready.n) {
		publish(r);
		return;
	}
	/* The files are taken: what it leaves behind is in no box of the template. */
	templates_log(b, TEMPLATE_INFO, VIEW("Running the start command"));
	r->job = templates_start(r->core, &r->actor, view_of(r->box), b, true, on_tried, r, &failed);
	if (!r->job)
		on_tried(r, NULL, &failed);
}

/* Without a record its boxes' sets are those of its image. */
static void on_surveyed(void *arg, const void *result, const struct err *e)
{
	struct template_run *r = arg;

	r->job = NULL;
	if (e)
		log_warn("template %s: its sets of hosts are its image's: %s", r->build->of->id, e->msg);
	else
		templates_take_record(r->build, *(const struct view *)result);
	try_it(r);
}

static void on_snapshot(void *arg, const void *result, const struct err *e)
{
	struct template_run *r = arg;
	const struct snapshot *s = result;
	struct err failed = { 0 };

	r->job = NULL;
	if (e) {
		templates_build_fail(r, "finalize", e->msg);
		return;
	}
	memcpy(r->build->snapshot, s->id, sizeof(r->build->snapshot));
	r->job = images_survey(r->core, view_of(s->digest), view_of(s->id), on_surveyed, r, &failed);
	if (!r->job)
		on_surveyed(r, NULL, &failed);
}

void templates_build_finalize(struct template_run *r)
{
	struct err e = { 0 };

	templates_log(r->build, TEMPLATE_INFO, VIEW("Taking a snapshot"));
	r->job = snapshots_create(r->core, &r->actor, view_of(r->box), VIEW(""), on_snapshot, r, &e);
	if (!r->job)
		templates_build_fail(r, "finalize", e.msg);
}

/* ---- the beginning ---- */

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct template_run *r = arg;
	const struct box *b = result;

	r->job = NULL;
	templates_kept_release(TAKE_PTR(r->from));
	if (e) {
		templates_build_fail(r, "base", e->msg);
		return;
	}
	memcpy(r->box, b->id, sizeof(r->box));
	templates_steps_run(r);
}

/* What the base has; what the plan says itself comes first. */
static int inherit(struct template_build *b, const struct template_plan *p, struct err *e)
{
	const struct template_build *base = p->base;
	bool own = p->start.n || p->ready.n || !base;

	b->env = (struct json_strmap){ arena_array(&b->arena, SPEC_ENV_MAX, sizeof(struct view)),
				       arena_array(&b->arena, SPEC_ENV_MAX, sizeof(struct view)), 0 };
	b->user = arena_view(&b->arena, base && base->user.n ? base->user : VIEW(USER));
	b->workdir = arena_view(&b->arena, base && base->workdir.n ? base->workdir : VIEW(HOME));
	b->start = arena_view(&b->arena, own ? p->start : base->start);
	b->ready = arena_view(&b->arena, own ? p->ready : base->ready);
	if (!b->env.keys || !b->env.values || !b->user.p || !b->workdir.p || !b->start.p || !b->ready.p)
		return err_set(e, ERR_TOO_LARGE, "the template is too large");
	for (size_t i = 0; base && i < base->env.n; i++)
		if (templates_steps_set_env(b, base->env.keys[i], base->env.values[i]) < 0)
			return err_set(e, ERR_TOO_LARGE, "the template is too large");
	return 0;
}

static struct job *make_box(struct template_run *r, const struct template_plan *p, struct err *e)
{
	struct template_build *b = r->build;
	uint64_t max = r->core->config->max.ttl_seconds;
	struct view keys[] = { VIEW("template"), VIEW("build") };
	struct view values[] = { view_of(b->of->id), view_of(b->id) };
	struct box_wish w = {
		.image = p->image,
		.snapshot = p->snapshot,
		.egress = p->egress,
		.metadata = { keys, values, ELEMS(keys) },
		.limits = { .cpu = (double)b->cpu,
			    .has_cpu = b->cpu != 0,
			    .memory_mb = b->memory_mb,
			    .has_memory_mb = b->memory_mb != 0 },
		.has_ttl = true,
		.ttl_seconds = max ? MIN(max, (uint64_t)TTL_S) : TTL_S,
	};
	if (!r->from)
		return create_box(r->core, &r->actor, &w, on_created, r, e);
	const struct create_twin twin = { .snapshot = r->from->snapshot,
					  .image = r->from->image,
					  .digest = r->from->digest,
					  .origin = VIEW("") };
	w.image = r->from->image;
	w.backend = view_of(r->from->backend);
	return create_fork(r->core, &r->actor, &w, &twin, on_created, r, e);
}

/* From the base, or from where an earlier build got with the same steps; its commands are the plan's own. */
static int begin(struct template_run *r, const struct template_plan *p, struct err *e)
{
	struct template_origin done = templates_cache_find(r, p);
	struct template_plan from = *p;
	struct template_build kept = { 0 };

	if (inherit(r->build, p, e) < 0)
		return -1;
	if (done.kept) {
		kept.env = done.kept->env;
		kept.user = done.kept->user;
		kept.workdir = done.kept->workdir;
		kept.start = kept.ready = VIEW("");
		done.build = &kept;
		r->from = done.kept;
		templates_kept_hold(r->from);
	}
	if (done.build) {
		from.image = VIEW_NONE;
		from.snapshot = r->from ? VIEW_NONE : view_of(done.build->snapshot);
		from.base = done.build;
		struct view start = r->build->start, ready = r->build->ready;
		if (inherit(r->build, &from, e) < 0)
			return -1;
		r->build->start = start;
		r->build->ready = ready;
	}
	r->job = make_box(r, &from, e);
	return r->job ? 0 : -1;
}

int templates_begin(struct core *c, const struct actor *a, struct template_build *b,
		    const struct template_plan *p, struct err *e)
{
	if (b->status != TEMPLATE_WAITING)
		return err_set(e, ERR_STATE, "the build has begun already");
	if (p->n > TEMPLATES_STEPS_MAX)
		return err_set(e, ERR_INVALID, "a build has at most %d steps", TEMPLATES_STEPS_MAX);
	struct template_run *r = calloc(1, sizeof(*r));
	if (!r)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	*r = (struct template_run){ .core = c,
				    .actor = *a,
				    .build = b,
				    .arena = ARENA_INIT(PLAN_BYTES),
				    .lines = { BUF_INIT(2 * TEMPLATES_LINE_MAX),
					       BUF_INIT(2 * TEMPLATES_LINE_MAX) },
				    .text = BUF_INIT(TEMPLATES_TEXT_MAX) };
	list_init(&r->task.link);
	b->run = r;
	/* An admin's build for another tenant would leave its files with the wrong one. */
	r->actor.tenant = b->of->tenant;
	if (templates_steps_take(r, p, e) < 0 || begin(r, p, e) < 0) {
		templates_run_free(r);
		return -1;
	}
	b->status = TEMPLATE_BUILDING;
	b->updated_ms = clock_wall_ms();
	templates_log(b, TEMPLATE_INFO, VIEW("Building the template"));
	templates_steps_skipped(r);
	templates_save(b->of);
	return 0;
}
