/*
 * /v1/file/watch: what happens to files. A watch keeps its last events, numbered, until somebody asks for
 * those behind a number (poll, or events, which goes on). Its events wait for `debounce` milliseconds, in
 * which the same event of the same path is one. A watch that nobody asks goes away.
 */
#include <errno.h>
#include <stdlib.h>

#include "aio_file.h"
#include "clock.h"
#include "glob.h"
#include "num.h"
#include "rnd.h"
#include "stream.h"
#include "poison.h"

#define OF_BOX     16
#define IDLE_MS    600000
#define EVENTS_MAX 1000
#define BYTES_MAX  (256u * 1024)
#define WATCH_ID   20

struct event {
	struct list link;
	uint64_t seq; /* 0: it waits for its window's end */
	enum file_event_kind kind;
	bool directory;
	int64_t at_ms;
	size_t n;
	char path[];
};

struct watch {
	struct file_op op;
	struct aio_state *state;
	struct loop *loop;
	struct list link, events, waiting; /* events: the oldest first; waiting: struct poll */
	char id[WATCH_ID + 1], box[BOX_ID + 1];
	struct arena arena; /* of the wish */
	struct view path;
	struct json_strlist exclude, include;
	uint64_t debounce, last_seq, dropped;
	size_t n, bytes;
	int64_t created_ms;
	bool recursive, started, ended;
	struct loop_timer idle, window;
	struct request *creator; /* until it has started */
};

struct poll {
	struct list link;
	struct request *r;
	struct watch *w;
	uint64_t cursor, limit, timeout;
	struct loop_timer timer;
	bool streams; /* it is an answer without an end */
	struct stream stream;
};

static void answer_poll(struct poll *p);
static void push(struct poll *p);

/* Whoever waits is told what there is. */
static void tell(struct watch *w)
{
	LIST_EACH (it, &w->waiting) {
		struct poll *p = CONTAINER(it, struct poll, link);
		if (p->streams)
			push(p);
		else
			answer_poll(p);
	}
}

static void drop(struct watch *w, struct event *ev)
{
	list_del(&ev->link);
	w->n--;
	w->bytes -= sizeof(*ev) + ev->n;
	free(ev);
}

static void cut_stream(struct poll *p)
{
	list_del(&p->link);
	p->w = NULL;
	stream_cut(&p->stream);
}

static void watch_free(struct watch *w)
{
	w->ended = true;
	tell(w);
	LIST_EACH (it, &w->waiting) /* clients that are behind, and get no more */
		cut_stream(CONTAINER(it, struct poll, link));
	loop_timer_stop(&w->idle);
	loop_timer_stop(&w->window);
	files_cancel(&w->op);
	list_del(&w->link);
	LIST_EACH (it, &w->events)
		drop(w, CONTAINER(it, struct event, link));
	arena_done(&w->arena);
	free(w);
}

void aio_watch_done(struct aio_state *s)
{
	LIST_EACH (it, &s->watches)
		watch_free(CONTAINER(it, struct watch, link));
}

static void on_idle(struct loop_timer *t)
{
	watch_free(CONTAINER(t, struct watch, idle));
}

/* ---- events ---- */

static void on_window(struct loop_timer *t)
{
	struct watch *w = CONTAINER(t, struct watch, window);

	LIST_EACH (it, &w->events) {
		struct event *ev = CONTAINER(it, struct event, link);
		if (!ev->seq)
			ev->seq = ++w->last_seq;
	}
	tell(w);
}

static bool is_wanted(const struct watch *w, struct view path)
{
	bool hit = w->include.n == 0;

	for (size_t i = 0; !hit && i < w->include.n; i++)
		hit = glob_match(w->include.items[i], path);
	return hit && !aio_file_is_among(&w->exclude, path);
}

