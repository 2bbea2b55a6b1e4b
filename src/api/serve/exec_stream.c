/*
 * Streamed commands: see exec_stream.h.
 */
#include "exec_stream.h"

#include "poison.h"

static struct exec_stream *of(struct exec *x)
{
	return CONTAINER(x, struct exec_stream, exec);
}

void exec_stream_passed(struct stream *s, struct exec *x, size_t n)
{
	if (s->full)
		s->held += n;
	else
		exec_consumed(x, n);
}

void exec_stream_room(struct stream *s, struct exec *x)
{
	size_t n = s->held;

	s->full = false;
	s->held = 0;
	exec_consumed(x, n);
}

void exec_stream_gone(struct stream *s, struct exec *x)
{
	struct request *r = s->r;

	exec_cancel(x);
	stream_release(s);
	request_done(r);
}

void exec_stream_begin(struct exec_stream *s)
{
	if (!s->stream.begun)
		stream_begin(&s->stream, NULL, 0);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	exec_stream_begin(of(x));
}

static void put_piece(void *arg, struct view piece)
{
	struct exec_stream *s = arg;

	exec_stream_begin(s);
	s->ops->put(s, s->channel, piece);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct exec_stream *s = of(x);

	s->channel = channel;
	text_pieces_add(&s->pieces[channel - 1], data, put_piece, s);
	exec_stream_passed(&s->stream, x, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct exec_stream *s = ((struct request *)x->ctx)->own;

	exec_stream_room(&s->stream, &s->exec);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct exec_stream *s = of(x);

	for (s->channel = 1; s->channel <= EXEC_CHANNELS; s->channel++)
		text_pieces_end(&s->pieces[s->channel - 1], put_piece, s);
	s->ops->finish(s, res, e);
}

static void on_abort(struct http_exchange *x)
{
	struct exec_stream *s = ((struct request *)x->ctx)->own;

	exec_stream_gone(&s->stream, &s->exec);
}

static const struct http_ops stream_ops = { .on_body = request_drop_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

void exec_stream_start(struct request *r, const struct exec_stream_ops *ops, struct view box,
		       const struct exec_wish *w)
{
	struct exec_stream *s = request_own(r, sizeof(*s));
	struct err e = { 0 };

	if (!s)
		return;
	s->ops = ops;
	stream_init(&s->stream, r, STREAM_SSE, &stream_ops);
	s->exec.on_begun = on_begun;
	s->exec.on_output = on_output;
	s->exec.done = on_done;
	if (exec_start(r->core, &r->actor, box, w, &s->exec, &e) < 0) {
		stream_release(&s->stream);
		answer_fail(r, &e);
	}
}
