/*
 * Webhooks for the core itself: see event.h.
 */
#pragma once

#include "money.h"
#include "event.h"
#include "events.h"
#include "job.h"
#include "json.h"
#include "mux.h"
#include "store_events.h"
#include "who.h"

#define WEBHOOKS_LOG     32   /* attempts that are remembered */
#define WEBHOOKS_RETRIES 1000 /* that may wait; the oldest is given up for a new one */

struct webhooks {
	struct core *core;
	struct map by_id;
	struct list all;
	struct events_watch watch;
	struct mux mux; /* to paddock-hook */
	struct call opening;
	struct loop_timer again;
	bool open;
};

int webhooks_init(struct core *c) _must_check_; /* -errno */
int webhooks_load(struct core *c, const struct store_webhook *row) _must_check_;
int webhooks_load_delivery(struct core *c, const struct store_delivery *row) _must_check_;
void webhooks_start(struct core *c);
void webhooks_stop(struct core *c);
void webhooks_done(struct core *c);
uint64_t webhooks_held(const struct core *c, const struct tenant *t, enum ledger_item i);
