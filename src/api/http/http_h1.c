/*
 * HTTP/1.1 on a connection: one exchange at a time, in the order of the requests.
 *
 * Everything happens in h1_run: step through what has been read until nothing
 * more can be done, send what has been queued with one call, then settle which
 * events and which time limit come next. A dialect's call from elsewhere only
 * queues and has h1_run called at the end of the loop's batch. So the answers of
 * pipelined requests, or the pieces of one answer, leave together.
 *
 * The bytes of a request's head stay in the room while its exchange lives,
 * because the exchange's views point there; the body is read behind them.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "http_conn.h"
#include "poison.h"

#define TRAILERS_MAX 4096
#define HEAD_READ    (16u * 1024) /* at once: what waits behind a request is not worth more */
#define ROOM_COST    4096         /* besides what is in it */
#define ROUNDS       8            /* of on_writable before other connections get their turn */

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum h1_state {
	H1_HEAD,   /* between requests, or within a head */
	H1_BODY,   /* the body goes to the dialect */
	H1_ANSWER, /* the body is complete, the answer is not */
	H1_DRAIN,  /* the answer is complete, the body is not */
	H1_RAW,    /* after an upgrade: bytes both ways until the dialect has finished */
	H1_FLUSH,  /* nothing more is read; closes when all is sent */
};

struct http_h1 {
	struct http_conn *c;
	struct http_room *room; /* NULL while idle */
	struct http_impl i;
	struct http1_request req;
	struct buf trailers; /* of the answer, as lines */
	struct http1_body body;
	enum h1_state state;
	size_t start, end;     /* what has been read and not used, in room->in */
	size_t base;           /* where the body is read to */
	size_t step;           /* bytes of a body that have not counted as progress yet */
	struct view shared;    /* constant bytes of an answer, behind those in the room */
	uint64_t since_ms;     /* when a head began */
	bool turn_over;        /* the next request waits for an event, in line with other connections */
	unsigned turns;        /* requests that were begun since h1_run began */
	uint64_t turn_ends_ns; /* when the next of them waits for other connections */
	uint64_t dropped;      /* bytes of a body that nobody wants */
	bool sniffed;          /* it is not HTTP/2 */
	bool busy;             /* h1_run is on the stack */
	bool eof;              /* the client has half-closed */
	bool close;            /* after this answer */
	bool linger;           /* the client may still be sending */
	bool broken;
	bool throttled; /* pipelined requests wait until answers have left */
	bool waits;     /* the client wants a 100 before it sends the body */
	bool chunked;   /* the answer */
};

static struct http_h1 *h1_of(struct http_impl *i)
{
	return CONTAINER(i, struct http_h1, i);
}

static uint64_t h1_now(const struct http_h1 *h)
{
	return loop_now(h->c->server->loop);
}

static size_t h1_queued(const struct http_h1 *h)
{
	return (h->room ? buf_len(&h->room->out) : 0) + h->shared.n;
}

/* Whether the next of several requests that came at once may be looked at. */
static bool h1_may_begin(const struct http_h1 *h)
{
	return !h->shared.n && http_place_may_begin(h->c, h1_queued(h), HTTP_PLACE_PIPELINED);
}

/* ---- what the dialect's calls do ---- */

static void h1_kick(struct http_h1 *h)
{
	if (!h->busy)
		http_conn_kick(h->c);
}

static bool h1_body_left(const struct http_h1 *h)
{
	return h->state == H1_BODY && (h->body.chunked || h->body.left);
}

/* Whether the rest of a body is worth reading for keeping the connection. */
static bool h1_can_drain(const struct http_h1 *h)
{
	return !h->waits && (h->body.chunked || h->body.left <= HTTP_DRAIN_MAX);
}

