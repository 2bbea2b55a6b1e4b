/*
 * GET /v1/sandboxes/{id}/terminal: a terminal over a WebSocket. Binary messages
 * are bytes both ways; text messages are JSON and concern the terminal:
 *
 *   from us    {"type":"attached","pid":N,"offset":N}   first; offset is that of the next byte
 *              {"type":"exit","exit_code":N,…}          last
 *              {"type":"error","code":…,"message":…}
 *   to us      {"type":"resize","cols":N,"rows":N}
 *
 * The process outlives the connection: with ?process=PID&offset=N the client goes
 * on where it was cut off.
 *
 * A browser cannot set headers: it may give its key as the subprotocol
 * "paddock.bearer.KEY". Since browsers connect for any page that asks them to, the
 * page must then come from this server (Origin is Host).
 */
#include <errno.h>
#include <stdio.h>

#include "num.h"
#include "procs.h"
#include "rest_stream.h"
#include "rest_websocket.h"
#include "websocket.h"
#include "poison.h"

#define PROTOCOL    "paddock"
#define BEARER      "paddock.bearer."
#define COLS        80
#define ROWS        24
#define MESSAGE_MAX (1024u * 1024)
#define TEXT_MAX    4096u
#define INPUT_HIGH  (64u * 1024) /* bytes that wait for the process before we stop reading */
#define INPUT_MAX   (4u * 1024 * 1024)
#define PING_MS     30000
#define SILENCE_MS  (3 * PING_MS)

struct terminal {
	struct exec exec;
	struct req *r;
	struct websocket ws;
	char accept[WEBSOCKET_ACCEPT];
	struct view protocol; /* that was chosen; p == NULL: none was offered */
	bool upgraded;
	char process[16]; /* its pid */

	struct buf frame;
	bool full;
	size_t held; /* output that the client has not taken */

	struct buf text; /* a message that is not complete */
	struct buf input;
	struct proc_op feeding, resizing;
	bool feed_busy, resize_busy, resize_again;
	size_t feed_size;
	uint64_t cols, rows;

	struct loop_timer ping;
	uint64_t heard_ms;
};

/* ---- sending ---- */

static void flush(struct terminal *t)
{
	if (!http_write(t->r->x, buf_view(&t->frame)))
		t->full = true;
	buf_clear(&t->frame);
}

static void send_json(struct terminal *t, struct buf *json)
{
	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_TEXT, buf_view(json));
	flush(t);
	buf_done(json);
}

static void release(struct terminal *t)
{
	loop_timer_stop(&t->ping);
	procs_cancel(&t->feeding);
	procs_cancel(&t->resizing);
	buf_done(&t->frame);
	buf_done(&t->text);
	buf_done(&t->input);
}

/* Says good-bye; what runs goes on, unless it was wished otherwise. */
static void leave(struct terminal *t, uint16_t code, struct view reason)
{
	struct req *r = t->r;

	websocket_put_close(&t->frame, WEBSOCKET_SERVER, code, reason);
	flush(t);
	exec_cancel(&t->exec);
	release(t);
	http_end(r->x);
	rest_done(r);
}

static void on_ping(struct loop_timer *timer)
{
	struct terminal *t = CONTAINER(timer, struct terminal, ping);
	struct loop *loop = t->r->x->loop;

	if (loop_now(loop) - t->heard_ms > SILENCE_MS) {
		leave(t, WEBSOCKET_AWAY, VIEW("no answer to pings"));
		return;
	}
	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_PING, VIEW_NONE);
	flush(t);
	loop_timer_start(loop, timer, PING_MS, on_ping);
}

/* ---- what the process does ---- */

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct http_header headers[2] = { { VIEW("sec-websocket-accept"), view_of(t->accept) },
					  { VIEW("sec-websocket-protocol"), t->protocol } };
	struct buf json = BUF_INIT(1024);
	struct json_out o;

	/* Looked at before: this is HTTP/1.1. */
	t->upgraded = http_upgrade(t->r->x, "websocket", headers, t->protocol.p ? 2 : 1);
	snprintf(t->process, sizeof(t->process), "%u", b->pid);
	t->heard_ms = loop_now(t->r->x->loop);
	loop_timer_start(t->r->x->loop, &t->ping, PING_MS, on_ping);
	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", "attached");
	json_out_ku64(&o, "pid", b->pid);
	json_out_ku64(&o, "offset", b->offsets[0]);
	json_out_end(&o, '}');
	send_json(t, &json);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);

	websocket_put(&t->frame, WEBSOCKET_SERVER, WEBSOCKET_BINARY, data);
	flush(t);
	if (t->full)
		t->held += data.n;
	else
		exec_consumed(x, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct terminal *t = ((struct req *)x->ctx)->own;
	size_t n = t->held;

	t->full = false;
	t->held = 0;
	exec_consumed(&t->exec, n);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct buf json = BUF_INIT(4096);
	struct json_out o;

	if (!t->upgraded) {
		struct req *r = t->r;
		struct err copy = { 0 };
		if (e)
			copy = *e;
		else
			err_set(&copy, ERR_INTERNAL, "the process ended before it began");
		release(t);
		rest_fail(r, &copy);
		return;
	}
	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", e ? "error" : "exit");
	if (e) {
		json_out_kz(&o, "code", err_name(e->code));
		json_out_kz(&o, "message", e->msg);
	} else {
		stream_put_result(&o, res);
	}
	json_out_end(&o, '}');
	send_json(t, &json);
	leave(t, e ? WEBSOCKET_INTERNAL : WEBSOCKET_NORMAL, VIEW_NONE);
}

