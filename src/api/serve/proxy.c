/*
 * The reverse proxy: see proxy.h.
 *
 * The box's bytes are hostile: its head is parsed by http1_response.c, its body is
 * unpacked and packed anew, and an answer that does not end as it promised is cut
 * off, so that the client sees a broken answer and not a short one.
 */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>

#include "core.h"
#include "http1.h"
#include "json.h"
#include "port.h"
#include "proxy_head.h"
#include "serve.h"
#include "text.h"
#include "poison.h"

#define HEAD_MAX    (64u * 1024)
#define HEADERS_MAX 128
#define INTERIM_MAX 16            /* answers 1xx before the real one */
#define OUT_HIGH    (256u * 1024) /* of the client's body that waits for the box */
#define OUT_MAX     (OUT_HIGH + 1024u * 1024)

enum proxy_state { PROXY_HEAD, PROXY_BODY, PROXY_RAW };

struct proxy {
	struct http_exchange *x;
	struct port_stream stream;
	struct proxy_wish wish;
	char box[32];
	struct list link;
	enum proxy_state state;
	enum http1_framing framing;
	struct http1_response head;
	struct http_header headers[HEADERS_MAX];
	struct http1_body body;
	char *in; /* the head as it comes */
	size_t n_in;
	struct buf out; /* the request, not yet taken by the stream */
	struct loop_timer timer;
	unsigned interim;
	size_t held; /* bytes that the client has not taken, and the box has no credit for */
	bool is_head, chunked, websocket, sent, full;
};

/* ---- the end ---- */

static void release(struct proxy *p)
{
	struct proxy_wish w = p->wish;

	ports_close(&p->stream);
	loop_timer_stop(&p->timer);
	free(p->in);
	buf_done(&p->out);
	list_del(&p->link);
	free(p);
	serve_let_go(w.serve);
}

static void put_html(struct buf *b, int status, const char *message)
{
	buf_printf(b,
		   "<!doctype html><meta charset=utf-8><title>%d</title>"
		   "<body style=\"font-family:sans-serif;margin:3em\"><h1>%d</h1><p>%s</p>\n",
		   status, status, message);
}

void proxy_words_e2b(struct json_out *o, const struct proxy_refusal *why)
{
	json_out_object(o);
	json_out_kstr(o, "sandboxId", view_head(why->box, 64));
	json_out_kz(o, "message", why->message);
	if (why->port)
		json_out_ku64(o, "port", why->port);
	json_out_ku64(o, "code", (uint64_t)why->status);
	json_out_end(o, '}');
}

void proxy_words_rest(struct json_out *o, const struct proxy_refusal *why)
{
	json_out_object(o);
	json_out_key(o, "error");
	json_out_object(o);
	json_out_kz(o, "code",
		    err_name(why->status == 504   ? ERR_TIMEOUT
			     : why->status == 401 ? ERR_UNAUTHORIZED
			     : why->status == 403 ? ERR_FORBIDDEN
			     : why->status == 404 ? ERR_NOT_FOUND
						  : ERR_UNAVAILABLE));
	json_out_kz(o, "message", why->message);
	json_out_kz(o, "request_id", why->request_id);
	json_out_end(o, '}');
	json_out_end(o, '}');
}

void proxy_refuse(struct http_exchange *x, proxy_words *words, int status, struct view box, unsigned port,
		  const char *message)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;
	struct view accept = http_get_header(x, "accept");
	bool html = accept.n && memmem(accept.p, accept.n, "text/html", 9);

	if (html) {
		put_html(&b, status, message);
	} else {
		json_out_init(&o, &b);
		words(&o, &(struct proxy_refusal){ status, box, port, message, x->request_id });
		buf_putc(&b, '\n');
	}
	http_reply(x, status, html ? "text/html; charset=utf-8" : "application/json", buf_view(&b), NULL, 0);
	buf_done(&b);
}

void proxy_unknown_box(struct http_exchange *x, struct view id)
{
	proxy_refuse(x, proxy_words_e2b, 502, view_head(id, BOX_ID), 0, "The sandbox was not found");
}

static void refuse(struct proxy *p, int status, const char *message)
{
	struct http_exchange *x = p->x;

	proxy_refuse(x, p->wish.words, status, view_of(p->box), p->wish.port, message);
	release(p);
}

/* What the box sent cannot be made into an answer. */
static void fail(struct proxy *p, int status, const char *message)
{
	struct http_exchange *x = p->x;

	if (p->state == PROXY_HEAD) {
		refuse(p, status, message);
		return;
	}
	release(p);
	http_break(x);
}

static void finish(struct proxy *p)
{
	struct http_exchange *x = p->x;

	release(p);
	http_end(x);
}

static void on_time(struct loop_timer *t)
{
	struct proxy *p = CONTAINER(t, struct proxy, timer);
	refuse(p, 504, "The server in the sandbox has not answered in time");
}

