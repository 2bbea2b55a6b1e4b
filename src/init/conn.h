/*
 * A connection to PID 1: frames in, calls dispatched, streams kept. A protocol
 * error or the loss of the socket ends this connection and what runs on it,
 * and nothing else.
 */
#pragma once

#include "arena.h"
#include "init.h"
#include "link.h"

#define CONN_STREAMS 1024 /* at once */
#define CONN_BACKLOG 0    /* bytes that wait; past this nobody adds DATA, which would only be copied */

struct conn {
	struct link link;
	struct init *init;
	struct list node; /* of init->conns */
	struct list streams;
	unsigned n_streams;
	uint32_t last_id;
	struct loop_task end;
};

/* One CALL, as the operation that it starts sees it. */
struct conn_call {
	struct conn *conn;
	uint16_t type;
	uint32_t stream, deadline_ms;
	const void *msg;     /* decoded; gone after the call, as are the bytes it points to */
	struct arena *arena; /* as long-lived as msg */
};

int conn_open(struct init *in, int fd); /* takes fd */
void conn_close(struct conn *c);
/* The whole answer of an operation that needs no stream. */
void conn_reply(const struct conn_call *call, const struct pb_msg *m, const void *msg);
