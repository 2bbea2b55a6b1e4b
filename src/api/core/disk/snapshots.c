/*
 * Snapshots: see disk.h. The keeper makes a snapshot first, then the store records it. After a crash,
 * snapshots that the keeper has and the store has not are removed at the next start (adopt.c).
 */
#include "snapshots.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "event.h"
#include "events.h"
#include "keeper.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "rnd.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 600000 /* where files are copied one by one */

static const char what[] = "snapshot";

/* ---- the index ---- */

static void snapshot_free(struct snapshot *s)
{
	free(s->image);
	free(s->digest);
	free(s);
}

static char *copy(struct view v)
{
	return strndup(v.p, v.n);
}

static struct snapshot *snapshot_new(struct core *c, const struct tenant *t, struct view id, struct view name,
				     struct view image, struct view digest, struct err *e)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (s) {
		s->tenant = t;
		s->image = copy(image);
		s->digest = copy(digest);
		list_init(&s->order);
	}
	if (!s || !s->image || !s->digest || view_to_str(id, s->id, sizeof(s->id)) < 0 ||
	    (name.n && view_to_str(name, s->name, sizeof(s->name)) < 0) ||
	    map_put(&c->snapshots->by_id, &s->by_id, view_of(s->id)) < 0) {
		err_set(e, ERR_INTERNAL, "snapshot %.*s cannot be kept in memory", VIEW_ARG(id));
		if (s)
			snapshot_free(s);
		return NULL;
	}
	list_append(&c->snapshots->all, &s->order);
	return s;
}

static void forget(struct core *c, struct snapshot *s)
{
	map_del(&c->snapshots->by_id, &s->by_id);
	list_del(&s->order);
	snapshot_free(s);
}

struct snapshot *snapshots_by_id(const struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->snapshots->by_id, id);
	return n ? CONTAINER(n, struct snapshot, by_id) : NULL;
}

static struct snapshot *by_name(const struct core *c, const struct tenant *t, struct view name)
{
	LIST_EACH (it, &c->snapshots->all) {
		struct snapshot *s = CONTAINER(it, struct snapshot, order);
		if (s->tenant == t && s->name[0] && view_is(name, s->name))
			return s;
	}
	return NULL;
}

struct snapshot *snapshots_find(struct core *c, const struct actor *a, int act, struct view ref,
				struct err *e)
{
	struct snapshot *s = snapshots_by_id(c, ref);

	if (!s || !s->ready || auth_permit_on(a, (enum act)act, s->tenant, what, NULL) < 0)
		s = by_name(c, a->tenant, ref);
	if (!s || !s->ready) {
		err_set(e, ERR_NOT_FOUND, "no such %s", what);
		return NULL;
	}
	return auth_permit_on(a, (enum act)act, s->tenant, what, e) < 0 ? NULL : s;
}

int snapshots_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct snapshot *s),
		   void *arg, struct err *e)
{
	if (auth_permit(a, ACT_SNAPSHOT_LIST, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->snapshots->all) {
		const struct snapshot *s = CONTAINER(it, struct snapshot, order);
		if (s->ready && auth_permit_on(a, ACT_SNAPSHOT_READ, s->tenant, what, NULL) >= 0)
			each(arg, s);
	}
	return 0;
}

bool snapshots_use_image(const struct core *c, struct view digest)
{
	LIST_EACH (it, &c->snapshots->all)
		if (view_is(digest, CONTAINER(it, struct snapshot, order)->digest))
			return true;
	return false;
}

int snapshots_load(struct core *c, const struct store_snapshot *row, struct err *e)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct snapshot *s = t ? snapshot_new(c, t, row->id, row->name, row->image, row->digest, e) : NULL;

	if (!t)
		return err_set(e, ERR_INTERNAL, "snapshot %.*s: no such tenant", VIEW_ARG(row->id));
	if (!s)
		return -1;
	if (view_to_str(row->backend, s->backend, sizeof(s->backend)) < 0) {
		forget(c, s);
		return err_set(e, ERR_INTERNAL, "snapshot %.*s: its backend's name is too long",
			       VIEW_ARG(row->id));
	}
	s->bytes = (uint64_t)row->bytes;
	s->stopped_us = (uint64_t)row->stopped_us;
	s->created_ms = row->created_ms;
	if (row->source.n && view_to_str(row->source, s->source, sizeof(s->source)) < 0)
		s->source[0] = 0;
	s->ready = true;
	return 0;
}

