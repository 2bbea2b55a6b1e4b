/*
 * The pool: see pool.h.
 */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>

#include "allowances.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "create.h"
#include "events.h"
#include "guest.h"
#include "history.h"
#include "image.h"
#include "keys.h"
#include "life.h"
#include "log.h"
#include "mounts.h"
#include "policies.h"
#include "quotas.h"
#include "remove.h"
#include "spec_make.h"
#include "who.h"
#include "poison.h"

#define REFILL_MS 5    /* between two that are made */
#define QUIET_MS  100  /* without a claim: making a box takes more than a claim and the command after it */
#define LATEST_MS 1000 /* without such a moment */
#define AGAIN_MS  5000 /* after one that could not be made */
#define READY_MS  5    /* between two that are made ready */

struct pool_image {
	struct core *core;
	struct view name;
	unsigned warm, n;
	struct list boxes; /* that wait */
};

static void refill(struct core *c, uint64_t after_ms);
static void refill_in_peace(struct core *c);

/* What a box gets that asks for nothing. */
static struct box_limits standard_limits(const struct config *c)
{
	struct box_limits l;

	box_limits_of(&c->defaults.limits, &l);
	return l;
}

static struct pool_image *find_image(const struct core *c, struct view name)
{
	for (size_t i = 0; i < c->pool->n; i++)
		if (view_eq(c->pool->images[i].name, name))
			return &c->pool->images[i];
	return NULL;
}

static void put(struct pool_image *p, struct box *b)
{
	list_append(&p->boxes, &b->in->pool);
	p->n++;
	p->core->pool->total++;
	p->core->boxes->n_pool++;
}

void pool_forget(struct box *b)
{
	if (!b->in->pooled || list_empty(&b->in->pool))
		return;
	struct pool_image *p = find_image(b->in->core, b->spec.image);
	list_del(&b->in->pool);
	b->in->core->pool->total--;
	b->in->core->boxes->n_pool--;
	if (p)
		p->n--;
}

static void init(struct box *b)
{
	list_init(&b->in->pool);
}

static void forget(struct box *b, const struct err *why)
{
	pool_forget(b);
}

const struct box_part pool_part = { .init = init, .forget = forget };

/* It does not fit any more, or has ended. */
static void discard(struct box *b)
{
	pool_forget(b);
	remove_unwanted(b);
}

void pool_exited(struct box *b)
{
	struct core *c = b->in->core;
	log_info("sandbox %s: a sandbox of the pool has ended", b->id);
	discard(b);
	refill(c, AGAIN_MS);
}

/* ---- making ready ---- */

/* With what on_warm adds: at most once each. */
static void make_ready(struct box *b)
{
	struct core *c = b->in->core;

	if (!c->pool->on_warm || b->in->readied)
		return;
	b->in->readied = true;
	c->pool->on_warm(c, b);
}

static struct box *first_unready(const struct core *c)
{
	for (size_t i = 0; i < c->pool->n; i++)
		LIST_EACH (it, &c->pool->images[i].boxes)
			if (!BOX_OF(it, pool)->in->readied)
				return BOX_OF(it, pool);
	return NULL;
}

/* In the order in which they are claimed, and not all at once: that would take the processor from whoever has
 * just claimed the first. */
static void on_ready(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct pool, ready)->core;
	struct box *b = first_unready(c);

	if (!b)
		return;
	make_ready(b);
	loop_timer_start(c->loop, t, READY_MS, on_ready);
}

void pool_ready(struct core *c, void (*on_warm)(struct core *c, const struct box *b))
{
	if (c->pool->on_warm == on_warm)
		return;
	c->pool->on_warm = on_warm;
	if (!c->stopping)
		loop_timer_start(c->loop, &c->pool->ready, READY_MS, on_ready);
}

/* ---- filling ---- */

static struct pool_image *wanting(struct core *c)
{
	for (size_t i = 0; i < c->pool->n && !c->pool->closed; i++)
		if (c->pool->images[i].n < c->pool->images[i].warm)
			return &c->pool->images[i];
	return NULL;
}

static void on_made(void *arg, const void *result, const struct err *e)
{
	struct core *c = arg;
	struct box *b = (struct box *)(uintptr_t)result; /* ours by now */
	struct pool_image *p = b ? find_image(c, b->spec.image) : NULL;
	struct err failed = { 0 };

	c->pool->making = NULL;
	c->boxes->n_pool--;
	if (c->pool->closed) {
		retire_made(c, b);
		return;
	}
	if (!b) {
		log_warn("the pool: %s", e->msg);
		refill(c, AGAIN_MS);
		return;
	}
	/* It was hidden while it was made: a crash left a box that no row names. */
	boxes_unindex(b);
	b->in->hidden = b->in->for_pool = false;
	b->in->pooled = true;
	b->state.expires_ms = 0;
	loop_timer_stop(&b->in->life->expiry);
	if (!p || boxes_index(b, &failed) < 0 ||
	    boxes_write_row(b, BOXES_POOL_STATUS, store_box_put, core_store_done, c, &failed) < 0) {
		remove_unwanted(b);
		return;
	}
	history_follow(b);
	put(p, b);
	make_ready(b);
	refill_in_peace(c);
}

