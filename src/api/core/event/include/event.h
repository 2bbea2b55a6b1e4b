/*
 * Events of boxes: the log, and the webhooks that deliver them.
 */
#pragma once

#include "buf.h"
#include "job.h"
#include "json.h"
#include "who.h"

struct actor;
struct core;
struct event;
struct tenant;
struct webhook;

/*
 * ---- events.c ----
 * The log of what happened to boxes: ids that only increase, kept in the store and
 * in memory, EVENTS_KEPT of them and none older than EVENTS_DAYS. When there are more, the
 * tenant that has the most loses its oldest. Ids count for the installation; what a tenant is
 * shown is counted for itself (events_shown), as is what it says (events_meant). An event
 * is published (shown, streamed, delivered) once it is on disk, so that an id never
 * means two things, and it is written together with the change it tells of.
 */

#define EVENTS_KEPT     10000
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
	EVENT_TX_PENDING,  /* an agent's request waits for a person */
	EVENT_TX_DECIDED,  /* it was approved, rejected or cancelled, or has expired */
	EVENT_TX_CHANGED,  /* it was signed, sent, included, … */
	EVENT_TYPES
};

struct event {
	uint64_t id, number; /* of all; of its tenant */
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

const char *events_name(enum event_type t);

struct event_filter {
	uint32_t types;  /* a bit per type; 0: all */
	struct view box; /* its id; empty: all */
};
/* "created,exited" into bits; ERR_INVALID. */
int events_read_types(struct view list, uint32_t *ret, struct err *e) _must_check_;
/* The first event behind `after` that the actor may see and the filter lets through, or NULL. */
const struct event *events_next(const struct core *c, const struct actor *a, const struct event_filter *f,
				uint64_t after);
const struct event *events_get(const struct core *c, uint64_t id); /* or NULL */
uint64_t events_last(const struct core *c);                        /* id of the newest, 0: none was ever */
/* The id or number under which this actor knows the event; of the newest (or what its first one comes after)
 * and of the oldest that it sees (or of the next to come). */
uint64_t events_shown(const struct actor *a, const struct event *v);
uint64_t events_last_shown(const struct core *c, const struct actor *a);
uint64_t events_first_shown(const struct core *c, const struct actor *a);
/* From there back: the id of the newest event up to that. */
uint64_t events_meant(const struct core *c, const struct actor *a, uint64_t shown);
/* The event as JSON: what the API shows and what webhooks get. */
int events_to_json(const struct actor *a, const struct event *v, struct buf *out);

void events_watch(struct core *c, struct events_watch *w, void (*on_more)(struct events_watch *));
void events_unwatch(struct events_watch *w); /* accepts one that was never started (zeroed) */

/*
 * ---- webhooks.c ----
 * Webhooks: every event of a tenant that a webhook asks for is POSTed to its URL, signed
 * with its secret, at least once. First tries go out in the order of the events; what
 * fails waits among the retries, on disk, and is tried again after 1 s, 2 s, 4 s … 10 min,
 * for a day. What is sent and where is decided here; paddock-hook, which has a network
 * and nothing else, carries it.
 *
 * Paddock-Signature: t=SECONDS,v1=HEX, where HEX is HMAC-SHA256(secret, "SECONDS.BODY").
 */

#define WEBHOOKS_URL_MAX    1024
#define WEBHOOKS_SECRET_MAX 128

struct webhook_attempt {
	uint64_t event;
	enum event_type type;
	int64_t at_ms;
	unsigned attempt; /* from 1 */
	unsigned status;  /* HTTP; 0: no answer */
	uint32_t took_ms;
	bool last; /* it was delivered, or was given up */
	char error[96];
};

struct webhook_view {
	const char *id, *url, *secret;
	const struct tenant *tenant;
	uint32_t types; /* a bit each; 0: all */
	int64_t created_ms;
	uint64_t position, delivered, failed; /* attempts since the start of the program */
	unsigned pending;                     /* retries that wait */
};

struct webhook_wish {
	struct view url, secret; /* no secret: one is made */
	struct json_strlist events;
};

/* The result is a const struct webhook *. */
struct job *webhooks_create(struct core *c, const struct actor *a, const struct webhook_wish *w,
			    job_done *done, void *arg, struct err *e) _must_check_;
struct job *webhooks_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			    struct err *e) _must_check_;
const struct webhook *webhooks_find(struct core *c, const struct actor *a, struct view id,
				    struct err *e) _must_check_;
int webhooks_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct webhook *w),
		  void *arg, struct err *e) _must_check_;
void webhooks_show(const struct webhook *w, struct webhook_view *ret);
/* The attempts, the newest first. */
void webhooks_log(const struct webhook *w, void (*each)(void *arg, const struct webhook_attempt *t),
		  void *arg);
