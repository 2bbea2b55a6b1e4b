/*
 * Deadlines: see life.h. They are wall-clock times in the store, so that a restart changes nothing.
 * Each box has one timer. A use does not move the timer; the timer checks again when it fires.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "event.h"
#include "events.h"
#include "guest.h"
#include "life.h"
#include "log.h"
#include "remove.h"
#include "spec_make.h"
#include "who.h"
#include "poison.h"

#define RETRY_MS 5000
/* The clock of the wall may be set: never sleep for longer than this. */
#define LOOK_MS 60000
#define BUSY_MS 500 /* how often a box is looked at that would be idle, were it not in use */

/* ---- what is due ---- */

static bool can_end(const struct box *b)
{
	enum box_status s = b->state.status;

	switch (b->spec.on_end) {
	case SPEC_END_DELETE:
		return s == BOX_RUNNING || s == BOX_PAUSED || s == BOX_STOPPED;
	case SPEC_END_STOP:
		return s == BOX_RUNNING || s == BOX_PAUSED;
	case SPEC_END_PAUSE:
		return s == BOX_RUNNING;
	}
	return false;
}

/* Both are 0 where there is none. */
static int64_t end_of_time(const struct box *b)
{
	return can_end(b) ? b->state.expires_ms : 0;
}

static int64_t end_of_idleness(const struct box *b)
{
	bool counts = b->state.status == BOX_RUNNING && b->spec.idle_seconds;
	return counts ? b->state.used_ms + (int64_t)b->spec.idle_seconds * 1000 : 0;
}

/* Something is under way that somebody waits for. */
static bool in_use(const struct box *b)
{
	const struct mux *m = &b->in->guest->mux;

	if (!list_empty(&b->in->guest->pending))
		return true;
	for (struct map_node *n = m->open ? map_first(&m->calls) : NULL; n; n = map_next(&m->calls, n))
		if (!CONTAINER(n, struct call, node)->background)
			return true;
	return false;
}

static void end(struct box *b, const char *why)
{
	static const enum life_step steps[] = { [SPEC_END_STOP] = LIFE_STOP, [SPEC_END_PAUSE] = LIFE_PAUSE };

	log_info("sandbox %s: %s: %s", b->id, why, spec_on_end_name(b->spec.on_end));
	events_emit(b->in->core, EVENT_EXPIRED, b);
	b->in->expired = b->spec.on_end == SPEC_END_DELETE;
	if (b->in->expired)
		remove_unwanted(b);
	else
		life_begin(b, steps[b->spec.on_end]);
}

bool lifetime_is_over(struct core *c, const struct actor *a, struct view id)
{
	const struct event_filter f = { .types = 1u << EVENT_EXPIRED, .box = id };
	const struct box *b = boxes_by_id(c, id);

	if (b && b->in->expired && auth_permit(a, ACT_BOX_READ, b->tenant, NULL) >= 0)
		return true; /* it is on its way out, and its event on its way to the store */
	return a->tenant && id.n && events_next(c, a, &f, 0);
}

static void on_time(struct loop_timer *t)
{
	struct box *b = CONTAINER(t, struct life, expiry)->box;
	int64_t now = clock_wall_ms(), time = end_of_time(b), idle = end_of_idleness(b);

	if (b->in->step != LIFE_NONE)
		return; /* looked at again when that is over */
	if (time && time <= now) {
		end(b, "its time is over");
	} else if (idle && idle <= now && in_use(b)) {
		lifetime_touch(b);
		loop_timer_start(b->in->core->loop, t, BUSY_MS, on_time);
	} else if (idle && idle <= now) {
		end(b, "it was idle for too long");
	} else {
		lifetime_watch(b);
	}
}

void lifetime_watch(struct box *b)
{
	int64_t time = end_of_time(b), idle = end_of_idleness(b);
	int64_t next = !time ? idle : !idle ? time : MIN(time, idle);

	if (b->state.status == BOX_DELETING)
		return; /* the timer is remove.c's */
	if (!next) {
		loop_timer_stop(&b->in->life->expiry);
		return;
	}
	int64_t left = next - clock_wall_ms();
	uint64_t after = left <= 0 ? 0 : (uint64_t)MIN(left, (int64_t)LOOK_MS);
	loop_timer_start(b->in->core->loop, &b->in->life->expiry, after, on_time);
}

