/*
 * A stream of HTTP/2: one exchange, its request as it comes in and its answer as
 * it goes out. See http_h2.c for the connection.
 */
#include "http_h2.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "num.h"
#include "poison.h"

static struct http_h2_stream *stream_of(struct http_impl *i)
{
	return CONTAINER(i, struct http_h2_stream, i);
}

static void h2_kick(struct http_h2 *h)
{
	if (!h->busy)
		http_conn_kick(h->c);
}

void http_h2_stream_reset(struct http_h2_stream *st, uint32_t code)
{
	/* Fails only for want of memory; the stream then stays until its time limit. */
	(void)!nghttp2_submit_rst_stream(st->h->session, NGHTTP2_FLAG_NONE, st->id, code);
}

static nghttp2_nv nv_of(struct view name, struct view value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.p,
			     .namelen = name.n,
			     .value = (uint8_t *)(uintptr_t)value.p,
			     .valuelen = value.n };
}

/* ---- the answer, as libnghttp2 asks for it ---- */

static void submit_trailers(struct http_h2_stream *st)
{
	nghttp2_nv *nv = arena_array(&st->arena, st->n_trailers, sizeof(*nv));
	for (size_t k = 0; nv && k < st->n_trailers; k++)
		nv[k] = nv_of(st->trailers[k].name, st->trailers[k].value);
	if (!nv || nghttp2_submit_trailer(st->h->session, st->id, nv, st->n_trailers) != 0)
		http_h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
			   nghttp2_data_source *source, void *arg)
{
	struct http_h2_stream *st = source->ptr;
	bool shared = buf_len(&st->out) == 0;
	struct view v = shared ? st->shared : buf_view(&st->out);
	n = MIN(n, v.n);
	if (n) {
		memcpy(p, v.p, n);
		st->progress_ms = http_h2_now(st->h);
	}
	if (shared) {
		st->shared = view_skip(v, n);
	} else {
		buf_consume(&st->out, n);
		st->h->unsent -= n;
	}
	if (buf_len(&st->out) == 0 && st->shared.n == 0 && st->ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (st->n_trailers) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailers(st);
		}
	} else if (n == 0) {
		st->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)n;
}

/* ---- what the dialect's calls do ---- */

/* What the peer has begun so far is answered. */
static void say_farewell(struct http_h2 *h)
{
	int32_t newest = nghttp2_session_get_last_proc_stream_id(h->session);

	h->farewell =
		nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, newest, NGHTTP2_NO_ERROR, NULL, 0) == 0;
}

