/*
 * Calls over Connect, gRPC and gRPC-Web: from a request to its method's message, and
 * from messages to the answer, in JSON or protobuf, whole or as a stream.
 */
#include "rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "answer.h"
#include "num.h"
#include "pb_json.h"
#include "record.h"
#include "rpc_long.h"
#include "serve.h"
#include "poison.h"

#define PING_MAX_S  3600
#define PING_MIN_S  1
#define ARENA_EXTRA (1024u * 1024)
#define BODY_SMALL  (64u * 1024) /* is taken whatever others hold */

/* ---- answers ---- */

static int encode(const struct rpc *c, const void *msg, struct buf *out)
{
	return c->type.codec == CONNECT_JSON ? pb_json_write(c->method->reply, msg, out)
					     : pb_encode(c->method->reply, msg, out);
}

/* In its envelope, whose length is known behind it. */
static void put_message(struct rpc *c, struct buf *out, const void *msg)
{
	uint8_t head[CONNECT_HEAD] = { 0 };
	size_t at = buf_len(out);

	buf_append(out, head, sizeof(head));
	if (encode(c, msg, out) < 0)
		out->bad = out->bad ? out->bad : -EINVAL;
	if (out->bad)
		return;
	connect_head(head, 0, (uint32_t)(buf_len(out) - at - CONNECT_HEAD));
	memcpy(out->p + out->head + at, head, sizeof(head));
}

static const char *type_name(const struct rpc *c)
{
	return c->grpc.form ? grpc_type_name(c->grpc) : connect_type_name(c->type);
}

/* ---- the end ---- */

/* How a call of gRPC ended, as headers; `texts` is their room. */
struct ending {
	char status[4], message[GRPC_MESSAGE];
	struct http_header h[2];
	size_t n;
};

static void put_ending(struct ending *d, const struct err *e)
{
	snprintf(d->status, sizeof(d->status), "%d", e ? err_grpc(e->code) : 0);
	d->h[0] = (struct http_header){ VIEW("grpc-status"), view_of(d->status) };
	d->n = 1;
	if (!e)
		return;
	grpc_message(e->msg, d->message);
	d->h[d->n++] = (struct http_header){ VIEW("grpc-message"), view_of(d->message) };
}

static void fail_unary(struct rpc *c, const struct err *e)
{
	struct buf b = BUF_INIT(4096);

	connect_put_error(&b, e);
	http_reply(c->r.x, connect_status(e->code), "application/json", buf_view(&b), c->r.surface->headers,
		   c->r.surface->n_headers);
	buf_done(&b);
	request_done(&c->r);
}

/* The status of a stream is always 200: what went wrong stands in its end. */
static void finish(struct rpc *c, const struct err *e)
{
	struct buf b = BUF_INIT(16 * 1024);
	struct ending end;

	put_ending(&end, e);
	if (!c->begun && c->grpc.form == GRPC_PLAIN) {
		/* Trailers alone: the head is the end. */
		http_reply(c->r.x, 200, type_name(c), VIEW_NONE, end.h, end.n);
		request_done(&c->r);
		return;
	}
	if (!c->begun)
		rpc_begin(&c->r, NULL);
	if (c->grpc.form == GRPC_PLAIN)
		http_trailers(c->r.x, end.h, end.n);
	else if (c->grpc.form == GRPC_WEB)
		grpc_put_end(&b, e);
	else
		connect_put_end(&b, e);
	if (buf_len(&b))
		http_write(c->r.x, buf_view(&b));
	buf_done(&b);
	http_end(c->r.x);
	request_done(&c->r);
}

bool rpc_fail_head(struct request *r, const struct err *e)
{
	struct view type = http_get_header(r->x, "content-type");
	struct grpc_type grpc = grpc_type(type);
	struct buf b = BUF_INIT(4096);
	struct ending end;

	if (grpc.form) {
		put_ending(&end, e);
		http_reply(r->x, 200, grpc_type_name(grpc), VIEW_NONE, end.h, end.n);
		return true;
	}
	if (connect_type(type).codec == CONNECT_NONE)
		return false;
	connect_put_error(&b, e);
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), r->surface->headers,
		   r->surface->n_headers);
	buf_done(&b);
	return true;
}

/* Who is not admitted has no stream yet. */
static void refuse(struct rpc *c, const struct err *e)
{
	if (!rpc_fail_head(&c->r, e))
		c->r.surface->fail(&c->r, e, NULL, 0);
	request_done(&c->r);
}

