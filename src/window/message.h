/*
 * What paddock-watch tells paddock-window: a line of JSON each.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "json.h"

#define MESSAGE_MAX 8192

enum message_type {
	MESSAGE_NONE,
	MESSAGE_HERE,    /* the daemon answers */
	MESSAGE_AWAY,    /* it does not, and why */
	MESSAGE_PENDING, /* how many requests wait */
	MESSAGE_REQUEST, /* a new one */
};

struct message {
	enum message_type type;
	struct view url;    /* HERE: http://HOST:PORT */
	struct view cookie; /* HERE: NAME=VALUE of the session; empty: not signed in */
	struct view ca;     /* HERE: a file of authorities; empty: the system's */
	struct view text;   /* HERE: why not signed in; AWAY: why; REQUEST: its summary */
	struct view id, agent, chain;
	bool fresh;     /* HERE: what the page knew counts no longer */
	bool local;     /* AWAY: the daemon of this machine is meant, which may be started */
	uint64_t count; /* PENDING */
};

/* Appends the line. Errors stick in the buf. */
void message_put(struct buf *out, const struct message *m);
/* The views live in the arena. ERR_INVALID. */
int message_read(struct arena *a, struct view line, struct message *ret, struct err *e) _must_check_;
