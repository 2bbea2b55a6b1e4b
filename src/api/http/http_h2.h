/*
 * Inside src/api/http: what the two halves of HTTP/2 share. http_h2.c has the
 * connection (libnghttp2's callbacks, sending, receiving, time), http_h2_stream.c
 * the streams, each of which is one exchange.
 */
#pragma once

#include "h2_session.h"
#include "http_conn.h"

#define HTTP_H2_WINDOW (128 * 1024) /* of a stream */

struct http_h2 {
	struct http_conn *c;
	nghttp2_session *session;
	struct list streams, gone;
	struct buf out;
	struct h2_budget budget;
	size_t unsent; /* bytes of answers */
	size_t heads;  /* of requests */
	unsigned n_streams, n_waiting;
	uint64_t turn_ends_ns; /* when requests wait for other connections */
	bool busy;             /* the driver is on the stack */
	bool farewell;         /* no more streams are taken */
};

struct http_h2_stream {
	struct list link;
	struct http_h2 *h;
	struct http_impl i;
	int32_t id;
	struct arena arena;
	struct http_header *headers;
	size_t n_headers, cap_headers, head_bytes;
	size_t arena_counted; /* bytes of the arena that are in h->heads */
	struct view expect;
	struct buf in, out;
	struct view shared; /* constant bytes of the answer, behind those in out */
	size_t step;        /* bytes of the body that have not counted as progress yet */
	struct http_header *trailers;
	size_t n_trailers;
	size_t dropped; /* of a body that nobody wants */
	uint64_t progress_ms;
	bool head_done;  /* the exchange has begun */
	bool waits;      /* the head is complete, and too much of other answers is unsent */
	bool too_large;  /* the head */
	bool end_in;     /* the peer has sent all */
	bool last_given; /* on_body(last) */
	bool ended;      /* the dialect has given all */
	bool end_out;    /* and it has been sent */
	bool deferred;   /* libnghttp2 waits for bytes of the answer */
};

static inline uint64_t http_h2_now(const struct http_h2 *h)
{
	return loop_now(h->c->server->loop);
}

struct http_h2_stream *http_h2_stream_new(struct http_h2 *h, int32_t id);
void http_h2_stream_free(struct http_h2_stream *st);
/* One more header of the request; what is too much is noted and refused at the end. */
void http_h2_stream_header(struct http_h2_stream *st, struct http_header hd);
/* The head is complete: gives the exchange to the dialect, now or by http_h2_stream_try. */
void http_h2_stream_complete(struct http_h2_stream *st);
/* Begins one that waits, if that may be; whether. */
bool http_h2_stream_try(struct http_h2_stream *st);
void http_h2_stream_data(struct http_h2_stream *st, struct view data);
/* Gives the dialect what has come for it. */
void http_h2_stream_deliver(struct http_h2_stream *st);
bool http_h2_stream_has_room(const struct http_h2_stream *st); /* for more of its answer */
void http_h2_stream_sent(struct http_h2_stream *st);           /* all of the answer */
void http_h2_stream_reset(struct http_h2_stream *st, uint32_t code);
/* Until when the peer must do something about this stream; 0 when it is our turn. */
uint64_t http_h2_stream_deadline(const struct http_h2_stream *st);
