/*
 * The handshake and the session: see rest_websocket.h.
 */
#include "rest_websocket.h"

#include "http1_response.h"
#include "poison.h"

#define FRAME_MAX  (REST_WEBSOCKET_MESSAGE + 64)
#define TEXT_MAX   4096u
#define PING_MS    30000
#define SILENCE_MS (3 * PING_MS)

/* ---- sending ---- */

static void put(struct rest_websocket *w, enum websocket_op op, struct view data)
{
	websocket_put(&w->frame, WEBSOCKET_SERVER, op, data);
	if (!http_write(w->r->x, buf_view(&w->frame)))
		w->full = true;
	buf_clear(&w->frame);
}

size_t rest_websocket_send(struct rest_websocket *w, struct view data)
{
	put(w, WEBSOCKET_BINARY, data);
	if (!w->full)
		return data.n;
	w->held += data.n;
	return 0;
}

void rest_websocket_text(struct rest_websocket *w, struct view text)
{
	put(w, WEBSOCKET_TEXT, text);
}

static void on_writable(struct http_exchange *x)
{
	struct rest_websocket *w = ((struct req *)x->ctx)->own;
	size_t n = w->held;

	w->full = false;
	w->held = 0;
	w->ops->on_sent(w, n);
}

/* ---- the end ---- */

static void release(struct rest_websocket *w)
{
	loop_timer_stop(&w->ping);
	w->ops->on_gone(w);
	buf_done(&w->frame);
	buf_done(&w->text);
	buf_done(&w->input);
}

void rest_websocket_leave(struct rest_websocket *w, uint16_t code, struct view reason)
{
	struct req *r = w->r;

	websocket_put_close(&w->frame, WEBSOCKET_SERVER, code, reason);
	http_write(r->x, buf_view(&w->frame));
	release(w);
	http_end(r->x);
	rest_done(r);
}

void rest_websocket_fail(struct rest_websocket *w, const struct err *e)
{
	struct req *r = w->r;
	struct err copy = *e; /* it may be of what is let go */

	release(w);
	rest_fail(r, &copy);
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;

	release(r->own);
	rest_done(r);
}

/* ---- what the client says ---- */

void rest_websocket_taken(struct rest_websocket *w, size_t n)
{
	buf_consume(&w->input, n);
	if (buf_len(&w->input) <= w->input_high / 2)
		http_body_resume(w->r->x);
}

/* False: the session is gone. */
static bool on_text(struct rest_websocket *w, const struct websocket_piece *p)
{
	struct err e = { 0 };

	if (buf_add(&w->text, p->data) < 0) {
		rest_websocket_leave(w, WEBSOCKET_TOO_BIG, VIEW_NONE);
		return false;
	}
	if (!p->last)
		return true;
	if (!w->ops->on_text(w, buf_view(&w->text), &e)) {
		rest_websocket_leave(w, WEBSOCKET_POLICY, view_of(e.msg));
		return false;
	}
	buf_clear(&w->text);
	return true;
}

/* False: the session is gone. */
static bool on_bytes(struct rest_websocket *w, struct view data)
{
	if (!w->input_ended && buf_add(&w->input, data) >= 0)
		return true;
	if (w->input_ended)
		rest_websocket_leave(w, WEBSOCKET_POLICY, VIEW("bytes behind the end"));
	else
		rest_websocket_leave(w, WEBSOCKET_TOO_BIG, VIEW("too many bytes"));
	return false;
}

static bool on_piece(struct rest_websocket *w, const struct websocket_piece *p)
{
	switch (p->kind) {
	case WEBSOCKET_BINARY:
		return on_bytes(w, p->data);
	case WEBSOCKET_TEXT:
		return on_text(w, p);
	case WEBSOCKET_PING:
		put(w, WEBSOCKET_PONG, p->data);
		return true;
	case WEBSOCKET_CLOSE:
		rest_websocket_leave(w, p->code, VIEW_NONE);
		return false;
	case WEBSOCKET_PONG:
	case WEBSOCKET_MORE:
		break;
	}
	return true;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct rest_websocket *w = ((struct req *)x->ctx)->own;
	struct websocket_piece piece;
	int n;

	if (!w->open)
		return; /* the end of a request without a body */
	w->heard_ms = loop_now(x->loop);
	while ((n = websocket_next(&w->ws, &data, &piece)) > 0)
		if (!on_piece(w, &piece))
			return;
	if (n < 0) {
		rest_websocket_leave(w, w->ws.code, view_of(w->ws.why));
		return;
	}
	if (buf_len(&w->input) >= w->input_high)
		http_body_pause(x);
	w->ops->on_input(w);
}

static void on_ping(struct loop_timer *timer)
{
	struct rest_websocket *w = CONTAINER(timer, struct rest_websocket, ping);
	struct loop *loop = w->r->x->loop;

	if (loop_now(loop) - w->heard_ms > SILENCE_MS) {
		rest_websocket_leave(w, WEBSOCKET_AWAY, VIEW("no answer to pings"));
		return;
	}
	put(w, WEBSOCKET_PING, VIEW_NONE);
	loop_timer_start(loop, timer, PING_MS, on_ping);
}

/* ---- the beginning ---- */

static const struct http_ops session_ops = { .on_body = on_body,
					     .on_abort = on_abort,
					     .on_writable = on_writable };

void *rest_websocket_own(struct req *r, size_t size, const struct rest_websocket_ops *ops, size_t input_high)
{
	struct rest_websocket *w = rest_own(r, size);

	if (!w)
		return NULL;
	w->ops = ops;
	w->r = r;
	w->frame = BUF_INIT(FRAME_MAX);
	w->text = BUF_INIT(TEXT_MAX);
	w->input = BUF_INIT(input_high + REST_WEBSOCKET_MESSAGE);
	w->input_high = input_high;
	websocket_init(&w->ws, WEBSOCKET_SERVER, REST_WEBSOCKET_MESSAGE);
	r->x->ops = &session_ops;
	return w;
}

int rest_websocket_check(struct rest_websocket *w, struct err *e)
{
	const struct http_exchange *x = w->r->x;

	if (x->version != 11 || !http1_response_has_option(http_get_header(x, "upgrade"), "websocket") ||
	    !http1_response_has_option(http_get_header(x, "connection"), "upgrade"))
		return err_set(e, ERR_BAD_REQUEST, "this is a WebSocket, by HTTP/1.1 and its Upgrade");
	if (!view_is(http_get_header(x, "sec-websocket-version"), "13"))
		return err_set(e, ERR_BAD_REQUEST, "the only version of WebSocket known here is 13");
	if (websocket_accept(http_get_header(x, "sec-websocket-key"), w->accept) < 0)
		return err_set(e, ERR_BAD_REQUEST, "Sec-WebSocket-Key is not 16 bytes in base64");
	return 0;
}

void rest_websocket_open(struct rest_websocket *w)
{
	struct http_header headers[2] = { { VIEW("sec-websocket-accept"), view_of(w->accept) },
					  { VIEW("sec-websocket-protocol"), w->protocol } };

	/* Looked at before: this is HTTP/1.1. */
	w->open = http_upgrade(w->r->x, "websocket", headers, w->protocol.p ? 2 : 1);
	w->heard_ms = loop_now(w->r->x->loop);
	loop_timer_start(w->r->x->loop, &w->ping, PING_MS, on_ping);
}
