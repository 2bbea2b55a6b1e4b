/*
 * Watching a directory: as a stream, or polled. What PID 1 tells becomes what
 * inotify would have told of a writer that opens, truncates and writes: the file
 * beside, in which a write of ours is gathered, is not seen, and its renaming is a
 * write. A rename within the directory is two events, as it is there.
 *
 * With entries, each event is followed by a look at what it is about, one after
 * the other, so that order stays. A polled watcher's id holds what is needed for
 * that: nothing is remembered here.
 */
#include "envd_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "envd_gen.h"
#include "file.h"
#include "text.h"
#include "poison.h"

#define TEMP      ".paddock-"
#define TEMP_SIZE (sizeof(TEMP) - 1 + 1 + 12) /* src/init/file_write.c */

/* An event that waits to be told. */
struct news {
	struct list link;
	int32_t type;
	size_t bytes; /* to be given back when it was told: with the last of what came together */
	size_t n;
	char name[];
};

struct watch {
	struct file_op op;   /* the watch */
	struct file_op look; /* stat: of the directory first, then of what events are about */
	struct request *c;
	struct watcher *pending; /* CreateWatcher, until it is ready */
	struct view path;        /* as asked for, clean */
	struct list queue;
	bool recursive, entries, looking;
	struct envd_filesystem_event *events; /* polled: the answer so far */
	size_t n_events;
};

static void release(struct request *c)
{
	struct watch *w = c->own;

	files_cancel(&w->op);
	files_cancel(&w->look);
	if (w->pending)
		watchers_abandon(w->pending);
	LIST_EACH (it, &w->queue) {
		list_del(it);
		free(CONTAINER(it, struct news, link));
	}
}

static struct watch *watch_new(struct request *c)
{
	struct watch *w = envd_own(c, sizeof(*w), release);

	if (!w)
		return NULL;
	w->c = c;
	list_init(&w->queue);
	return w;
}

/* ---- what happened, in this dialect's terms ---- */

static int queue(struct watch *w, int32_t type, struct view name)
{
	struct news *n = calloc(1, sizeof(*n) + name.n);

	if (!n)
		return -ENOMEM;
	n->type = type;
	n->n = name.n;
	if (name.n)
		memcpy(n->name, name.p, name.n);
	list_append(&w->queue, &n->link);
	return 0;
}

/* 'o': the file beside that will replace one, 'n': one for which there is none yet, 0: something else */
static char temp_kind(struct view path)
{
	struct view name = envd_base(path);
	bool temp = name.n == TEMP_SIZE && view_starts(name, TEMP);
	char kind = temp ? name.p[sizeof(TEMP) - 1] : 0;
	return kind == 'o' || kind == 'n' ? kind : 0;
}

static int add_rename(struct watch *w, const struct file_event *ev)
{
	char kind = temp_kind(ev->old_path);
	int r = 0;

	if (kind == 'n')
		r = queue(w, ENVD_EVENT_TYPE_CREATE, ev->path);
	if (kind)
		return r < 0 ? r : queue(w, ENVD_EVENT_TYPE_WRITE, ev->path);
	r = queue(w, ENVD_EVENT_TYPE_RENAME, ev->old_path);
	return r < 0 ? r : queue(w, ENVD_EVENT_TYPE_CREATE, ev->path);
}

static int add_event(struct watch *w, const struct file_event *ev)
{
	static const int32_t types[] = {
		[FILE_EVENT_CREATE] = ENVD_EVENT_TYPE_CREATE,
		[FILE_EVENT_WRITE] = ENVD_EVENT_TYPE_WRITE,
		[FILE_EVENT_REMOVE] = ENVD_EVENT_TYPE_REMOVE,
		[FILE_EVENT_CHMOD] = ENVD_EVENT_TYPE_CHMOD,
	};

	if (ev->kind == FILE_EVENT_RENAME)
		return add_rename(w, ev);
	if (ev->kind <= 0 || (size_t)ev->kind >= ELEMS(types) || !types[ev->kind] || temp_kind(ev->path))
		return 0;
	return queue(w, types[ev->kind], ev->path);
}

/* ---- telling, with a look at each where that is wished ---- */

static void tell_next(struct watch *w);

static struct view below(struct watch *w, struct view name)
{
	struct buf b = BUF_INIT(w->path.n + name.n + 2);

	buf_add(&b, w->path);
	if (name.n)
		buf_putc(&b, '/');
	buf_add(&b, name);
	struct view v = arena_view(&w->c->arena, buf_view(&b));
	buf_done(&b);
	return v;
}