static void on_refill(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct pool, refill)->core;
	struct pool_image *p = wanting(c);
	struct view digest;
	struct err e = { 0 };

	if (!p || c->pool->making || c->stopping)
		return;
	const struct box_limits standard = standard_limits(c->config);
	struct box_wish w = { .image = p->name };
	/* The budget holds for it, but no tenant's quota; and it takes nobody's last place. */
	if (images_resolve(c, p->name, &digest, &e) >= 0 && quotas_admit_pool(c, &standard, &e) >= 0)
		c->pool->making = create_for_pool(c, keys_tenant(c, VIEW("default")), &w, on_made, c, &e);
	if (c->pool->making) {
		c->boxes->n_pool++;
	} else {
		log_debug("the pool: %s", e.msg);
		refill(c, AGAIN_MS);
	}
}

static void refill(struct core *c, uint64_t after_ms)
{
	if (!c->stopping && !c->pool->making && !loop_timer_active(&c->pool->refill) && wanting(c))
		loop_timer_start(c->loop, &c->pool->refill, after_ms, on_refill);
}

/* Not among claims: those of a burst find what is there, and what is made meanwhile would take the processor
 * from their commands. Claims that do not end are no burst. */
static void refill_in_peace(struct core *c)
{
	uint64_t now = loop_now(c->loop);

	if (!wanting(c) || now - c->pool->claimed_ms >= QUIET_MS)
		c->pool->wanting_ms = 0;
	else if (!c->pool->wanting_ms)
		c->pool->wanting_ms = now;
	if (!c->pool->wanting_ms || now - c->pool->wanting_ms >= LATEST_MS)
		refill(c, REFILL_MS);
	else if (!c->pool->making && !c->stopping)
		loop_timer_start(c->loop, &c->pool->refill, QUIET_MS, on_refill);
}

/* ---- claiming ---- */

struct claim {
	struct job job;
	struct box *box;
	uint64_t began_ns;
	unsigned waits;    /* for the store and the gate */
	struct err failed; /* of the store */
};

static void claim_settle(struct claim *cl)
{
	const struct err *e = cl->failed.code ? &cl->failed : NULL;
	struct box *b = cl->box;
	struct core *c = b->in->core;

	if (--cl->waits)
		return;
	create_rush(c, false);
	if (c->stopping) { /* written, but nobody was told: as after any answer that was lost */
		job_finish(&cl->job, NULL, e);
		free(cl);
		return;
	}
	if (e || job_abandoned(&cl->job) || b->in->guest->state == GUEST_DEAD) {
		struct err gone = { 0 };
		err_set(&gone, ERR_UNAVAILABLE, "the sandbox ended while it was being given away");
		job_finish(&cl->job, NULL, e ? e : &gone);
		b->state.status = BOX_RUNNING;
		remove_unwanted(b);
	} else {
		c->pool->claims++;
		create_count(c, cl->began_ns, false);
		boxes_set_status(b, BOX_RUNNING, false);
		lifetime_watch(b);
		job_finish(&cl->job, b, NULL);
	}
	free(cl);
	refill_in_peace(c);
}

static void on_claimed(void *arg, const struct err *e)
{
	struct claim *cl = arg;

	core_store_result(cl->box->in->core, e);
	if (e)
		cl->failed = *e;
	claim_settle(cl);
}

/* As in create.c. */
static void on_policy(void *arg, const struct err *e)
{
	claim_settle(arg);
}

static void on_trusted(void *arg, const struct err *e)
{
	struct claim *cl = arg;

	if (e)
		cl->failed = *e;
	claim_settle(cl);
}

/* What a box of the pool cannot be. A named box is named so inside, too. */
static bool is_plain(const struct core *c, const struct box_spec *s)
{
	/* Whether there is another user is asked of a new box. */
	if (!view_eq(s->user, c->config->defaults.user) && !view_is(s->user, "root"))
		return false;
#define IS_SET(name)                                                                                         \
	if (s->name)                                                                                         \
		return false;
#define FIELD(kind, name, json, shown, wire, twin, pool, ...) BOX_FIELD_IF_##pool(IS_SET, name)
#include "box_fields.def"
#undef FIELD
	return !s->name.n && !s->snapshot.n && !s->workspaces.n && !s->secrets.n && !s->mounts.n &&
	       !s->require;
}

/* The first of them whose image still means the same. */
static struct box *first_good(struct core *c, struct pool_image *p)
{
	struct view digest;

