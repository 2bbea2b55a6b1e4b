/*
 * The api's end of the connection to PID 1 of one box. Opened by the keeper on
 * demand: calls that come while it opens wait. Nothing that arrives here is
 * trusted; a broken link fails its calls and is opened anew by the next one.
 */
#pragma once

#include "mux.h"

struct box;
struct box_part;
struct core;

enum guest_state {
	GUEST_CLOSED,   /* the next call opens it */
	GUEST_OPENING,  /* BoxOpen is with the keeper */
	GUEST_GREETING, /* HELLO is with PID 1 */
	GUEST_READY,
	GUEST_DEAD, /* the box has stopped: for good */
};

struct guest {
	struct core *core;
	struct box *owner;
	const char *box, *backend;   /* its id and whose walls it has, looked at when a link is opened */
	const struct view *timezone; /* of its spec */
	enum guest_state state;
	struct mux mux;
	struct call open, hello;
	struct list pending; /* calls that wait for READY */
	bool secret;         /* see guest_is_secret */
	/* Told once about the first greeting after guest_adopt; may be NULL. */
	void (*on_greeted)(struct guest *g, const struct err *e);
};

extern const struct box_part guest_part;
/* Takes the fd of a fresh connection and greets. */
void guest_adopt(struct guest *g, int fd, void (*on_greeted)(struct guest *, const struct err *));
/* A box that had stopped runs again; guest_adopt follows. */
void guest_revive(struct guest *g);
/* Like mux_call; opens the link where that is needed. ERR_STATE when the box has stopped. */
int guest_call(struct guest *g, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
	       const struct pb_msg *pm, const void *msg, struct err *e) _must_check_;
/* The same, sent behind HELLO without waiting for its answer: for a box that was just made, whose PID 1 is of
 * our own build, and for what may be lost. */
int guest_call_early(struct guest *g, struct call *c, uint16_t type, uint32_t patience_ms,
		     const struct pb_msg *pm, const void *msg, struct err *e) _must_check_;
/* From here on nothing that is sent to this box stays in our memory. */
void guest_is_secret(struct guest *g);
/* Cancels a call in whatever state it is. Accepts a zeroed or closed one. */
void guest_cancel(struct call *c);
/* Ends everything; the calls fail with `why`. After this no call is accepted. */
void guest_stop(struct guest *g, const struct err *why);
/* What PID 1 says went wrong, reduced to what a box may say about itself. */
void guest_read_fail(const struct err *said, struct err *ret);
