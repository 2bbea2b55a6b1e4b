/*
 * Long answers: see answer_long.h.
 */
#include "answer_long.h"

#include "serve.h"
#include "text.h"
#include "poison.h"

#define PIECE (9u * 1024) /* of the bytes; a multiple of three, for base64 */

void answer_long_add(struct answer_long *l, enum answer_long_form form, struct view bytes)
{
	assert(l->n < ELEMS(l->parts));
	l->parts[l->n].form = form;
	l->parts[l->n++].bytes = bytes;
}

void answer_long_done(struct answer_long *l)
{
	buf_done(&l->piece);
}

/* The next piece, into l->piece. */
static int make(struct answer_long *l)
{
	struct view *bytes = &l->parts[l->at].bytes, head = view_head(*bytes, PIECE);
	size_t used = head.n;
	int r;

	if (l->parts[l->at].form == ANSWER_LONG_STRING)
		r = json_out_escape(&l->piece, *bytes, head.n, &used);
	else if (l->parts[l->at].form == ANSWER_LONG_BASE64)
		r = text_base64(&l->piece, head);
	else
		r = buf_add(&l->piece, head);
	*bytes = view_skip(*bytes, used);
	l->at += bytes->n == 0;
	return r;
}

/* All that the client takes now. */
static void pump(struct answer_long *l)
{
	struct request *r = l->r;
	bool room = true;

	while (room && l->at < l->n) {
		if (make(l) < 0) {
			http_break(r->x);
			request_done(r);
			return;
		}
		if (buf_len(&l->piece))
			room = http_write(r->x, buf_view(&l->piece));
		buf_clear(&l->piece);
	}
	if (l->at < l->n)
		return; /* until on_writable */
	http_end(r->x);
	request_done(r);
}

static void on_writable(struct http_exchange *x)
{
	struct request *r = x->ctx;
	pump(r->answer);
}

static const struct http_ops ops = { .on_body = request_drop_body,
				     .on_abort = request_abort,
				     .on_writable = on_writable };

void answer_long_send(struct answer_long *l, struct request *r, int status)
{
	l->r = r;
	l->piece = BUF_INIT(8 * PIECE);
	r->answer = l;
	r->on_gone = NULL;
	r->x->ops = &ops;
	http_begin(r->x, status, "application/json", -1, r->surface->headers, r->surface->n_headers);
	pump(l);
}
