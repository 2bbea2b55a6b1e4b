/*
 * Streamed answers: Server-Sent Events, lines of JSON, or plain bytes. A stream sends keep-alives
 * while there is nothing else to send. The dialect defines the events.
 *
 * To support resuming, a dialect numbers its events (stream_id) and reads stream_last_id.
 */
#pragma once

#include "answer.h"

enum stream_form { STREAM_NONE, STREAM_SSE, STREAM_NDJSON, STREAM_RAW };

struct stream {
	struct request *r;
	enum stream_form form;
	struct buf text;  /* of one event */
	bool begun, full; /* full: the client does not keep up; until http_ops.on_writable */
	size_t held;      /* bytes of the source that the client has not taken; the owner counts them */
	struct loop_timer ping;
};

/* What the client accepts of these; NONE: a plain answer. */
enum stream_form stream_form(const struct request *r);
/* Last-Event-ID; p == NULL: none. */
struct view stream_last_id(const struct request *r);

/* `ops` get what becomes of the exchange; s is zeroed, and may be part of what request_own gave. */
void stream_init(struct stream *s, struct request *r, enum stream_form form, const struct http_ops *ops);
void stream_begin(struct stream *s, const struct http_header *extra, size_t n_extra);
/* The id of the next event, of STREAM_SSE. */
void stream_id(struct stream *s, uint64_t id);
/* An event with an object that the caller fills, of a type or (NULL) without one; s->full when the client
 * does not keep up. */
void stream_open(struct stream *s, struct json_out *o, const char *type);
void stream_close(struct stream *s, struct json_out *o);
/* The last events, with strings of any length (answer_put_long into the request's own answer), and the end
 * behind them. Of STREAM_SSE. */
struct json_out *stream_last_open(struct stream *s, const char *type);
void stream_last_close(struct stream *s);
void stream_last_send(struct stream *s);
/* The end of the answer and of the request; stream_cut so that the client sees that something is missing. */
void stream_finish(struct stream *s);
void stream_cut(struct stream *s);
void stream_release(struct stream *s); /* when the request ends in another way */
