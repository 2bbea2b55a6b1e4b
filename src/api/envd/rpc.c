/*
 * Calls over Connect: from a request to its method's message, and from messages
 * to the answer, in JSON or protobuf, whole or as a stream.
 */
#include <errno.h>

#include "envd_impl.h"
#include "num.h"
#include "pb_json.h"
#include "poison.h"

#define PING_MAX_S  3600
#define PING_MIN_S  1
#define ARENA_EXTRA (1024u * 1024)

static const struct rpc_method *const tables[] = { envd_process_methods, envd_fs_methods };

/* ---- answers ---- */

static int encode(const struct envd_call *c, const void *msg, struct buf *out)
{
	return c->type.codec == CONNECT_JSON ? pb_json_write(c->method->reply, msg, out)
					     : pb_encode(c->method->reply, msg, out);
}

static void put_message(struct envd_call *c, struct buf *out, const void *msg)
{
	struct buf one = BUF_INIT(ENVD_ANSWER_MAX);
	uint8_t head[CONNECT_HEAD];

	if (encode(c, msg, &one) < 0)
		out->bad = one.bad ? one.bad : -EINVAL;
	connect_head(head, 0, (uint32_t)buf_len(&one));
	buf_append(out, head, sizeof(head));
	buf_add(out, buf_view(&one));
	buf_done(&one);
}

static void fail_unary(struct envd_call *c, const struct err *e)
{
	struct buf b = BUF_INIT(4096);

	connect_put_error(&b, e);
	http_reply(c->x, connect_status(e->code), "application/json", buf_view(&b), envd_cors,
		   ELEMS(envd_cors));
	buf_done(&b);
	envd_done(c);
}

/* The status of a stream is always 200: what went wrong stands in its end. */
static void finish(struct envd_call *c, const struct err *e)
{
	struct buf b = BUF_INIT(16 * 1024);

	if (!c->begun)
		rpc_begin(c, NULL);
	connect_put_end(&b, e);
	http_write(c->x, buf_view(&b));
	buf_done(&b);
	http_end(c->x);
	envd_done(c);
}

void rpc_fail(struct envd_call *c, const struct err *said)
{
	struct err e;

	envd_translate(said, &e);
	if (c->type.stream)
		finish(c, &e);
	else
		fail_unary(c, &e);
}

static void fail_encoding(struct envd_call *c, int bad)
{
	struct err e = { 0 };
	err_sys(&e, bad == -ENOBUFS ? ERR_TOO_LARGE : ERR_INTERNAL, bad, "the answer cannot be written");
	rpc_fail(c, &e);
}

void rpc_reply(struct envd_call *c, const void *msg)
{
	struct buf b = BUF_INIT(ENVD_ANSWER_MAX);

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
	if (c->type.stream) {
		rpc_begin(c, NULL);
		http_write(c->x, buf_view(&b));
		buf_done(&b);
		finish(c, NULL);
		return;
	}
	http_reply(c->x, 200, connect_type_name(c->type), buf_view(&b), envd_cors, ELEMS(envd_cors));
	buf_done(&b);
	envd_done(c);
}

static void on_ping(struct loop_timer *t)
{
	struct envd_call *c = CONTAINER(t, struct envd_call, ping);

	loop_timer_start(c->x->loop, t, c->ping_ms, on_ping);
	if (!c->full)
		rpc_send(c, c->ping_msg);
}

void rpc_begin(struct envd_call *c, const void *ping_msg)
{
	c->begun = true;
	c->ping_msg = ping_msg;
	http_begin(c->x, 200, connect_type_name(c->type), -1, envd_cors, ELEMS(envd_cors));
	if (ping_msg && c->ping_ms)
		loop_timer_start(c->x->loop, &c->ping, c->ping_ms, on_ping);
}

void rpc_send(struct envd_call *c, const void *msg)
{
	struct buf b = BUF_INIT(ENVD_ANSWER_MAX);

	put_message(c, &b, msg);
	if (!b.bad && !http_write(c->x, buf_view(&b)))
		c->full = true;
	buf_done(&b);
}

void rpc_end(struct envd_call *c)
{
	finish(c, NULL);
}

void rpc_release(struct envd_call *c)
{
	loop_timer_stop(&c->deadline);
	loop_timer_stop(&c->ping);
	connect_reader_done(&c->reader);
}

void rpc_drain(struct envd_call *c)
{
	struct err e = { 0 };

	if (!c->begun)
		return;
	err_set(&e, ERR_UNAVAILABLE, "the daemon goes down");
	finish(c, &e);
}

static void on_deadline(struct loop_timer *t)
{
	struct envd_call *c = CONTAINER(t, struct envd_call, deadline);
	struct err e = { 0 };

	err_set(&e, ERR_TIMEOUT, "the deadline has passed");
	rpc_fail(c, &e);
}

/* ---- requests ---- */

