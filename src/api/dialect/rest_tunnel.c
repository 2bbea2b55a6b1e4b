/*
 * GET /v1/sandboxes/{id}/tunnel/{port}: a TCP connection to a port of a box, over a
 * WebSocket. Binary messages are bytes both ways; the text message "end" says that
 * this side sends no more. The WebSocket is closed when both have said so, or when
 * the connection breaks.
 */
#include <errno.h>

#include "num.h"
#include "ports.h"
#include "rest_impl.h"
#include "rest_websocket.h"
#include "poison.h"

#define MESSAGE_MAX (1024u * 1024)
#define FRAME_MAX   (FRAME_DATA_MAX + 64)
#define TEXT_MAX    8
#define INPUT_HIGH  (256u * 1024) /* bytes that wait for the box before we stop reading */
#define INPUT_MAX   (INPUT_HIGH + MESSAGE_MAX)
#define PING_MS     30000
#define SILENCE_MS  (3 * PING_MS)

struct tunnel {
	struct port_stream stream;
	struct req *r;
	struct websocket ws;
	char accept[WEBSOCKET_ACCEPT];
	char text[TEXT_MAX];
	size_t n_text;
	struct buf frame, input;
	size_t held; /* bytes that the client has not taken */
	bool upgraded, full, ended;
	struct loop_timer ping;
	uint64_t heard_ms;
};

static void flush(struct tunnel *t)
{
	if (!http_write(t->r->x, buf_view(&t->frame)))
		t->full = true;
	buf_clear(&t->frame);
}

static void release(struct tunnel *t)
{
	loop_timer_stop(&t->ping);
	ports_close(&t->stream);
	buf_done(&t->frame);
	buf_done(&t->input);
}

static void leave(struct tunnel *t, uint16_t code, struct view reason)
{
	struct req *r = t->r;

	websocket_put_close(&t->frame, WEBSOCKET_SERVER, code, view_head(reason, WEBSOCKET_CONTROL - 2));
	flush(t);
	release(t);
	http_end(r->x);
	rest_done(r);
}

static void on_ping(struct loop_timer *timer)
{
	struct tunnel *t = CONTAINER(timer, struct tunnel, ping);
	struct loop *loop = t->r->x->loop;

	if (loop_now(loop) - t->heard_ms > SILENCE_MS) {
		leave(t, WEBSOCKET_AWAY, VIEW("no answer to pings"));
		return;
	}
	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_PING, VIEW_NONE);
	flush(t);
	loop_timer_start(loop, timer, PING_MS, on_ping);
}

/* ---- from the box ---- */

static void on_open(struct port_stream *s)
{
	struct tunnel *t = CONTAINER(s, struct tunnel, stream);
	struct http_header header = { VIEW("sec-websocket-accept"), view_of(t->accept) };

	/* Looked at before: this is HTTP/1.1. */
	t->upgraded = http_upgrade(t->r->x, "websocket", &header, 1);
	t->heard_ms = loop_now(t->r->x->loop);
	loop_timer_start(t->r->x->loop, &t->ping, PING_MS, on_ping);
}

static void on_data(struct port_stream *s, struct view data)
{
	struct tunnel *t = CONTAINER(s, struct tunnel, stream);

	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_BINARY, data);
	flush(t);
	if (t->full)
		t->held += data.n;
	else
		ports_consumed(s, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct tunnel *t = ((struct req *)x->ctx)->own;
	size_t n = t->held;

	t->full = false;
	t->held = 0;
	ports_consumed(&t->stream, n);
}

static void on_eof(struct port_stream *s)
{
	struct tunnel *t = CONTAINER(s, struct tunnel, stream);

	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_TEXT, VIEW("end"));
	flush(t);
}

static void on_done(struct port_stream *s, const struct err *e)
{
	struct tunnel *t = CONTAINER(s, struct tunnel, stream);
	struct req *r = t->r;

	if (t->upgraded) {
		leave(t, e ? WEBSOCKET_INTERNAL : WEBSOCKET_NORMAL, e ? view_of(e->msg) : VIEW_NONE);
		return;
	}
	struct err copy = { 0 };
	if (e)
		copy = *e;
	else
		err_set(&copy, ERR_UNAVAILABLE, "the connection ended before it began");
	release(t);
	rest_fail(r, &copy);
}