static void h1_begin(struct http_impl *i, const struct http_answer *a)
{
	struct http_h1 *h = h1_of(i);
	int64_t length = a->length;
	if (a->whole && h1_body_left(h) && !h1_can_drain(h))
		h->close = true;
	if (a->status == 204 || a->status == 304 || (i->is_head && length < 0)) {
		length = HTTP1_LENGTH_NONE;
	} else if (length < 0 && i->x.version == 10) {
		length = HTTP1_LENGTH_NONE;
		h->close = true; /* that is what ends it */
	}
	h->chunked = length == HTTP1_LENGTH_CHUNKED;
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	(void)!http1_write_head(&h->room->out, &(struct http1_answer){ .status = a->status,
								       .length = length,
								       .content_type = a->content_type,
								       .date = http_server_date(h->c->server),
								       .request_id = view_of(i->x.request_id),
								       .version = i->x.version,
								       .keep_alive = !h->close,
								       .extra = a->extra,
								       .n_extra = a->n_extra });
	h1_kick(h);
}

static bool h1_write(struct http_impl *i, struct view data)
{
	struct http_h1 *h = h1_of(i);
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	if (h->chunked)
		http1_write_chunk(&h->room->out, data);
	else
		buf_add(&h->room->out, data);
	i->blocked |= h1_queued(h) >= http_place_high_water(h->c); /* until on_writable has come */
	h1_kick(h);
	return !i->blocked;
}

static void h1_share(struct http_impl *i, struct view data)
{
	h1_of(i)->shared = data;
}

static void h1_end(struct http_impl *i)
{
	struct http_h1 *h = h1_of(i);
	if (h->chunked && !i->bodyless)
		http1_write_last_chunk(&h->room->out, buf_view(&h->trailers));
	buf_done(&h->trailers);
	h1_kick(h);
}

static void h1_broken(struct http_impl *i)
{
	h1_of(i)->broken = true;
	h1_kick(h1_of(i));
}

static void h1_trailers(struct http_impl *i, const struct http_header *t, size_t n)
{
	struct buf *b = &h1_of(i)->trailers;
	b->max = TRAILERS_MAX;
	for (size_t k = 0; k < n; k++)
		if (http1_is_header(t[k]) && !http1_write_is_framing(t[k].name))
			buf_printf(b, "%.*s: %.*s\r\n", VIEW_ARG(t[k].name), VIEW_ARG(t[k].value));
	if (b->bad)
		buf_done(b); /* better none than half a line */
}

/* What the client sent behind its request is already of the new protocol. */
static void h1_upgrade(struct http_impl *i, const struct http_answer *a)
{
	struct http_h1 *h = h1_of(i);
	h->state = H1_RAW;
	h->close = true;
	h->chunked = false;
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	(void)!http1_write_head(&h->room->out, &(struct http1_answer){ .status = a->status,
								       .length = HTTP1_LENGTH_NONE,
								       .date = http_server_date(h->c->server),
								       .request_id = view_of(i->x.request_id),
								       .version = i->x.version,
								       .upgrade = a->upgrade,
								       .extra = a->extra,
								       .n_extra = a->n_extra });
	h1_kick(h);
}

static void h1_resume(struct http_impl *i)
{
	http_conn_progress(h1_of(i)->c);
	h1_kick(h1_of(i));
}

static const struct http_side h1_side = {
	.begin = h1_begin,
	.write = h1_write,
	.share = h1_share,
	.end = h1_end,
	.broken = h1_broken,
	.trailers = h1_trailers,
	.resume = h1_resume,
	.upgrade = h1_upgrade,
};

/* ---- steps: each returns whether there may be another ---- */

static void h1_expect_head(struct http_h1 *h)
{
	struct http_limits *l = &h->c->server->cfg.limits;
	h->state = H1_HEAD;
	h->since_ms = 0;
	if (h->room)
		http1_request_init(&h->req, h->room->headers, l->headers, l->head_bytes);
}

