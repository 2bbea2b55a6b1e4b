/*
 * The log of events, for the core itself: see event.h.
 */
#pragma once

#include "buf.h"
#include "event.h"
#include "loop.h"
#include "map.h"
#include "store_events.h"
#include "who.h"

struct box;
struct core;

#define EVENTS_DAYS 7

struct events {
	struct core *core;
	struct event **kept; /* the oldest first; see events_kept.c */
	size_t n;
	struct map tenants; /* struct events_of */
	uint64_t next_id;
	bool started;
	struct list watches;
	struct loop_timer trim;
};

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
/* TX_PENDING, TX_DECIDED, TX_CHANGED: of an agent's request. The summary is the signer's sentence. */
struct event_transaction {
	const struct tenant *tenant;
	struct view box; /* in which the agent runs; may be empty */
	struct view id, agent, agent_name, chain, summary;
	const char *state;
};
void events_emit_transaction(struct core *c, enum event_type t, const struct event_transaction *n);
/* EXITED, and OOM before it where that was the reason. */
/* Something in it was killed for want of memory: with the limit. */
void events_oom(struct core *c, const struct box *b);
void events_exited(struct core *c, const struct box *b, unsigned exit_code, unsigned signo, bool oom);

/* ---- events_kept.c, for events.c ---- */
int events_number(struct core *c, struct event *event) _must_check_; /* gives it its id and number */
/* In the order of their ids. Takes it, unless there is no memory. */
int events_keep(struct core *c, struct event *event) _must_check_;
void events_trim(struct core *c); /* those that are too old */
/* The place of the first event with an id above `after`; events.n when there is none. */
size_t events_place_after(const struct core *c, uint64_t after);

int events_init(struct core *c) _must_check_; /* -errno */
int events_load(struct core *c, const struct store_event *row) _must_check_;
void events_start(struct core *c); /* all are loaded */
void events_done(struct core *c);