/* ---- what the client says ---- */

static void feed(struct terminal *t);

/* That the process takes no more is no error of the terminal's: its end will be told. */
static void on_fed(struct proc_op *op, const struct wire_process_info *list, size_t n, const struct err *e)
{
	struct terminal *t = CONTAINER(op, struct terminal, feeding);

	t->feed_busy = false;
	buf_consume(&t->input, t->feed_size);
	if (buf_len(&t->input) < INPUT_HIGH)
		http_body_resume(t->r->x);
	feed(t);
}

static void feed(struct terminal *t)
{
	struct req *r = t->r;
	struct view piece = view_head(buf_view(&t->input), PROCS_INPUT_MAX);
	struct err e = { 0 };

	if (t->feed_busy || piece.n == 0)
		return;
	t->feed_size = piece.n;
	t->feed_busy = procs_input(r->core, &r->actor, r->params[0], view_of(t->process), piece, false,
				   &t->feeding, &e) >= 0;
	if (!t->feed_busy)
		buf_clear(&t->input);
}

static void resize(struct terminal *t);

static void on_resized(struct proc_op *op, const struct wire_process_info *list, size_t n,
		       const struct err *e)
{
	struct terminal *t = CONTAINER(op, struct terminal, resizing);

	t->resize_busy = false;
	if (t->resize_again)
		resize(t);
}

/* While one is under way only the last of the others counts. */
static void resize(struct terminal *t)
{
	struct req *r = t->r;
	struct err e = { 0 };

	t->resize_again = t->resize_busy;
	if (!t->resize_busy)
		t->resize_busy = procs_resize(r->core, &r->actor, r->params[0], view_of(t->process), t->cols,
					      t->rows, &t->resizing, &e) >= 0;
}

struct wish {
	struct view type;
	uint64_t cols, rows;
};
static const struct json_field wish_fields[] = {
	{ "type", JSON_F_STRING, .offset = offsetof(struct wish, type), .required = true },
	{ "cols", JSON_F_U64, .offset = offsetof(struct wish, cols), .min = 1, .max = 10000 },
	{ "rows", JSON_F_U64, .offset = offsetof(struct wish, rows), .min = 1, .max = 10000 },
};
static const struct json_schema wish_schema = { wish_fields, ELEMS(wish_fields) };

/* False: it was nonsense, and the terminal is gone. */
static bool on_text(struct terminal *t)
{
	struct arena a = ARENA_INIT(64 * 1024);
	struct wish w = { 0 };
	struct err e = { 0 };
	struct json *doc;

	bool ok = json_parse(&a, buf_view(&t->text), &doc, &e) >= 0 &&
		  json_read(&a, doc, &wish_schema, &w, false, &e) >= 0;
	if (ok && (!view_is(w.type, "resize") || !w.cols || !w.rows)) {
		err_set(&e, ERR_INVALID,
			"the only control message is {\"type\":\"resize\",\"cols\",\"rows\"}");
		ok = false;
	}
	arena_done(&a);
	buf_clear(&t->text);
	if (!ok) {
		leave(t, WEBSOCKET_POLICY, view_of(e.msg));
		return false;
	}
	t->cols = w.cols;
	t->rows = w.rows;
	resize(t);
	return true;
}

