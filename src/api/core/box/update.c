/*
 * Changes an existing box (PATCH). Everything that can be refused is checked first. The keeper changes
 * the limits of a running box; only after that is anything else changed and stored.
 */
#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "fd.h"
#include "keeper.h"
#include "life.h"
#include "quotas.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 30000

struct update {
	struct job job;
	struct core *core;
	char id[BOX_ID + 1];
	struct call call;
	struct arena arena; /* of the patch: who asked may be gone */
	struct lifetime_patch patch;
	struct box_limits limits;
};

static void update_free(struct update *u)
{
	arena_done(&u->arena);
	free(u);
}

static void give_up(struct update *u, const struct err *e)
{
	job_finish(&u->job, NULL, e);
	update_free(u);
}

/* ---- the end ---- */

static void on_stored(void *arg, const struct err *e)
{
	struct update *u = arg;
	struct box *b = boxes_by_id(u->core, view_of(u->id));
	struct err gone = { 0 };

	core_store_result(u->core, e);
	if (!e && !b) {
		boxes_unknown(&gone);
		e = &gone;
	}
	job_finish(&u->job, b, e);
	update_free(u);
}

/* Its host name inside stays as it was. */
static int rename_box(struct box *b, struct view name, struct err *e)
{
	struct view old = b->spec.name, copy = arena_view(&b->in->arena, name);

	if (!copy.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "name");
	boxes_unindex(b);
	b->spec.name = copy;
	if (boxes_index(b, e) >= 0)
		return 0;
	b->spec.name = old;
	(void)!boxes_index(b, NULL); /* it had this place a moment ago */
	return -1;
}

static int apply(struct update *u, struct box *b, struct err *e)
{
	const struct lifetime_patch *p = &u->patch;

	if ((p->name.n && !view_eq(p->name, b->spec.name) && rename_box(b, p->name, e) < 0) ||
	    lifetime_apply(b, p, e) < 0)
		return -1;
	if (p->has_limits) {
		b->spec.limits = u->limits;
		boxes_changed(b);
	}
	if (p->has_ttl) {
		b->spec.ttl_seconds = p->ttl_seconds;
		b->state.expires_ms = p->ttl_seconds ? clock_wall_ms() + (int64_t)p->ttl_seconds * 1000 : 0;
	}
	lifetime_watch(b);
	return boxes_write_row(b, boxes_status_name(b->state.status), store_box_claim, on_stored, u, e);
}

static void go_on(struct update *u)
{
	struct box *b = boxes_by_id(u->core, view_of(u->id));
	struct err e = { 0 };

	if (!b || b->state.status == BOX_DELETING) {
		boxes_unknown(&e);
		give_up(u, &e);
	} else if (apply(u, b, &e) < 0) {
		give_up(u, &e);
	}
}

/* ---- the keeper ---- */

static int on_updated(struct call *c, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	go_on(CONTAINER(c, struct update, call));
	return 0;
}

static void on_fail(struct call *c, const struct err *e)
{
	give_up(CONTAINER(c, struct update, call), e);
}

static const struct call_ops ops = { .on_reply = on_updated, .on_fail = on_fail };

static int ask_keeper(struct update *u, struct err *e)
{
	struct wire_limits limits;
	struct wire_box_update msg = { .id = view_of(u->id), .limits = &limits };
	int r;

	box_limits_to_wire(&u->limits, &limits, &msg.disk_bytes);
	u->call.ops = &ops;
	r = keeper_call(u->core, &u->call, WIRE_TYPE_BOX_UPDATE, KEEPER_MS, &wire_box_update_msg, &msg);
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached") : 0;
}

/* ---- the beginning ---- */

static int take_limits(struct update *u, const struct box *b, const struct box_limits_wish *l, struct err *e)
{
	struct box_limits_wish w;

	if (box_limits_check_change(l, e) < 0)
		return -1;
	box_limits_to_wish(&b->spec.limits, &w);
	box_limits_override(&w, l);
	if (spec_take_limits(&w, u->core->config, &u->limits, e) < 0)
		return -1;
	if (b->state.status == BOX_STOPPED && u->limits.disk_mb != b->spec.limits.disk_mb)
		return err_set(e, ERR_STATE,
			       "the disk limit of a stopped sandbox cannot be changed: start it first");
	return quotas_admit_change(u->core, b, &u->limits, e);
}

static int judge(struct update *u, const struct box *b, const struct lifetime_patch *p, struct err *e)
{
	enum spec_on_end on_end;

	u->patch = *p;
	u->patch.name = arena_view(&u->arena, p->name);
	u->patch.on_end = arena_view(&u->arena, p->on_end);
	if (!u->patch.name.p || !u->patch.on_end.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "patch");
	if (p->name.n && !spec_is_name(p->name))
		return err_set(e, ERR_INVALID,
			       "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (p->on_end.n && spec_take_on_end(p->on_end, &on_end, e) < 0)
		return -1;
	if (lifetime_check_fields(p, e) < 0)
		return -1;
	if (p->has_ttl && spec_take_ttl(p->ttl_seconds, u->core->config, &u->patch.ttl_seconds, e) < 0)
		return -1;
	if (p->has_metadata && spec_take_metadata(&p->metadata, &u->arena, &u->patch.metadata, e) < 0)
		return -1;
	return p->has_limits ? take_limits(u, b, &p->limits, e) : 0;
}

struct job *lifetime_change(struct core *c, const struct actor *a, struct view ref,
			    const struct lifetime_patch *p, job_done *done, void *arg, struct err *e)
{
	struct box *b = boxes_find_made(c, a, ref, e);
	struct update *u = b ? calloc(1, sizeof(*u)) : NULL;
	bool lives;

	if (!b)
		return NULL;
	if (!u) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "update");
		return NULL;
	}
	u->core = c;
	u->arena = ARENA_INIT(SPEC_ARENA_MAX);
	u->job = (struct job){ .done = done, .arg = arg };
	memcpy(u->id, b->id, sizeof(u->id));
	lives = b->state.status == BOX_RUNNING || b->state.status == BOX_PAUSED;
	if (judge(u, b, p, e) < 0 || (p->has_limits && lives ? ask_keeper(u, e) : apply(u, b, e)) < 0) {
		update_free(u);
		return NULL;
	}
	return &u->job;
}
