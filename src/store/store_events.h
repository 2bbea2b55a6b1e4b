/*
 * The store's tables about what happened and what is allowed: events, webhooks and
 * what they still owe, quotas, tenants' egress policies, templates. The rules of store.h hold here too.
 */
#pragma once

#include "store.h"

struct store_event {
	uint64_t id;     /* given by the caller; increasing */
	uint64_t number; /* the same among its tenant's */
	int64_t at_ms;
	struct view tenant, box, type;
	struct view data; /* JSON object */
};

struct store_webhook {
	struct view id, tenant, url;
	struct view events; /* types between spaces; empty: all */
	struct view secret;
	uint64_t position; /* the last event that was delivered, or is among the deliveries */
	int64_t created_ms;
};

/* A delivery that failed and will be tried again. */
struct store_delivery {
	struct view webhook;
	uint64_t event, attempts;
	int64_t first_ms, next_ms;
};

#define STORE_QUOTA_NUMBERS 12
struct store_quota {
	struct view tenant;
	/* In the order of the columns: boxes, cpu_milli, memory_mb, disk_mb, processes, helpers, workspaces,
	 * snapshots, templates, webhooks, secrets, secrets_kb. 0: nothing was said. */
	uint64_t numbers[STORE_QUOTA_NUMBERS];
	uint64_t creates_per_minute;
};

struct store_egress {
	struct view tenant;
	struct view policy; /* JSON */
};

struct store_template {
	struct view id, tenant, name;
	struct view builds; /* JSON */
	int64_t created_ms;
};

void store_event_put(struct store *s, const struct store_event *v, store_done *done, void *arg);
void store_event_drop(struct store *s, uint64_t id, store_done *done, void *arg);
/* All that are older, but for the newest of each tenant. */
void store_event_trim(struct store *s, int64_t oldest_ms, store_done *done, void *arg);
void store_webhook_put(struct store *s, const struct store_webhook *w, store_done *done, void *arg);
void store_webhook_move(struct store *s, struct view id, uint64_t position, store_done *done, void *arg);
void store_webhook_delete(struct store *s, struct view id, store_done *done, void *arg);
/* Or its next try; nothing when the webhook is gone. */
void store_delivery_put(struct store *s, const struct store_delivery *d, store_done *done, void *arg);
void store_delivery_delete(struct store *s, struct view webhook, uint64_t event, store_done *done, void *arg);
void store_quota_put(struct store *s, const struct store_quota *q, store_done *done, void *arg);
void store_egress_put(struct store *s, const struct store_egress *v, store_done *done,
		      void *arg); /* or replace */
void store_egress_delete(struct store *s, struct view tenant, store_done *done, void *arg);
void store_template_put(struct store *s, const struct store_template *t, store_done *done,
			void *arg); /* or its builds */
void store_template_delete(struct store *s, struct view id, store_done *done, void *arg);
