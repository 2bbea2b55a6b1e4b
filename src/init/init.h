/*
 * What PID 1 has in its hands: one loop, one listening socket, the connections
 * to it, and the processes that were started for them.
 */
#pragma once

#include "identity.h"
#include "oom.h"

#define INIT_CONNS     16
#define INIT_OOM_SCORE "300" /* of what is started: dies before PID 1, and before the host's own programs */

struct spare;

struct init {
	struct loop *loop;
	struct loop_io listener;
	struct loop_timer retry; /* accepting again after fds ran out */
	struct loop_signals signals;
	struct list conns;
	unsigned n_conns;
	unsigned n_streams;         /* of all of them, until freed */
	struct list procs;          /* struct proc that were not reaped yet */
	struct list ended;          /* kept ones that were, in that order */
	unsigned n_living, n_ended; /* of the kept */
	struct list drains;         /* pipes of processes that outlived their stream */
	unsigned n_drains;
	struct spare *spare;          /* a login shell made ahead; NULL until the first is wished for */
	unsigned n_relays;            /* connections that are carried */
	struct list acceptors;        /* struct acceptor */
	struct loop_io sudo;          /* listens; fd -1 where there is none */
	struct loop_io space;         /* space.h; likewise */
	struct loop_timer space_rest; /* until it takes questions again */
	struct list sudos;            /* struct sudo */
	unsigned n_sudo_clients;
	struct list farewells; /* farewell.c */
	bool box;              /* we are PID 1 of one, not a test */
	bool unsettled;        /* conn.c has something to do before the first call */
	struct {
		struct loop_timer timer;
		struct oom_look before;
		uint64_t thrashing_ms;
	} oom;
	struct loop_timer settling; /* conn.c */
	struct zone zone;           /* as the last greeting said */
	struct loop_task quit;
};

/* Takes listen_fd. */
int init_start(struct init *in, int listen_fd, struct err *e) _must_check_;
