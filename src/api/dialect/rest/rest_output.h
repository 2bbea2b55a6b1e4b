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
#include "stream.h"
#include "text_pieces.h"

struct rest_output {
	struct stream stream;
	struct exec exec;
	uint64_t offsets[EXEC_CHANNELS];
	struct text_pieces pieces[EXEC_CHANNELS];
	const char *tag; /* for the start event; may be NULL */
};

/* Makes it the request's own. NULL: the answer is sent. The caller starts p->exec then. */
struct rest_output *rest_output_new(struct request *r, enum stream_form form);

/* exit_code, signal, timed_out, truncated, duration_ms and what a shell adds, into an open object. */
void rest_output_put_result(struct json_out *o, const struct exec_result *res);
/* Text that every JSON reader takes: UTF-8 without NUL. Output that was cut may end within a character, which
 * is left out. */
bool rest_output_is_text(struct view *v, bool cut);
/* offset, data and encoding of bytes that are complete. */
void rest_output_put_bytes(struct json_out *o, uint64_t offset, struct view data);

/* ---- for a source that is no struct exec: with stream_init, stream_open … of p->stream ---- */

void rest_output_begin(struct rest_output *p, uint32_t pid);
void rest_output_bytes(struct rest_output *p, unsigned channel, struct view data);
void rest_output_flush(struct rest_output *p); /* the beginning of a character that never was completed */
/* The end, by an error: of the answer and of the request. */
void rest_output_fail(struct rest_output *p, const struct err *e);