static void h2_begin(struct http_impl *i, const struct http_answer *a)
{
	struct http_h2_stream *st = stream_of(i);
	struct http_server *s = st->h->c->server;
	nghttp2_nv *nv = arena_array(&st->arena, a->n_extra + 6, sizeof(*nv));
	char status[4] = { (char)('0' + a->status / 100 % 10), (char)('0' + a->status / 10 % 10),
			   (char)('0' + a->status % 10) };
	char length[24];
	size_t n = 0;
	if (st->h->c->seat.guest && !st->h->farewell)
		say_farewell(st->h);
	if (!nv) {
		http_h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	nv[n++] = nv_of(VIEW(":status"), (struct view){ status, 3 });
	nv[n++] = nv_of(VIEW("server"), VIEW("paddock"));
	nv[n++] = nv_of(VIEW("date"), http_server_date(s));
	nv[n++] = nv_of(VIEW("x-request-id"), view_of(i->x.request_id));
	if (a->content_type)
		nv[n++] = nv_of(VIEW("content-type"), view_of(a->content_type));
	for (size_t k = 0; k < a->n_extra; k++)
		if (http1_is_header(a->extra[k]) && !http1_write_is_framing(a->extra[k].name))
			nv[n++] = nv_of(a->extra[k].name, a->extra[k].value);
	if (a->length >= 0 && a->status != 204 && a->status != 304) {
		snprintf(length, sizeof(length), "%lld", (long long)a->length);
		nv[n++] = nv_of(VIEW("content-length"), view_of(length));
	}
	nghttp2_data_provider body = { .source.ptr = st, .read_callback = read_answer };
	bool has_body = !i->bodyless && !(a->whole && a->length == 0);
	if (nghttp2_submit_response(st->h->session, st->id, nv, n, has_body ? &body : NULL) != 0)
		http_h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	st->progress_ms = http_h2_now(st->h);
	h2_kick(st->h);
}

static void stream_resume(struct http_h2_stream *st)
{
	if (!st->deferred)
		return;
	st->deferred = false;
	/* Fails when the stream is closing, which its callback will tell us. */
	(void)!nghttp2_session_resume_data(st->h->session, st->id);
}

/* A stream whose window is shut must not stop the others, so each may have a little. */
static size_t high_water(const struct http_h2_stream *st)
{
	size_t most = http_place_high_water(st->h->c);
	return st->h->unsent >= HTTP_PLACE_STREAMS ? MIN(most, HTTP_PLACE_TIGHT) : most;
}

bool http_h2_stream_has_room(const struct http_h2_stream *st)
{
	return buf_len(&st->out) <= high_water(st) / 2;
}

static void h2_share(struct http_impl *i, struct view data)
{
	stream_of(i)->shared = data;
}

static bool h2_write(struct http_impl *i, struct view data)
{
	struct http_h2_stream *st = stream_of(i);
	if (buf_len(&st->out) == 0)
		st->progress_ms = http_h2_now(st->h);
	if (buf_add(&st->out, data) < 0)
		http_h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	else
		st->h->unsent += data.n;
	i->blocked |= buf_len(&st->out) >= high_water(st); /* until on_writable has come */
	stream_resume(st);
	h2_kick(st->h);
	return !i->blocked;
}

static void h2_end(struct http_impl *i)
{
	struct http_h2_stream *st = stream_of(i);
	st->ended = true;
	stream_resume(st);
	h2_kick(st->h);
}

static void h2_broken(struct http_impl *i)
{
	http_h2_stream_reset(stream_of(i), NGHTTP2_INTERNAL_ERROR);
	h2_kick(stream_of(i)->h);
}

static void h2_trailers(struct http_impl *i, const struct http_header *t, size_t n)
{
	struct http_h2_stream *st = stream_of(i);
	st->n_trailers = 0;
	st->trailers = arena_array(&st->arena, n, sizeof(*t));
	for (size_t k = 0; st->trailers && k < n; k++) {
		struct http_header h = { arena_view(&st->arena, t[k].name),
					 arena_view(&st->arena, t[k].value) };
		if (h.name.p && h.value.p && http1_is_header(h))
			st->trailers[st->n_trailers++] = h;
	}
}

static void h2_resume(struct http_impl *i)
{
	stream_of(i)->progress_ms = http_h2_now(stream_of(i)->h);
	h2_kick(stream_of(i)->h);
}

static const struct http_side h2_side = {
	.begin = h2_begin,
	.write = h2_write,
	.share = h2_share,
	.end = h2_end,
	.broken = h2_broken,
	.trailers = h2_trailers,
	.resume = h2_resume,
};

/* ---- streams ---- */

void http_h2_stream_free(struct http_h2_stream *st)
{
	st->h->unsent -= buf_len(&st->out);
	st->h->heads -= st->arena_counted;
	st->h->n_streams--;
	st->h->n_waiting -= st->waits;
	list_del(&st->link);
	arena_done(&st->arena);
	buf_done(&st->in);
	buf_done(&st->out);
	free(st);
}

struct http_h2_stream *http_h2_stream_new(struct http_h2 *h, int32_t id)
{
	struct http_h2_stream *st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->h = h;
	st->id = id;
	st->progress_ms = http_h2_now(h);
	arena_init(&st->arena, HTTP_ARENA_MAX);
	buf_init(&st->in, HTTP_H2_WINDOW);
	buf_init(&st->out, HTTP_OUT_MAX);
	st->i.side = &h2_side;
	st->i.conn = h->c;
	h->n_streams++;
	st->i.finished = true; /* until it begins */
	list_append(&h->streams, &st->link);
	return st;
}

static void consume(struct http_h2_stream *st, size_t n)
{
	(void)!nghttp2_session_consume(st->h->session, st->id, n);
}

/* Bytes that nobody wants. Past the limit the stream's window stays shut, and once
 * the answer is out the peer is asked to stop. */
static void drop_body(struct http_h2_stream *st, size_t n)
{
	st->dropped += n;
	if (st->dropped <= HTTP_DRAIN_MAX) {
		consume(st, n);
		return;
	}
	(void)!nghttp2_session_consume_connection(st->h->session, n);
	if (st->end_out)
		http_h2_stream_reset(st, NGHTTP2_NO_ERROR);
}

void http_h2_stream_deliver(struct http_h2_stream *st)
{
	if (!st->head_done || (st->i.paused && !st->i.finished))
		return;
	if (buf_len(&st->in)) {
		struct buf in = st->in; /* the dialect may pause again in the middle: it has had it all */
		buf_init(&st->in, HTTP_H2_WINDOW);
		if (st->i.finished)
			drop_body(st, buf_len(&in));
		else
			consume(st, buf_len(&in));
		http_impl_body(&st->i, buf_view(&in), false);
		buf_done(&in);
	}
	if (st->end_in && !st->last_given && !st->i.paused) {
		st->last_given = true;
		http_impl_body(&st->i, VIEW(""), true);
	}
}

void http_h2_stream_data(struct http_h2_stream *st, struct view data)
{
	bool unwanted = st->i.finished && !st->waits;
	/* Of a body only so much at once is progress: whoever drips it is cut off. */
	st->step += data.n;
	if (!unwanted && st->step >= HTTP_BODY_STEP) {
		st->progress_ms = http_h2_now(st->h);
		st->step = 0;
	}
	if (unwanted) {
		drop_body(st, data.n);
	} else if (st->waits || st->i.paused || buf_len(&st->in)) {
		/* Bounded by the window, which is not opened again until it is taken. */
		if (buf_add(&st->in, data) < 0)
			http_h2_stream_reset(st, NGHTTP2_FLOW_CONTROL_ERROR);
	} else {
		consume(st, data.n);
		http_impl_body(&st->i, data, false);
	}
}

void http_h2_stream_sent(struct http_h2_stream *st)
{
	st->end_out = true;
	if (!st->end_in && st->dropped > HTTP_DRAIN_MAX)
		http_h2_stream_reset(st, NGHTTP2_NO_ERROR);
}

/* ---- the request's head ---- */

/* Room for one more header; doubles in the arena. */
static bool grow_headers(struct http_h2_stream *st)
{
	if (st->n_headers < st->cap_headers)
		return true;
	size_t cap = st->cap_headers ? st->cap_headers * 2 : 16;
	struct http_header *more = arena_array(&st->arena, cap, sizeof(*more));
	if (!more)
		return false;
	if (st->n_headers)
		memcpy(more, st->headers, st->n_headers * sizeof(*more));
	st->headers = more;
	st->cap_headers = cap;
	return true;
}

static void take_pseudo(struct http_h2_stream *st, struct view name, struct view value)
{
	struct http_exchange *x = &st->i.x;
	if (view_is(name, ":method"))
		x->method = value;
	else if (view_is(name, ":path"))
		x->path = view_split(value, '?', &x->query);
	else if (view_is(name, ":authority"))
		x->host = value;
}

void http_h2_stream_header(struct http_h2_stream *st, struct http_header hd)
{
	const struct http_limits *l = &st->h->c->server->cfg.limits;
	bool pseudo = hd.name.n && hd.name.p[0] == ':';
	st->head_bytes += hd.name.n + hd.value.n + 32; /* as HTTP/2 counts it */
	if (st->head_bytes > l->head_bytes || (!pseudo && st->n_headers == l->headers) || !grow_headers(st)) {
		st->too_large = true;
		return;
	}
	hd.name = arena_view(&st->arena, hd.name);
	hd.value = arena_view(&st->arena, hd.value);
	st->h->heads += st->arena.used - st->arena_counted;
	st->arena_counted = st->arena.used;
	if (!hd.name.p || !hd.value.p) {
		st->too_large = true;
		return;
	}
	if (pseudo) {
		take_pseudo(st, hd.name, hd.value);
		return;
	}
	if (view_is(hd.name, "expect"))
		st->expect = hd.value;
	st->headers[st->n_headers++] = hd;
}

static void stream_refuse(struct http_h2_stream *st, int status, const char *why)
{
	struct buf body = BUF_INIT(1024);
	http_impl_error(&body, status, why, st->i.x.request_id);
	http_reply(&st->i.x, status, "application/json", buf_view(&body), NULL, 0);
	buf_done(&body);
}

/* What libnghttp2 does not check; NULL when the head is as it should be. */
static const char *head_mistake(struct http_h2_stream *st, int *status)
{
	struct http_exchange *x = &st->i.x;
	struct view host = http_get_header(x, "host");
	*status = 431;
	if (st->too_large)
		return "the headers are too long or too many";
	*status = 501;
	if (view_is(x->method, "CONNECT"))
		return "unknown method";
	*status = 417;
	if (st->expect.p && !view_eq_nocase(st->expect, VIEW("100-continue")))
		return "the only expectation known here is 100-continue";
	*status = 400;
	if (!http1_is_target(x->path) || !http1_is_target(x->query))
		return "malformed request target";
	if (x->host.p && host.p && !view_eq_nocase(x->host, host))
		return ":authority and Host differ";
	if (!x->host.p)
		x->host = host;
	if (!http1_is_host(x->host))
		return "malformed or missing host";
	return NULL;
}

static void stream_begin(struct http_h2_stream *st)
{
	struct http_server *s = st->h->c->server;
	struct http_exchange *x = &st->i.x;
	uint64_t length;
	int status;
	st->head_done = true;
	st->i.finished = false;
	st->i.is_head = view_is(x->method, "HEAD");
	x->headers = st->headers;
	x->n_headers = st->n_headers;
	x->content_length = st->end_in ? 0 : -1;
	if (num_u64(http_get_header(x, "content-length"), &length) == 0 && length <= INT64_MAX)
		x->content_length = (int64_t)length;
	x->tls = st->h->c->t.tls != NULL;
	x->peer = view_of(st->h->c->peer);
	x->origin = view_of(st->h->c->origin);
	x->crowded = st->h->c->crowded;
	x->listener = st->h->c->listener;
	x->version = 20;
	x->arena = &st->arena;
	x->loop = s->loop;
	http_server_request_id(s, http_get_header(x, "x-request-id"), x->request_id);
	const char *mistake = head_mistake(st, &status);
	if (mistake) {
		s->stats.bad_requests++;
		stream_refuse(st, status, mistake);
		return;
	}
	s->stats.requests++;
	http_place_used(st->h->c);
	s->cfg.on_request(x, s->cfg.arg);
	if (!st->i.finished && !x->ops)
		stream_refuse(st, 500, "nobody took the request");
	if (st->expect.p && !st->i.finished && !st->i.begun && !st->end_in) {
		nghttp2_nv go = nv_of(VIEW(":status"), VIEW("100"));
		(void)!nghttp2_submit_headers(st->h->session, NGHTTP2_FLAG_NONE, st->id, NULL, &go, 1, NULL);
	}
}

static bool may_begin(const struct http_h2 *h)
{
	return http_place_may_begin(h->c, h->unsent, HTTP_PLACE_STREAMS) && clock_mono_ns() < h->turn_ends_ns;
}

void http_h2_stream_complete(struct http_h2_stream *st)
{
	/* Behind those that wait it waits, too: clients expect no order, but would wonder. */
	if (!st->h->n_waiting && may_begin(st->h)) {
		stream_begin(st);
		return;
	}
	st->waits = true;
	st->h->n_waiting++;
}

bool http_h2_stream_try(struct http_h2_stream *st)
{
	if (!st->waits || !may_begin(st->h))
		return false;
	st->waits = false;
	st->h->n_waiting--;
	st->progress_ms = http_h2_now(st->h);
	stream_begin(st);
	http_h2_stream_deliver(st);
	return true;
}

/* ---- time ---- */

uint64_t http_h2_stream_deadline(const struct http_h2_stream *st)
{
	const struct http_limits *l = &st->h->c->server->cfg.limits;
	if (st->waits)
		return 0; /* those before it have one */
	if (!st->head_done)
		return st->progress_ms + l->head_ms;
	bool takes = buf_len(&st->out) || (st->ended && !st->end_out);
	/* A body after the answer has begun is a conversation: the dialect has limits for it. */
	bool gives = !st->end_in && (st->i.finished || (!st->i.paused && !st->i.begun && !st->i.x.patient));
	return takes || gives ? st->progress_ms + l->stall_ms : 0;
}
