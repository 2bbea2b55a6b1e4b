/*
 * What the files of paddock-hook share: see main.c.
 */
#pragma once

#include <sys/socket.h>

#include "link.h"
#include "loop.h"
#include "view.h"

#define HOOK_REQUEST_MS 10000 /* one delivery, from the name to the answer's head */
#define HOOK_AT_ONCE    256

struct hook {
	struct loop *loop;
	struct link api;
	struct view refuse; /* netaddr.h */
	unsigned n;         /* deliveries under way */
	struct secure_ctx *tls;
	struct view hosts;  /* /etc/hosts as it was at the start */
	struct sockaddr_storage server; /* of names; family 0: none */
	socklen_t server_len;
};

/* post.c: one HookPost; the frame is a CALL of the api. */
void post_start(struct hook *h, const struct frame *f);

/* name.c: what the machine says about names; before the program is confined. */
void name_load(struct hook *h);

struct name_query {
	struct hook *hook;
	struct loop_io io;
	struct loop_timer timer;
	uint16_t id;
	struct sockaddr_storage found;
	socklen_t found_len;
	char host[256];
	int left; /* tries */
	bool v6;  /* asks for AAAA now */
	void (*done)(struct name_query *q, const char *error); /* NULL: `found` is it, without a port */
};
/* Addresses and /etc/hosts at once, else by DNS. `done` may be called before it returns. */
void name_start(struct name_query *q, struct hook *h, struct view host, void (*done)(struct name_query *, const char *));
void name_stop(struct name_query *q);
