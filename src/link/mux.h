/*
 * Calls over a link: the caller's half of docs/wire.md. A mux owns a link and a
 * table of the streams that are open on it; a call is one stream, embedded in
 * whatever waits for it.
 *
 * A call is closed before its last callback (on_reply with FRAME_LAST, or
 * on_fail) runs, so that the callback may free it or start it anew. It ends in
 * exactly one of these ways: the last reply, on_fail, mux_cancel. The peer may
 * be hostile: windows are enforced, and whatever breaks the rules ends the link.
 */
#pragma once

#include "link.h"
#include "map.h"

struct call;
struct mux;

struct call_ops {
	/* fd is -1 or the callee's. The call is closed already when flags has FRAME_LAST.
	 * A negative value says that the peer's bytes were nonsense and that nothing was
	 * done with them: the link is broken and the call fails. */
	int (*on_reply)(struct call *c, const struct frame *f, int fd);
	/* Every byte must be given back by mux_consumed, now or later. NULL: the call has
	 * no data. A negative value as above. */
	int (*on_data)(struct call *c, unsigned channel, struct view data);
	/* After mux_send took less than it was given. */
	void (*on_room)(struct call *c);
	void (*on_fail)(struct call *c, const struct err *e);
};

struct call {
	const struct call_ops *ops;
	struct mux *mux; /* NULL while closed */
	struct map_node node;
	struct list waiting; /* for room, or (guest.c) for the link to open */
	uint32_t stream;
	uint16_t type;
	uint32_t credit;      /* bytes that we may send */
	uint32_t window;      /* bytes that the peer may send */
	uint32_t held;        /* received and not yet consumed */
	uint32_t owed;        /* consumed, credit not yet given back */
	bool sends, ended;    /* we send DATA; we sent END */
	bool background;      /* of our own: nobody waits for it, it does not keep a box from being idle */
	uint32_t patience_ms; /* silence that is borne while the peer has the turn; 0 = for ever */
	uint64_t heard_ms;
	struct loop_timer timer;
	bool queued; /* guest.c: waits for the link to open, with the encoded body in `request` */
	struct buf request;
	uint32_t deadline_ms;
	unsigned decode_flags; /* of the mux; outlives the closing */
};

struct mux_ops {
	void (*on_event)(struct mux *m, const struct frame *f); /* NULL: an event breaks the link */
	/* Instead of it, where events may bring an fd, which is the callee's; -1: none. */
	void (*on_event_fd)(struct mux *m, const struct frame *f, int fd);
	/* The link is gone or was broken; the owner calls mux_stop. Not called after mux_stop. */
	void (*on_closed)(struct mux *m, const struct err *why);
};

struct mux {
	struct link link;
	struct loop *loop;
	const struct mux_ops *ops;
	struct map calls;    /* by stream */
	struct list waiting; /* calls that wait for the link to drain */
	uint32_t last_stream;
	unsigned decode_flags; /* for pb_decode: PB_SKIP_UNKNOWN where the builds may differ */
	bool open;
};

int mux_start(struct mux *m, struct loop *l, int fd, bool pass_fds, const struct mux_ops *ops) _must_check_;
/* Closes the link and fails every open call. Accepts a zeroed one. The memory
 * must stay until the end of the loop's batch. */
void mux_stop(struct mux *m, const struct err *why);
/* Bodies may hold secrets: what they pass through is wiped. */
void mux_keep_secret(struct mux *m);
/* The peer broke the protocol: as if the link had closed. */
void mux_violation(struct mux *m, const char *what);

/* Opens a call, whose `ops` (and `sends`) the caller has set. -errno: nothing
 * was opened, no callback will come. */
int mux_call(struct mux *m, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
	     const struct pb_msg *pm, const void *msg) _must_check_;
/* The same with a body that is encoded already. */
int mux_call_raw(struct mux *m, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
		 struct view body) _must_check_;
/* Nobody waits any more. Accepts a closed or zeroed call. */
void mux_cancel(struct call *c);
static inline bool mux_is_open(const struct call *c)
{
	return c->mux != NULL;
}

/* Takes as much as credit and queue allow; on_room follows when that was not all. */
size_t mux_send(struct call *c, struct view data);
size_t mux_send_on(struct call *c, uint16_t channel, struct view data);
void mux_end(struct call *c);
void mux_consumed(struct call *c, size_t n);

/* Decodes a reply to this call that is all of it; -EBADMSG where there is to be more. */
int mux_reply(const struct call *c, const struct frame *f, const struct pb_msg *pm, struct arena *a,
	      void *out) _must_check_;
/* Decodes the body of a reply to this call. */
int mux_decode(const struct call *c, struct view body, const struct pb_msg *pm, struct arena *a,
	       void *out) _must_check_;
