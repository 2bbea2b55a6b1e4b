/*
 * From the bytes of a connection to exchanges, for HTTP/1.1: a head, its body, the answer, and what is left
 * of the body. Each step returns whether there may be another.
 */
#include "clock.h"
#include "http_h1.h"
#include "poison.h"

void http_h1_steps_expect_head(struct http_h1 *h)
{
	struct http_limits *l = &h->c->server->cfg.limits;
	h->state = H1_HEAD;
	h->since_ms = 0;
	if (h->room)
		http1_request_init(&h->req, h->room->headers, l->headers, l->head_bytes);
}

bool http_h1_steps_finish(struct http_h1 *h, bool linger)
{
	h->state = H1_FLUSH;
	h->linger = linger && !h->eof;
	if (h->room)
		http_impl_wipe((struct view){ h->room->in + h->start, h->end - h->start });
	return false;
}

/* The server's own answer to what is no request. */
bool http_h1_steps_refuse(struct http_h1 *h, int status, const char *why)
{
	struct http_server *s = h->c->server;
	struct buf body = BUF_INIT(1024);
	char id[HTTP_REQUEST_ID];
	s->stats.bad_requests++;
	http_server_request_id(s, VIEW_NONE, id);
	http_impl_error(&body, status, why, id);
	(void)!http1_write_head(&h->room->out, &(struct http1_answer){ .status = status,
								       .length = (int64_t)buf_len(&body),
								       .content_type = "application/json",
								       .date = http_server_date(s),
								       .request_id = view_of(id),
								       .version = 11 });
	buf_add(&h->room->out, buf_view(&body));
	buf_done(&body);
	http_conn_progress(h->c);
	return http_h1_steps_finish(h, true);
}

/* The body is not going to be complete. */
bool http_h1_steps_give_up(struct http_h1 *h, int status, const char *why)
{
	bool begun = h->i.begun;
	http_impl_abort(&h->i);
	if (!begun)
		return http_h1_steps_refuse(h, status, why);
	http_conn_reset(h->c);
	return false;
}

/* Moves what is unread to the front; a head that was half parsed is parsed again. */
static void h1_compact(struct http_h1 *h)
{
	char *in = h->room->in;
	memmove(in, in + h->start, h->end - h->start);
	h->end -= h->start;
	h->start = 0;
	http1_request_init(&h->req, h->req.headers, h->req.max_headers, h->req.max_bytes);
}

static void h1_fill_exchange(struct http_h1 *h)
{
	struct http_server *s = h->c->server;
	h->i = (struct http_impl){
		.x = { .method = h->req.method,
		       .path = h->req.path,
		       .query = h->req.query,
		       .host = h->req.host,
		       .peer = view_of(h->c->peer),
		       .origin = view_of(h->c->origin),
		       .listener = h->c->listener,
		       .crowded = h->c->crowded,
		       .headers = h->req.headers,
		       .n_headers = h->req.n_headers,
		       .content_length = h->req.content_length,
		       .tls = h->c->t.tls != NULL,
		       .version = h->req.version,
		       .arena = &h->room->arena,
		       .loop = s->loop },
		.side = &http_h1_answer_side,
		.conn = h->c,
		.is_head = view_is(h->req.method, "HEAD"),
	};
	http_server_request_id(s, http_get_header(&h->i.x, "x-request-id"), h->i.x.request_id);
	h->close = !h->req.keep_alive || h->c->crowded;
	h->waits = h->req.expect_continue;
	h->dropped = 0;
	h->step = 0;
	h->state = H1_BODY;
	http1_body_init(&h->body, h->req.content_length);
	s->stats.requests++;
}

static bool h1_start_exchange(struct http_h1 *h)
{
	struct http_server *s = h->c->server;
	h1_fill_exchange(h);
	http_place_used(h->c);
	h->turns++;
	s->cfg.on_request(&h->i.x, s->cfg.arg);
	if (!h->i.finished && !h->i.x.ops) {
		struct buf body = BUF_INIT(1024);
		http_impl_error(&body, 500, "nobody took the request", h->i.x.request_id);
		http_reply(&h->i.x, 500, "application/json", buf_view(&body), NULL, 0);
		buf_done(&body);
	}
	/* A client that has sent some of the body does not wait. */
	if (h->waits && !h->i.finished && !h->i.begun && h->start == h->end)
		buf_add(&h->room->out, VIEW("HTTP/1.1 100 Continue\r\n\r\n"));
	if (!h->i.finished && !h->i.begun)
		h->waits = false;
	return true;
}

