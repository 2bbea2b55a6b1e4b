/*
 * The two sessions of HTTP/2 on an intercepted connection, by libnghttp2, which does no
 * I/O: see intercept_h2.h. It checks what the RFC says of frames and fields (pseudo-headers,
 * headers of a connection, lengths that do not agree); what costs us and not the peer has a
 * budget, and who overdraws it is sent away.
 *
 * Nothing is sent while a session is on the stack, so a flow does not end within a callback:
 * intercept_h2_run sends what is due. Extended CONNECT (RFC 8441) and pushes are not offered.
 */
#include "intercept_h2.h"

#include <stdlib.h>

#include "poison.h"

#define CONTINUATIONS 8 /* frames of one head */

/* ---- libnghttp2's callbacks ---- */

static uint64_t now(const struct h2_side *side)
{
	return loop_now(side->h->ic->all->loop);
}

static bool is_client(const struct h2_side *side)
{
	return side == &side->h->client;
}

static int send_away(struct h2_side *side)
{
	intercept_ending(side->h->ic->conn, true);
	return h2_session_calm(side->session);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	struct h2_side *side = arg;

	(void)session;
	if (hd->type != NGHTTP2_CONTINUATION) {
		side->continuations = 0;
		return 0;
	}
	return ++side->continuations > CONTINUATIONS ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	struct h2_side *side = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);

	if (!is_client(side)) {
		if (s)
			h2_head_done(&s->answer);
		return 0;
	}
	if (f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = h2_stream_new(side->h, f->hd.stream_id);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(session, s->client_id, s);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct h2_side *side = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	struct h2_head *to = !s                      ? NULL
			     : !is_client(side)      ? &s->answer
			     : s->step == H2_HEADERS ? &s->head
						     : &s->up_tail;

	(void)flags;
	if (to)
		h2_head_add(to, (struct view){ (const char *)name, name_n },
			    (struct view){ (const char *)value, value_n }, false);
	/* Too large is answered; one that goes on and on is not. */
	return to && to->size > 4 * to->most ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
			     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset: nothing is left out of what was
							 said */
}

/* The server takes no more: nor do we, and the client asks for the rest on another connection. */
static void bye(struct intercept_h2 *h, uint32_t code)
{
	if (h->leaving)
		return;
	h->leaving = true;
	(void)!nghttp2_submit_goaway(h->client.session, NGHTTP2_FLAG_NONE,
				     nghttp2_session_get_last_proc_stream_id(h->client.session), code, NULL,
				     0);
}

static void frame_of_client(struct h2_stream *s, const nghttp2_frame *f)
{
	bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (f->hd.type == NGHTTP2_HEADERS && s->step == H2_HEADERS) {
		s->no_body = end;
		s->up_end = end;
		h2_stream_begin(s);
	} else if (end) {
		h2_stream_up_end(s);
	}
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	struct h2_side *side = arg;

	/* A server may reset what it is asked: those that cost us are the client's. */
	if ((f->hd.type != NGHTTP2_RST_STREAM || is_client(side)) &&
	    !h2_session_affords(&side->budget, f, now(side)))
		return send_away(side);
	if (f->hd.type == NGHTTP2_GOAWAY && !is_client(side))
		bye(side->h, f->goaway.error_code);
	if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
		return 0;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
	if (!s)
		return 0;
	if (is_client(side)) {
		frame_of_client(s, f);
		return 0;
	}
	bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (f->hd.type == NGHTTP2_HEADERS)
		h2_stream_answer(s, end);
	if (end)
		h2_stream_down_end(s);
	return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *f, int error, void *arg)
{
	struct h2_side *side = arg;

	(void)f;
	(void)error;
	return rate_spend(&side->budget.resets, now(side)) ? 0 : send_away(side);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct h2_side *side = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct view data = { (const char *)p, n };

	(void)flags;
	if (!s)
		return nghttp2_session_consume(session, id, n);
	if (is_client(side))
		h2_stream_up(s, data);
	else
		h2_stream_down(s, data);
	return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	struct h2_side *side = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, f->hd.stream_id);

	/* Resets that it makes us send cost the same as its own. */
	if (f->hd.type == NGHTTP2_RST_STREAM && is_client(side) &&
	    f->rst_stream.error_code == NGHTTP2_PROTOCOL_ERROR &&
	    !rate_spend(&side->budget.resets, now(side)))
		return send_away(side);
	if (!s || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (!is_client(side))
		s->sent_head = true;
	else if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		h2_stream_client_sent_end(s);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct h2_side *side = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	if (!s)
		return 0;
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	if (is_client(side))
		h2_stream_client_closed(s, code);
	else
		h2_stream_server_closed(s, code);
	return 0;
}

/* ---- the beginning and the end ---- */

static int greet(struct h2_side *side, bool serves)
{
	static const struct h2_session_calls calls = {
		.on_begin_frame = on_begin_frame,
		.on_begin_headers = on_begin_headers,
		.on_header = on_header,
		.on_invalid_header = on_invalid_header,
		.on_frame_recv = on_frame_recv,
		.on_invalid_frame = on_invalid_frame,
		.on_data = on_data,
		.on_frame_send = on_frame_send,
		.on_stream_close = on_stream_close,
	};
	const nghttp2_settings_entry ours[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, INJECT_HEAD },
		{ serves ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
		  serves ? H2_STREAMS : 0 },
	};
	const struct h2_session_setup setup = {
		.calls = &calls,
		.arg = side,
		.client = !serves,
		.secret = true,
		.head_out = 2 * H2_OUT_HEAD,
		.window = H2_CONN_WINDOW,
		.settings = ours,
		.n_settings = ELEMS(ours),
	};

	side->budget = H2_BUDGET(500, 50);
	return h2_session_new(&setup, &side->session);
}