/* r->fail: by answer_fail, which has translated it. */
static void fail(struct request *r, const struct err *e)
{
	struct rpc *c = rpc_of(r);

	if (!r->admitted)
		refuse(c, e);
	else if (c->type.stream)
		finish(c, e);
	else
		fail_unary(c, e);
}

static void fail_encoding(struct rpc *c, int bad)
{
	struct err e = { 0 };
	err_sys(&e, bad == -ENOBUFS ? ERR_TOO_LARGE : ERR_INTERNAL, bad, "the answer cannot be written");
	answer_fail(&c->r, &e);
}

static void send_held(struct request *r)
{
	struct rpc *c = rpc_of(r);

	if (c->type.stream) {
		rpc_begin(r, NULL);
		http_write(r->x, buf_view(&c->held));
		finish(c, NULL);
		return;
	}
	http_reply(r->x, 200, type_name(c), buf_view(&c->held), r->surface->headers, r->surface->n_headers);
	request_done(r);
}

static void end_long(struct request *r)
{
	struct rpc *c = rpc_of(r);

	if (c->type.stream) {
		finish(c, NULL);
		return;
	}
	http_end(r->x);
	request_done(r);
}

/* Behind its beginning nothing else may be said: no deadline is told, and no end of the daemon. */
static void send_long(struct request *r)
{
	rpc_begin(r, NULL);
	answer_long_send(r, end_long);
}

static void reply_long(struct rpc *c, const void *msg, const struct rpc_content *content)
{
	struct request *r = &c->r;
	void (*release)(struct request * r) = r->release;

	r->out = BUF_INIT(RPC_ANSWER_MAX);
	int bad = rpc_long_encode(r, c->method->reply, msg, content, c->type.codec == CONNECT_JSON,
				  c->type.stream);
	if (bad < 0) {
		fail_encoding(c, bad);
		return;
	}
	loop_timer_stop(&c->deadline);
	r->release = NULL; /* not before it is sent: what stands in its holes is the request's */
	bool held = record_close(r, NULL, send_long);
	r->release = release;
	if (!held)
		send_long(r);
}

void rpc_reply_from(struct request *r, const void *msg, const struct rpc_content *c)
{
	reply_long(rpc_of(r), msg, c);
}

void rpc_reply(struct request *r, const void *msg)
{
	struct rpc *c = rpc_of(r);
	struct buf b = BUF_INIT(RPC_ANSWER_MAX);

	if (rpc_long_is(c->method->reply, msg)) {
		reply_long(c, msg, NULL);
		return;
	}
	if (c->type.stream)
		put_message(c, &b, msg);
	else if (encode(c, msg, &b) < 0)
		b.bad = b.bad ? b.bad : -EINVAL;
	if (b.bad) {
		int bad = b.bad;
		buf_done(&b);
		fail_encoding(c, bad);
		return;
	}
	loop_timer_stop(&c->deadline);
	c->held = b;
	if (!record_close(r, NULL, send_held))
		send_held(r);
}

static void on_ping(struct loop_timer *t)
{
	struct rpc *c = CONTAINER(t, struct rpc, ping);

	loop_timer_start(c->r.x->loop, t, c->ping_ms, on_ping);
	if (!c->full)
		rpc_send(&c->r, c->ping_msg);
}

void rpc_begin(struct request *r, const void *ping_msg)
{
	struct rpc *c = rpc_of(r);

	c->begun = true;
	c->ping_msg = ping_msg;
	http_begin(c->r.x, 200, type_name(c), -1, c->r.surface->headers, c->r.surface->n_headers);
	if (ping_msg && c->ping_ms)
		loop_timer_start(c->r.x->loop, &c->ping, c->ping_ms, on_ping);
}

void rpc_send(struct request *r, const void *msg)
{
	struct rpc *c = rpc_of(r);
	struct buf b = BUF_INIT(RPC_ANSWER_MAX);

	put_message(c, &b, msg);
	if (!b.bad && !http_write(c->r.x, buf_view(&b)))
		c->full = true;
	buf_done(&b);
}

void rpc_end(struct request *r)
{
	finish(rpc_of(r), NULL);
}

void rpc_release(struct request *r)
{
	struct rpc *c = rpc_of(r);

	loop_timer_stop(&c->deadline);
	loop_timer_stop(&c->ping);
	connect_reader_done(&c->reader);
	buf_done(&c->held);
}

/* The daemon goes down: a stream ends itself. */
static void drain(struct request *r)
{
	struct rpc *c = rpc_of(r);
	struct err e = { 0 };

	if (!c->begun)
		return;
	err_set(&e, ERR_UNAVAILABLE, "the daemon goes down");
	finish(c, &e);
}

