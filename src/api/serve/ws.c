/*
 * The handshake and the session: see ws.h.
 */
#include "ws.h"

#include "http1_response.h"
#include "poison.h"

#define FRAME_MAX  (WS_MESSAGE + 64)
#define TEXT_MAX   4096u
#define PONG_MAX   125u
#define PING_MS    30000
#define SILENCE_MS (3 * PING_MS)

/* ---- sending ---- */

static void put(struct ws *w, enum websocket_op op, struct view data)
{
	websocket_put(&w->frame, WEBSOCKET_SERVER, op, data);
	if (!http_write(w->r->x, buf_view(&w->frame)))
		w->full = true;
	buf_clear(&w->frame);
}

size_t ws_hold(struct ws *w, size_t n)
{
	if (!w->full)
		return n;
	w->held += n;
	return 0;
}

size_t ws_send(struct ws *w, struct view data)
{
	put(w, WEBSOCKET_BINARY, data);
	return ws_hold(w, data.n);
}

void ws_text(struct ws *w, struct view text)
{
	put(w, WEBSOCKET_TEXT, text);
}

static void on_writable(struct http_exchange *x)
{
	struct ws *w = ((struct request *)x->ctx)->own;
	size_t n = w->held;

	w->full = false;
	w->held = 0;
	if (w->owes)
		put(w, WEBSOCKET_PONG, buf_view(&w->pong));
	w->owes = false;
	w->ops->on_sent(w, n);
}

/* ---- the end ---- */

static void release(struct ws *w)
{
	loop_timer_stop(&w->ping);
	w->ops->on_gone(w);
	buf_done(&w->frame);
	buf_done(&w->pong);
	buf_done(&w->text);
	buf_done(&w->input);
}

void ws_leave(struct ws *w, uint16_t code, struct view reason)
{
	struct request *r = w->r;

	websocket_put_close(&w->frame, WEBSOCKET_SERVER, code, reason);
	http_write(r->x, buf_view(&w->frame));
	release(w);
	http_end(r->x);
	request_done(r);
}

void ws_fail(struct ws *w, const struct err *e)
{
	struct request *r = w->r;
	struct err copy = *e; /* it may be of what is let go */

	release(w);
	answer_fail(r, &copy);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;

	release(r->own);
	request_done(r);
}

/* ---- what the client says ---- */

void ws_taken(struct ws *w, size_t n)
{
	buf_consume(&w->input, n);
	if (buf_len(&w->input) <= w->input_high / 2)
		http_body_resume(w->r->x);
}

/* False: the session is gone. */
static bool on_text(struct ws *w, const struct websocket_piece *p)
{
	struct err e = { 0 };

	if (buf_add(&w->text, p->data) < 0) {
		ws_leave(w, WEBSOCKET_TOO_BIG, VIEW_NONE);
		return false;
	}
	if (!p->last)
		return true;
	if (!w->ops->on_text(w, buf_view(&w->text), &e)) {
		ws_leave(w, WEBSOCKET_POLICY, view_of(e.msg));
		return false;
	}
	buf_clear(&w->text);
	return true;
}

/* False: the session is gone. */
static bool on_bytes(struct ws *w, struct view data)
{
	if (!w->input_ended && buf_add(&w->input, data) >= 0)
		return true;
	if (w->input_ended)
		ws_leave(w, WEBSOCKET_POLICY, VIEW("bytes behind the end"));
	else
		ws_leave(w, WEBSOCKET_TOO_BIG, VIEW("too many bytes"));
	return false;
}

/* To a client that does not read only the last of its pings is answered, as RFC 6455 permits. */
static void on_client_ping(struct ws *w, struct view data)
{
	if (!w->full) {
		put(w, WEBSOCKET_PONG, data);
		return;
	}
	buf_clear(&w->pong);
	w->owes = buf_add(&w->pong, data) >= 0;
}

static bool on_piece(struct ws *w, const struct websocket_piece *p)
{
	switch (p->kind) {
	case WEBSOCKET_BINARY:
		return on_bytes(w, p->data);
	case WEBSOCKET_TEXT:
		return on_text(w, p);
	case WEBSOCKET_PING:
		on_client_ping(w, p->data);
		return true;
	case WEBSOCKET_CLOSE:
		ws_leave(w, p->code, VIEW_NONE);
		return false;
	case WEBSOCKET_PONG:
	case WEBSOCKET_MORE:
		break;
	}
	return true;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct ws *w = ((struct request *)x->ctx)->own;
	struct websocket_piece piece;
	int n;

	if (!w->open)
		return; /* the end of a request without a body */
	w->heard_ms = loop_now(x->loop);
	while ((n = websocket_next(&w->ws, &data, &piece)) > 0)
		if (!on_piece(w, &piece))
			return;
	if (n < 0) {
		ws_leave(w, w->ws.code, view_of(w->ws.why));
		return;
	}
	if (buf_len(&w->input) >= w->input_high)
		http_body_pause(x);
	w->ops->on_input(w);
}

static void on_ping(struct loop_timer *timer)
{
	struct ws *w = CONTAINER(timer, struct ws, ping);
	struct loop *loop = w->r->x->loop;

	if (loop_now(loop) - w->heard_ms > SILENCE_MS) {
		ws_leave(w, WEBSOCKET_AWAY, VIEW("no answer to pings"));
		return;
	}
	if (!w->full)
		put(w, WEBSOCKET_PING, VIEW_NONE);
	loop_timer_start(loop, timer, PING_MS, on_ping);
}

/* ---- the beginning ---- */

static const struct http_ops session_ops = { .on_body = on_body,
					     .on_abort = on_abort,
					     .on_writable = on_writable };

void *ws_own(struct request *r, size_t size, const struct ws_ops *ops, size_t input_high)
{
	struct ws *w = request_own(r, size);

	if (!w)
		return NULL;
	w->ops = ops;
	w->r = r;
	w->frame = BUF_INIT(FRAME_MAX);
	w->text = BUF_INIT(TEXT_MAX);
	w->pong = BUF_INIT(PONG_MAX);
	w->input = BUF_INIT(input_high + WS_MESSAGE);
	w->input_high = input_high;
	websocket_init(&w->ws, WEBSOCKET_SERVER, WS_MESSAGE);
	r->x->ops = &session_ops;
	return w;
}

int ws_check(struct ws *w, struct err *e)
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

void ws_open(struct ws *w)
{
	struct http_header headers[2] = { { VIEW("sec-websocket-accept"), view_of(w->accept) },
					  { VIEW("sec-websocket-protocol"), w->protocol } };

	/* Looked at before: this is HTTP/1.1. */
	w->open = http_upgrade(w->r->x, "websocket", headers, w->protocol.p ? 2 : 1);
	w->heard_ms = loop_now(w->r->x->loop);
	loop_timer_start(w->r->x->loop, &w->ping, PING_MS, on_ping);
}

void ws_drop_input(struct ws *w)
{
	ws_taken(w, buf_len(&w->input));
}
