/*
 * Creates a box. The row goes to the store and the spec to the keeper at the same time. The keeper's
 * answer brings the connection to PID 1, to which HELLO is sent. The box is running when all three are
 * done and the gate has received its policy (this is awaited if the policy allows anything). A box
 * made from the files of another first gets its own identity.
 *
 * When a step fails, the others are awaited and everything is undone: no box remains that no answer
 * has named.
 */
#include <errno.h>
#include <stdlib.h>

#include "allowances.h"
#include "boxes.h"
#include "clock.h"
#include "common.h"
#include "core_base.h"
#include "create.h"
#include "create_identity.h"
#include "create_user.h"
#include "event.h"
#include "events.h"
#include "fd.h"
#include "image_config.h"
#include "keeper.h"
#include "life.h"
#include "log.h"
#include "mounts.h"
#include "policies.h"
#include "pool.h"
#include "quotas.h"
#include "remove.h"
#include "rnd.h"
#include "snapshots.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "workspaces.h"
#include "poison.h"

#define KEEPER_MS 30000
#define COPY_MS   600000 /* where files are copied one by one */

#define RUSH_CREATES   8
#define RUSH_WITHIN_MS 100
#define RUSH_LASTS_MS  1000
#define HIDDEN_DISK    4 /* times: an import has the archive, its layers and the files that they make */

enum { WAIT_STORE = 1, WAIT_KEEPER = 2, WAIT_HELLO = 4, WAIT_GATE = 8 };

struct creation {
	struct job job;
	struct box *box;
	struct call call;
	unsigned waits;            /* for which of them */
	bool made;                 /* the keeper may have it */
	char snapshot[BOX_ID + 1]; /* whose files it starts with, or "" */
	bool seeded;               /* the image has files of another box */
	bool asked;                /* by a client */
	bool check_user;           /* one was asked for that need not be there */
	void (*early)(struct core *c, const struct box *b);
	struct create_identity identity;
	struct create_user user;
	struct err failed; /* the first failure */
	uint64_t began_ns;
};

const uint32_t create_bounds_us[12] = {
	500, 1000, 2000, 3000, 4000, 6000, 8000, 15000, 30000, 100000, 1000000, 10000000,
};

void create_rush(struct core *c, bool begins)
{
	uint64_t now = loop_now(c->loop);

	if (!begins) {
		if (c->rush->under_way-- >= RUSH_CREATES)
			c->rush->until_ms = now + RUSH_LASTS_MS;
		return;
	}
	if (now - c->rush->since_ms > RUSH_WITHIN_MS) {
		c->rush->since_ms = now;
		c->rush->n = 0;
	}
	c->rush->under_way++;
	if (++c->rush->n >= RUSH_CREATES)
		c->rush->until_ms = now + RUSH_LASTS_MS;
}

void create_count(struct core *c, uint64_t began_ns, bool failed)
{
	uint64_t us = (clock_mono_ns() - began_ns) / 1000;

	c->stats.creates++;
	if (failed) {
		c->stats.create_failures++;
		return;
	}
	c->stats.create_us_sum += us;
	for (size_t i = 0; i < ELEMS(create_bounds_us); i++)
		if (us <= create_bounds_us[i])
			c->stats.create_buckets[i]++;
}

static void undo(struct creation *cr)
{
	struct box *b = cr->box;

	if (cr->failed.code)
		log_warn("sandbox %s: not made: %s", b->id, cr->failed.msg);
	if (cr->made) { /* or may have been */
		remove_unwanted(b);
		return;
	}
	if (!b->in->hidden)
		store_box_delete(b->in->core->store, view_of(b->id), core_store_done, b->in->core);
	boxes_free_later(b);
}