void snapshots_done(struct core *c)
{
	LIST_EACH (it, &c->snapshots->all)
		forget(c, CONTAINER(it, struct snapshot, order));
	map_done(&c->snapshots->by_id);
}

/* ---- dropping, which nobody waits for ---- */

struct dropping {
	struct call call;
	char id[BOX_ID + 1];
};

static int on_dropped(struct call *c, const struct frame *f, int fd)
{
	free(CONTAINER(c, struct dropping, call));
	return 0;
}

static void on_drop_fail(struct call *c, const struct err *e)
{
	struct dropping *d = CONTAINER(c, struct dropping, call);
	/* The next start tries again. */
	log_warn("snapshot %s: not removed: %s", d->id, e->msg);
	free(d);
}

static const struct call_ops drop_ops = { .on_reply = on_dropped, .on_fail = on_drop_fail };

void snapshots_drop(struct core *c, struct view backend, struct view id)
{
	struct dropping *d = calloc(1, sizeof(*d));

	if (!d || view_to_str(id, d->id, sizeof(d->id)) < 0) {
		free(d);
		return;
	}
	struct wire_snapshot_remove msg = { .id = view_of(d->id) };
	d->call.ops = &drop_ops;
	if (keeper_call_for(c, backend, &d->call, WIRE_TYPE_SNAPSHOT_REMOVE, KEEPER_MS,
			    &wire_snapshot_remove_msg, &msg) < 0)
		free(d);
}

/* ---- making and removing ---- */

struct snapshot_job {
	struct job job;
	struct core *core;
	struct snapshot *s;
	struct call call;
	char box[BOX_ID + 1]; /* whose files, of a creation */
};

static void finish(struct snapshot_job *j, const void *result, const struct err *e)
{
	job_finish(&j->job, result, e);
	free(j);
}

static struct snapshot_job *new_job(struct core *c, struct snapshot *s, const struct call_ops *ops,
				    job_done *done, void *arg)
{
	struct snapshot_job *j = calloc(1, sizeof(*j));

	if (j) {
		j->job = (struct job){ .done = done, .arg = arg };
		j->core = c;
		j->s = s;
		j->call.ops = ops;
	}
	return j;
}

static void on_stored(void *arg, const struct err *e)
{
	struct snapshot_job *j = arg;
	struct core *c = j->core;
	struct snapshot *s = j->s;

	core_store_result(c, e);
	if (e) {
		struct err copy_of = *e;
		if (!c->stopping)
			snapshots_drop(c, view_of(s->backend), view_of(s->id));
		forget(c, s);
		finish(j, NULL, &copy_of);
		return;
	}
	s->ready = true;
	finish(j, s, NULL);
}