static void on_deadline(struct loop_timer *t)
{
	struct rpc *c = CONTAINER(t, struct rpc, deadline);
	struct err e = { 0 };

	err_set(&e, ERR_TIMEOUT, "the deadline has passed");
	answer_fail(&c->r, &e);
}

/* ---- requests ---- */

/* What it borrows lives in the arena, as it does itself. */
static void *decode(struct rpc *c, struct view bytes, struct err *e)
{
	const struct pb_msg *m = c->method->request;
	void *msg = arena_alloc(&c->r.arena, m->size);

	if (c->type.codec == CONNECT_JSON)
		/* No body at all is how some clients say {}. */
		return msg && pb_json_read(m, bytes.n ? bytes : VIEW("{}"), &c->r.arena, msg, e) >= 0 ? msg
												      : NULL;
	struct view copy = arena_view(&c->r.arena, bytes);
	int r = msg && copy.p ? pb_decode(m, copy, PB_SKIP_UNKNOWN, &c->r.arena, msg) : -ENOMEM;
	if (r >= 0)
		return msg;
	if (r == -ENOMEM)
		err_set(e, ERR_TOO_LARGE, "the message is too large");
	else
		err_set(e, ERR_INVALID, "the message cannot be decoded");
	return NULL;
}

static int read_error(int r, struct err *e)
{
	if (r == -EOPNOTSUPP)
		return err_set(e, ERR_UNSUPPORTED, "compressed messages are not taken");
	if (r == -EMSGSIZE || r == -ENOMEM)
		return err_set(e, ERR_TOO_LARGE, "the message is too large");
	return err_set(e, ERR_INVALID, "the body is not a stream of messages");
}

/* A server stream's request is exactly one message. */
static void *read_one(struct rpc *c, struct err *e)
{
	struct view in = buf_view(&c->r.body), msg, more;
	int r;

	if (!c->type.stream)
		return decode(c, in, e);
	r = connect_next(&c->reader, &in, &msg);
	if (r > 0) {
		void *request = decode(c, msg, e);
		if (!request)
			return NULL;
		r = connect_next(&c->reader, &in, &more);
		if (r == 0 && connect_is_between(&c->reader))
			return request;
		r = r < 0 ? r : -EBADMSG;
	}
	read_error(r, e);
	return NULL;
}

/* Message by message; a method that is not done with one stops it, and the body. */
static void pump(struct rpc *c)
{
	struct err e = { 0 };
	struct view msg = VIEW_NONE;

	while (!c->busy) {
		struct view in = buf_view(&c->r.body), rest = in;
		int r = connect_next(&c->reader, &rest, &msg);
		if (r < 0) {
			read_error(r, &e);
			answer_fail(&c->r, &e);
			return;
		}
		arena_reset(&c->r.arena);
		void *request = r > 0 ? decode(c, msg, &e) : NULL;
		buf_consume(&c->r.body, in.n - rest.n);
		if (r == 0)
			break;
		if (!request) {
			answer_fail(&c->r, &e);
			return;
		}
		c->busy = true;
		c->method->handle(&c->r, request);
		return; /* it may be gone; rpc_go_on comes back */
	}
	if (c->busy)
		return;
	if (!c->last) {
		http_body_resume(c->r.x);
	} else if (connect_is_between(&c->reader)) {
		c->busy = true;
		c->method->end(&c->r);
	} else {
		err_set(&e, ERR_INVALID, "the body ends within a message");
		answer_fail(&c->r, &e);
	}
}

void rpc_go_on(struct request *r)
{
	struct rpc *c = rpc_of(r);

	c->busy = false;
	pump(c);
}

/* Whether messages come one after the other. */
static bool is_fed(const struct rpc *c)
{
	return c->method->kind == RPC_CLIENT || c->method->kind == RPC_BIDI;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct rpc *c = rpc_of(x->ctx);
	struct err e = { 0 };

	if (c->begun && c->method->kind != RPC_BIDI) /* its request was complete */
		return;
	http_hold(x, c->r.body.cap + c->r.arena.used + data.n);
	if (buf_add(&c->r.body, data) < 0)
		err_set(&e, ERR_TOO_LARGE, "the message is too large");
	else if (buf_len(&c->r.body) > BODY_SMALL)
		(void)!request_may_hold(&c->r, &e);
	if (e.code) {
		answer_fail(&c->r, &e);
		return;
	}
	c->last = last;
	if (is_fed(c)) {
		http_body_pause(x);
		if (!c->busy)
			pump(c);
		return;
	}
	if (!last)
		return;
	void *request = read_one(c, &e);
	if (request)
		c->method->handle(&c->r, request);
	else
		answer_fail(&c->r, &e);
}