static void keep(struct watch *w, const struct file_event *e)
{
	struct event *ev;

	LIST_EACH (it, &w->events) {
		ev = CONTAINER(it, struct event, link);
		if (!ev->seq && ev->kind == e->kind && view_eq((struct view){ ev->path, ev->n }, e->path))
			return;
	}
	ev = calloc(1, sizeof(*ev) + e->path.n);
	if (!ev) {
		w->dropped++;
		return;
	}
	ev->kind = e->kind;
	ev->directory = e->directory;
	ev->at_ms = clock_wall_ms();
	ev->n = e->path.n;
	if (ev->n)
		memcpy(ev->path, e->path.p, ev->n);
	list_append(&w->events, &ev->link);
	w->n++;
	w->bytes += sizeof(*ev) + ev->n;
	while (w->n > EVENTS_MAX || w->bytes > BYTES_MAX) {
		drop(w, CONTAINER(w->events.next, struct event, link));
		w->dropped++;
	}
	if (!loop_timer_active(&w->window))
		loop_timer_start(w->loop, &w->window, w->debounce, on_window);
}

static void on_events(struct file_op *op, const struct file_event *events, size_t n, size_t bytes)
{
	struct watch *w = CONTAINER(op, struct watch, op);

	for (size_t i = 0; i < n; i++)
		if (is_wanted(w, events[i].path))
			keep(w, &events[i]);
	files_consumed(op, bytes);
}

/* ---- create ---- */

static void put_watch(struct json_out *o, const struct watch *w)
{
	json_out_object(o);
	json_out_kz(o, "watcher_id", w->id);
	json_out_kstr(o, "path", w->path);
	json_out_kbool(o, "recursive", w->recursive);
	json_out_ku64(o, "debounce", w->debounce);
	json_out_ku64(o, "cursor", w->last_seq);
	answer_put_time(o, "created_at", w->created_ms);
	json_out_end(o, '}');
}

static void on_started(struct file_op *op)
{
	struct watch *w = CONTAINER(op, struct watch, op);
	struct request *r = w->creator;

	w->started = true;
	w->creator = NULL;
	r->release = NULL;
	loop_timer_start(w->loop, &w->idle, IDLE_MS, on_idle);
	put_watch(aio_data(r, NULL), w);
	aio_send(r);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct watch *w = CONTAINER(op, struct watch, op);
	struct request *r = w->creator;
	struct err gone = { 0 };

	w->ended = true;
	if (w->started) {
		tell(w);
		return;
	}
	err_set(&gone, ERR_NOT_FOUND, "what was to be watched is gone");
	r->release = NULL;
	aio_refuse_file(r, w->path, "watch", e ? e : &gone);
	watch_free(w);
}

static const struct file_ops watch_ops = { .on_started = on_started,
					   .on_events = on_events,
					   .done = on_done };

struct wish {
	char unused; /* nothing at offset 0 */
	struct view path;
	bool recursive;
	struct json_strlist exclude, include;
	uint64_t debounce;
};

#define AT(m) .offset = offsetof(struct wish, m)
static const struct json_field create_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true },
	{ "recursive", JSON_F_BOOL, AT(recursive) },
	{ "exclude", JSON_F_STRLIST, AT(exclude), .max = 100 },
	{ "debounce", JSON_F_U64, AT(debounce), .min = 50, .max = 5000 },
	{ "include_patterns", JSON_F_STRLIST, AT(include), .max = 100 },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields), .open = true };

struct adding {
	struct watch *w;
};

static void abandon(struct request *r)
{
	watch_free(((struct adding *)r->own)->w);
}

static struct json_strlist copy_list(struct arena *a, const struct json_strlist *l)
{
	struct json_strlist ret = { .items = arena_array(a, l->n + 1, sizeof(struct view)) };

	for (size_t i = 0; ret.items && i < l->n; i++)
		ret.items[ret.n++] = arena_view(a, l->items[i]);
	return ret;
}

static struct watch *watch_new(struct request *r, const struct wish *wish, struct view path)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->state = r->state;
	w->loop = r->x->loop;
	w->creator = r;
	list_init(&w->events);
	list_init(&w->waiting);
	list_append(&w->state->watches, &w->link);
	rnd_name(w->id, WATCH_ID);
	memcpy(w->box, r->box, sizeof(w->box));
	w->arena = ARENA_INIT(1u << 20);
	w->path = arena_view(&w->arena, path);
	w->exclude = copy_list(&w->arena, &wish->exclude);
	w->include = copy_list(&w->arena, &wish->include);
	w->recursive = wish->recursive;
	w->debounce = wish->debounce;
	w->created_ms = clock_wall_ms();
	w->op.ops = &watch_ops;
	w->op.call.background = true; /* asking for what it saw is use; its being there is not */
	return w;
}

