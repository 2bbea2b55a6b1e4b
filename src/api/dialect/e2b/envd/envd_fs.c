/*
 * The filesystem service but for watching (envd_watch.c). Most methods are a few
 * operations one after the other: what is there, the change, what is there now.
 */
#include <errno.h>
#include <stdlib.h>

#include "envd_gen.h"
#include "envd_impl.h"
#include "envd_watch.h"
#include "poison.h"

struct work {
	struct file_op op;
	struct request *c;
	struct view path, to;
	struct view root; /* of a list: absolute */
	uint32_t depth;
	struct envd_entry_info *entries;
	size_t n, cap;
};

static void release(struct request *c)
{
	struct work *w = c->own;
	files_cancel(&w->op);
	free(w->entries);
}

static struct work *work_of(struct file_op *op)
{
	return CONTAINER(op, struct work, op);
}

static struct work *work_new(struct request *c, struct view path)
{
	struct err e = { 0 };
	struct work *w = envd_own(c, sizeof(*w), release);

	if (!w)
		return NULL;
	w->c = c;
	w->op.detail = true;
	if (envd_path(&c->arena, path, &w->path, &e) >= 0)
		return w;
	answer_fail(c, &e);
	return NULL;
}

static void out_of_memory(struct request *c)
{
	struct err e = { 0 };
	err_set(&e, ERR_TOO_LARGE, "the answer is too large");
	answer_fail(c, &e);
}

static void stat_then(struct work *w, struct view path, const struct file_ops *ops)
{
	struct request *c = w->c;
	struct file_place place = envd_place(c, path);
	struct err e = { 0 };

	w->op.ops = ops;
	if (files_stat(c->core, &c->actor, &place, &w->op, &e) < 0)
		answer_fail(c, &e);
}

/* ---- Stat; and how MakeDir and Move end ---- */

/* The answers of all three hold one entry. */
static void on_entry(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *c = work_of(op)->c;

	if (e) {
		answer_fail(c, e);
		return;
	}
	struct envd_stat_response reply = { .entry = envd_entry(&c->arena, info, info->path) };
	if (reply.entry)
		rpc_reply(c, &reply);
	else
		out_of_memory(c);
}

static const struct file_ops entry_ops = { .done = on_entry };

/* A path that leads through a file, in a circle, or to where nobody may look is a path to nothing: clients
 * ask whether something exists and take any other error for a failure. */
static void on_stat(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	bool nothing = e && (e->sys == ENOTDIR || e->sys == ELOOP || e->sys == ENAMETOOLONG ||
			     e->code == ERR_FORBIDDEN);
	struct err none = { 0 };

	if (nothing)
		err_set(&none, ERR_NOT_FOUND, "path not found: %.*s",
			VIEW_ARG(view_head(work_of(op)->path, 120)));
	on_entry(op, info, created, nothing ? &none : e);
}

static const struct file_ops stat_ops = { .done = on_stat };

static void stat_one(struct request *c, const void *request)
{
	const struct envd_stat_request *q = request;
	struct work *w = work_new(c, q->path);
	if (w)
		stat_then(w, w->path, &stat_ops);
}

/* ---- MakeDir ---- */

static void on_made(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = work_of(op);
	if (e)
		answer_fail(w->c, e);
	else
		stat_then(w, w->path, &entry_ops);
}

static const struct file_ops made_ops = { .done = on_made };

static bool is_dir(const struct file_info *info)
{
	return (info->type == FILE_TYPE_SYMLINK ? info->resolved_type : info->type) == FILE_TYPE_DIRECTORY;
}

static void on_before_made(struct file_op *op, const struct file_info *info, bool created,
			   const struct err *said)
{
	struct work *w = work_of(op);
	struct request *c = w->c;
	struct file_place place = envd_place(c, w->path);
	struct err e = { 0 };

	if (said && said->code != ERR_NOT_FOUND)
		e = *said;
	else if (!said && is_dir(info))
		err_set(&e, ERR_CONFLICT, "directory already exists: %.*s",
			VIEW_ARG(view_head(info->path, 120)));
	else if (!said)
		err_set(&e, ERR_INVALID, "path already exists but it is not a directory: %.*s",
			VIEW_ARG(view_head(info->path, 120)));
	w->op.ops = &made_ops;
	if (e.code || files_mkdir(c->core, &c->actor, &place, 0, true, &w->op, &e) < 0)
		answer_fail(c, &e);
}

static const struct file_ops before_made_ops = { .done = on_before_made };

static void make_dir(struct request *c, const void *request)
{
	const struct envd_make_dir_request *q = request;
	struct work *w = work_new(c, q->path);
	if (w)
		stat_then(w, w->path, &before_made_ops);
}

/* ---- Move ---- */

static void on_moved(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = work_of(op);
	if (e)
		answer_fail(w->c, e);
	else
		stat_then(w, w->to, &entry_ops);
}

static const struct file_ops moved_ops = { .done = on_moved };

static void move(struct request *c, const void *request)
{
	const struct envd_move_request *q = request;
	struct work *w = work_new(c, q->source);
	struct err e = { 0 };

	if (!w)
		return;
	struct file_place place = envd_place(c, w->path);
	w->op.ops = &moved_ops;
	if (envd_path(&c->arena, q->destination, &w->to, &e) < 0 ||
	    files_move(c->core, &c->actor, &place, w->to, true, &w->op, &e) < 0)
		answer_fail(c, &e);
}

/* ---- Remove ---- */

/* What is not there is removed. */
static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = work_of(op);
	if (e && e->code != ERR_NOT_FOUND)
		answer_fail(w->c, e);
	else
		rpc_reply(w->c, &(struct envd_remove_response){ 0 });
}