/* False: the terminal is gone. */
static bool on_piece(struct terminal *t, const struct websocket_piece *p)
{
	switch (p->kind) {
	case WEBSOCKET_BINARY:
		if (buf_add(&t->input, p->data) >= 0)
			return true;
		leave(t, WEBSOCKET_TOO_BIG, VIEW_NONE);
		return false;
	case WEBSOCKET_TEXT:
		if (buf_add(&t->text, p->data) < 0) {
			leave(t, WEBSOCKET_TOO_BIG, VIEW_NONE);
			return false;
		}
		return !p->last || on_text(t);
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
	struct req *r = x->ctx;
	struct terminal *t = r->own;
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
	struct terminal *t = r->own;

	exec_cancel(&t->exec);
	release(t);
	rest_done(r);
}

static const struct http_ops terminal_ops = { .on_body = on_body,
					      .on_abort = on_abort,
					      .on_writable = on_writable };

/* ---- the handshake ---- */

/* The key that was offered as a subprotocol, and what to answer to the offer. */
static struct view offered_key(const struct http_exchange *x, struct view *ret_protocol)
{
	struct view list = http_get_header(x, "sec-websocket-protocol"), key = VIEW_NONE;

	*ret_protocol = VIEW_NONE;
	while (list.p) {
		struct view one = view_trim(view_split(list, ',', &list));
		if (view_starts(one, BEARER)) {
			key = view_skip(one, strlen(BEARER));
			if (!ret_protocol->p)
				*ret_protocol = one;
		} else if (view_is(one, PROTOCOL)) {
			*ret_protocol = one;
		}
	}
	return key;
}

static bool same_origin(const struct http_exchange *x)
{
	struct view origin = http_get_header(x, "origin");
	size_t scheme = view_starts(origin, "https://") ? 8 : view_starts(origin, "http://") ? 7 : 0;

	return !origin.p || (scheme && view_eq_nocase(view_skip(origin, scheme), x->host));
}

static int authenticate(struct req *r, struct view *ret_protocol, struct err *e)
{
	struct view key = offered_key(r->x, ret_protocol);

	if (http_get_header(r->x, "authorization").p || http_get_header(r->x, "x-api-key").p || !key.p)
		return rest_authenticate(r->core, r->x, &r->actor, e);
	if (!same_origin(r->x))
		return err_set(e, ERR_FORBIDDEN, "a page of another origin may not open a terminal");
	return auth_actor(r->core, key, &r->actor, e);
}

static int read_number(const struct req *r, const char *name, uint64_t max, uint64_t *ret, struct err *e)
{
	struct view v = rest_query(r, name);
	uint64_t n;

	if (!v.p)
		return 0;
	if (num_u64(v, &n) < 0 || n > max)
		return err_set(e, ERR_INVALID, "%s must be a number up to %llu", name,
			       (unsigned long long)max);
	*ret = n;
	return 0;
}

/* A login shell in a new terminal, or what runs in one already. */
static int begin(struct req *r, struct terminal *t, bool kill, struct err *e)
{
	static struct view argv[] = { VIEW("/bin/sh"), VIEW("-c"),
				      VIEW("command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l") };
	struct exec_place place = { .process = rest_query(r, "process"), .kill = kill };
	struct exec_wish w = { .argv = { argv, ELEMS(argv) },
			       .user = rest_query(r, "user"),
			       .cwd = rest_query(r, "cwd"),
			       .keep = true,
			       .pty = true,
			       .kill = kill };

	if (read_number(r, "offset", INT64_MAX, &place.offsets[0], e) < 0)
		return -1;
	if (place.process.p)
		return exec_attach(r->core, &r->actor, r->params[0], &place, &t->exec, e);
	w.cols = t->cols;
	w.rows = t->rows;
	return exec_start(r->core, &r->actor, r->params[0], &w, &t->exec, e);
}

static void terminal(struct req *r)
{
	struct terminal *t;
	struct err e = { 0 };
	bool kill;

	if (rest_query_flag(r, "kill_on_disconnect", &kill) < 0)
		return;
	t = rest_own(r, sizeof(*t));
	if (!t)
		return;
	t->r = r;
	t->cols = COLS;
	t->rows = ROWS;
	t->frame = BUF_INIT(MESSAGE_MAX);
	t->text = BUF_INIT(TEXT_MAX);
	t->input = BUF_INIT(INPUT_MAX);
	websocket_init(&t->ws, WEBSOCKET_SERVER, MESSAGE_MAX);
	t->exec.on_begun = on_begun;
	t->exec.on_output = on_output;
	t->exec.done = on_done;
	t->feeding.done = on_fed;
	t->resizing.done = on_resized;
	r->x->ops = &terminal_ops;
	if (authenticate(r, &t->protocol, &e) < 0 || rest_websocket_check(r->x, t->accept, &e) < 0 ||
	    read_number(r, "cols", 10000, &t->cols, &e) < 0 ||
	    read_number(r, "rows", 10000, &t->rows, &e) < 0 || begin(r, t, kill, &e) < 0)
		rest_fail(r, &e);
}

/* OPEN: it authenticates by itself, since the key may be in another place. */
const struct route rest_terminal_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/terminal", terminal, .auth = REST_OPEN,
	  .query = "cols rows user cwd process offset kill_on_disconnect" },
	{ 0 },
};