static unsigned count(const struct aio_state *s, const char *box)
{
	unsigned n = 0;

	LIST_EACH (it, &s->watches)
		n += strcmp(CONTAINER(it, struct watch, link)->box, box) == 0;
	return n;
}

static void create(struct request *r)
{
	static struct view usual[] = { VIEW(".git"),      VIEW("node_modules"), VIEW("__pycache__"),
				       VIEW(".venv"),     VIEW("*.pyc"),        VIEW("*.pyo"),
				       VIEW(".DS_Store"), VIEW("*.swp"),        VIEW("*.swo") };
	struct wish wish = { .recursive = true, .debounce = 300, .exclude = { usual, ELEMS(usual) } };
	struct adding *a = aio_own(r, sizeof(*a), NULL);
	struct view path;
	struct err e = { 0 };

	if (!a || aio_read(r, &create_schema, &wish) < 0)
		return;
	if (count(r->state, r->box) >= OF_BOX) {
		aio_refuse(r, "a sandbox has at most %d watches", OF_BOX);
		return;
	}
	if (aio_file_path(r, wish.path, &path, &e) < 0 || !(a->w = watch_new(r, &wish, path))) {
		answer_fail(r, &e);
		return;
	}
	struct file_place p = { .box = view_of(r->box), .path = a->w->path };
	r->release = abandon;
	if (files_watch(r->core, &r->actor, &p, wish.recursive, &a->w->op, &e) < 0)
		answer_fail(r, &e);
}

/* ---- list, stop, poll ---- */

static struct watch *find(struct request *r)
{
	struct aio_state *s = r->state;

	LIST_EACH (it, &s->watches) {
		struct watch *w = CONTAINER(it, struct watch, link);
		if (w->started && strcmp(w->box, r->box) == 0 && view_is(r->params[0], w->id))
			return w;
	}
	aio_refuse(r, "there is no such watcher");
	return NULL;
}