/* Takes the first of the queue out of it. */
static void tell(struct watch *w, struct news *n, struct envd_entry_info *entry)
{
	struct view name = { n->name, n->n };
	struct envd_filesystem_event ev = { .name = name, .type = n->type, .entry = entry };
	struct request *c = w->c;

	list_del(&n->link);
	if (rpc_of(c)->method->kind == RPC_UNARY) {
		ev.name = arena_view(&c->arena, name);
		w->events[w->n_events++] = ev;
		free(n);
		return;
	}
	rpc_send(c, &(struct envd_watch_dir_response){ .filesystem = &ev });
	files_consumed(&w->op, n->bytes);
	free(n);
	arena_reset(&c->arena);
	w->path = envd_clean(&c->arena, buf_view(&c->body)); /* which was put there for this */
}

static void on_looked(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct watch *w = CONTAINER(op, struct watch, look);
	struct news *n = CONTAINER(w->queue.next, struct news, link);

	w->looking = false;
	tell(w, n, e ? NULL : envd_entry(&w->c->arena, info, info->path));
	tell_next(w);
}

static const struct file_ops look_ops = { .done = on_looked };

static bool is_gone(int32_t type)
{
	return type == ENVD_EVENT_TYPE_REMOVE || type == ENVD_EVENT_TYPE_RENAME;
}

static void tell_next(struct watch *w)
{
	struct request *c = w->c;
	struct err e = { 0 };

	while (!w->looking && !rpc_of(c)->full && !list_empty(&w->queue)) {
		struct news *n = CONTAINER(w->queue.next, struct news, link);
		struct file_place place = envd_place(c, VIEW_NONE);
		if (w->entries && !is_gone(n->type)) {
			place.path = below(w, (struct view){ n->name, n->n });
			w->look.ops = &look_ops;
			w->look.detail = true;
			w->looking =
				place.path.p && files_stat(c->core, &c->actor, &place, &w->look, &e) >= 0;
		}
		if (!w->looking)
			tell(w, n, NULL);
	}
	if (rpc_of(c)->method->kind == RPC_UNARY && list_empty(&w->queue)) {
		struct envd_get_watcher_events_response reply = { .events = { w->events, w->n_events } };
		rpc_reply(c, &reply);
	}
}

/* ---- WatchDir ---- */

static const struct envd_watch_dir_response ping = {
	.keepalive = &(struct envd_watch_dir_response_keep_alive){ 0 }
};

static void on_started(struct file_op *op)
{
	struct watch *w = CONTAINER(op, struct watch, op);

	rpc_begin(w->c, &ping);
	rpc_send(w->c, &(struct envd_watch_dir_response){
			       .start = &(struct envd_watch_dir_response_start_event){ 0 } });
}

static void on_events(struct file_op *op, const struct file_event *events, size_t n, size_t bytes)
{
	struct watch *w = CONTAINER(op, struct watch, op);
	struct err e = { 0 };
	struct list *before = w->queue.prev;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = add_event(w, &events[i]);
	if (r < 0) {
		err_set(&e, ERR_UNAVAILABLE, "out of memory");
		answer_fail(w->c, &e);
		return;
	}
	if (w->queue.prev == before)
		files_consumed(op, bytes);
	else
		CONTAINER(w->queue.prev, struct news, link)->bytes += bytes;
	tell_next(w);
}

static void on_ended(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct watch *w = CONTAINER(op, struct watch, op);

	if (e)
		answer_fail(w->c, e);
	else
		rpc_end(w->c);
}

static const struct file_ops watch_ops = { .on_started = on_started,
					   .on_events = on_events,
					   .done = on_ended };

static void on_writable(struct request *c)
{
	tell_next(c->own);
}

static int check_dir(const struct file_info *info, struct err *e)
{
	int32_t type = info->type == FILE_TYPE_SYMLINK ? info->resolved_type : info->type;

	if (info->type == FILE_TYPE_SYMLINK && !info->resolved.n)
		return err_set(e, ERR_NOT_FOUND, "path not found: %.*s",
			       VIEW_ARG(view_head(info->path, 120)));
	if (type != FILE_TYPE_DIRECTORY)
		return err_set(e, ERR_INVALID, "path is not a directory: %.*s",
			       VIEW_ARG(view_head(info->path, 120)));
	return 0;
}

static void on_dir(struct file_op *op, const struct file_info *info, bool created, const struct err *said)
{
	struct watch *w = CONTAINER(op, struct watch, look);
	struct request *c = w->c;
	struct file_place place = envd_place(c, w->path);
	struct err e = { 0 };

	w->op.ops = &watch_ops;
	if (said)
		e = *said;
	if (said || check_dir(info, &e) < 0 ||
	    files_watch(c->core, &c->actor, &place, w->recursive, &w->op, &e) < 0)
		answer_fail(c, &e);
}

