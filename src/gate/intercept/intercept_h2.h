/*
 * HTTP/2 between a client and a server of an intercepted connection: what the two files
 * share. A stream of the client's is one of the server's, with a number of its own.
 *
 * Back-pressure is HTTP/2's own: what came from one side is given back to its window when
 * the other side has taken it, so a connection holds no more than the two windows, what
 * placeholders make of the next piece, and bodies that are collected (H2_COLLECT).
 */
#pragma once

#include "h2_head.h"
#include "h2_session.h"
#include "intercept_impl.h"

#define H2_STREAMS     100
#define H2_WINDOW      (256u * 1024)      /* of a stream */
#define H2_CONN_WINDOW (1024u * 1024)     /* of all of them, each direction */
#define H2_COLLECT     (4u * 1024 * 1024) /* bytes of bodies with placeholders that keep a length, together */
#define H2_DISCARD     (1024u * 1024)     /* of a request that has an answer of ours */
#define H2_TIDY_MS     200                /* or so long after its last byte */
#define H2_OUT_HEAD    (192u * 1024)      /* a head with its secrets */

struct h2_side {
	struct intercept_h2 *h;
	nghttp2_session *session; /* NULL of the server: there is nobody to speak to */
	struct h2_budget budget;  /* what costs us and not the peer */
	unsigned continuations;   /* of the present head */
};

struct intercept_h2 {
	struct intercept *ic;
	struct h2_side client, server;
	struct list streams, gone; /* gone: freed when no session is on the stack */
	size_t collected;
	struct loop_timer tidy;
	bool busy, leaving;        /* leaving: the server takes no new streams */
	struct h2_request request; /* the one that is looked at */
};

enum h2_step {
	H2_HEADERS,    /* they are coming */
	H2_SECRETS,    /* the vault is asked */
	H2_COLLECTING, /* its body, for a length */
	H2_PASSED,     /* on to the server */
	H2_OURS,       /* we answer */
};

struct h2_stream {
	struct list link;
	struct intercept_h2 *h;
	int32_t client_id, server_id; /* server_id 0: not yet, or not any more */
	enum h2_step step;
	/* the request */
	struct h2_head head, up_tail; /* up_tail: its trailers */
	struct inject inject;
	unsigned asked;
	bool no_body, up_end, rewrite, sent_head;
	struct buf raw, filled; /* its body as it came; with its secrets */
	size_t owed_up;         /* bytes not given back to the client's window */
	size_t reserved;        /* of h->collected */
	size_t discarded;
	uint64_t heard_ms;
	/* the answer */
	struct h2_head answer; /* as it came; later its trailers */
	struct buf held, down;
	size_t owed_down;
	bool answered, down_end, sent_end, tired;
};

/* ---- intercept_h2.c ---- */
void intercept_h2_tidy(struct intercept_h2 *h); /* looks at such streams in a while */

/* ---- intercept_h2_stream.c ---- */
struct h2_stream *h2_stream_new(struct intercept_h2 *h, int32_t id);
void h2_stream_free(struct h2_stream *s);
struct h2_stream *h2_stream_find(struct intercept_h2 *h, int32_t client_id);
/* From the client. */
void h2_stream_begin(struct h2_stream *s); /* its head is whole */
void h2_stream_up(struct h2_stream *s, struct view data);
void h2_stream_up_end(struct h2_stream *s);
void h2_stream_revealed(struct h2_stream *s, const char *name, struct view value, const struct err *e);
void h2_stream_client_closed(struct h2_stream *s, uint32_t code);
void h2_stream_client_sent_end(struct h2_stream *s);
/* Whether it is to be looked at again: answers of ours end without the end of the request. */
bool h2_stream_tidy(struct h2_stream *s, uint64_t now_ms);
/* From the server. */
void h2_stream_answer(struct h2_stream *s,
		      bool end); /* a head of an answer, or trailers; end: and nothing else */
void h2_stream_down(struct h2_stream *s, struct view data);
void h2_stream_down_end(struct h2_stream *s);
void h2_stream_server_closed(struct h2_stream *s, uint32_t code);
void h2_stream_server_lost(struct h2_stream *s);
