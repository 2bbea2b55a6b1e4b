/*
 * Streamed commands: see exec_stream.h.
 */
#include "exec_stream.h"

#include "poison.h"

static struct exec_stream *of(struct exec *x)
{
	return CONTAINER(x, struct exec_stream, exec);
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
	if (s->stream.full)
		s->stream.held += data.n;
	else
		exec_consumed(x, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct exec_stream *s = ((struct request *)x->ctx)->own;
	size_t n = s->stream.held;

	s->stream.full = false;
	s->stream.held = 0;
	exec_consumed(&s->exec, n);
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
	struct request *r = x->ctx;
	struct exec_stream *s = r->own;

	exec_cancel(&s->exec);
	stream_release(&s->stream);
	request_done(r);
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