static bool h1_finish(struct http_h1 *h, bool linger)
{
	h->state = H1_FLUSH;
	h->linger = linger && !h->eof;
	if (h->room)
		http_impl_wipe((struct view){ h->room->in + h->start, h->end - h->start });
	return false;
}

/* The server's own answer to what is no request. */
static bool h1_refuse(struct http_h1 *h, int status, const char *why)
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
	return h1_finish(h, true);
}

/* The body is not going to be complete. */
static bool h1_give_up(struct http_h1 *h, int status, const char *why)
{
	bool begun = h->i.begun;
	http_impl_abort(&h->i);
	if (!begun)
		return h1_refuse(h, status, why);
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
		       .headers = h->req.headers,
		       .n_headers = h->req.n_headers,
		       .content_length = h->req.content_length,
		       .tls = h->c->t.tls != NULL,
		       .version = h->req.version,
		       .arena = &h->room->arena,
		       .loop = s->loop },
		.side = &h1_side,
		.conn = h->c,
		.is_head = view_is(h->req.method, "HEAD"),
	};
	http_server_request_id(s, http_get_header(&h->i.x, "x-request-id"), h->i.x.request_id);
	h->close = !h->req.keep_alive;
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
		return h->eof ? h1_finish(h, false) : false;
	}
	h->turn_over = h->turns && clock_mono_ns() > h->turn_ends_ns;
	if (h->turn_over)
		return false;
	int n = http1_request_parse(&h->req, h->room->in + h->start, h->end - h->start);
	if (n < 0)
		return h1_refuse(h, -n, h->req.why);
	if (n > 0 && h->start > 0 && h->req.content_length != 0) {
		/* A pipelined request with a body: it needs the room behind it. */
		h1_compact(h);
		n = http1_request_parse(&h->req, h->room->in, h->end);
		assert(n > 0);
	}
	if (n == 0) {
		if (h->eof)
			return h1_finish(h, false);
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
	h1_expect_head(h);
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
		return h1_finish(h, left || h->start != h->end);
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
		return h1_give_up(h, -r, h->body.why);
	}
}

