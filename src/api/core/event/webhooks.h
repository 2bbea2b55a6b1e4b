/*
 * Webhooks: every event of a tenant that a webhook asks for is POSTed to its URL, signed
 * with its secret, at least once. First tries go out in the order of the events; what
 * fails waits among the retries, on disk, and is tried again after 1 s, 2 s, 4 s … 10 min,
 * for a day. What is sent and where is decided here; paddock-hook, which has a network
 * and nothing else, carries it.
 *
 * Paddock-Signature: t=SECONDS,v1=HEX, where HEX is HMAC-SHA256(secret, "SECONDS.BODY").
 */
#pragma once

#include "auth.h"
#include "events.h"
#include "job.h"
#include "json.h"
#include "mux.h"
#include "store_events.h"

struct core;

#define WEBHOOKS_URL_MAX    1024
#define WEBHOOKS_SECRET_MAX 128
#define WEBHOOKS_OF_TENANT  16
#define WEBHOOKS_LOG        32   /* attempts that are remembered */
#define WEBHOOKS_RETRIES    1000 /* that may wait; the oldest is given up for a new one */

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

struct webhook;

struct webhook_view {
	const char *id, *url, *secret;
	const struct tenant *tenant;
	uint32_t types; /* a bit each; 0: all */
	int64_t created_ms;
	uint64_t position, delivered, failed; /* attempts since the start of the program */
	unsigned pending;                     /* retries that wait */
};

struct webhooks {
	struct map by_id;
	struct list all;
	struct events_watch watch;
	struct mux mux; /* to paddock-hook */
	struct call opening;
	struct loop_timer again;
	bool open;
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

int webhooks_init(struct core *c) _must_check_; /* -errno */
int webhooks_load(struct core *c, const struct store_webhook *row) _must_check_;
int webhooks_load_delivery(struct core *c, const struct store_delivery *row) _must_check_;
void webhooks_start(struct core *c);
void webhooks_stop(struct core *c);
void webhooks_done(struct core *c);
