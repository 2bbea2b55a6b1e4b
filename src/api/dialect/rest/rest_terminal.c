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
 * page must then come from this server (Origin is Host). The dashboard has a session (login.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "login.h"
#include "num.h"
#include "rest_output.h"
#include "resize.h"
#include "run.h"
#include "ws.h"
#include "poison.h"

#define PROTOCOL   "paddock"
#define BEARER     "paddock.bearer."
#define COLS       80
#define ROWS       24
#define INPUT_HIGH (64u * 1024) /* bytes that wait for the process before we stop reading */

struct terminal {
	struct ws w;
	struct exec exec;
	char process[16]; /* its pid */
	struct proc_op feeding;
	struct resize size;
	bool feed_busy;
	size_t feed_size;
	uint64_t cols, rows;
};

static struct terminal *of(struct ws *w)
{
	return CONTAINER(w, struct terminal, w);
}

static void send_json(struct terminal *t, struct buf *json)
{
	ws_text(&t->w, buf_view(json));
	buf_done(json);
}

/* What runs goes on, unless it was wished otherwise. */
static void on_gone(struct ws *w)
{
	struct terminal *t = of(w);

	exec_cancel(&t->exec);
	procs_cancel(&t->feeding);
	resize_cancel(&t->size);
}

/* ---- what the process does ---- */

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct buf json = BUF_INIT(1024);
	struct json_out o;

	snprintf(t->process, sizeof(t->process), "%u", b->pid);
	ws_open(&t->w);
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

	exec_consumed(x, ws_send(&t->w, data));
}

static void on_sent(struct ws *w, size_t n)
{
	exec_consumed(&of(w)->exec, n);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct buf json = BUF_INIT(4096);
	struct json_out o;

	if (!t->w.open) {
		struct err early = { 0 };
		err_set(&early, ERR_INTERNAL, "the process ended before it began");
		ws_fail(&t->w, e ? e : &early);
		return;
	}
	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", e ? "error" : "exit");
	if (e) {
		json_out_kz(&o, "code", err_name(e->code));
		json_out_kz(&o, "message", e->msg);
	} else {
		rest_output_put_result(&o, res);
	}
	json_out_end(&o, '}');
	send_json(t, &json);
	ws_leave(&t->w, e ? WEBSOCKET_INTERNAL : WEBSOCKET_NORMAL, VIEW_NONE);
}

/* ---- what the client says ---- */

static void feed(struct terminal *t);

/* That the process takes no more is no error of the terminal's: its end will be told. */
static void on_fed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct terminal *t = CONTAINER(op, struct terminal, feeding);

	t->feed_busy = false;
	ws_taken(&t->w, t->feed_size);
	feed(t);
}

static void feed(struct terminal *t)
{
	const struct request *r = t->w.r;
	struct view piece = view_head(buf_view(&t->w.input), PROCS_INPUT_MAX);
	struct err e = { 0 };

	if (t->feed_busy || piece.n == 0)
		return;
	t->feed_size = piece.n;
	t->feed_busy = procs_input(r->core, &r->actor, r->params[0], view_of(t->process), piece, false,
				   &t->feeding, &e) >= 0;
	if (!t->feed_busy)
		ws_taken(&t->w, buf_len(&t->w.input));
}