static const struct file_ops removed_ops = { .done = on_removed };

static void remove_one(struct request *c, const void *request)
{
	const struct envd_remove_request *q = request;
	struct work *w = work_new(c, q->path);
	struct err e = { 0 };

	if (!w)
		return;
	struct file_place place = envd_place(c, w->path);
	w->op.ops = &removed_ops;
	if (files_remove(c->core, &c->actor, &place, true, &w->op, &e) < 0)
		answer_fail(c, &e);
}

/* ---- ListDir ---- */

static struct view join(struct arena *a, struct view dir, struct view name)
{
	char *p = arena_alloc(a, dir.n + name.n + 2);

	if (!p)
		return VIEW_NONE;
	memcpy(p, dir.p, dir.n);
	p[dir.n] = '/';
	memcpy(p + dir.n + 1, name.p, name.n);
	return (struct view){ p, dir.n + 1 + name.n };
}

static int add_entry(struct work *w, const struct file_info *info)
{
	struct arena *a = &w->c->arena;

	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		void *p = realloc(w->entries, cap * sizeof(*w->entries));
		if (!p)
			return -ENOMEM;
		w->entries = p;
		w->cap = cap;
	}
	struct view path = join(a, w->root, info->name);
	struct envd_entry_info *one = path.p ? envd_entry(a, info, path) : NULL;
	if (!one)
		return -ENOMEM;
	w->entries[w->n++] = *one;
	return 0;
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct work *w = work_of(op);

	for (size_t i = 0; i < n; i++)
		if (add_entry(w, &entries[i]) < 0) {
			files_cancel(op);
			out_of_memory(w->c);
			return;
		}
	files_consumed(op, bytes);
}

/* A directory before what is in it, and its entries by name: part by part, as a walk meets them. */
static int by_path(const void *one, const void *other)
{
	struct view a = ((const struct envd_entry_info *)one)->path,
		    b = ((const struct envd_entry_info *)other)->path;
	size_t n = MIN(a.n, b.n);

	for (size_t i = 0; i < n; i++)
		if (a.p[i] != b.p[i]) {
			unsigned x = a.p[i] == '/' ? 0 : (unsigned char)a.p[i];
			unsigned y = b.p[i] == '/' ? 0 : (unsigned char)b.p[i];
			return x < y ? -1 : 1;
		}
	return a.n < b.n ? -1 : a.n > b.n;
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = work_of(op);

	if (e) {
		answer_fail(w->c, e);
		return;
	}
	if (w->n)
		qsort(w->entries, w->n, sizeof(*w->entries), by_path);
	rpc_reply(w->c, &(struct envd_list_dir_response){ .entries = { w->entries, w->n } });
}

static const struct file_ops listed_ops = { .on_entries = on_entries, .done = on_listed };

static void on_before_listed(struct file_op *op, const struct file_info *info, bool created,
			     const struct err *said)
{
	struct work *w = work_of(op);
	struct request *c = w->c;
	struct file_place place = envd_place(c, w->path);
	struct file_page page = { .depth = w->depth };
	struct err e = { 0 };

	if (said) {
		answer_fail(c, said);
		return;
	}
	bool broken = info->type == FILE_TYPE_SYMLINK && !info->resolved.n; /* opening it says why */
	w->root = envd_clean(&c->arena, info->path);
	w->op.ops = &listed_ops;
	if (!is_dir(info) && !broken)
		err_set(&e, ERR_INVALID, "path is not a directory: %.*s", VIEW_ARG(view_head(w->root, 120)));
	if (e.code || files_list(c->core, &c->actor, &place, &page, &w->op, &e) < 0)
		answer_fail(c, &e);
}

static const struct file_ops before_listed_ops = { .done = on_before_listed };

static void list_dir(struct request *c, const void *request)
{
	const struct envd_list_dir_request *q = request;
	struct work *w = work_new(c, q->path);

	if (!w)
		return;
	w->depth = q->depth ? q->depth : 1;
	c->arena.max = MAX(c->arena.max, (size_t)RPC_ANSWER_MAX);
	stat_then(w, w->path, &before_listed_ops);
}

const struct rpc_method envd_fs_methods[] = {
	{ "/filesystem.Filesystem/Stat", RPC_UNARY, &envd_stat_request_msg, &envd_stat_response_msg,
	  stat_one },
	{ "/filesystem.Filesystem/MakeDir", RPC_UNARY, &envd_make_dir_request_msg,
	  &envd_make_dir_response_msg, make_dir },
	{ "/filesystem.Filesystem/Move", RPC_UNARY, &envd_move_request_msg, &envd_move_response_msg, move },
	{ "/filesystem.Filesystem/ListDir", RPC_UNARY, &envd_list_dir_request_msg,
	  &envd_list_dir_response_msg, list_dir },
	{ "/filesystem.Filesystem/Remove", RPC_UNARY, &envd_remove_request_msg, &envd_remove_response_msg,
	  remove_one },
	{ "/filesystem.Filesystem/WatchDir", RPC_SERVER, &envd_watch_dir_request_msg,
	  &envd_watch_dir_response_msg, envd_watch_dir },
	{ "/filesystem.Filesystem/CreateWatcher", RPC_UNARY, &envd_create_watcher_request_msg,
	  &envd_create_watcher_response_msg, envd_create_watcher },
	{ "/filesystem.Filesystem/GetWatcherEvents", RPC_UNARY, &envd_get_watcher_events_request_msg,
	  &envd_get_watcher_events_response_msg, envd_get_watcher_events },
	{ "/filesystem.Filesystem/RemoveWatcher", RPC_UNARY, &envd_remove_watcher_request_msg,
	  &envd_remove_watcher_response_msg, envd_remove_watcher },
	{ 0 },
};