/* Its answer is waited for from the last byte that it took. */
static void wait_for_answer(struct proxy *p)
{
	uint64_t ms = core_config(p->wish.serve->core)->ports.answer_seconds * 1000;

	if (p->state == PROXY_HEAD)
		loop_timer_start(p->x->loop, &p->timer, ms, on_time);
}

/* ---- to the box ---- */

static void flush(struct proxy *p)
{
	size_t n = ports_send(&p->stream, buf_view(&p->out));

	if (n == 0)
		return;
	buf_consume(&p->out, n);
	buf_shrink(&p->out);
	wait_for_answer(p);
	if (buf_len(&p->out) < OUT_HIGH / 2)
		http_body_resume(p->x);
}

static void on_room(struct port_stream *s)
{
	flush(CONTAINER(s, struct proxy, stream));
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct proxy *p = x->ctx;

	if (p->chunked)
		http1_write_chunk(&p->out, data);
	else
		buf_add(&p->out, data);
	if (last && p->chunked)
		http1_write_last_chunk(&p->out, VIEW_NONE);
	p->sent |= last;
	if (p->out.bad) {
		fail(p, 502, "The request is too large to be passed on");
		return;
	}
	if (buf_len(&p->out) >= OUT_HIGH)
		http_body_pause(x);
	flush(p);
}

static void on_abort(struct http_exchange *x)
{
	release(x->ctx);
}

static void on_writable(struct http_exchange *x)
{
	struct proxy *p = x->ctx;
	size_t n = p->held;

	p->full = false;
	p->held = 0;
	ports_consumed(&p->stream, n);
}

static const struct http_ops exchange_ops = { .on_body = on_body,
					      .on_abort = on_abort,
					      .on_writable = on_writable };

/* ---- to the client ---- */

static void write_client(struct proxy *p, struct view data)
{
	if (data.n && !http_write(p->x, data))
		p->full = true;
}

/* False: the proxy is gone. */
static bool take_body(struct proxy *p, struct view data)
{
	struct view piece;
	int r;

	if (p->state == PROXY_RAW || p->framing == HTTP1_TO_END) {
		write_client(p, data);
		return true;
	}
	while ((r = http1_body_next(&p->body, &data, &piece)) == HTTP1_DATA)
		write_client(p, piece);
	if (r == HTTP1_MORE)
		return true;
	if (r == HTTP1_END)
		finish(p); /* what may follow has nobody to go to */
	else
		fail(p, 502, "");
	return false;
}

static bool begin_websocket(struct proxy *p, const struct http_header *headers, size_t n)
{
	if (!p->websocket || !proxy_head_is_websocket(p->head.headers, p->head.n_headers) ||
	    !http_upgrade(p->x, "websocket", headers, n)) {
		refuse(p, 502, "The server in the sandbox switched to a protocol that nobody asked for");
		return false;
	}
	p->state = PROXY_RAW;
	p->chunked = false;
	return true;
}

static bool begin_answer(struct proxy *p)
{
	struct http_header headers[HEADERS_MAX + PROXY_HEAD_MORE];
	struct buf room = BUF_INIT(2 * HEAD_MAX);
	size_t n = proxy_head_response(&p->head, p->wish.prefix, &room, headers);
	bool ok = true;

	loop_timer_stop(&p->timer);
	p->framing = http1_response_framing(&p->head, p->is_head);
	if (p->head.status == 101) {
		ok = begin_websocket(p, headers, n);
	} else {
		p->state = PROXY_BODY;
		http_begin(p->x, p->head.status, NULL, p->head.chunked ? -1 : p->head.content_length, headers,
			   n);
		http1_body_init(&p->body, p->framing == HTTP1_CHUNKED  ? -1
					  : p->framing == HTTP1_LENGTH ? p->head.content_length
								       : 0);
	}
	buf_done(&room);
	return ok;
}

/* An answer that is not the last one is not passed on. */
static bool skip_interim(struct proxy *p, size_t n)
{
	if (++p->interim > INTERIM_MAX) {
		fail(p, 502, "The server in the sandbox does not come to its answer");
		return false;
	}
	p->n_in -= n;
	memmove(p->in, p->in + n, p->n_in);
	http1_response_init(&p->head, p->headers, HEADERS_MAX, HEAD_MAX);
	return true;
}

/* The head is complete, of n bytes; then as much of the body as came with it. */
static bool take_answer(struct proxy *p, size_t n, struct view more)
{
	if (!begin_answer(p))
		return false;
	if (p->state == PROXY_BODY && p->framing == HTTP1_EMPTY) {
		finish(p);
		return false;
	}
	/* Also without a byte: a length of 0 ends here. */
	if (!take_body(p, (struct view){ p->in + n, p->n_in - n }) || (more.n && !take_body(p, more)))
		return false;
	free(TAKE_PTR(p->in));
	return true;
}

