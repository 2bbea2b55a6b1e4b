/*
 * Creates several boxes with the files of one: a hidden snapshot, the creations from it, and its
 * removal. Either all are created or none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "create.h"
#include "event.h"
#include "events.h"
#include "keeper.h"
#include "life.h"
#include "quotas.h"
#include "remove.h"
#include "rnd.h"
#include "snapshots.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 600000 /* where files are copied one by one */

struct fork;

struct twin {
	struct fork *fork;
	struct job *job; /* while it is being made */
	char id[BOX_ID + 1];
};

struct fork {
	struct job job;
	struct core *core;
	struct actor actor;
	struct arena arena;
	struct box_spec spec; /* what the new ones are like */
	struct view prefix;
	struct call call;
	char source[BOX_ID + 1], snapshot[BOX_ID + 1];
	uint64_t stopped_us;
	size_t n, begun, pending;
	struct err failed;
	struct twin twins[SNAPSHOTS_FORKS_MAX];
};

static void fork_free(struct fork *f)
{
	arena_done(&f->arena);
	free(f);
}

static void remove_twins(struct fork *f)
{
	for (size_t i = 0; i < f->begun; i++) {
		struct box *b = f->twins[i].id[0] ? boxes_by_id(f->core, view_of(f->twins[i].id)) : NULL;
		if (b)
			remove_unwanted(b);
	}
}

static void settle(struct fork *f)
{
	const struct box *boxes[SNAPSHOTS_FORKS_MAX];
	struct fork_result result = { .boxes = boxes, .stopped_us = f->stopped_us };

	if (f->pending)
		return;
	if (!f->core->stopping)
		snapshots_drop(f->core, view_of(f->spec.backend), view_of(f->snapshot));
	for (size_t i = 0; i < f->begun && !f->failed.code; i++) {
		const struct box *b = boxes_by_id(f->core, view_of(f->twins[i].id));
		if (b)
			boxes[result.n++] = b;
		else
			err_set(&f->failed, ERR_CONFLICT,
				"a sandbox was removed before the others were made");
	}
	if (f->core->stopping || (!f->failed.code && !job_abandoned(&f->job))) {
		job_finish(&f->job, &result, f->failed.code ? &f->failed : NULL);
	} else {
		remove_twins(f);
		job_finish(&f->job, NULL, &f->failed);
	}
	fork_free(f);
}

static void on_made(void *arg, const void *result, const struct err *e)
{
	struct twin *t = arg;
	struct fork *f = t->fork;
	const struct box *b = result;

	t->job = NULL;
	if (b) {
		memcpy(t->id, b->id, sizeof(t->id));
		events_emit_with(f->core, EVENT_FORKED, b, "source", view_of(f->source));
	}
	if (e && !f->failed.code)
		f->failed = *e;
	f->pending--;
	settle(f);
}

/* ---- the creations ---- */

static void make_twins(struct fork *f)
{
	const struct create_twin twin = { .snapshot = f->snapshot,
					  .image = f->spec.image,
					  .digest = f->spec.digest,
					  .origin = f->spec.origin };

	f->pending = 1; /* ours: nothing settles before all are begun */
	while (f->begun < f->n && !f->failed.code) {
		struct twin *t = &f->twins[f->begun++];
		struct box_wish w;
		char name[SPEC_NAME_MAX + 16];

		spec_to_wish(&f->spec, &w);
		if (f->prefix.n) {
			snprintf(name, sizeof(name), "%.*s-%zu", VIEW_ARG(f->prefix), f->begun);
			w.name = view_of(name);
		}
		t->fork = f;
		t->job = create_fork(f->core, &f->actor, &w, &twin, on_made, t, &f->failed);
		f->pending += t->job != NULL;
	}
	f->pending--;
	settle(f);
}

