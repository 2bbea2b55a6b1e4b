/*
 * Output as it comes: Server-Sent Events, lines of JSON, or the bytes of stdout
 * alone. The source is a struct exec, whatever stands behind it.
 *
 *   start   {pid, …}                            once
 *   stdout  {offset, data, encoding}            encoding is "utf-8" or "base64"
 *   stderr  the same
 *   exit    {exit_code, signal, timed_out, …}   or: error {code, message}; once, at the end
 *
 * A character of UTF-8 is never split over two events. Bytes are taken from the
 * box as fast as the client takes them.
 */
#pragma once

#include "rest_impl.h"
#include "run.h"

enum stream_form { STREAM_NONE, STREAM_SSE, STREAM_NDJSON, STREAM_RAW };

struct stream {
	struct exec exec;
	struct req *r;
	enum stream_form form;
	struct buf text; /* of one event */
	uint64_t offsets[EXEC_CHANNELS];
	char tail[EXEC_CHANNELS][4]; /* the first bytes of a character */
	size_t n_tail[EXEC_CHANNELS];
	bool begun, full;
	size_t held;
	struct loop_timer ping;
	const char *tag; /* for the start event; may be NULL */
};

/* What the client accepts of these; NONE: a plain answer. */
enum stream_form stream_form(const struct req *r);
/* Makes the stream the request's own. NULL: the answer is sent. The caller starts s->exec then. */
struct stream *stream_new(struct req *r, enum stream_form form);

/* exit_code, signal, timed_out, truncated, duration_ms and what a shell adds, into an open object. */
void stream_put_result(struct json_out *o, const struct exec_result *res);
/* offset, data and encoding of bytes that are complete. */
void stream_put_bytes(struct json_out *o, uint64_t offset, struct view data);

/* ---- for a source that is no struct exec ---- */

/* `ops` get what becomes of the exchange; s may be part of what rest_own gave. */
void stream_init(struct stream *s, struct req *r, enum stream_form form, const struct http_ops *ops);
void stream_begin(struct stream *s, uint32_t pid);
/* An event with an object that the caller fills; s->full when the client does not keep up. */
void stream_open(struct stream *s, struct json_out *o, const char *type);
void stream_close(struct stream *s, struct json_out *o);
void stream_output(struct stream *s, unsigned channel, struct view data);
void stream_flush(struct stream *s); /* the beginning of a character that never was completed */
/* The end of the answer and of the request. */
void stream_finish(struct stream *s);
void stream_fail(struct stream *s, const struct err *e);
void stream_release(struct stream *s); /* when the request ends in another way */
