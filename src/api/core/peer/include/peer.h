/*
 * Programs that the api speaks to for others: outgoing calls to models, through paddock-ai; and the signer.
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

/*
 * ---- signer.c ----
 * The api's end of its channel to paddock-signer. The program is started by the first call, or at the start
 * of the daemon when there are wallets; the channel is opened again when it is lost. Calls that come while it
 * is away wait for it, at most SIGNER_WAIT_MS, and then fail with ERR_UNAVAILABLE. A call whose answer was
 * lost with the channel fails with ERR_UNAVAILABLE at once, and may have been carried out: a REQUEST is
 * repeated with its idem_key, anything else after a GET.
 */
#define SIGNER_WAIT_MS 5000

/* One call; embedded in whatever waits, and zeroed before its first use. */
struct signer_ask {
	struct call call;
	struct core *core;
	const struct pb_msg *reply_msg;
	/* Called once, later, and not after signer_cancel; may free the ask or start it anew. `reply` is a
	 * message of reply_msg, gone when this returns; NULL with an error. */
	void (*done)(struct signer_ask *a, const void *reply, const struct err *e);
};
/* type: SGN_SIGNER_TYPE_…; msg: its message, encoded before this returns. -1: no callback will come. */
int signer_call(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *request_msg,
		const void *msg, const struct pb_msg *reply_msg,
		void (*done)(struct signer_ask *a, const void *reply, const struct err *e),
		struct err *e) _must_check_;
/* The same, of a signer that is there already, or was used before: none is started for it, and `done` gets
 * ERR_NOT_FOUND. */
int signer_call_known(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *request_msg,
		      const void *msg, const struct pb_msg *reply_msg,
		      void (*done)(struct signer_ask *a, const void *reply, const struct err *e),
		      struct err *e) _must_check_;
/* Nobody waits any more. What was sent may still be carried out. Accepts one that is over or zeroed. */
void signer_cancel(struct signer_ask *a);
static inline bool signer_asking(const struct signer_ask *a)
{
	return mux_is_open(&a->call) || a->call.queued;
}

/* Whether there is a channel. */
bool signer_is_open(const struct core *c);
/* Told when the channel opens (again) and when it is lost. Embedded; `changed` may call and cancel, and may
 * unwatch itself. Not told of the state at the time of signer_watch: see signer_is_open. */
struct signer_watch {
	struct list node;
	void (*changed)(struct signer_watch *w, bool is_open);
	void (*told)(struct signer_watch *w,
		     struct view id); /* of a request that others changed; may be NULL */
};
void signer_watch(struct core *c, struct signer_watch *w);
void signer_unwatch(struct signer_watch *w); /* accepts a zeroed one */
