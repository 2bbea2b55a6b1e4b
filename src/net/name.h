/*
 * Names to addresses, for a program without files: see name.c. Shared with paddock-ai.
 */
#pragma once

#include <sys/socket.h>

#include "loop.h"
#include "view.h"

struct name_server {
	struct loop *loop;              /* set before the first question */
	struct view hosts;              /* /etc/hosts as it was at the start */
	struct sockaddr_storage server; /* family 0: none */
	socklen_t server_len;
};

/* What the machine says about names; before the program is confined. */
void name_load(struct name_server *s);

struct name_query {
	struct name_server *server;
	struct loop_io io;
	struct loop_timer timer;
	uint16_t id;
	struct sockaddr_storage found;
	socklen_t found_len;
	char host[256];
	int left;                                              /* tries */
	bool v6;                                               /* asks for AAAA now */
	void (*done)(struct name_query *q, const char *error); /* NULL: `found` is it, without a port */
};
/* Addresses and /etc/hosts at once, else by DNS. `done` may be called before it returns. */
void name_start(struct name_query *q, struct name_server *s, struct view host,
		void (*done)(struct name_query *, const char *));
void name_stop(struct name_query *q);
