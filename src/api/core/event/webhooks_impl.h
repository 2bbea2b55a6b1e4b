/*
 * What the files of the webhooks share: webhooks.c has them, webhooks_send.c delivers.
 */
#pragma once

#include "core_base.h"
#include "webhooks.h"
#include "webhooks_impl.h"

struct delivery {
	struct list link; /* of webhook.retries */
	struct webhook *hook;
	struct call call;
	uint64_t event, number; /* its id; its tenant's number of it, 0: it was gone before it was sent */
	unsigned attempts;      /* that were made */
	int64_t first_ms, next_ms;
	uint64_t began_ms;
};

struct webhook {
	char id[KEYS_ID_SIZE];
	struct core *core;
	const struct tenant *tenant;
	char url[WEBHOOKS_URL_MAX + 1], secret[WEBHOOKS_SECRET_MAX + 1];
	uint32_t types;
	int64_t created_ms;
	struct map_node by_id;
	struct list order;

	uint64_t position;     /* every event up to it is delivered, not wanted, or a retry */
	struct delivery first; /* the first try of the next one */
	struct list retries;
	unsigned n_retries;
	struct delivery *retry; /* the one that is under way */
	struct loop_timer timer;

	uint64_t delivered, failed;
	struct webhook_attempt log[WEBHOOKS_LOG];
	unsigned log_n, log_at; /* the next place */
};

/* A URL in its parts; they point into it. */
struct webhook_url {
	struct view host, authority, target;
	uint16_t port;
	bool tls;
};
int webhooks_read_url(struct view url, struct webhook_url *ret, struct err *e) _must_check_;

/* Sends what is due. */
void webhooks_send(struct webhook *w);
/* Ends what is under way. */
void webhooks_send_stop(struct webhook *w);
