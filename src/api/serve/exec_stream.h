/*
 * A command whose output is sent as Server-Sent Events while it runs, as text: no character is split over two
 * events, and the box is read as fast as the client reads. The dialect writes the events.
 */
#pragma once

#include "run.h"
#include "stream.h"
#include "text_pieces.h"

struct exec_stream;

struct exec_stream_ops {
	void (*put)(struct exec_stream *s, unsigned channel, struct view text);
	/* The end: writes the last event and finishes s->stream, or answers with an error where nothing was
	 * begun. */
	void (*finish)(struct exec_stream *s, const struct exec_result *res, const struct err *e);
};

/* The handler's own memory begins with it; zeroed. */
struct exec_stream {
	struct stream stream;
	struct exec exec;
	const struct exec_stream_ops *ops;
	struct text_pieces pieces[EXEC_CHANNELS];
	unsigned channel; /* of what is being passed on */
};

/* On failure the answer is sent. */
void exec_stream_start(struct request *r, const struct exec_stream_ops *ops, struct view box,
		       const struct exec_wish *w);
/* For an answer of another form with a struct exec of its own: n bytes of output were passed on; the client
 * has room again; the client is gone, and with it the request. */
void exec_stream_passed(struct stream *s, struct exec *x, size_t n);
void exec_stream_room(struct stream *s, struct exec *x);
void exec_stream_gone(struct stream *s, struct exec *x);
/* The answer begins, if it has not yet. */
void exec_stream_begin(struct exec_stream *s);
