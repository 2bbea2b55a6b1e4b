/*
 * Watching files: as server-sent events while the client listens, or by a watcher
 * that is polled.
 */
#include "file.h"
#include "rest_files.h"
#include "poison.h"

#define KEEP_ALIVE_MS 15000

/* ---- what happens, as JSON ---- */

static void put_event(struct json_out *o, const struct file_event *ev)
{
	json_out_object(o);
	json_out_kz(o, "type", files_event_name(ev->kind));
	rest_files_put_bytes(o, "path", "path_base64", ev->path);
	if (ev->old_path.n)
		rest_files_put_bytes(o, "old_path", "old_path_base64", ev->old_path);
	json_out_kbool(o, "directory", ev->directory);
	json_out_end(o, '}');
}

/* ---- GET fs/watch: a stream of events ---- */

struct watching {
	struct file_op op;
	struct request *r;
	struct loop_timer keep_alive;
	struct buf text;
	size_t held;
	bool begun, blocked;
};

static void release(struct watching *w)
{
	loop_timer_stop(&w->keep_alive);
	buf_done(&w->text);
}

static void on_gone(struct request *r)
{
	struct watching *w = r->own;
	files_cancel(&w->op);
	release(w);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	on_gone(r);
	request_done(r);
}

/* Behind a client that does not read, nothing is added but what the box has sent within its window. */
static void send_text(struct watching *w, size_t bytes)
{
	w->blocked = !http_write(w->r->x, buf_view(&w->text));
	buf_clear(&w->text);
	if (w->blocked)
		w->held += bytes;
	else
		files_consumed(&w->op, bytes);
}

static void on_writable(struct http_exchange *x)
{
	struct watching *w = ((struct request *)x->ctx)->own;
	size_t n = w->held;
	w->held = 0;
	w->blocked = false;
	files_consumed(&w->op, n);
}

static void on_keep_alive(struct loop_timer *t)
{
	struct watching *w = CONTAINER(t, struct watching, keep_alive);
	loop_timer_start(w->r->x->loop, t, KEEP_ALIVE_MS, on_keep_alive);
	if (w->blocked)
		return;
	buf_puts(&w->text, ":\n\n");
	send_text(w, 0);
}

static void on_started(struct file_op *op)
{
	static const struct http_header plain = { VIEW("cache-control"), VIEW("no-store") };
	struct watching *w = CONTAINER(op, struct watching, op);
	w->begun = true;
	http_begin(w->r->x, 200, "text/event-stream", -1, &plain, 1);
	buf_puts(&w->text, "event: ready\ndata: {}\n\n");
	send_text(w, 0);
	loop_timer_start(w->r->x->loop, &w->keep_alive, KEEP_ALIVE_MS, on_keep_alive);
}

static void on_events(struct file_op *op, const struct file_event *events, size_t n, size_t bytes)
{
	struct watching *w = CONTAINER(op, struct watching, op);
	if (!w->begun) /* the walk that begins it may already have something to tell */
		on_started(op);
	for (size_t i = 0; i < n; i++) {
		struct json_out o;
		buf_printf(&w->text, "event: %s\ndata: ", files_event_name(events[i].kind));
		json_out_init(&o, &w->text);
		put_event(&o, &events[i]);
		buf_puts(&w->text, "\n\n");
	}
	send_text(w, bytes);
}

static void on_watch_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct watching *w = CONTAINER(op, struct watching, op);
	struct request *r = w->r;
	bool begun = w->begun;
	if (begun) {
		buf_puts(&w->text, "event: end\ndata: {}\n\n");
		http_write(r->x, buf_view(&w->text));
	}
	release(w);
	if (!begun) {
		struct err gone = { 0 };
		err_set(&gone, ERR_NOT_FOUND, "what was to be watched is gone");
		answer_fail(r, e ? e : &gone);
		return;
	}
	http_end(r->x);
	request_done(r);
}

/* The text behind "ready" came twice when events were first: on_started is told apart here. */
static void on_ready(struct file_op *op)
{
	if (!CONTAINER(op, struct watching, op)->begun)
		on_started(op);
}

