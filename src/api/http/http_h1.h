/*
 * What the files of HTTP/1.1 share: http_h1.c reads, sends and waits, http_h1_steps.c takes what was read
 * from state to state, http_h1_answer.c writes what a dialect answers.
 */
#pragma once

#include "http_conn.h"

enum h1_state {
	H1_HEAD,   /* between requests, or within a head */
	H1_BODY,   /* the body goes to the dialect */
	H1_ANSWER, /* the body is complete, the answer is not */
	H1_DRAIN,  /* the answer is complete, the body is not */
	H1_RAW,    /* after an upgrade: bytes both ways until the dialect has finished */
	H1_FLUSH,  /* nothing more is read; closes when all is sent */
};

struct http_h1 {
	struct http_conn *c;
	struct http_room *room; /* NULL while idle */
	struct http_impl i;
	struct http1_request req;
	struct buf trailers; /* of the answer, as lines */
	struct http1_body body;
	enum h1_state state;
	size_t start, end;     /* what has been read and not used, in room->in */
	size_t base;           /* where the body is read to */
	size_t step;           /* bytes of a body that have not counted as progress yet */
	struct view shared;    /* constant bytes of an answer, behind those in the room */
	uint64_t since_ms;     /* when a head began */
	bool turn_over;        /* the next request waits for an event, in line with other connections */
	unsigned turns;        /* requests that were begun since h1_run began */
	uint64_t turn_ends_ns; /* when the next of them waits for other connections */
	uint64_t dropped;      /* bytes of a body that nobody wants */
	bool sniffed;          /* it is not HTTP/2 */
	bool busy;             /* h1_run is on the stack */
	bool eof;              /* the client has half-closed */
	bool close;            /* after this answer */
	bool linger;           /* the client may still be sending */
	bool broken;
	bool throttled; /* pipelined requests wait until answers have left */
	bool waits;     /* the client wants a 100 before it sends the body */
	bool chunked;   /* the answer */
};

static inline uint64_t h1_now(const struct http_h1 *h)
{
	return loop_now(h->c->server->loop);
}

static inline size_t h1_queued(const struct http_h1 *h)
{
	return (h->room ? buf_len(&h->room->out) : 0) + h->shared.n;
}

/* Whether the next of several requests that came at once may be looked at. */
static inline bool h1_may_begin(const struct http_h1 *h)
{
	return !h->shared.n && http_place_may_begin(h->c, h1_queued(h), HTTP_PLACE_PIPELINED);
}

static inline bool h1_body_left(const struct http_h1 *h)
{
	return h->state == H1_BODY && (h->body.chunked || h->body.left);
}

/* Whether the rest of a body is worth reading for keeping the connection. */
static inline bool h1_can_drain(const struct http_h1 *h)
{
	return !h->waits && (h->body.chunked || h->body.left <= HTTP_DRAIN_MAX);
}

/* ---- http_h1_answer.c ---- */

extern const struct http_side http_h1_answer_side;

/* ---- http_h1_steps.c ---- */

void http_h1_steps_expect_head(struct http_h1 *h);
/* One step; whether there may be another. */
bool http_h1_steps_take(struct http_h1 *h) _must_check_;
/* What ends the steps, each for another reason. They return false, as a step that is the last. */
bool http_h1_steps_finish(struct http_h1 *h, bool linger);
bool http_h1_steps_refuse(struct http_h1 *h, int status, const char *why);
bool http_h1_steps_give_up(struct http_h1 *h, int status, const char *why);