static void on_input(struct ws *w)
{
	feed(of(w));
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

static bool on_text(struct ws *ws, struct view text, struct err *e)
{
	struct arena a = ARENA_INIT(64 * 1024);
	struct terminal *t = of(ws);
	struct wish w = { 0 };
	struct json *doc;

	bool ok = json_parse(&a, text, &doc, e) >= 0 && json_read(&a, doc, &wish_schema, &w, false, e) >= 0;
	if (ok && (!view_is(w.type, "resize") || !w.cols || !w.rows)) {
		err_set(e, ERR_INVALID,
			"the only control message is {\"type\":\"resize\",\"cols\",\"rows\"}");
		ok = false;
	}
	arena_done(&a);
	if (!ok)
		return false;
	resize_to(&t->size, t->w.r, t->process, w.cols, w.rows);
	return true;
}

static const struct ws_ops terminal_ops = {
	.on_input = on_input, .on_text = on_text, .on_sent = on_sent, .on_gone = on_gone
};

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

static int authenticate(struct request *r, struct view *ret_protocol, struct err *e)
{
	struct view key = offered_key(r->x, ret_protocol);

	if (http_get_header(r->x, "authorization").p || http_get_header(r->x, "x-api-key").p || !key.p)
		return login_actor(r, e);
	if (!request_same_origin(r->x))
		return err_set(e, ERR_FORBIDDEN, "a page of another origin may not open a terminal");
	return auth_actor(r->core, key, &r->actor, e);
}

static int read_number(const struct request *r, const char *name, uint64_t max, uint64_t *ret, struct err *e)
{
	struct view v = request_query(r, name);
	uint64_t n;

	if (!v.p)
		return 0;
	if (num_u64(v, &n) < 0 || n > max)
		return err_set(e, ERR_INVALID, "%s must be a number up to %llu", name,
			       (unsigned long long)max);
	*ret = n;
	return 0;
}

/* What the client's own terminal is, for the one in the box. */
static int take_variable(const struct request *r, const char *name, const char *variable,
			 struct json_strmap *env, struct err *e)
{
	struct view v = request_query(r, name);

	for (size_t i = 0; i < v.n; i++)
		if (v.n > 64 || !((v.p[i] >= 'a' && v.p[i] <= 'z') || (v.p[i] >= 'A' && v.p[i] <= 'Z') ||
				  (v.p[i] >= '0' && v.p[i] <= '9') || (v.p[i] && strchr("._-+@", v.p[i]))))
			return err_set(e, ERR_INVALID, "%s must be at most 64 of [A-Za-z0-9._+@-]", name);
	if (v.n) {
		env->keys[env->n] = view_of(variable);
		env->values[env->n++] = v;
	}
	return 0;
}

/* A login shell in a new terminal, or what runs in one already. */
static int begin(struct request *r, struct terminal *t, bool kill, struct err *e)
{
	static struct view argv[] = {
		VIEW("/bin/sh"), VIEW("-c"),
		/* A locale that the box does not have would be the C locale. */
		VIEW("case $LANG in C.*) ;; *) case \"$(locale -a 2>/dev/null | tr A-Z a-z | "
		     "tr -d -)\" in *\"$(echo \"$LANG\" | tr A-Z a-z | tr -d -)\"*) ;; "
		     "*) LANG=C.UTF-8;; esac;; esac; export LANG; "
		     "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l")
	};
	struct exec_place place = { .process = request_query(r, "process"), .kill = kill };
	struct exec_wish w = { .argv = { argv, ELEMS(argv) },
			       .user = request_query(r, "user"),
			       .cwd = request_query(r, "cwd"),
			       .keep = true,
			       .pty = true,
			       .kill = kill };

	if (read_number(r, "offset", INT64_MAX, &place.offsets[0], e) < 0)
		return -1;
	if (place.process.p)
		return exec_attach(r->core, &r->actor, r->params[0], &place, &t->exec, e);
	w.cols = t->cols;
	w.rows = t->rows;
	struct view keys[2], values[2];
	w.env = (struct json_strmap){ .keys = keys, .values = values };
	if (take_variable(r, "term", "TERM", &w.env, e) < 0 ||
	    take_variable(r, "lang", "LANG", &w.env, e) < 0)
		return -1;
	return exec_start(r->core, &r->actor, r->params[0], &w, &t->exec, e);
}

static void terminal(struct request *r)
{
	struct terminal *t;
	struct err e = { 0 };
	bool kill;

	if (request_query_flag(r, "kill_on_disconnect", &kill) < 0)
		return;
	t = ws_own(r, sizeof(*t), &terminal_ops, INPUT_HIGH);
	if (!t)
		return;
	t->cols = COLS;
	t->rows = ROWS;
	t->exec.on_begun = on_begun;
	t->exec.on_output = on_output;
	t->exec.done = on_done;
	t->feeding.done = on_fed;
	int known = authenticate(r, &t->w.protocol, &e);
	if (known >= 0)
		http_vouch(r->x, (uintptr_t)r->actor.tenant);
	if (known < 0 || ws_check(&t->w, &e) < 0 || read_number(r, "cols", 10000, &t->cols, &e) < 0 ||
	    read_number(r, "rows", 10000, &t->rows, &e) < 0 || begin(r, t, kill, &e) < 0)
		ws_fail(&t->w, &e);
}

/* OPEN: it authenticates by itself, since the key may be in another place. */
const struct route rest_terminal_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/terminal", terminal, .auth = ROUTE_OPEN,
	  .query = "cols rows user cwd process offset kill_on_disconnect term lang" },
	{ 0 },
};