static void on_writable(struct http_exchange *x)
{
	struct rpc *c = rpc_of(x->ctx);

	c->full = false;
	if (c->on_writable)
		c->on_writable(&c->r);
}

static const struct http_ops ops = { .on_body = on_body,
				     .on_abort = request_abort,
				     .on_writable = on_writable };

/* ---- heads ---- */

const struct rpc_method *rpc_find(const struct rpc_method *const *tables, struct view path)
{
	for (; *tables; tables++)
		for (const struct rpc_method *m = *tables; m->path; m++)
			if (view_is(path, m->path))
				return m;
	return NULL;
}

static int read_coding(struct view coding, struct err *e)
{
	if (coding.n && !view_is(coding, "identity"))
		return err_set(e, ERR_UNSUPPORTED, "compressed messages are not taken");
	return 0;
}

static int read_grpc(struct rpc *c, struct err *e)
{
	struct view timeout = http_get_header(c->r.x, "grpc-timeout");

	if (timeout.p && grpc_timeout(timeout, &c->timeout_ms) < 0)
		return err_set(e, ERR_INVALID, "grpc-timeout must be at most eight digits and a unit");
	return read_coding(http_get_header(c->r.x, "grpc-encoding"), e);
}

static int read_connect(struct rpc *c, struct err *e)
{
	struct view timeout = http_get_header(c->r.x, "connect-timeout-ms"),
		    version = http_get_header(c->r.x, "connect-protocol-version"),
		    ping = http_get_header(c->r.x, "keepalive-ping-interval");
	uint32_t seconds;

	if (version.p && !view_is(version, "1"))
		return err_set(e, ERR_INVALID, "connect-protocol-version must be 1");
	if (timeout.p && connect_timeout(timeout, &c->timeout_ms) < 0)
		return err_set(e, ERR_INVALID, "connect-timeout-ms must be a number of at most ten digits");
	if (ping.p && num_u32(ping, &seconds) >= 0 && seconds >= PING_MIN_S && seconds <= PING_MAX_S)
		c->ping_ms = seconds * 1000ul;
	return read_coding(
		http_get_header(c->r.x, c->type.stream ? "connect-content-encoding" : "content-encoding"), e);
}

/* What is no call at all: by its status alone. */
static void refuse_head(struct rpc *c, int status, const char *header, const char *value)
{
	struct http_header h = { view_of(header), view_of(value) };

	answer_empty(&c->r, status, &h, 1);
}

struct request *rpc_new(const struct rpc_method *m, const struct http_exchange *x)
{
	struct rpc *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->method = m;
	c->type = connect_type(http_get_header(x, "content-type"));
	c->grpc = grpc_type(http_get_header(x, "content-type"));
	if (c->grpc.form)
		c->type = (struct connect_type){ c->grpc.codec, true };
	c->r.fail = fail;
	c->r.on_drain = drain;
	return &c->r;
}

void rpc_take(struct request *r)
{
	struct rpc *c = rpc_of(r);
	uint64_t max = core_config(r->core)->max.body_bytes;
	struct err e = { 0 };

	if (!view_is(r->x->method, "POST")) {
		refuse_head(c, 405, "allow", "POST");
		return;
	}
	if (c->grpc.form == GRPC_PLAIN && r->x->version != 20) { /* it has no trailers to end with */
		refuse_head(c, 505, "upgrade", "h2c");
		return;
	}
	if (c->type.codec == CONNECT_NONE ||
	    (!c->grpc.form && c->type.stream != (c->method->kind != RPC_UNARY))) {
		refuse_head(c, 415, "accept-post",
			    c->method->kind == RPC_UNARY
				    ? "application/json, application/proto"
				    : "application/connect+json, application/connect+proto");
		return;
	}
	connect_reader_init(&c->reader, max);
	buf_init(&r->body, max + 64 * 1024 + CONNECT_HEAD);
	arena_init(&r->arena, 4 * max + ARENA_EXTRA);
	r->x->ctx = r;
	r->x->ops = &ops;
	r->x->patient = is_fed(c);
	r->x->eof_aborts = c->method->kind == RPC_SERVER;
	if ((c->grpc.form ? read_grpc(c, &e) : read_connect(c, &e)) < 0) {
		answer_fail(r, &e);
		return;
	}
	record_begin(r, c->method->audit);
	if (c->timeout_ms)
		loop_timer_start(r->x->loop, &c->deadline, c->timeout_ms, on_deadline);
}
