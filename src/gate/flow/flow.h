/*
 * The connections of boxes: from accept to their end. The map of the room:
 *
 *   states.c   every state, every event, what follows: begin here
 *   flow.c     the life of one: its first bytes, judging, time, the end
 *   peek.c     what the first bytes are: TLS, HTTP or anything else
 *   proxy.c    the proxy port: HTTP CONNECT, absolute-form requests, SOCKS 5, tokens
 *   web.c      HTTP in clear: every request is judged
 *   dial.c     the other side: names, addresses, connecting, the upstream proxy
 *   relay.c    bytes between the two
 *   linger.c   the end behind an answer
 *   box.c      what those of one box share: limits, names of addresses
 *   own.c      which addresses are this machine's
 */
#pragma once

#include "box.h"
#include "intercept.h"
#include "names.h"
#include "own.h"
#include "verdict.h"

struct flows_ops {
	void (*say)(struct gate_box *b, const struct verdict *v);
	void (*used)(struct gate_box *b); /* bytes were counted */
	/* A connection for the AI gateway, which takes the fd. */
	bool (*can_pass)(struct gate_box *b);
	void (*pass)(struct gate_box *b, int fd);
};

/* What all connections share. */
struct flows {
	const struct flows_ops *ops;
	struct loop *loop;
	struct names *names;
	struct intercepts *intercepts;
	struct map boxes;
	unsigned n, n_lingers;
	struct own own;
	struct sockaddr_storage upstream; /* proxy; family 0: none */
	socklen_t upstream_len;
	int pipe[2]; /* empty between turns: what is spliced passes through it */
	char scratch[256 * 1024];
};

/* The pipe and the socket for routes; before the program is confined. */
int flow_setup(struct flows *all, struct err *e) _must_check_;
/* A listener's event: of box->tcp. */
void flow_accept(struct loop_io *listener, uint32_t events);
void flow_end_all(struct gate_box *b);
/* The box may move bytes again. */
void flow_let_go(struct gate_box *b);
/* The box gets another policy: rules of the old one are about to go. */
void flow_forget_rules(struct gate_box *b);
/* It has: ends what would not be allowed any more, and says how many. */
unsigned flow_recheck(struct gate_box *b);
/* Whether the kernel delivers this address to this machine itself (or nowhere). */
bool flow_is_own(struct flows *all, const struct addr *a);