static void settle(struct creation *cr)
{
	struct box *b = cr->box;

	if (cr->waits)
		return;
	b->in->creation = NULL;
	if (cr->asked)
		create_rush(b->in->core, false);
	if (b->in->core->stopping) { /* never answered: the next start removes it */
		job_finish(&cr->job, NULL, &cr->failed);
		if (b->in->hidden)
			boxes_free_later(b);
		free(cr);
		return;
	}
	create_count(b->in->core, cr->began_ns, cr->failed.code != 0);
	if (cr->failed.code) {
		job_finish(&cr->job, NULL, &cr->failed);
		undo(cr);
	} else if (job_abandoned(&cr->job)) {
		undo(cr); /* nobody has its id */
	} else {
		b->state.status = BOX_RUNNING;
		lifetime_watch(b);
		events_emit(b->in->core, EVENT_CREATED, b);
		/* The row says "creating" for a moment longer; with a living box that means the same. */
		job_finish(&cr->job, b, NULL);
		boxes_set_status(b, BOX_RUNNING, true);
	}
	free(cr);
}

static void step_done(struct creation *cr, unsigned step, const struct err *e)
{
	cr->waits &= ~step;
	if (e && !cr->failed.code)
		cr->failed = *e;
	settle(cr);
}

static void on_stored(void *arg, const struct err *e)
{
	struct creation *cr = arg;
	core_store_result(cr->box->in->core, e);
	step_done(cr, WAIT_STORE, e);
}

static void on_user(struct create_user *u, const struct err *e)
{
	step_done(CONTAINER(u, struct creation, user), WAIT_HELLO, e);
}

static void on_mounted(struct box *b, const struct err *e)
{
	struct creation *cr = b->in->creation;

	if (e || !cr->check_user) {
		step_done(cr, WAIT_HELLO, e);
		return;
	}
	cr->user.guest = b->in->guest;
	cr->user.done = on_user;
	create_user(&cr->user, b->spec.user);
}

static void on_identity(struct create_identity *id)
{
	mounts_apply(CONTAINER(id, struct creation, identity)->box, on_mounted);
}

static void on_greeted(struct guest *g, const struct err *e)
{
	struct box *b = g->owner;
	struct creation *cr = b->in->creation;

	if (e) {
		step_done(cr, WAIT_HELLO, e);
		return;
	}
	if (!cr->snapshot[0] && !cr->seeded) {
		mounts_apply(b, on_mounted);
		return;
	}
	cr->identity.guest = g;
	cr->identity.done = on_identity;
	create_identity(&cr->identity);
}

/* A gate that is lost gets the policy when it is back; what it does not take, it does not let through. */
static void on_policy(void *arg, const struct err *e)
{
	step_done(arg, WAIT_GATE, NULL);
}

static void send_policy(struct creation *cr)
{
	if (!cr->box->in->hidden && policies_push_new(cr->box, on_policy, cr))
		cr->waits |= WAIT_GATE;
}

/* Whether nothing has to be done in the box before its first process starts. */
static bool starts_as_it_is(const struct creation *cr)
{
	const struct box *b = cr->box;
	return !cr->snapshot[0] && !cr->seeded && !cr->check_user && !b->spec.secrets.n &&
	       !egress_opens(policies_of(b, NULL));
}