	while (!list_empty(&p->boxes)) {
		struct box *b = BOX_OF(p->boxes.next, pool);
		if (b->in->guest->state != GUEST_DEAD && images_resolve(c, p->name, &digest, NULL) >= 0 &&
		    view_eq(digest, b->spec.digest))
			return b;
		discard(b);
	}
	return NULL;
}

/* From here on it is the tenant's; `arena` is the spec's and is taken. */
static int hand_over(struct box *b, const struct tenant *t, const struct box_spec *s, struct arena *arena,
		     struct err *e)
{
	pool_forget(b);
	boxes_unindex(b);
	arena_done(&b->in->arena);
	b->in->arena = *arena;
	*arena = (struct arena){ 0 };
	b->spec = *s;
	b->in->pooled = false;
	b->tenant = t;
	b->state.from_pool = true;
	b->state.status = BOX_CREATING;
	b->state.created_ms = b->state.used_ms = clock_wall_ms();
	b->state.expires_ms = s->ttl_seconds ? b->state.created_ms + (int64_t)s->ttl_seconds * 1000 : 0;
	/* It has no name, and its id was in the index a moment ago: there is room for it. */
	return boxes_index(b, e) < 0 || boxes_take(b, e) < 0 ? -1 : 0;
}

struct job *pool_claim(struct core *c, const struct tenant *t, struct box_spec *s, struct arena *arena,
		       job_done *done, void *arg, struct err *e)
{
	struct pool_image *p = find_image(c, s->image);
	struct box *b = p && is_plain(c, s) ? first_good(c, p) : NULL;
	uint64_t began = clock_mono_ns();
	struct claim *cl = NULL;

	if (!b || !box_limits_equal(&b->spec.limits, &s->limits) || !view_eq(b->spec.timezone, s->timezone) ||
	    (s->backend[0] && strcmp(s->backend, b->spec.backend) != 0))
		return NULL; /* made as ever */
	if (quotas_admit(c, t, &s->limits, true, e) < 0)
		return NULL;
	cl = calloc(1, sizeof(*cl));
	s->digest = arena_view(arena, b->spec.digest);
	memcpy(s->backend, b->spec.backend, sizeof(s->backend));
	if (!cl || !s->digest.p) {
		free(cl);
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	*cl = (struct claim){ .job = { .done = done, .arg = arg }, .box = b, .began_ns = began, .waits = 1 };
	if (hand_over(b, t, s, arena, e) < 0) {
		remove_unwanted(b);
		free(cl);
		return NULL;
	}
	c->pool->claimed_ms = loop_now(c->loop);
	events_emit(c, EVENT_CREATED, b);
	if (boxes_write_row(b, boxes_status_name(BOX_RUNNING), store_box_claim, on_claimed, cl, e) < 0) {
		remove_unwanted(b);
		free(cl);
		return NULL;
	}
	if (policies_push_new(b, on_policy, cl))
		cl->waits++;
	cl->waits++; /* before: it may be told at once */
	if (!egress_opens(policies_of(b, NULL)) || !mounts_trust(b, on_trusted, cl))
		cl->waits--;
	create_rush(c, true);
	return &cl->job;
}

/* ---- life ---- */

int pool_init(struct core *c)
{
	const struct config *cfg = c->config;

	c->pool->images = calloc(cfg->n_pools + 1, sizeof(*c->pool->images));
	if (!c->pool->images)
		return -ENOMEM;
	for (; c->pool->n < cfg->n_pools; c->pool->n++) {
		struct pool_image *p = &c->pool->images[c->pool->n];
		p->core = c;
		p->name = cfg->pools[c->pool->n].image;
		p->warm = (unsigned)cfg->pools[c->pool->n].warm;
		list_init(&p->boxes);
	}
	return 0;
}

bool pool_adopt(struct box *b, bool runs)
{
	struct pool_image *p = find_image(b->in->core, b->spec.image);
	const struct box_limits standard = standard_limits(b->in->core->config);

	if (runs && p && p->n < p->warm && box_limits_equal(&b->spec.limits, &standard)) {
		put(p, b);
		history_follow(b);
		return true;
	}
	/* Not before the keeper was told what to keep. */
	discard(b);
	return false;
}

void pool_start(struct core *c)
{
	refill(c, 0);
}

void pool_stop(struct core *c)
{
	loop_timer_stop(&c->pool->refill);
	loop_timer_stop(&c->pool->ready);
	job_abandon(c->pool->making);
}

void pool_done(struct core *c)
{
	free(c->pool->images);
	c->pool->images = NULL;
	c->pool->n = 0;
}

/* ---- telling ---- */

int pool_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct pool_state *s),
	      void *arg, struct pool_sum *ret, struct err *e)
{
	if (auth_permit(a, ACT_METRICS, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < c->pool->n; i++) {
		const struct pool_image *p = &c->pool->images[i];
		each(arg, &(struct pool_state){ p->name, p->n, p->warm });
	}
	*ret = (struct pool_sum){ c->pool->total, c->pool->claims };
	return 0;
}
