/*
 * A connection below its protocol: socket, events, time limit, life. A driver
 * (HTTP/1.1, HTTP/2, or the TLS handshake before either) does the rest.
 */
#pragma once

#include <netinet/in.h>

#include "http_place.h"
#include "http_server.h"
#include "http_transport.h"

struct http_conn;

struct http_driver {
	void (*on_io)(struct http_conn *c, uint32_t events);
	void (*on_kick)(struct http_conn *c);     /* after http_conn_kick */
	void (*on_deadline)(struct http_conn *c); /* the time limit has passed */
	void (*abort)(struct http_conn *c);       /* the connection is gone: tell the dialects */
	void (*free)(struct http_conn *c);        /* the driver's state */
};

struct http_conn {
	struct list link;
	struct http_seat seat;
	struct http_server *server;
	struct http_transport t;
	struct loop_io io;
	struct loop_timer timer;
	struct loop_task task; /* for its end */
	struct list turn;      /* of its party's line */
	uint32_t events;       /* that its next turn is for */
	const struct http_driver *driver;
	void *state;          /* the driver's */
	uint64_t progress_ms; /* when bytes last moved */
	uint64_t deadline_ms; /* 0: none */
	uint64_t dropped;     /* bytes read and forgotten while lingering */
	bool lingering;
	bool dead;                   /* closed; waits for the end of the batch */
	bool kicked;                 /* its next turn is for the driver, too */
	bool ending;                 /* the task is due */
	bool doomed;                 /* closed by the task */
	char peer[INET6_ADDRSTRLEN]; /* "" where there is no address */
	char origin[HTTP_ORIGIN];    /* "" unless it was adopted */
	bool crowded;                /* http_exchange.crowded */
	unsigned listener;           /* by which it came; HTTP_ADOPTED */
};

/* Takes the fd. origin: "" or whose it is, and then there is no TLS and no listener. */
int http_conn_new(struct http_server *s, int fd, const struct sockaddr *peer, const char *origin,
		  bool crowded, unsigned listener) _must_check_;
/* Closes now, aborts what is going on, frees at the end of the batch. */
void http_conn_close(struct http_conn *c);
/* The same so that the peer sees a cut, not an end. */
void http_conn_reset(struct http_conn *c);
/* Sends no more, reads on for a little while, then closes: a client that is still
 * sending reads our last answer before it sees a reset. The driver is done. */
void http_conn_linger(struct http_conn *c);
void http_conn_free(struct http_conn *c); /* at once; not from a handler */
/* Closes at the end of the batch: for those who stand within a dialect's call. */
void http_conn_doom(struct http_conn *c);

/* Has the driver run with the connection's next turn: for what a dialect's call brings about. */
void http_conn_kick(struct http_conn *c);
/* Its turn: what has happened on it. */
void http_conn_turn(struct http_conn *c);
void http_conn_want(struct http_conn *c, bool read, bool write);
/* Moving a deadline on costs nothing: the timer looks at it when it fires. */
void http_conn_deadline(struct http_conn *c, uint64_t at_ms);
static inline void http_conn_progress(struct http_conn *c)
{
	c->progress_ms = loop_now(c->server->loop);
}

/* The drivers' beginnings; -errno when there is no memory. `first` has been read already. */
int http_h1_start(struct http_conn *c) _must_check_;
int http_h2_start(struct http_conn *c) _must_check_;
int http_h2_feed(struct http_conn *c, struct view first) _must_check_;