static void list(struct request *r)
{
	struct aio_state *s = r->state;
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_key(o, "watchers");
	json_out_array(o);
	LIST_EACH (it, &s->watches) {
		struct watch *w = CONTAINER(it, struct watch, link);
		if (w->started && strcmp(w->box, r->box) == 0)
			put_watch(o, w);
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
	aio_send(r);
}

static void stop(struct request *r)
{
	struct watch *w = find(r);

	if (!w)
		return;
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kz(o, "watcher_id", w->id);
	json_out_end(o, '}');
	watch_free(w);
	aio_send(r);
}

static void release_poll(struct request *r)
{
	struct poll *p = r->own;

	loop_timer_stop(&p->timer);
	if (p->w)
		list_del(&p->link);
}

/* Into an object. */
static void put_event(struct json_out *o, struct buf *full, const struct watch *w, const struct event *ev)
{
	json_out_ku64(o, "seq", ev->seq);
	json_out_kz(o, "type", files_event_name(ev->kind));
	json_out_kstr(o, "path", aio_file_join(full, w->path, (struct view){ ev->path, ev->n }));
	json_out_kbool(o, "is_directory", ev->directory);
	answer_put_time(o, "timestamp", ev->at_ms);
}

static void answer_poll(struct poll *p)
{
	struct request *r = p->r;
	struct watch *w = p->w;
	struct buf full = BUF_INIT(16u * 1024);
	uint64_t n = 0, cursor = p->cursor;

	loop_timer_start(w->loop, &w->idle, IDLE_MS, on_idle);
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_key(o, "events");
	json_out_array(o);
	LIST_EACH (it, &w->events) {
		const struct event *ev = CONTAINER(it, struct event, link);
		if (!ev->seq || ev->seq <= p->cursor || n == p->limit)
			continue;
		json_out_object(o);
		put_event(o, &full, w, ev);
		json_out_end(o, '}');
		cursor = ev->seq;
		n++;
	}
	json_out_end(o, ']');
	json_out_ku64(o, "cursor", cursor);
	json_out_kbool(o, "has_more", cursor < w->last_seq);
	json_out_ku64(o, "dropped", w->dropped);
	json_out_kbool(o, "ended", w->ended);
	json_out_end(o, '}');
	buf_done(&full);
	aio_send(r);
}

static void on_poll_time(struct loop_timer *t)
{
	answer_poll(CONTAINER(t, struct poll, timer));
}

#define AT(m) .offset = offsetof(struct poll, m)
static const struct json_field poll_fields[] = {
	{ "cursor", JSON_F_U64, AT(cursor), .max = INT64_MAX },
	{ "limit", JSON_F_U64, AT(limit), .min = 1, .max = 1000 },
	{ "timeout", JSON_F_U64, AT(timeout), .max = 60 },
};
#undef AT
static const struct json_schema poll_schema = { poll_fields, ELEMS(poll_fields), .open = true };

static void poll_events(struct request *r)
{
	struct poll *p = aio_own(r, sizeof(*p), release_poll);

	if (!p)
		return;
	p->r = r;
	p->limit = 100;
	if (aio_read(r, &poll_schema, p) < 0)
		return;
	struct watch *w = find(r);
	if (!w)
		return;
	p->w = w;
	list_append(&w->waiting, &p->link);
	if (p->timeout == 0 || w->ended || w->last_seq > p->cursor)
		answer_poll(p);
	else
		loop_timer_start(w->loop, &p->timer, p->timeout * 1000, on_poll_time);
}

/* ---- events: as they come, numbered, so that whoever comes again says which was the last ---- */

static void push(struct poll *p)
{
	struct watch *w = p->w;
	struct buf full = BUF_INIT(16u * 1024);
	struct json_out o;

	LIST_EACH (it, &w->events) {
		const struct event *ev = CONTAINER(it, struct event, link);
		if (!ev->seq || ev->seq <= p->cursor || p->stream.full)
			continue;
		p->cursor = ev->seq;
		stream_id(&p->stream, ev->seq);
		stream_open(&p->stream, &o, files_event_name(ev->kind));
		put_event(&o, &full, w, ev);
		stream_close(&p->stream, &o);
	}
	buf_done(&full);
	loop_timer_start(w->loop, &w->idle, IDLE_MS, on_idle);
	if (!w->ended || w->last_seq > p->cursor)
		return;
	list_del(&p->link);
	p->w = NULL;
	stream_finish(&p->stream);
}

static void on_stream_writable(struct http_exchange *x)
{
	struct poll *p = ((struct request *)x->ctx)->own;

	p->stream.full = false;
	if (p->w)
		push(p);
}

static const struct http_ops stream_ops = { .on_body = request_drop_body,
					    .on_abort = request_abort,
					    .on_writable = on_stream_writable };

static void release_stream(struct request *r)
{
	struct poll *p = r->own;

	if (p->stream.r)
		stream_release(&p->stream);
	release_poll(r);
}

/* The daemon goes down: the client comes again, with the number of the last event. */
static void on_stream_drain(struct request *r)
{
	struct poll *p = r->own;

	stream_finish(&p->stream);
}

static void events(struct request *r)
{
	struct poll *p = aio_own(r, sizeof(*p), release_stream);
	struct view last = stream_last_id(r);
	struct watch *w = p ? find(r) : NULL;

	if (!w)
		return;
	p->r = r;
	if (last.p && num_u64(last, &p->cursor) < 0) {
		aio_unprocessable(r, "Last-Event-ID", "Last-Event-ID must be a number");
		return;
	}
	p->w = w;
	p->streams = true;
	r->on_drain = on_stream_drain;
	list_append(&w->waiting, &p->link);
	stream_init(&p->stream, r, STREAM_SSE, &stream_ops);
	stream_begin(&p->stream, NULL, 0);
	push(p);
}

/* ---- wait: for one file, which need not be there yet; its directory must ---- */

struct waiting {
	struct aio_file f;
	struct view path, name;
	uint64_t timeout;
	struct json_strlist types;
	struct loop_timer timer;
};

static void release_waiting(struct aio_file *f)
{
	loop_timer_stop(&CONTAINER(f, struct waiting, f)->timer);
}

static void end_wait(struct waiting *w, const struct file_event *ev)
{
	struct request *r = w->f.r;
	struct json_out *o = aio_data(r, ev ? NULL : "Nothing happened in this time");

	json_out_object(o);
	json_out_kstr(o, "path", w->path);
	json_out_kbool(o, "triggered", ev != NULL);
	json_out_kz(o, "type", ev ? files_event_name(ev->kind) : NULL);
	json_out_end(o, '}');
	aio_send(r);
}

static void on_wait_time(struct loop_timer *t)
{
	end_wait(CONTAINER(t, struct waiting, timer), NULL);
}

static bool is_awaited(const struct waiting *w, const struct file_event *ev)
{
	bool hit = w->types.n == 0;

	for (size_t i = 0; !hit && i < w->types.n; i++)
		hit = view_is(w->types.items[i], files_event_name(ev->kind));
	return hit && (view_eq(ev->path, w->name) || (ev->old_path.n && view_eq(ev->old_path, w->name)));
}

static void on_wait_events(struct file_op *op, const struct file_event *events, size_t n, size_t bytes)
{
	struct waiting *w = CONTAINER(op, struct waiting, f.op);

	for (size_t i = 0; i < n; i++)
		if (is_awaited(w, &events[i])) {
			files_cancel(op);
			end_wait(w, &events[i]);
			return;
		}
	files_consumed(op, bytes);
}

static void on_wait_started(struct file_op *op)
{
}

static void on_wait_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct waiting *w = CONTAINER(op, struct waiting, f.op);
	struct err gone = { 0 };

	err_set(&gone, ERR_NOT_FOUND, "the directory of the file is gone");
	aio_file_fail(&w->f, e ? e : &gone);
}

