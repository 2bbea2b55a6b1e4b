/*
 * Shared by the files of paddock-ai: see main.c.
 */
#pragma once

#include "mux.h"
#include "outgoing.h"
#include "own.h"
#include "trim.h"

#define AI_AT_ONCE    1000
#define AI_CONNECT_MS 10000 /* from the name to the last byte of the head */

struct ai {
	struct loop *loop;
	struct link api, keeper;
	struct mux vault;
	unsigned n;             /* connections */
	struct tls_client *tls; /* NULL: there are no authorities */
	struct names *names;
	struct own own;
	struct trim trim;
};

/* dial.c: one AiDial; the frame is a CALL of the api. */
void dial_start(struct ai *h, const struct frame *f);

/* key.c: the channel to the vault. Takes the fd; the old one is closed. */
void key_open(struct ai *h, int fd);

/* Embedded in whoever waits for a key. The value is gone when `done` returns. */
struct key_wait {
	struct call call;
	void (*done)(struct key_wait *w, struct view value, const struct err *e);
};
/* Once for a ticket, when its host has been reached. `done` comes later, unless it is forgotten. */
int key_ask(struct ai *h, struct key_wait *w, struct view ticket,
	    struct view host) _must_check_; /* -ENOTCONN, -errno */
void key_forget(struct key_wait *w);        /* also when nothing was asked */