static bool h1_step_drain(struct http_h1 *h)
{
	struct view data;
	switch (h1_take_body(h, &data)) {
	case HTTP1_DATA:
		http_impl_wipe(data);
		h->dropped += data.n;
		return h->dropped > HTTP_DRAIN_MAX ? h1_finish(h, true) : true;
	case HTTP1_END:
		h1_next(h);
		return true;
	case HTTP1_MORE:
		return h->eof ? h1_finish(h, false) : false;
	default:
		return h1_finish(h, true);
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
			h1_finish(h, true);
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

static bool h1_step(struct http_h1 *h)
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

/* ---- sending, and what comes next ---- */

static int h1_send(struct http_h1 *h)
{
	struct buf *out = &h->room->out;
	if (out->bad)
		return out->bad;
	while (h1_queued(h)) {
		bool shared = buf_len(out) == 0;
		struct view v = shared ? h->shared : buf_view(out);
		ssize_t n = http_transport_send(&h->c->t, v.p, v.n);
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		http_conn_progress(h->c);
		http_place_used(h->c);
		if (shared)
			h->shared = view_skip(v, (size_t)n);
		else
			buf_consume(out, (size_t)n);
		if ((size_t)n < v.n && !h->c->t.tls)
			break; /* the next call would say EAGAIN */
	}
	return 0;
}

/* True when the dialect may have written more. */
static bool h1_wake(struct http_h1 *h)
{
	if (h->i.finished || !h->i.blocked || h1_queued(h) > http_place_high_water(h->c) / 2)
		return false;
	h->i.blocked = false;
	if (h->i.x.ops && h->i.x.ops->on_writable)
		h->i.x.ops->on_writable(&h->i.x);
	return true;
}

/* The dialect has limits of its own for what it does, and for a conversation. */
static bool h1_dialects_turn(const struct http_h1 *h)
{
	bool patient = h->i.paused || h->i.begun || (h->i.x.patient && !h->i.finished);
	return h->state == H1_ANSWER || h->state == H1_RAW || (h->state == H1_BODY && patient);
}

static uint64_t h1_deadline(const struct http_h1 *h)
{
	const struct http_limits *l = &h->c->server->cfg.limits;
	uint64_t progress = h->c->progress_ms;
	if (h1_queued(h))
		return progress + l->stall_ms;
	if (h->state == H1_HEAD)
		return h->since_ms ? h->since_ms + l->head_ms : progress + l->idle_ms;
	if (h1_dialects_turn(h))
		return 0;
	if (h->state == H1_DRAIN)
		return h->since_ms + l->head_ms;
	return progress + l->stall_ms;
}

static bool h1_wants_more(const struct http_h1 *h)
{
	bool space = !h->room || h->end < h->room->cap;
	return space && !h->eof && h->state != H1_FLUSH && !(h->state == H1_HEAD && h->throttled);
}

static void h1_settle(struct http_h1 *h)
{
	struct http_conn *c = h->c;
	if (h->state == H1_FLUSH && h1_queued(h) == 0) {
		/* Behind an answer that fills the socket's buffer: without it the client would take that for
		 * cut off. */
		if (http_transport_notify(&c->t) == -EAGAIN) {
			http_conn_want(c, false, true);
			http_conn_deadline(c, c->progress_ms + c->server->cfg.limits.stall_ms);
			return;
		}
		if (h->linger)
			http_conn_linger(c);
		else
			http_conn_close(c);
		return;
	}
	if (h->state == H1_HEAD && h->start == h->end && h1_queued(h) == 0)
		http_server_give_room(c->server, TAKE_PTR(h->room));
	http_conn_want(c, h1_wants_more(h), h1_queued(h) > 0 || h->turn_over);
	if (c->dead)
		return;
	http_conn_deadline(c, h1_deadline(h));
	if (h->room && h1_wants_more(h) && http_transport_pending(&c->t))
		http_conn_kick(c); /* no event will come for these */
	size_t kept = h->i.finished ? 0 : h->i.kept;
	http_place_hold(c, h->room ? kept + ROOM_COST + h->end + h->room->arena.used + h->room->out.cap : 0);
}

static void h1_run(struct http_h1 *h)
{
	struct http_conn *c = h->c;
	h->busy = true;
	h->turns = 0;
	h->turn_over = false;
	h->turn_ends_ns = h->start == h->end ? 0 : clock_mono_ns() + HTTP_PLACE_TURN_NS;
	for (int round = 0; h->room; round++) {
		while (!c->dead && h1_step(h))
			;
		if (!c->dead && h1_send(h) < 0)
			http_conn_reset(c);
		if (c->dead)
			break;
		bool more = h1_wake(h) || (h->state == H1_HEAD && h->throttled && h1_may_begin(h));
		if (!more)
			break;
		if (round == ROUNDS) {
			http_conn_kick(c);
			break;
		}
	}
	h->busy = false;
	if (!c->dead)
		h1_settle(h);
}

/* ---- reading ---- */

/* Hands the connection to HTTP/2; `h` is gone afterwards. */
static void h1_become_h2(struct http_h1 *h)
{
	struct http_conn *c = h->c;
	struct http_room *room = TAKE_PTR(h->room);
	struct view first = { room->in, h->end };
	int r = http_h2_start(c);
	if (r == 0)
		free(h);
	else
		h->room = TAKE_PTR(room); /* still HTTP/1.1's connection to close */
	if (r == 0)
		r = http_h2_feed(c, first);
	http_server_give_room(c->server, room);
	if (r < 0)
		http_conn_close(c);
}

/* 1: HTTP/2, 0: perhaps, -1: no. */
static int h1_sniff(const struct http_h1 *h)
{
	size_t n = MIN(h->end, sizeof(h2_preface) - 1);
	if (h->c->t.tls || memcmp(h->room->in, h2_preface, n) != 0)
		return -1;
	return n == sizeof(h2_preface) - 1;
}

/* Reads once; false when that is all for now. */
static bool h1_recv(struct http_h1 *h)
{
	struct http_conn *c = h->c;
	if (!h->room) {
		h->room = http_server_take_room(c->server);
		if (!h->room) {
			http_conn_close(c);
			return false;
		}
		h1_expect_head(h);
	}
	if (!h1_wants_more(h))
		return false;
	size_t most = h->room->cap - h->end;
	if (h->state == H1_HEAD)
		most = MIN(most, HEAD_READ);
	ssize_t n = http_transport_recv(&c->t, h->room->in + h->end, most);
	if (n == -EAGAIN)
		return false;
	if (n < 0) {
		http_conn_reset(c);
		return false;
	}
	/* Of a body only so much at once is progress: whoever drips it is cut off. */
	h->step += (size_t)n;
	if (h->state != H1_BODY || h1_dialects_turn(h) || h->step >= HTTP_BODY_STEP) {
		http_conn_progress(c);
		h->step = 0;
	}
	h->eof = n == 0;
	h->end += (size_t)n;
	return true;
}

static void h1_read(struct http_h1 *h)
{
	struct http_conn *c = h->c;
	do {
		bool got = h1_recv(h);
		if (c->dead)
			return;
		if (got && !h->sniffed) {
			int r = h1_sniff(h);
			if (r > 0) {
				h1_become_h2(h);
				return;
			}
			if (r == 0 && !h->eof) {
				h->since_ms = h->since_ms ? h->since_ms : h1_now(h);
				h1_settle(h);
				return;
			}
			h->sniffed = true;
		}
		h1_run(h);
		if (!got)
			return;
	} while (!c->dead && !c->lingering && http_transport_pending(&c->t));
}

static void h1_on_io(struct http_conn *c, uint32_t events)
{
	struct http_h1 *h = c->state;
	if (events & (EPOLLERR | EPOLLHUP))
		http_conn_reset(c);
	else if ((events & EPOLLIN) || c->t.tls)
		h1_read(h);
	else
		h1_run(h);
}

static void h1_on_kick(struct http_conn *c)
{
	struct http_h1 *h = c->state;
	h1_run(h);
	if (!c->dead && !c->lingering && http_transport_pending(&c->t))
		h1_read(h);
}

static void h1_on_deadline(struct http_conn *c)
{
	struct http_h1 *h = c->state;
	if (h1_queued(h) || !h->room) {
		http_conn_close(c);
		return;
	}
	if (h->state == H1_HEAD)
		h1_refuse(h, 408, "the request's head took too long");
	else if (h->state == H1_BODY)
		h1_give_up(h, 408, "the request's body took too long");
	else
		h1_finish(h, false);
	if (!c->dead)
		h1_run(h);
}

static bool h1_is_idle(const struct http_conn *c)
{
	const struct http_h1 *h = c->state;
	return !h->room;
}

static void h1_abort(struct http_conn *c)
{
	struct http_h1 *h = c->state;
	http_impl_abort(&h->i);
}

static void h1_free(struct http_conn *c)
{
	struct http_h1 *h = c->state;
	http_server_give_room(c->server, h->room);
	buf_done(&h->trailers);
	free(h);
}

static const struct http_driver h1_driver = {
	.on_io = h1_on_io,
	.on_kick = h1_on_kick,
	.on_deadline = h1_on_deadline,
	.is_idle = h1_is_idle,
	.abort = h1_abort,
	.free = h1_free,
};

int http_h1_start(struct http_conn *c)
{
	struct http_h1 *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->c = c;
	h->i.finished = true; /* there is no exchange yet */
	c->state = h;
	c->driver = &h1_driver;
	http_conn_progress(c);
	http_conn_want(c, true, false);
	http_conn_deadline(c, h1_deadline(h));
	return 0;
}