static int on_snapshot(struct call *c, const struct frame *fr, int fd)
{
	struct fork *f = CONTAINER(c, struct fork, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_snapshot_created reply;
	int r = fr->flags & FRAME_LAST ? mux_decode(c, fr->body, &wire_snapshot_created_msg, &a, &reply)
				       : -EBADMSG;

	arena_done(&a);
	if (r < 0)
		return r;
	f->stopped_us = reply.stopped_us;
	make_twins(f);
	return 0;
}

static void on_snapshot_fail(struct call *c, const struct err *e)
{
	struct fork *f = CONTAINER(c, struct fork, call);
	f->failed = *e;
	settle(f);
}

static const struct call_ops snapshot_ops = { .on_reply = on_snapshot, .on_fail = on_snapshot_fail };

/* ---- the wish ---- */

static int check(struct core *c, const struct box *b, const struct fork_wish *w, struct err *e)
{
	if (w->count < 1 || w->count > SNAPSHOTS_FORKS_MAX)
		return err_set(e, ERR_INVALID, "count must be between 1 and %d", SNAPSHOTS_FORKS_MAX);
	/* The longest has two digits. */
	if (w->name_prefix.n && (!spec_is_name(w->name_prefix) || w->name_prefix.n > SPEC_NAME_MAX - 3))
		return err_set(
			e, ERR_INVALID,
			"name_prefix must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			SPEC_NAME_MAX - 3);
	if (b->state.status == BOX_CREATING || b->in->step != LIFE_NONE)
		return err_set(e, ERR_STATE,
			       "the sandbox is neither running nor paused nor stopped at the moment");
	for (size_t i = 0; i < b->spec.workspaces.n; i++)
		if (b->in->workspaces[i] && !b->spec.workspaces.items[i].readonly)
			return err_set(e, ERR_STATE,
				       "the sandbox has the workspace \"%.*s\" for itself; clone that",
				       VIEW_ARG(b->spec.workspaces.items[i].name));
	if (quotas_boxes(c) + w->count > c->config->max.boxes)
		return err_set(e, ERR_QUOTA, "there are %u sandboxes already, and at most %llu are allowed",
			       quotas_boxes(c), (unsigned long long)c->config->max.boxes);
	return 0;
}

/* The original may be gone before the twins are made: everything is copied. */
static int copy_wish(struct fork *f, const struct box *b, const struct fork_wish *w, struct err *e)
{
	struct box_wish like;

	spec_to_wish(&b->spec, &like);
	if (w->has_metadata)
		like.metadata = w->metadata;
	if (w->has_ttl) {
		like.has_ttl = true;
		like.ttl_seconds = w->ttl_seconds;
	}
	arena_init(&f->arena, SPEC_ARENA_MAX * 4);
	if (spec_make(&like, f->core->config, &f->arena, &f->spec, e) < 0)
		return -1;
	f->spec.digest = arena_view(&f->arena, b->spec.digest);
	f->spec.origin = arena_view(&f->arena, b->spec.origin.n ? b->spec.origin : b->spec.snapshot);
	f->prefix = w->name_prefix.n ? arena_view(&f->arena, w->name_prefix) : VIEW("");
	f->n = w->count;
	if (!f->spec.digest.p || !f->spec.origin.p || !f->prefix.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "fork");
	return 0;
}

struct job *fork_box(struct core *c, const struct actor *a, struct view ref, const struct fork_wish *w,
		     job_done *done, void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_COPY, ref, e);

	if (!b || auth_permit(a, ACT_BOX_CREATE, NULL, e) < 0 || check(c, b, w, e) < 0)
		return NULL;
	struct fork *f = calloc(1, sizeof(*f));
	if (!f) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "fork");
		return NULL;
	}
	f->job = (struct job){ .done = done, .arg = arg };
	f->core = c;
	f->actor = *a;
	f->actor.tenant = b->tenant; /* they belong to whom the original belongs */
	f->call.ops = &snapshot_ops;
	memcpy(f->source, b->id, sizeof(f->source));
	rnd_name(f->snapshot, BOX_ID);
	if (copy_wish(f, b, w, e) < 0) {
		fork_free(f);
		return NULL;
	}
	struct wire_snapshot_create msg = { .id = view_of(f->snapshot), .box = view_of(b->id) };
	int r = keeper_call_for(c, view_of(f->spec.backend), &f->call, WIRE_TYPE_SNAPSHOT_CREATE, KEEPER_MS,
				&wire_snapshot_create_msg, &msg);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		fork_free(f);
		return NULL;
	}
	return &f->job;
}