static bool h1_step_head(struct http_h1 *h)
{
	h->throttled = !h1_may_begin(h);
	if (h->throttled)
		return false;
	if (h->start == h->end) {
		h->start = h->end = 0;
		return h->eof ? http_h1_steps_finish(h, false) : false;
	}
	h->turn_over = h->turns && clock_mono_ns() > h->turn_ends_ns;
	if (h->turn_over)
		return false;
	int n = http1_request_parse(&h->req, h->room->in + h->start, h->end - h->start);
	if (n < 0)
		return http_h1_steps_refuse(h, -n, h->req.why);
	if (n > 0 && h->start > 0 && h->req.content_length != 0) {
		/* A pipelined request with a body: it needs the room behind it. */
		h1_compact(h);
		n = http1_request_parse(&h->req, h->room->in, h->end);
		assert(n > 0);
	}
	if (n == 0) {
		if (h->eof)
			return http_h1_steps_finish(h, false);
		if (h->start > 0)
			h1_compact(h);
		if (!h->since_ms)
			h->since_ms = h1_now(h);
		return false;
	}
	h->start += (size_t)n;
	h->base = h->start;
	return h1_start_exchange(h);
}

static void h1_next(struct http_h1 *h)
{
	http_server_clean_room(h->room);
	http_h1_steps_expect_head(h);
}

/* The dialect has finished. */
static bool h1_after(struct http_h1 *h)
{
	bool left = h1_body_left(h);
	if (h->broken) {
		http_conn_reset(h->c);
		return false;
	}
	if (h->close || (left && !h1_can_drain(h)))
		return http_h1_steps_finish(h, left || h->start != h->end);
	h->since_ms = h1_now(h); /* of the rest of a body that nobody wants */
	if (h->state == H1_BODY)
		h->state = H1_DRAIN;
	else
		h1_next(h);
	return true;
}

static int h1_take_body(struct http_h1 *h, struct view *data)
{
	struct view in = { h->room->in + h->start, h->end - h->start };
	int r = http1_body_next(&h->body, &in, data);
	h->start = h->end - in.n;
	if (h->start == h->end && r != HTTP1_END)
		h->start = h->end = h->base;
	return r;
}

static bool h1_step_body(struct http_h1 *h)
{
	struct view data;
	if (h->i.finished)
		return h1_after(h);
	if (h->i.paused)
		return false;
	int r = h1_take_body(h, &data);
	switch (r) {
	case HTTP1_DATA:
		http_impl_body(&h->i, data, false);
		return true;
	case HTTP1_END:
		h->state = H1_ANSWER;
		http_impl_body(&h->i, VIEW(""), true);
		return true;
	case HTTP1_MORE:
		if (h->eof)
			http_conn_reset(h->c);
		return false;
	default:
		return http_h1_steps_give_up(h, -r, h->body.why);
	}
}

static bool h1_step_drain(struct http_h1 *h)
{
	struct view data;
	switch (h1_take_body(h, &data)) {
	case HTTP1_DATA:
		http_impl_wipe(data);
		h->dropped += data.n;
		return h->dropped > HTTP_DRAIN_MAX ? http_h1_steps_finish(h, true) : true;
	case HTTP1_END:
		h1_next(h);
		return true;
	case HTTP1_MORE:
		return h->eof ? http_h1_steps_finish(h, false) : false;
	default:
		return http_h1_steps_finish(h, true);
	}
}

static bool h1_step_answer(struct http_h1 *h)
{
	if (h->i.finished)
		return h1_after(h);
	if (h->eof && h->i.x.eof_aborts)
		http_conn_close(h->c);
	return false;
}

static bool h1_step_raw(struct http_h1 *h)
{
	struct view data = { h->room->in + h->start, h->end - h->start };
	if (h->i.finished) {
		if (h->broken)
			http_conn_reset(h->c);
		else
			http_h1_steps_finish(h, true);
		return false;
	}
	if (h->i.paused)
		return false;
	if (data.n) {
		h->start = h->end = h->base; /* read over only after this */
		http_impl_body(&h->i, data, false);
		return true;
	}
	if (h->eof)
		http_conn_close(h->c);
	return false;
}

bool http_h1_steps_take(struct http_h1 *h)
{
	switch (h->state) {
	case H1_HEAD:
		return h1_step_head(h);
	case H1_BODY:
		return h1_step_body(h);
	case H1_ANSWER:
		return h1_step_answer(h);
	case H1_DRAIN:
		return h1_step_drain(h);
	case H1_RAW:
		return h1_step_raw(h);
	case H1_FLUSH:
		break;
	}
	return false;
}
