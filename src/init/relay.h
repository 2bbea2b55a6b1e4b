/*
 * A TCP connection of the box as a stream: bytes both ways with credit, each
 * direction ended on its own.
 */
#pragma once

#include "stream.h"

#define RELAY_MAX 512 /* at once in a box: other operations have streams left */

struct relay {
	struct stream stream;
	struct loop_io io;
	struct loop_timer timer; /* of the connecting */
	int fd;
	struct buf out; /* from the caller, not yet taken by the socket */
	uint16_t port;
	bool v6;             /* the second try */
	bool open;           /* connected */
	bool eof;            /* the other end sends no more */
	bool shut;           /* neither do we, or it does not listen */
	bool hung;           /* epoll has nothing more to say */
	struct list waiting; /* acceptor.c: for a connection */
};

/* Connect: the operation. */
int relay_connect(const struct conn_call *call, struct err *e) _must_check_;
/* One without a socket yet; NULL and e. */
struct relay *relay_new(const struct conn_call *call, uint32_t port, struct err *e) _must_check_;
/* Takes the connected socket, says so, and carries. */
void relay_open(struct relay *r, int fd);