/* What it borrows lives in the arena, as it does itself. */
static void *decode(struct envd_call *c, struct view bytes, struct err *e)
{
	const struct pb_msg *m = c->method->request;
	void *msg = arena_alloc(&c->arena, m->size);

	if (c->type.codec == CONNECT_JSON)
		/* No body at all is how some clients say {}. */
		return msg && pb_json_read(m, bytes.n ? bytes : VIEW("{}"), &c->arena, msg, e) >= 0 ? msg
												    : NULL;
	struct view copy = arena_view(&c->arena, bytes);
	int r = msg && copy.p ? pb_decode(m, copy, PB_SKIP_UNKNOWN, &c->arena, msg) : -ENOMEM;
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
static void *read_one(struct envd_call *c, struct err *e)
{
	struct view in = buf_view(&c->body), msg, more;
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
static void pump(struct envd_call *c)
{
	struct err e = { 0 };
	struct view msg = VIEW_NONE;

	while (!c->busy) {
		struct view in = buf_view(&c->body), rest = in;
		int r = connect_next(&c->reader, &rest, &msg);
		if (r < 0) {
			read_error(r, &e);
			rpc_fail(c, &e);
			return;
		}
		arena_reset(&c->arena);
		void *request = r > 0 ? decode(c, msg, &e) : NULL;
		buf_consume(&c->body, in.n - rest.n);
		if (r == 0)
			break;
		if (!request) {
			rpc_fail(c, &e);
			return;
		}
		c->busy = true;
		c->method->handle(c, request);
		return; /* it may be gone; rpc_go_on comes back */
	}
	if (c->busy)
		return;
	if (!c->last) {
		http_body_resume(c->x);
	} else if (connect_is_between(&c->reader)) {
		c->busy = true;
		c->method->end(c);
	} else {
		err_set(&e, ERR_INVALID, "the body ends within a message");
		rpc_fail(c, &e);
	}
}

void rpc_go_on(struct envd_call *c)
{
	c->busy = false;
	pump(c);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct envd_call *c = x->ctx;
	struct err e = { 0 };

	if (c->begun) /* of a stream whose request was complete */
		return;
	if (buf_add(&c->body, data) < 0) {
		err_set(&e, ERR_TOO_LARGE, "the message is too large");
		rpc_fail(c, &e);
		return;
	}
	c->last = last;
	if (c->method->kind == RPC_CLIENT) {
		http_body_pause(x);
		if (!c->busy)
			pump(c);
		return;
	}
	if (!last)
		return;
	void *request = read_one(c, &e);
	if (request)
		c->method->handle(c, request);
	else
		rpc_fail(c, &e);
}

static void on_abort(struct http_exchange *x)
{
	envd_done(x->ctx);
}

static void on_writable(struct http_exchange *x)
{
	struct envd_call *c = x->ctx;
	c->full = false;
	if (c->on_writable)
		c->on_writable(c);
}

static const struct http_ops ops = { .on_body = on_body, .on_abort = on_abort, .on_writable = on_writable };

/* ---- heads ---- */

static const struct rpc_method *find(struct view path)
{
	for (size_t i = 0; i < ELEMS(tables); i++)
		for (const struct rpc_method *m = tables[i]; m->path; m++)
			if (view_is(path, m->path))
				return m;
	return NULL;
}

static int read_head(struct envd_call *c, struct err *e)
{
	struct view timeout = http_get_header(c->x, "connect-timeout-ms"),
		    version = http_get_header(c->x, "connect-protocol-version"),
		    ping = http_get_header(c->x, "keepalive-ping-interval"),
		    coding = http_get_header(c->x, c->type.stream ? "connect-content-encoding"
								  : "content-encoding");
	uint32_t seconds;

	if (version.p && !view_is(version, "1"))
		return err_set(e, ERR_INVALID, "connect-protocol-version must be 1");
	if (timeout.p && connect_timeout(timeout, &c->timeout_ms) < 0)
		return err_set(e, ERR_INVALID, "connect-timeout-ms must be a number of at most ten digits");
	if (coding.n && !view_is(coding, "identity"))
		return err_set(e, ERR_UNSUPPORTED, "compressed messages are not taken");
	if (ping.p && num_u32(ping, &seconds) >= 0 && seconds >= PING_MIN_S && seconds <= PING_MAX_S)
		c->ping_ms = seconds * 1000ul;
	return 0;
}

static void refuse(struct envd_call *c, int status, const char *header, const char *value)
{
	struct http_header h[] = { envd_cors[0], { view_of(header), view_of(value) } };
	http_reply(c->x, status, NULL, VIEW_NONE, h, ELEMS(h));
	envd_done(c);
}

bool rpc_take(struct envd_call *c)
{
	uint64_t max = core_config(c->core)->max.body_bytes;
	struct err e = { 0 };

	c->method = find(c->x->path);
	if (!c->method)
		return false;
	c->type = connect_type(http_get_header(c->x, "content-type"));
	if (!view_is(c->x->method, "POST")) {
		refuse(c, 405, "allow", "POST");
		return true;
	}
	if (c->type.codec == CONNECT_NONE || c->type.stream != (c->method->kind != RPC_UNARY)) {
		refuse(c, 415, "accept-post",
		       c->method->kind == RPC_UNARY ? "application/json, application/proto"
						    : "application/connect+json, application/connect+proto");
		return true;
	}
	connect_reader_init(&c->reader, max);
	buf_init(&c->body, max + 64 * 1024 + CONNECT_HEAD);
	arena_init(&c->arena, 4 * max + ARENA_EXTRA);
	c->x->ctx = c;
	c->x->ops = &ops;
	c->x->patient = c->method->kind == RPC_CLIENT;
	c->x->eof_aborts = c->method->kind == RPC_SERVER;
	if (read_head(c, &e) < 0) {
		rpc_fail(c, &e);
		return true;
	}
	if (c->timeout_ms)
		loop_timer_start(c->x->loop, &c->deadline, c->timeout_ms, on_deadline);
	return true;
}
