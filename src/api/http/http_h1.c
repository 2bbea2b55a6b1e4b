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
#include "http_h1.h"
#include "poison.h"

#define HEAD_READ (16u * 1024) /* at once: what waits behind a request is not worth more */
#define ROOM_COST 4096         /* besides what is in it */
#define ROUNDS    8            /* of on_writable before other connections get their turn */

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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
		return h->since_ms ? h->since_ms + l->head_ms
				   : progress + (h->c->crowded ? l->stall_ms : l->idle_ms);
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
	if (h->state == H1_HEAD && h->start == h->end && h1_queued(h) == 0) {
		/* All has left with the last of the rounds: without a room nobody would look at it again. */
		h->throttled = false;
		http_server_give_room(c->server, TAKE_PTR(h->room));
	}
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
		while (!c->dead && http_h1_steps_take(h))
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
		http_h1_steps_expect_head(h);
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
		http_h1_steps_refuse(h, 408, "the request's head took too long");
	else if (h->state == H1_BODY)
		http_h1_steps_give_up(h, 408, "the request's body took too long");
	else
		http_h1_steps_finish(h, false);
	if (!c->dead)
		h1_run(h);
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