static const struct file_ops wait_ops = { .on_started = on_wait_started,
					  .on_events = on_wait_events,
					  .done = on_wait_done };

#define AT(m) .offset = offsetof(struct waiting, m)
static const struct json_field wait_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true },
	{ "timeout", JSON_F_U64, AT(timeout), .min = 1, .max = 300 },
	{ "event_types", JSON_F_STRLIST, AT(types), .max = 5 },
};
#undef AT
static const struct json_schema wait_schema = { wait_fields, ELEMS(wait_fields), .open = true };

static bool are_types(const struct json_strlist *l)
{
	for (size_t i = 0; i < l->n; i++) {
		bool hit = false;
		for (enum file_event_kind k = FILE_EVENT_CREATE; k <= FILE_EVENT_CHMOD; k++)
			hit |= view_is(l->items[i], files_event_name(k));
		if (!hit)
			return false;
	}
	return true;
}

static void wait_for(struct request *r)
{
	struct waiting *w = aio_file_new(r, sizeof(*w), "wait");
	struct err e = { 0 };

	if (!w)
		return;
	w->f.also_release = release_waiting;
	w->timeout = 30;
	if (aio_read(r, &wait_schema, w) < 0)
		return;
	if (!are_types(&w->types)) {
		aio_unprocessable(r, "event_types",
				  "event_types are create, write, remove, rename and chmod");
		return;
	}
	if (aio_file_at(&w->f, w->path, false) < 0)
		return;
	w->path = w->f.place.path;
	const char *slash = memrchr(w->path.p, '/', w->path.n);
	w->name = view_skip(w->path, (size_t)(slash + 1 - w->path.p));
	w->f.place.path = view_head(w->path, MAX((size_t)(slash - w->path.p), 1u));
	w->f.op.ops = &wait_ops;
	if (files_watch(r->core, &r->actor, &w->f.place, false, &w->f.op, &e) < 0)
		aio_file_fail(&w->f, &e);
	else
		loop_timer_start(r->x->loop, &w->timer, w->timeout * 1000, on_wait_time);
}

const struct route aio_watch_routes[] = {
	{ "GET", "/v1/file/watch", list, .query = "api_key" },
	{ "POST", "/v1/file/watch", create, .body = ROUTE_JSON, .schema = &create_schema,
	  .query = "api_key" },
	{ "POST", "/v1/file/watch/wait", wait_for, .body = ROUTE_JSON, .schema = &wait_schema,
	  .query = "api_key" },
	{ "DELETE", "/v1/file/watch/{id}", stop, .query = "api_key" },
	{ "GET", "/v1/file/watch/{id}/events", events, .query = AIO_QUERY },
	{ "POST", "/v1/file/watch/{id}/poll", poll_events, .body = ROUTE_JSON, .schema = &poll_schema,
	  .query = "api_key" },
	{ 0 },
};