static int on_keeper_reply(struct call *c, const struct frame *f, int fd)
{
	struct creation *cr = CONTAINER(c, struct creation, call);
	struct arena a = ARENA_INIT(16 * 1024);
	struct wire_box_created created;
	int r = mux_decode(c, f->body, &wire_box_created_msg, &a, &created);

	arena_done(&a);
	if (r < 0 || !(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	cr->waits &= ~(unsigned)WAIT_KEEPER;
	send_policy(cr);
	struct box *b = cr->box;
	guest_adopt(b->in->guest, fd, on_greeted);
	/* Unless that has failed at once, and cr is gone. */
	if (b->in->creation == cr && cr->early && starts_as_it_is(cr))
		cr->early(b->in->core, b);
	return 0;
}

static void on_keeper_fail(struct call *c, const struct err *e)
{
	struct creation *cr = CONTAINER(c, struct creation, call);
	/* A keeper that says no has cleaned up; one that says nothing may have made it. */
	cr->made = e->code == ERR_TIMEOUT;
	step_done(cr, WAIT_KEEPER | WAIT_HELLO, e);
}

static const struct call_ops keeper_ops = { .on_reply = on_keeper_reply, .on_fail = on_keeper_fail };

/* A host name has no underscores. */
static struct view hostname_of(const struct box *b, char room[SPEC_NAME_MAX + 1])
{
	if (!b->spec.name.n || view_to_str(b->spec.name, room, SPEC_NAME_MAX + 1) < 0)
		return view_of(b->id);
	for (char *p = room; *p; p++)
		if (*p == '_')
			*p = '-';
	return view_of(room);
}

int create_ask_keeper(struct box *b, struct call *call, const char *snapshot, bool existing)
{
	char hostname[SPEC_NAME_MAX + 1];
	struct wire_limits limits;
	struct wire_box_spec spec = {
		.id = view_of(b->id),
		.image = b->spec.digest,
		.hostname = hostname_of(b, hostname),
		.limits = &limits,
#define WIRE_BOOL(name)                           b->spec.name
#define WIRE_NOT(name)                            !b->spec.name
#define WIRE_SECONDS                              WIRE_BOOL
#define TO_WIRE(kind, name, json)                 .json = WIRE_##kind(name),
#define FIELD(kind, name, json, shown, wire, ...) BOX_FIELD_IF_##wire(TO_WIRE, kind, name, json)
#include "box_fields.def"
#undef FIELD
		.snapshot = view_of(snapshot ? snapshot : ""),
		.existing = existing,
		.backend = view_of(b->spec.backend),
		.require = b->spec.require,
	};
	struct wire_box_create create = { .spec = &spec };
	struct wire_host_mount mounts[SPEC_MOUNTS_MAX];
	struct wire_workspace_mount workspaces[SPEC_WORKSPACES_MAX];

	box_limits_to_wire(&b->spec.limits, &limits, &spec.disk_bytes);
	for (size_t i = 0; i < b->spec.workspaces.n; i++) {
		const struct workspace *w = b->in->workspaces[i]; /* NULL: gone, which the keeper refuses */
		workspaces[i] =
			(struct wire_workspace_mount){ .id = view_of(w ? w->id : ""),
						       .path = b->spec.workspaces.items[i].path,
						       .readonly = b->spec.workspaces.items[i].readonly };
	}
	spec.workspaces.items = workspaces;
	spec.workspaces.n = b->spec.workspaces.n;
	for (size_t i = 0; i < b->spec.mounts.n; i++)
		mounts[i] = (struct wire_host_mount){ .source = b->spec.mounts.items[i].source,
						      .target = b->spec.mounts.items[i].path,
						      .readonly = b->spec.mounts.items[i].readonly };
	spec.mounts.items = mounts;
	spec.mounts.n = b->spec.mounts.n;

	const struct image *image = images_find(b->in->core, b->spec.digest);
	bool copies = (snapshot && snapshot[0]) || (image && image->seeded);

	return keeper_call_for(b->in->core, view_of(b->spec.backend), call, WIRE_TYPE_BOX_CREATE,
			       copies ? COPY_MS : KEEPER_MS, &wire_box_create_msg, &create);
}

static int ask_keeper(struct creation *cr)
{
	cr->made = true;
	cr->call.ops = &keeper_ops;
	return create_ask_keeper(cr->box, &cr->call, cr->snapshot, false);
}

/* Whose box, and what it is made of besides the wish. */
struct how {
	const struct actor *actor; /* NULL: we ask ourselves */
	const struct tenant *tenant;
	enum act act;
	bool hidden;
	bool for_pool;
	bool claims; /* one that was made ahead will do */
	const struct create_twin *twin;
};

/* The backend that was named, or the snapshot's, or the default. */
static int take_backend(struct box *b, const struct snapshot *from, struct err *e)
{
	char *name = b->spec.backend;
	const struct backend *be =
		core_backend(b->in->core, view_of(name[0] || !from ? name : from->backend), e);

	if (!be)
		return -1;
	if (from && !view_is(be->name, from->backend) && !core_backend_can(be, "foreign_snapshots"))
		return err_set(e, ERR_INVALID,
			       "backend: the snapshot was taken with %s, and %.*s cannot start from it",
			       from->backend, VIEW_ARG(be->name));
	return view_to_str(be->name, name, sizeof(b->spec.backend)) < 0
		       ? err_set(e, ERR_INTERNAL, "the backend's name is too long")
		       : 0;
}

/* The image's digest, or what the snapshot was taken of. They may be removed while the box lives on. */
static int take_files(struct box *b, const struct how *how, char snapshot[BOX_ID + 1], struct err *e)
{
	struct box_spec *s = &b->spec;
	struct create_twin from = { .snapshot = "" };

	if (!s->snapshot.n && take_backend(b, NULL, e) < 0)
		return -1;
	if (how->twin) {
		from = *how->twin;
	} else if (s->snapshot.n) {
		const struct snapshot *sn =
			snapshots_find(b->in->core, how->actor, ACT_SNAPSHOT_READ, s->snapshot, e);
		if (!sn)
			return err_wrap(e, "snapshot");
		if (take_backend(b, sn, e) < 0)
			return -1;
		from = (struct create_twin){ sn->id, view_of(sn->image), view_of(sn->digest), VIEW("") };
	} else {
		from.image = s->image;
		if (images_resolve(b->in->core, s->image, &from.digest, e) < 0)
			return -1;
	}
	memcpy(snapshot, from.snapshot, strlen(from.snapshot) + 1);
	s->image = arena_view(&b->in->arena, from.image);
	s->digest = arena_view(&b->in->arena, from.digest);
	s->origin = arena_view(&b->in->arena, from.origin);
	return s->image.p && s->digest.p && s->origin.p ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
}

/* One for the pool was admitted by the pool. */
static int admit(struct box *b, struct err *e)
{
	struct core *c = b->in->core;

	if (b->in->for_pool)
		return 0;
	return b->in->hidden ? quotas_admit_hidden(c, b->tenant, &b->spec.limits, e)
			     : quotas_admit(c, b->tenant, &b->spec.limits, false, e);
}

/* Everything that can be refused at once; the name is reserved when this returns. */
static struct box *prepare(struct core *c, const struct box_spec *s, struct arena *arena,
			   const struct how *how, char snapshot[BOX_ID + 1], struct err *e)
{
	struct box *b = boxes_new(c, how->tenant);
	if (!b) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	rnd_name(b->id, BOX_ID);
	b->in->hidden = how->hidden;
	b->in->for_pool = how->for_pool;
	arena_done(&b->in->arena);
	b->in->arena = *arena;
	*arena = (struct arena){ 0 };
	b->spec = *s;
	if (take_files(b, how, snapshot, e) < 0 || boxes_make(b, e) < 0 ||
	    (!how->hidden && boxes_start(b, e) < 0) || boxes_take(b, e) < 0)
		goto bad;
	b->state.status = BOX_CREATING;
	b->state.created_ms = b->state.used_ms = b->in->used_stored_ms = clock_wall_ms();
	if (b->spec.ttl_seconds && how->actor)
		b->state.expires_ms = b->state.created_ms + (int64_t)b->spec.ttl_seconds * 1000;
	if (admit(b, e) < 0 || boxes_index(b, e) < 0)
		goto bad;
	return b;
bad:
	boxes_free_later(b);
	return NULL;
}

/* Of a box that nobody waits for; it lives on until the end of the batch, or longer. */
static void give_up(struct creation *cr)
{
	cr->box->in->creation = NULL;
	free(cr);
}

static struct job *make(struct core *c, const struct box_wish *w, const struct box_spec *s,
			struct arena *arena, const struct how *how, job_done *done, void *arg, struct err *e)
{
	struct creation *cr = calloc(1, sizeof(*cr));
	if (!cr) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	struct box *b = prepare(c, s, arena, how, cr->snapshot, e);
	if (!b) {
		free(cr);
		return NULL;
	}
	const struct image *image = images_find(c, b->spec.digest);
	cr->seeded = image && image->seeded;
	cr->job = (struct job){ .done = done, .arg = arg };
	cr->box = b;
	cr->early = w->early;
	cr->check_user = !view_eq(b->spec.user, c->config->defaults.user) && !view_is(b->spec.user, "root");
	cr->began_ns = clock_mono_ns();
	cr->waits = WAIT_KEEPER | WAIT_HELLO | (b->in->hidden ? 0 : WAIT_STORE);
	b->in->creation = cr;
	/* The keeper first: it takes longer. */
	int r = ask_keeper(cr);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
	} else if (!b->in->hidden &&
		   boxes_write_row(b, boxes_status_name(BOX_CREATING), store_box_put, on_stored, cr, e) < 0) {
		mux_cancel(&cr->call);
		give_up(cr);
		remove_unwanted(b);
		return NULL;
	} else {
		cr->asked = how->actor != NULL;
		if (cr->asked)
			create_rush(c, true);
		return &cr->job;
	}
	give_up(cr);
	boxes_free_later(b);
	return NULL;
}

/* Of a box that asks for none. What it starts with counts, too. */
static uint64_t standard_disk(struct core *c, const struct how *how, const struct box_spec *s)
{
	uint64_t mb = s->limits.disk_mb;
	struct err e = { 0 };

	if (how->for_pool || !how->actor)
		return mb;
	if (how->hidden)
		return mb * HIDDEN_DISK;
	mb = quotas_standard_disk(c, how->tenant, mb);
	const struct snapshot *from =
		mb && s->snapshot.n ? snapshots_find(c, how->actor, ACT_SNAPSHOT_READ, s->snapshot, &e)
				    : NULL;
	return from ? mb + (from->bytes >> 20) : mb;
}

static struct job *begin(struct core *c, const struct box_wish *w, const struct how *how, job_done *done,
			 void *arg, struct err *e)
{
	struct arena arena = ARENA_INIT(SPEC_ARENA_MAX * 4);
	struct job *j = NULL;
	struct box_spec s;

	if (how->actor && (auth_permit(how->actor, how->act, NULL, e) < 0 ||
			   create_mounts_permit(c->config, how->actor, &w->mounts, e) < 0))
		return NULL;
	if (spec_make(w, c->config, &arena, &s, e) >= 0 &&
	    (!how->claims || image_config_apply(c, &arena, &s, e) >= 0)) {
		struct err refused = { 0 };
		if (!w->limits.has_disk_mb)
			s.limits.disk_mb = standard_disk(c, how, &s);
		if (how->claims)
			j = pool_claim(c, how->tenant, &s, &arena, done, arg, &refused);
		if (refused.code)
			*e = refused;
		else if (!j)
			j = make(c, w, &s, &arena, how, done, arg, e);
	}
	arena_done(&arena);
	return j;
}

struct job *create_box(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
		       void *arg, struct err *e)
{
	const struct how how = { .actor = a, .tenant = a->tenant, .act = ACT_BOX_CREATE, .claims = true };
	return begin(c, w, &how, done, arg, e);
}

struct job *create_fork(struct core *c, const struct actor *a, const struct box_wish *w,
			const struct create_twin *twin, job_done *done, void *arg, struct err *e)
{
	const struct how how = { .actor = a, .tenant = a->tenant, .act = ACT_BOX_CREATE, .twin = twin };
	return begin(c, w, &how, done, arg, e);
}

struct job *create_hidden(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e)
{
	const struct how how = { .actor = a, .tenant = a->tenant, .act = ACT_IMAGE_CHANGE, .hidden = true };
	return begin(c, w, &how, done, arg, e);
}

struct job *create_helper(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e)
{
	const struct how how = { .tenant = t, .hidden = true };
	return begin(c, w, &how, done, arg, e);
}

struct job *create_for_pool(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			    void *arg, struct err *e)
{
	const struct how how = { .tenant = t, .hidden = true, .for_pool = true };
	return begin(c, w, &how, done, arg, e);
}