static const struct file_ops dir_ops = { .done = on_dir };

static void look_at_dir(struct watch *w, struct view path, const struct file_ops *ops)
{
	struct request *c = w->c;
	struct err e = { 0 };

	w->look.ops = ops;
	w->look.detail = true;
	if (envd_path(&c->arena, path, &w->path, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	struct file_place place = envd_place(c, w->path);
	if (files_stat(c->core, &c->actor, &place, &w->look, &e) < 0)
		answer_fail(c, &e);
}

void envd_watch_dir(struct request *c, const void *request)
{
	const struct envd_watch_dir_request *q = request;
	struct watch *w = watch_new(c);
	struct err e = { 0 };

	if (!w)
		return;
	w->recursive = q->recursive;
	w->entries = q->include_entry;
	rpc_of(c)->on_writable = on_writable;
	/* The arena is emptied after every event: the path stays where the request was. */
	if (envd_path(&c->arena, q->path, &w->path, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	buf_clear(&c->body);
	buf_add(&c->body, w->path);
	look_at_dir(w, w->path, &dir_ops);
}

/* ---- CreateWatcher: "ID", or "ID.PATH" in hex when entries are wished ---- */

static void on_ready(void *arg, const struct watcher *made, const struct err *e)
{
	struct watch *w = arg;
	struct request *c = w->c;
	struct buf id = BUF_INIT(64 * 1024);

	w->pending = NULL;
	if (e) {
		answer_fail(c, e);
		return;
	}
	buf_puts(&id, watchers_id(made));
	if (w->entries) {
		char *hex = arena_alloc(&c->arena, 2 * w->path.n + 1);
		if (hex)
			text_hex(w->path.p, w->path.n, hex);
		buf_putc(&id, '.');
		buf_puts(&id, hex ? hex : "");
	}
	struct envd_create_watcher_response reply = { .watcher_id = arena_view(&c->arena, buf_view(&id)) };
	buf_done(&id);
	rpc_reply(c, &reply);
}

static void on_dir_polled(struct file_op *op, const struct file_info *info, bool created,
			  const struct err *said)
{
	struct watch *w = CONTAINER(op, struct watch, look);
	struct request *c = w->c;
	struct file_place place = envd_place(c, w->path);
	struct err e = { 0 };

	if (said)
		e = *said;
	if (!said && check_dir(info, &e) >= 0)
		w->pending = watchers_add(c->core, &c->actor, &place, w->recursive, on_ready, w, &e);
	if (!w->pending)
		answer_fail(c, &e);
}

static const struct file_ops dir_polled_ops = { .done = on_dir_polled };

void envd_create_watcher(struct request *c, const void *request)
{
	const struct envd_create_watcher_request *q = request;
	struct watch *w = watch_new(c);

	if (!w)
		return;
	w->recursive = q->recursive;
	w->entries = q->include_entry;
	look_at_dir(w, q->path, &dir_polled_ops);
}

/* ---- GetWatcherEvents, RemoveWatcher ---- */

static struct view split_id(struct watch *w, struct view id)
{
	struct view hex, plain = view_split(id, '.', &hex);
	char *path = hex.n ? arena_alloc(&w->c->arena, hex.n / 2 + 1) : NULL;

	w->entries = path && text_unhex(hex, path, hex.n / 2) >= 0;
	if (w->entries)
		w->path = (struct view){ path, hex.n / 2 };
	return plain;
}

void envd_get_watcher_events(struct request *c, const void *request)
{
	const struct envd_get_watcher_events_request *q = request;
	struct watcher_news news = { .arena = &c->arena };
	struct err e = { 0 };
	struct watch *w = watch_new(c);
	int r = 0;

	if (!w)
		return;
	if (watchers_poll(c->core, &c->actor, view_of(c->box), split_id(w, q->watcher_id), &news, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	w->events = arena_array(&c->arena, 2 * news.n + 1, sizeof(*w->events));
	for (size_t i = 0; w->events && r >= 0 && i < news.n; i++)
		r = add_event(w, &news.events[i]);
	if (w->events && r >= 0) {
		tell_next(w);
		return;
	}
	err_set(&e, ERR_UNAVAILABLE, "out of memory");
	answer_fail(c, &e);
}

void envd_remove_watcher(struct request *c, const void *request)
{
	const struct envd_remove_watcher_request *q = request;
	struct view rest, id = view_split(q->watcher_id, '.', &rest);
	struct err e = { 0 };

	if (watchers_remove(c->core, &c->actor, view_of(c->box), id, &e) < 0)
		answer_fail(c, &e);
	else
		rpc_reply(c, &(struct envd_remove_watcher_response){ 0 });
}