static int on_created(struct call *c, const struct frame *f, int fd)
{
	struct snapshot_job *j = CONTAINER(c, struct snapshot_job, call);
	struct snapshot *s = j->s;
	struct arena a = ARENA_INIT(4096);
	struct wire_snapshot_created reply;
	int r = mux_reply(c, f, &wire_snapshot_created_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	s->bytes = reply.bytes;
	s->stopped_us = reply.stopped_us;
	struct err over = { 0 };
	if (ledger_check(j->core, s->tenant, LEDGER_DISK, &over) < 0) {
		snapshots_drop(j->core, view_of(s->backend), view_of(s->id));
		forget(j->core, s);
		finish(j, NULL, &over);
		return 0;
	}
	struct store_snapshot row = {
		.id = view_of(s->id),
		.tenant = view_of(s->tenant->id),
		.name = view_of(s->name),
		.image = view_of(s->image),
		.digest = view_of(s->digest),
		.source = view_of(s->source),
		.backend = view_of(s->backend),
		.bytes = (int64_t)s->bytes,
		.stopped_us = (int64_t)s->stopped_us,
		.created_ms = s->created_ms,
	};
	store_snapshot_put(j->core->store, &row, on_stored, j);
	const struct box *b = boxes_by_id(j->core, view_of(j->box));
	if (b)
		events_emit_with(j->core, EVENT_SNAPSHOT, b, "snapshot", view_of(s->id));
	return 0;
}

static void on_create_fail(struct call *c, const struct err *e)
{
	struct snapshot_job *j = CONTAINER(c, struct snapshot_job, call);
	struct err copy_of = *e;
	forget(j->core, j->s);
	finish(j, NULL, &copy_of);
}

static const struct call_ops create_ops = { .on_reply = on_created, .on_fail = on_create_fail };

static int check_name(struct core *c, const struct tenant *t, struct view name, struct err *e)
{
	if (!name.n)
		return 0;
	if (!spec_is_name(name))
		return err_set(e, ERR_INVALID,
			       "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (by_name(c, t, name))
		return err_set(e, ERR_CONFLICT, "there is a snapshot named \"%.*s\" already", VIEW_ARG(name));
	return 0;
}

/* As large as the box was when it was measured last; what it really is, on_created finds out. */
static int admit(struct core *c, const struct box *b, struct err *e)
{
	const uint64_t bytes = b->state.disk_used > 0 ? (uint64_t)b->state.disk_used : 0;
	const struct quota_use more = { { [LEDGER_SNAPSHOTS] = 1, [LEDGER_DISK] = bytes >> 20 } };

	return ledger_admit(c, b->tenant, &more, e);
}

struct job *snapshots_create(struct core *c, const struct actor *a, struct view ref, struct view name,
			     job_done *done, void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_COPY, ref, e);
	char id[BOX_ID + 1];

	/* It belongs to the tenant whose box it was. */
	if (!b || check_name(c, b->tenant, name, e) < 0)
		return NULL;
	if (b->state.status == BOX_CREATING || b->in->step != LIFE_NONE) {
		err_set(e, ERR_STATE, "the sandbox is neither running nor paused nor stopped at the moment");
		return NULL;
	}
	if (admit(c, b, e) < 0)
		return NULL;
	rnd_name(id, BOX_ID);
	struct snapshot *s = snapshot_new(c, b->tenant, view_of(id), name, b->spec.image, b->spec.digest, e);
	if (!s)
		return NULL;
	s->created_ms = clock_wall_ms();
	memcpy(s->source, b->id, sizeof(s->source));
	memcpy(s->backend, b->spec.backend, sizeof(s->backend));
	struct wire_snapshot_create msg = { .id = view_of(s->id), .box = view_of(b->id) };
	struct snapshot_job *j = new_job(c, s, &create_ops, done, arg);
	if (j)
		memcpy(j->box, b->id, sizeof(j->box));
	int r = j ? keeper_call_for(c, view_of(s->backend), &j->call, WIRE_TYPE_SNAPSHOT_CREATE, KEEPER_MS,
				    &wire_snapshot_create_msg, &msg)
		  : -ENOMEM;
	if (r >= 0)
		return &j->job;
	err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
	forget(c, s);
	free(j);
	return NULL;
}

static void on_row_deleted(void *arg, const struct err *e)
{
	struct snapshot_job *j = arg;

	core_store_result(j->core, e);
	if (e)
		j->s->ready = true; /* without its files; it can be removed once more */
	else
		forget(j->core, j->s);
	finish(j, NULL, e);
}

static int on_removed(struct call *c, const struct frame *f, int fd)
{
	struct snapshot_job *j = CONTAINER(c, struct snapshot_job, call);

	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	store_snapshot_delete(j->core->store, view_of(j->s->id), on_row_deleted, j);
	return 0;
}

static void on_remove_fail(struct call *c, const struct err *e)
{
	struct snapshot_job *j = CONTAINER(c, struct snapshot_job, call);
	j->s->ready = true;
	finish(j, NULL, e);
}

static const struct call_ops remove_ops = { .on_reply = on_removed, .on_fail = on_remove_fail };

struct job *snapshots_remove(struct core *c, const struct actor *a, struct view ref, job_done *done,
			     void *arg, struct err *e)
{
	struct snapshot *s = snapshots_find(c, a, ACT_SNAPSHOT_DELETE, ref, e);
	struct snapshot_job *j = s ? new_job(c, s, &remove_ops, done, arg) : NULL;

	if (!s)
		return NULL;
	struct wire_snapshot_remove msg = { .id = view_of(s->id) };
	int r = j ? keeper_call_for(c, view_of(s->backend), &j->call, WIRE_TYPE_SNAPSHOT_REMOVE, KEEPER_MS,
				    &wire_snapshot_remove_msg, &msg)
		  : -ENOMEM;
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(j);
		return NULL;
	}
	s->ready = false; /* from now on nobody finds it */
	return &j->job;
}

uint64_t snapshots_held(const struct core *c, const struct tenant *t, enum ledger_item i)
{
	uint64_t n = 0;

	if (i != LEDGER_DISK && i != LEDGER_SNAPSHOTS)
		return 0;
	LIST_EACH (it, &c->snapshots->all) {
		const struct snapshot *s = CONTAINER(it, struct snapshot, order);
		if (s->tenant == t)
			n += i == LEDGER_DISK ? (s->bytes + (1u << 20) - 1) >> 20 : 1;
	}
	return n;
}
