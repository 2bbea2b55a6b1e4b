/*
 * HTTP/2 on a connection, by libnghttp2, which does no I/O: bytes go in with
 * mem_recv and come out with mem_send.
 *
 * Back-pressure is HTTP/2's own flow control: received bytes are given back to
 * the window when the dialect has taken them, answers leave as the peer's window
 * allows. What costs us and not the peer (resets, pings, settings, empty frames)
 * has a budget; who overdraws it is sent away.
 *
 * libnghttp2 may close a stream within mem_recv and within mem_send, so a stream
 * is never freed there: it goes to `gone` and is freed when the driver is done.
 * mem_send is never called within a dialect's call; see h2_run.
 */
#include "http_h2.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "poison.h"

#define CONN_WINDOW (2 * 1024 * 1024)
#define HEADS_MAX   (512u * 1024) /* of the requests that are under way */
#define STREAM_COST 3072          /* besides what is in it, with libnghttp2's own */
#define ROUNDS      8             /* of sending before other connections get their turn */

/* ---- libnghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct http_h2 *h = arg;
	/* What is small on the wire may be large here: HPACK. */
	if (h->heads > HEADS_MAX)
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, f->hd.stream_id,
						 NGHTTP2_REFUSED_STREAM);
	struct http_h2_stream *st = http_h2_stream_new(h, f->hd.stream_id);
	if (!st)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(session, st->id, st);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct http_h2_stream *st = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (st && !st->head_done) /* trailers are dropped */
		http_h2_stream_header(st, (struct http_header){ { (const char *)name, name_n },
								{ (const char *)value, value_n } });
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	struct http_h2 *h = arg;
	if (!h2_session_affords(&h->budget, f, http_h2_now(h)))
		return h2_session_calm(session);
	if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
		return 0;
	struct http_h2_stream *st = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (!st)
		return 0;
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		st->end_in = true;
	if (!st->head_done && !st->waits)
		http_h2_stream_complete(st);
	http_h2_stream_deliver(st);
	return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *f, int error, void *arg)
{
	struct http_h2 *h = arg;
	return rate_spend(&h->budget.chatter, http_h2_now(h)) ? 0 : h2_session_calm(session);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct http_h2_stream *st = nghttp2_session_get_stream_user_data(session, id);
	if (!st || (st->i.finished && !st->waits))
		http_impl_wipe((struct view){ (const char *)p, n });
	if (!st)
		return nghttp2_session_consume(session, id, n);
	http_h2_stream_data(st, (struct view){ (const char *)p, n });
	return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	if ((f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) ||
	    !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	struct http_h2_stream *st = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (st)
		http_h2_stream_sent(st);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct http_h2 *h = arg;
	struct http_h2_stream *st = nghttp2_session_get_stream_user_data(session, id);
	if (!st)
		return 0;
	nghttp2_session_set_stream_user_data(session, id, NULL);
	/* What the dialect has not taken still fills the connection's window. */
	if (buf_len(&st->in))
		(void)!nghttp2_session_consume_connection(session, buf_len(&st->in));
	list_del(&st->link);
	list_append(&h->gone, &st->link);
	http_impl_abort(&st->i);
	return 0;
}

/* ---- sending, and what comes next ---- */

/* 0, 1 when there is more to send right now, or -errno. */
static int h2_send(struct http_h2 *h)
{
	struct buf *out = &h->out;
	for (int round = 0; round < ROUNDS; round++) {
		int r = h2_session_take(h->session, out, H2_SESSION_AHEAD);
		if (r < 0)
			return r;
		struct view v = buf_view(out);
		if (v.n == 0)
			return 0;
		ssize_t n = http_transport_send(&h->c->t, v.p, v.n);
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		http_conn_progress(h->c);
		http_place_used(h->c);
		buf_consume(out, (size_t)n);
	}
	return 1;
}

static bool h2_wake(struct http_h2 *h)
{
	bool any = false;
	LIST_EACH (it, &h->streams) {
		struct http_h2_stream *st = CONTAINER(it, struct http_h2_stream, link);
		struct http_impl *i = &st->i;
		if (i->finished || !i->blocked || !http_h2_stream_has_room(st))
			continue;
		i->blocked = false;
		any = true;
		if (i->x.ops && i->x.ops->on_writable)
			i->x.ops->on_writable(&i->x);
	}
	return any;
}

static uint64_t h2_deadline(const struct http_h2 *h)
{
	const struct http_limits *l = &h->c->server->cfg.limits;
	uint64_t first = 0;
	if (buf_len(&h->out))
		first = h->c->progress_ms + l->stall_ms;
	else if (list_empty(&h->streams))
		first = h->c->progress_ms + l->idle_ms;
	LIST_EACH (it, &h->streams) {
		uint64_t at = http_h2_stream_deadline(CONTAINER(it, struct http_h2_stream, link));
		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

static void h2_bury(struct http_h2 *h)
{
	LIST_EACH (it, &h->gone)
		http_h2_stream_free(CONTAINER(it, struct http_h2_stream, link));
}

/* Those whose turn it is now. */
static bool h2_begin_waiting(struct http_h2 *h)
{
	bool any = false;
	LIST_EACH (it, &h->streams) {
		if (h->n_waiting == 0)
			break;
		any |= http_h2_stream_try(CONTAINER(it, struct http_h2_stream, link));
	}
	return any;
}

/* Sends what is due, tells who may write again, and settles what to wait for. */
static void h2_run(struct http_h2 *h)
{
	struct http_conn *c = h->c;
	size_t kept = 0;
	int r;
	h->busy = true;
	h->turn_ends_ns = h->n_waiting ? clock_mono_ns() + HTTP_PLACE_TURN_NS : 0;
	LIST_EACH (it, &h->streams) {
		struct http_h2_stream *st = CONTAINER(it, struct http_h2_stream, link);
		http_h2_stream_deliver(st);
		kept += st->i.finished ? 0 : st->i.kept;
	}
	r = h2_send(h);
	bool more = r >= 0 && h2_begin_waiting(h);
	if (r >= 0 && (h2_wake(h) || more))
		r = h2_send(h);
	bool over = r >= 0 && h2_session_is_over(h->session) && buf_len(&h->out) == 0;
	h2_bury(h);
	h->busy = false;
	if (r < 0)
		http_conn_close(c);
	else if (over)
		http_conn_linger(c);
	if (r < 0 || over)
		return;
	bool next = h->n_waiting && http_place_may_begin(c, h->unsent, HTTP_PLACE_STREAMS);
	if (r > 0 && buf_len(&h->out) == 0)
		http_conn_kick(c);
	if (buf_len(&h->out) == 0)
		buf_shrink(&h->out);
	http_conn_want(c, nghttp2_session_want_read(h->session) && buf_len(&h->out) < H2_SESSION_AHEAD,
		       buf_len(&h->out) > 0 || next); /* in line with other connections */
	if (c->dead)
		return;
	http_conn_deadline(c, h2_deadline(h));
	http_place_hold(c, kept + h->unsent + 2 * h->heads + h->n_streams * STREAM_COST + h->out.cap);
}

/* ---- reading ---- */

int http_h2_feed(struct http_conn *c, struct view first)
{
	struct http_h2 *h = c->state;
	h->busy = true;
	h->turn_ends_ns = clock_mono_ns() + HTTP_PLACE_TURN_NS;
	ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)first.p, first.n);
	h->busy = false;
	if (n < 0) {
		c->server->stats.bad_requests++;
		return -EPROTO;
	}
	h2_run(h);
	return 0;
}

static void h2_read(struct http_conn *c)
{
	struct http_h2 *h = c->state;
	do {
		ssize_t n = http_transport_recv(&c->t, c->server->scratch, HTTP_SCRATCH);
		if (n == -EAGAIN) {
			h2_run(h);
			return;
		}
		if (n <= 0) {
			http_conn_close(c);
			return;
		}
		http_conn_progress(c);
		if (http_h2_feed(c, (struct view){ c->server->scratch, (size_t)n }) < 0)
			http_conn_close(c);
	} while (!c->dead && !c->lingering && http_transport_pending(&c->t) &&
		 buf_len(&h->out) < H2_SESSION_AHEAD);
}

static void h2_on_io(struct http_conn *c, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		http_conn_close(c);
	else if ((events & EPOLLIN) || c->t.tls)
		h2_read(c);
	else
		h2_run(c->state);
}

static void h2_on_kick(struct http_conn *c)
{
	if (http_transport_pending(&c->t))
		h2_read(c);
	else
		h2_run(c->state);
}

static void h2_on_deadline(struct http_conn *c)
{
	struct http_h2 *h = c->state;
	uint64_t now = http_h2_now(h);
	if (buf_len(&h->out) && c->progress_ms + c->server->cfg.limits.stall_ms <= now) {
		http_conn_reset(c);
		return;
	}
	LIST_EACH (it, &h->streams) {
		struct http_h2_stream *st = CONTAINER(it, struct http_h2_stream, link);
		uint64_t at = http_h2_stream_deadline(st);
		if (at && at <= now)
			http_h2_stream_reset(st, NGHTTP2_CANCEL);
	}
	if (list_empty(&h->streams))
		(void)!nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
	h2_run(h);
}

static void h2_abort(struct http_conn *c)
{
	struct http_h2 *h = c->state;
	LIST_EACH (it, &h->streams)
		http_impl_abort(&CONTAINER(it, struct http_h2_stream, link)->i);
}

static void h2_free(struct http_conn *c)
{
	struct http_h2 *h = c->state;
	nghttp2_session_del(h->session);
	LIST_EACH (it, &h->streams)
		http_h2_stream_free(CONTAINER(it, struct http_h2_stream, link));
	h2_bury(h);
	buf_done(&h->out);
	free(h);
}

static const struct http_driver h2_driver = {
	.on_io = h2_on_io,
	.on_kick = h2_on_kick,
	.on_deadline = h2_on_deadline,
	.abort = h2_abort,
	.free = h2_free,
};

/* ---- the beginning ---- */

static int greet(struct http_h2 *h)
{
	static const struct h2_session_calls calls = {
		.on_begin_headers = on_begin_headers,
		.on_header = on_header,
		.on_frame_recv = on_frame_recv,
		.on_invalid_frame = on_invalid_frame,
		.on_data = on_data,
		.on_frame_send = on_frame_send,
		.on_stream_close = on_stream_close,
	};
	const struct http_limits *l = &h->c->server->cfg.limits;
	const nghttp2_settings_entry ours[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, l->streams },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP_H2_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, l->head_bytes },
	};
	const struct h2_session_setup setup = {
		.calls = &calls,
		.arg = h,
		.window = CONN_WINDOW,
		.settings = ours,
		.n_settings = ELEMS(ours),
	};

	h->budget = H2_BUDGET(200, 20);
	return h2_session_new(&setup, &h->session);
}

int http_h2_start(struct http_conn *c)
{
	struct http_server *s = c->server;
	if (!s->scratch)
		s->scratch = malloc(HTTP_SCRATCH);
	struct http_h2 *h = s->scratch ? calloc(1, sizeof(*h)) : NULL;
	if (!h)
		return -ENOMEM;
	h->c = c;
	list_init(&h->streams);
	list_init(&h->gone);
	buf_init(&h->out, HTTP_OUT_MAX);
	if (greet(h) != 0) {
		free(h);
		return -ENOMEM;
	}
	c->state = h;
	c->driver = &h2_driver;
	http_conn_kick(c); /* the greeting is due */
	return 0;
}
