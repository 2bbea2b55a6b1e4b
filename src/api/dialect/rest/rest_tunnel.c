/*
 * GET /v1/sandboxes/{id}/tunnel/{port}: a TCP connection to a port of a box, over a
 * WebSocket. Binary messages are bytes both ways; the text message "end" says that
 * this side sends no more. The WebSocket is closed when both have said so, or when
 * the connection breaks.
 */
#include <errno.h>

#include "num.h"
#include "port.h"
#include "rest_impl.h"
#include "ws.h"
#include "poison.h"

#define INPUT_HIGH (256u * 1024) /* bytes that wait for the box before we stop reading */

struct tunnel {
	struct ws w;
	struct port_stream stream;
};

static struct tunnel *of(struct ws *w)
{
	return CONTAINER(w, struct tunnel, w);
}

static struct ws *session(struct port_stream *s)
{
	return &CONTAINER(s, struct tunnel, stream)->w;
}

/* ---- from the box ---- */

static void on_open(struct port_stream *s)
{
	ws_open(session(s));
}

static void on_data(struct port_stream *s, struct view data)
{
	ports_consumed(s, ws_send(session(s), data));
}

static void on_sent(struct ws *w, size_t n)
{
	ports_consumed(&of(w)->stream, n);
}

static void on_eof(struct port_stream *s)
{
	ws_text(session(s), VIEW("end"));
}

static void on_done(struct port_stream *s, const struct err *e)
{
	struct ws *w = session(s);
	struct err early = { 0 };

	err_set(&early, ERR_UNAVAILABLE, "the connection ended before it began");
	if (!w->open)
		ws_fail(w, e ? e : &early);
	else if (e)
		ws_leave(w, WEBSOCKET_INTERNAL, view_of(e->msg));
	else
		ws_leave(w, WEBSOCKET_NORMAL, VIEW_NONE);
}

/* ---- from the client ---- */

static void on_input(struct ws *w)
{
	struct tunnel *t = of(w);

	ws_taken(w, ports_send(&t->stream, buf_view(&w->input)));
	if (w->input_ended && buf_len(&w->input) == 0)
		ports_end(&t->stream);
}

static void on_room(struct port_stream *s)
{
	on_input(session(s));
}

static bool on_text(struct ws *w, struct view text, struct err *e)
{
	w->input_ended = view_is(text, "end");
	if (!w->input_ended)
		err_set(e, ERR_INVALID, "the only text message is \"end\"");
	return w->input_ended;
}

static void on_gone(struct ws *w)
{
	ports_close(&of(w)->stream);
}

static const struct port_ops stream_ops = {
	.on_open = on_open, .on_data = on_data, .on_eof = on_eof, .on_room = on_room, .done = on_done
};

static const struct ws_ops tunnel_ops = {
	.on_input = on_input, .on_text = on_text, .on_sent = on_sent, .on_gone = on_gone
};

static void tunnel(struct request *r)
{
	struct tunnel *t = ws_own(r, sizeof(*t), &tunnel_ops, INPUT_HIGH);
	struct err e = { 0 };
	uint32_t port = 0;

	if (!t)
		return;
	t->stream.ops = &stream_ops;
	if (num_u32(r->params[1], &port) < 0 || port < 1 || port > UINT16_MAX)
		err_set(&e, ERR_INVALID, "port must be a number from 1 to 65535");
	else if (ws_check(&t->w, &e) >= 0 &&
		 ports_open(r->core, &r->actor, r->params[0], (uint16_t)port, &t->stream, &e) >= 0)
		return;
	ws_fail(&t->w, &e);
}

const struct route rest_tunnel_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/tunnel/{port}", tunnel },
	{ 0 },
};