/* False: the proxy is gone. The head's bytes stay where they are, as the parser's views point there. */
static bool take_head(struct proxy *p, struct view data)
{
	while (p->n_in || data.n) {
		size_t k = MIN(HEAD_MAX - p->n_in, data.n);
		memcpy(p->in + p->n_in, data.p, k);
		p->n_in += k;
		data = view_skip(data, k);
		int n = http1_response_parse(&p->head, p->in, p->n_in);
		if (n < 0) {
			fail(p, 502, "The answer of the server in the sandbox is not proper HTTP");
			return false;
		}
		if (n == 0)
			return true; /* and data is empty: a full room is an error of the parser's */
		if (p->head.status >= 200 || p->head.status == 101)
			return take_answer(p, (size_t)n, data);
		if (!skip_interim(p, (size_t)n))
			return false;
	}
	return true;
}

static void on_data(struct port_stream *s, struct view data)
{
	struct proxy *p = CONTAINER(s, struct proxy, stream);
	size_t n = data.n;

	if (!(p->state == PROXY_HEAD ? take_head(p, data) : take_body(p, data)))
		return;
	if (p->full)
		p->held += n;
	else
		ports_consumed(s, n);
}

static void on_eof(struct port_stream *s)
{
	struct proxy *p = CONTAINER(s, struct proxy, stream);

	if (p->state == PROXY_RAW || (p->state == PROXY_BODY && p->framing == HTTP1_TO_END))
		finish(p);
	else
		fail(p, 502,
		     "The server in the sandbox closed the connection before its answer was complete");
}

static void on_open(struct port_stream *s)
{
}

static void on_done(struct port_stream *s, const struct err *e)
{
	struct proxy *p = CONTAINER(s, struct proxy, stream);

	if (!e)
		on_eof(s);
	else if (!s->open && e->code == ERR_NOT_FOUND)
		fail(p, 502, "The sandbox is running but port is not open");
	else
		fail(p, e->code == ERR_TIMEOUT ? 504 : 502,
		     s->open ? "The connection to the server in the sandbox broke"
			     : "The sandbox cannot be reached");
}

static const struct port_ops stream_ops = {
	.on_open = on_open, .on_data = on_data, .on_eof = on_eof, .on_room = on_room, .done = on_done
};

/* ---- the beginning ---- */

static int write_request(struct proxy *p)
{
	struct http_exchange *x = p->x;
	struct proxy_head h = { .method = x->method,
				.path = p->wish.path,
				.query = x->query,
				.host = p->wish.host,
				.client_host = x->host,
				.peer = x->peer,
				.prefix = p->wish.prefix,
				.credentials = p->wish.credentials,
				.headers = x->headers,
				.n_headers = x->n_headers,
				.content_length = x->content_length,
				.tls = x->tls,
				.websocket = p->websocket };

	return proxy_head_request(&p->out, &h);
}

void proxy_start(struct http_exchange *x, const struct proxy_wish *w)
{
	struct proxy *p = calloc(1, sizeof(*p));
	struct err e = { 0 };

	if (p)
		p->in = malloc(HEAD_MAX);
	if (!p || !p->in || view_to_str(w->box, p->box, sizeof(p->box)) < 0) {
		if (p)
			free(p->in);
		free(p);
		proxy_refuse(x, w->words, 502, w->box, w->port, "The sandbox cannot be reached");
		return;
	}
	p->x = x;
	p->wish = *w;
	p->out = BUF_INIT(OUT_MAX);
	p->is_head = view_is(x->method, "HEAD");
	p->websocket = x->version == 11 && proxy_head_is_websocket(x->headers, x->n_headers);
	p->chunked = x->content_length < 0;
	p->stream.ops = &stream_ops;
	http1_response_init(&p->head, p->headers, HEADERS_MAX, HEAD_MAX);
	list_append(&w->serve->proxies, &p->link);
	x->ops = &exchange_ops;
	x->ctx = p;
	if (write_request(p) < 0)
		refuse(p, 502, "The request is too large to be passed on");
	else if (ports_open(w->serve->core, &w->actor, view_of(p->box), w->port, &p->stream, &e) < 0)
		refuse(p, e.code == ERR_STATE ? 502 : err_http(e.code),
		       e.code == ERR_STATE ? "The sandbox is not running" : "The sandbox cannot be reached");
	else
		wait_for_answer(p);
}

void proxy_take(struct request *r, const struct proxy_wish *w)
{
	proxy_start(r->x, w);
	request_done(r);
}

bool proxy_end_revoked(struct serve *s)
{
	LIST_EACH (it, &s->proxies) {
		struct proxy *p = CONTAINER(it, struct proxy, link);
		if (!auth_stands(s->core, p->wish.actor.key) && http_cut(p->x))
			return true;
	}
	return false;
}
