/*
 * The log of what happened to boxes: ids that only increase, kept in the store and
 * in memory, the newest EVENTS_KEPT of them and none older than EVENTS_DAYS. An event
 * is published (shown, streamed, delivered) once it is on disk, so that an id never
 * means two things, and it is written together with the change it tells of.
 */
#pragma once

#include "auth.h"
#include "buf.h"
#include "loop.h"
#include "store_events.h"

struct box;
struct core;

#define EVENTS_KEPT     10000
#define EVENTS_DAYS     7
#define EVENTS_PAGE_MAX 1000

enum event_type {
	EVENT_NONE,
	EVENT_CREATED,
	EVENT_STARTED, /* a stopped box runs again */
	EVENT_EXITED,  /* by itself: its PID 1 has ended */
	EVENT_PAUSED,
	EVENT_RESUMED,
	EVENT_STOPPED, /* because somebody asked, or its time was over */
	EVENT_OOM,     /* something in it was killed for want of memory */
	EVENT_EXPIRED,
	EVENT_DELETED,
	EVENT_FORKED,
	EVENT_SNAPSHOT,
	EVENT_AI_WARNING,  /* much of a budget for models is spent */
	EVENT_AI_EXCEEDED, /* a budget for models did not suffice for a call */
	EVENT_TYPES
};

struct event {
	uint64_t id;
	int64_t at_ms;
	enum event_type type;
	const struct tenant *tenant;
	char box[24];
	struct view data; /* a JSON object */
	char text[];
};

/* Told that there is more to be read by events_next. */
struct events_watch {
	struct list link;
	void (*on_more)(struct events_watch *w);
};

struct events {
	struct event **ring; /* EVENTS_KEPT places; the oldest at head */
	size_t head, n;
	uint64_t next_id, trimmed; /* the store has none before `trimmed` */
	struct list watches;
	struct loop_timer trim;
};

const char *events_name(enum event_type t);
enum event_type events_type(struct view name); /* EVENT_NONE for what is none */

/* Something happened to the box. Boxes that nobody sees (imports, the pool) have no events. */
void events_emit(struct core *c, enum event_type t, const struct box *b);
/* With more in its data: key and value. */
void events_emit_with(struct core *c, enum event_type t, const struct box *b, const char *key,
		      struct view value);
/* AI_WARNING, AI_EXCEEDED: whose budget ("sandbox", "tenant") and what is with it; money in nano-dollars. */
struct event_budget {
	const char *scope, *window;
	int64_t limit, spent, reserved;
};
void events_emit_budget(struct core *c, enum event_type t, const struct box *b, const struct event_budget *n);
/* EXITED, and OOM before it where that was the reason. */
/* Something in it was killed for want of memory: with the limit. */
void events_oom(struct core *c, const struct box *b);
void events_exited(struct core *c, const struct box *b, unsigned exit_code, unsigned signo, bool oom);

struct event_filter {
	uint32_t types;  /* a bit per type; 0: all */
	struct view box; /* its id; empty: all */
};
/* "created,exited" into bits; ERR_INVALID. */
int events_read_types(struct view list, uint32_t *ret, struct err *e) _must_check_;
bool events_matches(const struct event_filter *f, const struct actor *a, const struct event *v);
/* The first event behind `after` that the actor may see and the filter lets through, or NULL. */
const struct event *events_next(const struct core *c, const struct actor *a, const struct event_filter *f,
				uint64_t after);
const struct event *events_get(const struct core *c, uint64_t id); /* or NULL */
uint64_t events_last(const struct core *c);                        /* id of the newest, 0: none was ever */
uint64_t events_first(const struct core *c); /* id of the oldest that is kept, or of the next to come */
/* The event as JSON: what the API shows and what webhooks get. */
int events_to_json(const struct event *v, struct buf *out);

void events_watch(struct core *c, struct events_watch *w, void (*on_more)(struct events_watch *));
void events_unwatch(struct events_watch *w); /* accepts one that was never started (zeroed) */

int events_init(struct core *c) _must_check_; /* -errno */
int events_load(struct core *c, const struct store_event *row) _must_check_;
void events_start(struct core *c); /* all are loaded */
void events_done(struct core *c);