static const struct file_ops watch_ops = {
	.on_started = on_ready,
	.on_events = on_events,
	.done = on_watch_done,
};

static void no_body(struct http_exchange *x, struct view data, bool last)
{
}

static const struct http_ops stream_ops = {
	.on_body = no_body,
	.on_abort = on_abort,
	.on_writable = on_writable,
};

static void watch(struct request *r)
{
	struct err e = { 0 };
	bool recursive;
	if (request_query_flag(r, "recursive", &recursive) < 0)
		return;
	struct watching *w = request_own(r, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	w->op.ops = &watch_ops;
	w->text = BUF_INIT(ANSWER_MAX);
	r->x->ops = &stream_ops;
	r->on_gone = on_gone;
	struct file_place p = { .box = r->params[0],
				.path = request_query(r, "path"),
				.user = request_query(r, "user") };
	if (files_watch(r->core, &r->actor, &p, recursive, &w->op, &e) < 0) {
		release(w);
		answer_fail(r, &e);
	}
}

/* ---- watchers that are polled ---- */

struct poll_wish {
	char unused; /* nothing at offset 0 */
	struct view path, user;
	bool recursive;
};

static const struct json_field poll_fields[] = {
	{ "path", JSON_F_STRING, offsetof(struct poll_wish, path), .min = 1, .max = 4095, .required = true },
	{ "user", JSON_F_STRING, offsetof(struct poll_wish, user), .min = 1, .nullable = true },
	{ "recursive", JSON_F_BOOL, offsetof(struct poll_wish, recursive), .nullable = true },
};
static const struct json_schema poll_schema = { poll_fields, ELEMS(poll_fields) };

struct adding {
	struct watcher *w;
};

static void on_added(void *arg, const struct watcher *w, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	json_out_object(o);
	json_out_kz(o, "id", watchers_id(w));
	json_out_end(o, '}');
	answer_send(r, 201);
}

static void abandon(struct request *r)
{
	struct adding *a = r->own;
	watchers_abandon(a->w);
}

static void add_watcher(struct request *r)
{
	struct poll_wish w = { 0 };
	struct err e = { 0 };
	if (request_read(r, &poll_schema, &w) < 0)
		return;
	struct adding *a = request_own(r, sizeof(*a));
	if (!a)
		return;
	struct file_place p = { .box = r->params[0], .path = w.path, .user = w.user };
	a->w = watchers_add(r->core, &r->actor, &p, w.recursive, on_added, r, &e);
	if (!a->w)
		answer_fail(r, &e);
	else
		r->on_gone = abandon;
}

static void poll_watcher(struct request *r)
{
	struct err e = { 0 };
	struct arena arena = ARENA_INIT(64u * 1024 * 1024);
	struct watcher_news news = { .arena = &arena };
	if (watchers_poll(r->core, &r->actor, r->params[0], r->params[1], &news, &e) < 0) {
		arena_done(&arena);
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json_list(r, "events");
	for (size_t i = 0; i < news.n; i++)
		put_event(o, &news.events[i]);
	json_out_end(o, ']');
	json_out_kbool(o, "overflow", news.overflow);
	json_out_kbool(o, "ended", news.ended);
	json_out_end(o, '}');
	arena_done(&arena);
	answer_send(r, 200);
}

static void remove_watcher(struct request *r)
{
	struct err e = { 0 };
	if (watchers_remove(r->core, &r->actor, r->params[0], r->params[1], &e) < 0)
		answer_fail(r, &e);
	else
		answer_no_content(r);
}

const struct route rest_watch_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/fs/watch", watch, .query = "path user recursive" },
	{ "POST", "/v1/sandboxes/{id}/fs/watchers", add_watcher, .body = ROUTE_JSON },
	{ "GET", "/v1/sandboxes/{id}/fs/watchers/{watcher}", poll_watcher },
	{ "DELETE", "/v1/sandboxes/{id}/fs/watchers/{watcher}", remove_watcher },
	{ 0 },
};