void lifetime_retry(struct box *b)
{
	if (b->state.status != BOX_DELETING)
		loop_timer_start(b->in->core->loop, &b->in->life->expiry, RETRY_MS, on_time);
}

/* ---- use ---- */

void lifetime_touch(struct box *b)
{
	if (!b->spec.idle_seconds)
		return;
	b->state.used_ms = clock_wall_ms();
	if (b->in->hidden || b->in->core->stopping ||
	    b->state.used_ms - b->in->used_stored_ms < BOXES_USED_LAG_MS)
		return;
	b->in->used_stored_ms = b->state.used_ms;
	store_box_set_used(b->in->core->store, view_of(b->id), b->state.used_ms, core_store_done,
			   b->in->core);
}

void lifetime_renew(struct box *b)
{
	int64_t now = clock_wall_ms();

	lifetime_touch(b);
	if (b->state.expires_ms && b->state.expires_ms <= now && b->spec.ttl_seconds) {
		struct err e = { 0 };
		b->state.expires_ms = now + (int64_t)b->spec.ttl_seconds * 1000;
		if (!b->in->hidden && !b->in->core->stopping &&
		    boxes_store_change(b, core_store_done, b->in->core, &e) < 0)
			log_error("sandbox %s: %s", b->id, e.msg);
	}
	lifetime_watch(b);
}

/* ---- changes ---- */

static struct job *store(struct box *b, job_done *done, void *arg, struct err *e)
{
	struct job *job = boxes_keep_change(b, done, arg, e);

	if (job)
		lifetime_watch(b);
	return job;
}

struct job *lifetime_extend(struct core *c, const struct actor *a, struct view ref, uint64_t ttl_seconds,
			    job_done *done, void *arg, struct err *e)
{
	struct box *b = boxes_find_made(c, a, ref, e);
	uint64_t ttl;

	if (!b || spec_take_ttl(ttl_seconds, c->config, &ttl, e) < 0)
		return NULL;
	b->state.expires_ms = ttl ? clock_wall_ms() + (int64_t)ttl * 1000 : 0;
	return store(b, done, arg, e);
}

static int take_labels(struct box *b, const struct json_strmap *m, struct err *e)
{
	struct arena labels = ARENA_INIT(SPEC_ARENA_MAX);
	struct json_strmap mine;

	if (spec_take_metadata(m, &labels, &mine, e) < 0) {
		arena_done(&labels);
		return -1;
	}
	arena_done(&b->in->labels);
	b->in->labels = labels;
	b->spec.metadata = mine;
	return 0;
}

#define CHECK_BOOL(name)
#define CHECK_SECONDS(name)                                                                                  \
	if (p->has_##name && box_fields_check_seconds(p->name, #name, e) < 0)                                \
		return -1;
#define CHECK(kind, name) CHECK_##kind(name)

int lifetime_check_fields(const struct lifetime_patch *p, struct err *e)
{
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...) BOX_FIELD_IF_##change(CHECK, kind, name)
#include "box_fields.def"
#undef FIELD
	return 0;
}

int lifetime_apply(struct box *b, const struct lifetime_patch *p, struct err *e)
{
	enum spec_on_end on_end;

	on_end = b->spec.on_end;
	if (lifetime_check_fields(p, e) < 0)
		return -1;
	/* Everything is judged before anything is changed. */
	if ((p->on_end.n && spec_take_on_end(p->on_end, &on_end, e) < 0) ||
	    (p->has_metadata && take_labels(b, &p->metadata, e) < 0))
		return -1;
	b->spec.on_end = on_end;
#define APPLY(name)                                                                                          \
	if (p->has_##name)                                                                                   \
		b->spec.name = p->name;
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...) BOX_FIELD_IF_##change(APPLY, name)
#include "box_fields.def"
#undef FIELD
	if (p->has_idle_seconds)
		b->state.used_ms = clock_wall_ms();
	return 0;
}