/* ---- from the client ---- */

static void feed(struct tunnel *t)
{
	buf_consume(&t->input, ports_send(&t->stream, buf_view(&t->input)));
	if (buf_len(&t->input) < INPUT_HIGH / 2)
		http_body_resume(t->r->x);
	if (t->ended && buf_len(&t->input) == 0)
		ports_end(&t->stream);
}

static void on_room(struct port_stream *s)
{
	feed(CONTAINER(s, struct tunnel, stream));
}

static const struct port_ops stream_ops = {
	.on_open = on_open, .on_data = on_data, .on_eof = on_eof, .on_room = on_room, .done = on_done
};

/* False: the tunnel is gone. */
static bool on_text(struct tunnel *t, const struct websocket_piece *p)
{
	size_t n = MIN(p->data.n, TEXT_MAX - t->n_text);

	memcpy(t->text + t->n_text, p->data.p, n);
	t->n_text += n;
	if (!p->last)
		return true;
	if (!view_is((struct view){ t->text, t->n_text }, "end")) {
		leave(t, WEBSOCKET_POLICY, VIEW("the only text message is \"end\""));
		return false;
	}
	t->n_text = 0;
	t->ended = true;
	return true;
}

static bool on_piece(struct tunnel *t, const struct websocket_piece *p)
{
	switch (p->kind) {
	case WEBSOCKET_BINARY:
		if (!t->ended && buf_add(&t->input, p->data) >= 0)
			return true;
		leave(t, WEBSOCKET_POLICY, t->ended ? VIEW("bytes behind the end") : VIEW("too many bytes"));
		return false;
	case WEBSOCKET_TEXT:
		return on_text(t, p);
	case WEBSOCKET_PING:
		websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_PONG, p->data);
		flush(t);
		return true;
	case WEBSOCKET_CLOSE:
		leave(t, p->code, VIEW_NONE);
		return false;
	case WEBSOCKET_PONG:
	case WEBSOCKET_MORE:
		break;
	}
	return true;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct tunnel *t = ((struct req *)x->ctx)->own;
	struct websocket_piece piece;
	int n;

	if (!t->upgraded)
		return; /* the end of a request without a body */
	t->heard_ms = loop_now(x->loop);
	while ((n = websocket_next(&t->ws, &data, &piece)) > 0)
		if (!on_piece(t, &piece))
			return;
	if (n < 0) {
		leave(t, t->ws.code, view_of(t->ws.why));
		return;
	}
	if (buf_len(&t->input) >= INPUT_HIGH)
		http_body_pause(x);
	feed(t);
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;

	release(r->own);
	rest_done(r);
}

static const struct http_ops tunnel_ops = { .on_body = on_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

static void tunnel(struct req *r)
{
	struct tunnel *t = rest_own(r, sizeof(*t));
	struct err e = { 0 };
	uint32_t port = 0;

	if (!t)
		return;
	t->r = r;
	t->frame = BUF_INIT(FRAME_MAX);
	t->input = BUF_INIT(INPUT_MAX);
	websocket_init(&t->ws, WEBSOCKET_SERVER, MESSAGE_MAX);
	t->stream.ops = &stream_ops;
	r->x->ops = &tunnel_ops;
	if (num_u32(r->params[1], &port) < 0 || port < 1 || port > UINT16_MAX)
		err_set(&e, ERR_INVALID, "port must be a number from 1 to 65535");
	else if (rest_websocket_check(r->x, t->accept, &e) >= 0 &&
		 ports_open(r->core, &r->actor, r->params[0], (uint16_t)port, &t->stream, &e) >= 0)
		return;
	release(t);
	rest_fail(r, &e);
}

const struct route rest_tunnel_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/tunnel/{port}", tunnel },
	{ 0 },
};