static void bury(struct intercept_h2 *h)
{
	LIST_EACH (it, &h->gone)
		h2_stream_free(CONTAINER(it, struct h2_stream, link));
}

bool intercept_h2_start(struct intercept *ic)
{
	struct intercept_h2 *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	h->ic = ic;
	h->client.h = h->server.h = h;
	list_init(&h->streams);
	list_init(&h->gone);
	bool server = ic->server.ready && tls_conn_is_h2(ic->server.conn);
	if (greet(&h->client, true) != 0 || (server && greet(&h->server, false) != 0)) {
		intercept_h2_free(h);
		return false;
	}
	ic->h2 = h;
	return true;
}

void intercept_h2_free(struct intercept_h2 *h)
{
	if (!h)
		return;
	loop_timer_stop(&h->tidy);
	nghttp2_session_del(h->client.session);
	nghttp2_session_del(h->server.session);
	LIST_EACH (it, &h->streams)
		h2_stream_free(CONTAINER(it, struct h2_stream, link));
	bury(h);
	free(h);
}

/* ---- sending ---- */

/* Whether anything was sent; the flow may have ended. */
static bool send_some(struct h2_side *side)
{
	_cleanup_(buf_done) struct buf out = { .max = 2 * H2_SESSION_AHEAD, .secret = true };
	struct conn *c = side->h->ic->conn;

	if (h2_session_take(side->session, &out, H2_SESSION_AHEAD) < 0) {
		conn_end(c, true);
		return false;
	}
	if (buf_len(&out) == 0)
		return false;
	return is_client(side) ? intercept_to_client(c, buf_view(&out))
			       : intercept_to_server(c, buf_view(&out));
}

void intercept_h2_run(struct intercept *ic)
{
	struct intercept_h2 *h = ic->h2;
	struct conn *c = ic->conn;
	bool any = true;

	if (h->busy || ic->closing)
		return;
	h->busy = true;
	while (any && !c->over) {
		any = ic->client.ready && buf_len(&c->to_client) == 0 && send_some(&h->client);
		if (!c->over && h->server.session && buf_len(&c->to_server) == 0)
			any |= send_some(&h->server);
	}
	h->busy = false;
	bury(h);
	if (c->over)
		return;
	if (h2_session_is_over(h->client.session))
		intercept_close(c);
	else if (h->server.session && h2_session_is_over(h->server.session))
		intercept_h2_ended(ic);
}

/* ---- bytes ---- */

static bool feed(struct h2_side *side, struct view data)
{
	struct intercept_h2 *h = side->h;

	h->busy = true;
	ssize_t n = nghttp2_session_mem_recv(side->session, (const uint8_t *)data.p, data.n);
	h->busy = false;
	return n >= 0;
}

void intercept_h2_client(struct intercept *ic, struct view data)
{
	if (!feed(&ic->h2->client, data))
		conn_end(ic->conn, true);
}

void intercept_h2_server(struct intercept *ic, struct view data)
{
	if (ic->h2->server.session && !feed(&ic->h2->server, data))
		intercept_h2_ended(ic);
}

/* Answers that have begun are cut, who waits for one is told. */
void intercept_h2_ended(struct intercept *ic)
{
	struct intercept_h2 *h = ic->h2;

	if (h->server.session) {
		nghttp2_session_del(h->server.session);
		h->server.session = NULL;
		LIST_EACH (it, &h->streams)
			h2_stream_server_lost(CONTAINER(it, struct h2_stream, link));
	}
	intercept_ending(ic->conn, false);
	bye(h, NGHTTP2_NO_ERROR);
	intercept_h2_run(ic);
}

void intercept_h2_revealed(struct intercept *ic, uint32_t stream, const char *name, struct view value,
			   const struct err *e)
{
	struct conn *c = ic->conn;
	struct h2_stream *s = ic->h2 && !c->over ? h2_stream_find(ic->h2, (int32_t)stream) : NULL;

	if (!s)
		return;
	h2_stream_revealed(s, name, value, e);
	intercept_h2_run(ic);
	conn_wants(c);
}

static void on_tidy(struct loop_timer *t)
{
	struct intercept_h2 *h = CONTAINER(t, struct intercept_h2, tidy);
	struct conn *c = h->ic->conn;
	bool again = false;

	if (c->over)
		return;
	LIST_EACH (it, &h->streams)
		again |= h2_stream_tidy(CONTAINER(it, struct h2_stream, link), now(&h->client));
	if (again)
		intercept_h2_tidy(h);
	intercept_h2_run(h->ic);
	conn_wants(c);
}

void intercept_h2_tidy(struct intercept_h2 *h)
{
	if (!loop_timer_active(&h->tidy))
		loop_timer_start(h->ic->all->loop, &h->tidy, H2_TIDY_MS, on_tidy);
}
