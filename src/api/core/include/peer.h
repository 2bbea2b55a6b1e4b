/*
 * Outgoing calls to models, through paddock-ai.
 */
#pragma once

#include "mux.h"

struct core;

/*
 * ---- carrier.c ----
 * The api's end of its channel to paddock-ai, which carries calls to models out: started
 * when the first call is made, and again when it was lost. A key is not on this channel:
 * paddock-ai gets it from the vault, for a ticket.
 */

/* Embedded in whatever waits. One of the two ends it; not after carrier_cancel. */
struct carrier_dial {
	struct call call;
	struct list link; /* of `pending` */
	struct core *core;
	struct buf request; /* while it waits */
	void (*done)(struct carrier_dial *d, int fd,
		     const struct err *e); /* fd is the callee's; e: why there is none */
	bool waits;
};

struct carrier_target {
	struct view host;
	uint16_t port;
	bool tls;
	struct view head;           /* without the key's header and the empty line */
	struct view ticket;         /* of secrets_lend */
	struct view header, prefix; /* of the key */
};
/* Connects and sends the head; without a ticket and a head it connects only. `done` has been set. */
int carrier_start(struct core *c, struct carrier_dial *d, const struct carrier_target *t,
		  struct err *e) _must_check_;
void carrier_cancel(struct carrier_dial *d);
