/*
 * Watching a file, a directory or a tree by inotify.
 *
 * A tree needs a watch for each of its directories: they are added by a walk in
 * steps, and by another one for every directory that appears (what that walk
 * finds is told as created, since it may have come before the watch). While the
 * caller has no room nothing is read: the kernel's queue is the only one, and
 * when it overflows the caller is told so and the tree is walked again.
 *
 * No descriptor of what is watched is kept: it would keep the thing itself, and
 * its end would not be told.
 *
 * Both halves of a rename come one after the other; a first half that stands
 * alone for a moment is a removal, a second half alone a creation.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include "clock.h"
#include "fd.h"
#include "list.h"
#include "map.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define READ_SIZE   16384
#define EVENT_MAX   (2 * PATH_MAX + 64) /* encoded */
#define WATCHES_MAX 65536
#define RENAME_MS   20
#define MASK                                                                                                 \
	(IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |      \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)

/* A watched directory (or the one file). */
struct watch {
	struct map_node node; /* by wd */
	int wd;
	struct list order;
	char path[]; /* relative to the root; "" is the root */
};

/* A directory that is still to be walked. */
struct pending {
	struct list order;
	bool tell; /* what is found is new */
	char path[];
};

struct watcher {
	struct stream stream;
	struct user user;
	struct loop_io io;
	char root[PATH_MAX];
	dev_t dev; /* of it */
	ino_t ino;
	bool recursive, is_dir, started, gone;
	struct map watches;
	struct list order, todo;
	struct walk walk;
	char base[PATH_MAX]; /* of the walk, relative to the root */
	bool walk_tells;
	struct buf batch;
	/* what has been read and not handled */
	char *room;
	size_t at, n;
	/* the first half of a rename */
	uint32_t cookie;
	bool old_is_dir;
	char old_path[PATH_MAX];
	struct loop_timer timer;
	/* the last write that was told in this batch: the same one again says nothing */
	char last_write[PATH_MAX];
	bool has_last_write;
	uint64_t sent;
};

static struct watcher *watcher_of(struct stream *s)
{
	return CONTAINER(s, struct watcher, stream);
}

/* ---- telling ---------------------------------------------------------- */

static int tell(struct watcher *w, int32_t kind, const char *path, const char *old, bool directory)
{
	if (kind == WIRE_FILE_EVENT_WRITE) {
		if (w->has_last_write && strcmp(w->last_write, path) == 0)
			return 0;
		memcpy(w->last_write, path, strlen(path) + 1);
	}
	w->has_last_write = kind == WIRE_FILE_EVENT_WRITE;
	struct wire_file_event ev = {
		.kind = kind, .path = view_of(path), .old_path = view_of(old), .directory = directory
	};
	struct wire_file_events one = { .events = { .items = &ev, .n = 1 } };
	return pb_encode(&wire_file_events_msg, &one, &w->batch);
}

static bool join(char dst[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(dst, PATH_MAX, "%s%s%s", dir, *dir && *name ? "/" : "", name);
	return n >= 0 && n < PATH_MAX;
}

/* ---- watches ---------------------------------------------------------- */

static struct watch *find_watch(struct watcher *w, int wd)
{
	struct map_node *n = map_get(&w->watches, (struct view){ (const char *)&wd, sizeof(wd) });
	return n ? CONTAINER(n, struct watch, node) : NULL;
}

static void forget(struct watcher *w, struct watch *wt)
{
	map_del(&w->watches, &wt->node);
	list_del(&wt->order);
	free(wt);
}

/* By descriptor, so that no link is followed. */
static int add_watch(struct watcher *w, int fd, const char *path)
{
	char proc[32];
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (w->watches.n >= WATCHES_MAX)
		return -ENOSPC;
	int wd = inotify_add_watch(w->io.fd, proc, MASK);
	if (wd < 0)
		return -errno;
	struct watch *old = find_watch(w, wd);
	if (old && strcmp(old->path, path) == 0)
		return 0;
	if (old)
		forget(w, old);
	size_t n = strlen(path) + 1;
	struct watch *wt = malloc(sizeof(*wt) + n);
	if (!wt)
		return -ENOMEM;
	wt->wd = wd;
	memcpy(wt->path, path, n);
	list_append(&w->order, &wt->order);
	int r = map_put(&w->watches, &wt->node, (struct view){ (const char *)&wt->wd, sizeof(wt->wd) });
	if (r < 0) {
		list_del(&wt->order);
		free(wt);
	}
	return r;
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);
	return strncmp(path, top, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* A directory has left the tree: nothing below it is of interest any more. */
static void drop_below(struct watcher *w, const char *path)
{
	LIST_EACH (it, &w->order) {
		struct watch *wt = CONTAINER(it, struct watch, order);
		if (is_below(wt->path, path)) {
			(void)inotify_rm_watch(w->io.fd, wt->wd);
			forget(w, wt);
		}
	}
}

static int plan_walk(struct watcher *w, const char *path, bool tells)
{
	size_t n = strlen(path) + 1;
	struct pending *p = malloc(sizeof(*p) + n);
	if (!p)
		return -ENOMEM;
	p->tell = tells;
	memcpy(p->path, path, n);
	list_append(&w->todo, &p->order);
	return 0;
}

/* The root, as long as its path leads there. */
static int open_root(struct watcher *w, int flags)
{
	struct stat st;
	_cleanup_(closep) int fd = open(w->root, flags | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == w->dev && st.st_ino == w->ino ? TAKE_FD(fd) : -ENOENT;
}

/* The next directory that is to be walked. It may be gone, which is no error. */
static int begin_walk(struct watcher *w)
{
	struct pending *p = CONTAINER(w->todo.next, struct pending, order);
	memcpy(w->base, p->path, strlen(p->path) + 1);
	w->walk_tells = p->tell;
	list_del(&p->order);
	free(p);
	_cleanup_(closep) int root = open_root(w, O_PATH);
	int fd = root < 0 ? root : file_open_beneath(root, w->base, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	int r = add_watch(w, fd, w->base);
	if (r == 0)
		return walk_start(&w->walk, fd);
	fd_close(fd);
	return r == -ENOSPC ? tell(w, WIRE_FILE_EVENT_OVERFLOW, w->base, "", true) : r == -EACCES ? 0 : r;
}

static int step_walk(struct watcher *w)
{
	struct walk_entry en;
	char path[PATH_MAX];
	int r = walk_next(&w->walk, &en);
	if (r < 0) {
		walk_done(&w->walk); /* it changes under our feet: what is gone is told by events */
		return 0;
	}
	if (r != WALK_ENTRY || !join(path, w->base, w->walk.path))
		return 0;
	if (w->walk_tells) {
		r = tell(w, WIRE_FILE_EVENT_CREATE, path, "", en.type == DT_DIR);
		if (r < 0)
			return r;
	}
	if (en.type != DT_DIR || walk_enter(&w->walk) < 0)
		return 0;
	r = add_watch(w, w->walk.levels[w->walk.n - 1].fd, path);
	if (r == -ENOSPC)
		return tell(w, WIRE_FILE_EVENT_OVERFLOW, path, "", true);
	return r == -EACCES || r == -ENOENT ? 0 : r;
}

/* ---- events ----------------------------------------------------------- */

static int flush_rename(struct watcher *w)
{
	if (!w->cookie)
		return 0;
	w->cookie = 0;
	loop_timer_stop(&w->timer);
	if (w->old_is_dir)
		drop_below(w, w->old_path);
	return tell(w, WIRE_FILE_EVENT_REMOVE, w->old_path, "", w->old_is_dir);
}

static void on_timer(struct loop_timer *t)
{
	stream_again(&CONTAINER(t, struct watcher, timer)->stream);
}

static int on_new_dir(struct watcher *w, const char *path)
{
	return w->recursive ? plan_walk(w, path, true) : 0;
}

/* Both halves are known. The directories below have new paths: their watches are made anew. */
static int on_renamed(struct watcher *w, const char *path, bool directory)
{
	char old[PATH_MAX];
	memcpy(old, w->old_path, strlen(w->old_path) + 1);
	w->cookie = 0;
	loop_timer_stop(&w->timer);
	int r = tell(w, WIRE_FILE_EVENT_RENAME, path, old, directory);
	if (r == 0 && directory && w->recursive) {
		drop_below(w, old);
		r = plan_walk(w, path, false);
	}
	return r;
}

static int on_self(struct watcher *w, struct watch *wt, const struct inotify_event *ev)
{
	bool root = !wt->path[0];
	if (ev->mask & IN_IGNORED) {
		forget(w, wt);
		return 0;
	}
	if (!root)
		return 0; /* its parent tells */
	if (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
		w->gone = true;
		return tell(w, WIRE_FILE_EVENT_REMOVE, "", "", w->is_dir);
	}
	if (ev->mask & IN_ATTRIB)
		return tell(w, WIRE_FILE_EVENT_CHMOD, "", "", w->is_dir);
	if ((ev->mask & (IN_MODIFY | IN_CLOSE_WRITE)) && !w->is_dir)
		return tell(w, WIRE_FILE_EVENT_WRITE, "", "", false);
	return 0;
}

static int on_named(struct watcher *w, const char *path, const struct inotify_event *ev)
{
	bool directory = ev->mask & IN_ISDIR;
	int r = 0;
	if (ev->mask & IN_MOVED_FROM) {
		w->cookie = ev->cookie;
		w->old_is_dir = directory;
		memcpy(w->old_path, path, strlen(path) + 1);
		loop_timer_start(w->stream.init->loop, &w->timer, RENAME_MS, on_timer);
		return 0;
	}
	if (ev->mask & (IN_CREATE | IN_MOVED_TO)) {
		r = tell(w, WIRE_FILE_EVENT_CREATE, path, "", directory);
		return r == 0 && directory ? on_new_dir(w, path) : r;
	}
	if (ev->mask & IN_DELETE)
		return tell(w, WIRE_FILE_EVENT_REMOVE, path, "", directory);
	if (ev->mask & IN_ATTRIB)
		return tell(w, WIRE_FILE_EVENT_CHMOD, path, "", directory);
	if ((ev->mask & (IN_MODIFY | IN_CLOSE_WRITE)) && !directory)
		return tell(w, WIRE_FILE_EVENT_WRITE, path, "", false);
	return 0;
}

static int handle(struct watcher *w, const struct inotify_event *ev)
{
	char path[PATH_MAX];
	int r = 0;
	if (ev->mask & IN_Q_OVERFLOW) {
		r = flush_rename(w);
		if (r == 0)
			r = tell(w, WIRE_FILE_EVENT_OVERFLOW, "", "", false);
		return r == 0 && w->recursive ? plan_walk(w, "", false) : r;
	}
	struct watch *wt = find_watch(w, ev->wd);
	if (!wt)
		return 0; /* of a watch that was just removed */
	bool pair = w->cookie && ev->len && (ev->mask & IN_MOVED_TO) && ev->cookie == w->cookie;
	if (!pair)
		r = flush_rename(w);
	wt = find_watch(w, ev->wd); /* the flush may have dropped it */
	if (r < 0 || !wt)
		return r;
	if (ev->len == 0)
		return on_self(w, wt, ev);
	if (!join(path, wt->path, ev->name))
		return 0;
	return pair ? on_renamed(w, path, ev->mask & IN_ISDIR) : on_named(w, path, ev);
}

/* One event; 0: there is none. */
static int step_events(struct watcher *w)
{
	if (w->at == w->n) {
		ssize_t n = read(w->io.fd, w->room, READ_SIZE);
		if (n <= 0)
			return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
		w->n = (size_t)n;
		w->at = 0;
	}
	const struct inotify_event *ev = (const void *)(w->room + w->at);
	w->at += sizeof(*ev) + ev->len;
	int r = handle(w, ev);
	return r < 0 ? r : 1;
}

/* ---- the stream ------------------------------------------------------- */

/* Walks first: a directory that is not watched loses events. 0: nothing to do. */
static int advance(struct watcher *w)
{
	int r;
	if (w->walk.n)
		r = step_walk(w);
	else if (!list_empty(&w->todo))
		r = begin_walk(w);
	else
		return w->gone ? 0 : step_events(w);
	return r < 0 ? r : 1;
}

static int fill(struct watcher *w, size_t room)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	int r = user_enter(&w->user);
	if (r < 0)
		return r;
	if (w->cookie && !loop_timer_active(&w->timer))
		r = flush_rename(w);
	while (r == 0) {
		if (buf_len(&w->batch) + 2 * EVENT_MAX > room)
			break;
		r = advance(w);
		if (r <= 0)
			break;
		r = clock_mono_ns() >= until;
		if (r)
			break;
	}
	user_leave();
	return r;
}

static void say_started(struct watcher *w)
{
	if (w->started || w->walk.n || !list_empty(&w->todo))
		return;
	w->started = true;
	stream_reply(&w->stream, &wire_file_watching_msg, &(struct wire_file_watching){ 0 });
}

/* Asks for events only while they can be told. */
static void on_step(struct stream *s)
{
	struct watcher *w = watcher_of(s);
	size_t room = stream_room(s);
	int r = 1;
	if (room < 2 * EVENT_MAX) {
		r = loop_io_want(&w->io, 0); /* on_ready comes back */
		(void)r;
		return;
	}
	r = fill(w, room);
	if (r < 0) {
		file_fail(s, r, w->base);
		return;
	}
	say_started(w);
	w->sent += buf_len(&w->batch);
	if (buf_len(&w->batch))
		stream_data(s, 0, buf_view(&w->batch));
	buf_clear(&w->batch);
	w->has_last_write = false;
	if (r == 0 && w->gone) {
		stream_finish(s, &wire_file_done_msg, &(struct wire_file_done){ .bytes = w->sent });
		return;
	}
	if (r > 0 || w->at < w->n || w->walk.n || !list_empty(&w->todo))
		stream_again(s);
	else
		r = loop_io_want(&w->io, EPOLLIN);
}

static void on_event(struct loop_io *io, uint32_t events)
{
	on_step(&CONTAINER(io, struct watcher, io)->stream);
}

static void watcher_stop(struct stream *s)
{
	struct watcher *w = watcher_of(s);
	int fd = w->io.fd;
	loop_timer_stop(&w->timer);
	loop_io_stop(&w->io);
	fd_close(fd);
}

static void watcher_free(struct stream *s)
{
	struct watcher *w = watcher_of(s);
	LIST_EACH (it, &w->order)
		forget(w, CONTAINER(it, struct watch, order));
	LIST_EACH (it, &w->todo) {
		list_del(it);
		free(CONTAINER(it, struct pending, order));
	}
	map_done(&w->watches);
	walk_done(&w->walk);
	buf_done(&w->batch);
	free(w->room);
	free(w);
}

static const struct stream_ops watcher_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.stop = watcher_stop,
	.free = watcher_free,
};

/* ---- the beginning ---------------------------------------------------- */

static struct watcher *watcher_new(void)
{
	struct watcher *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->room = malloc(READ_SIZE);
	w->io.fd = -1;
	map_init(&w->watches);
	list_init(&w->order);
	list_init(&w->todo);
	buf_init(&w->batch, FRAME_DATA_MAX);
	if (w->room)
		return w;
	watcher_free(&w->stream);
	return NULL;
}

/* As the user. */
static int begin(struct watcher *w, struct loop *loop, const char *path)
{
	struct stat st;
	_cleanup_(closep) int root = open(path, O_PATH | O_CLOEXEC);
	if (root < 0 || fstat(root, &st) < 0)
		return -errno;
	memcpy(w->root, path, strlen(path) + 1);
	w->dev = st.st_dev;
	w->ino = st.st_ino;
	w->is_dir = S_ISDIR(st.st_mode);
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	int r = fd < 0 ? -errno : loop_io_start(loop, &w->io, fd, EPOLLIN, on_event);
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	r = add_watch(w, root, "");
	w->recursive &= w->is_dir;
	return r == 0 && w->recursive ? plan_walk(w, "", false) : r;
}

int file_watch(const struct conn_call *call, struct err *e)
{
	const struct wire_file_watch *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	struct watcher *w = watcher_new();
	int r = -ENOMEM;
	if (w) {
		w->user = t.user;
		w->recursive = msg->recursive;
		r = begin(w, call->conn->init->loop, t.path);
	}
	user_leave();
	if (r < 0) {
		if (w) {
			watcher_stop(&w->stream);
			watcher_free(&w->stream);
		}
		return r == -ENOSPC || r == -EMFILE
			       ? err_sys(e, ERR_UNAVAILABLE, r, "the sandbox has no watches left")
			       : file_error(e, r, t.path);
	}
	stream_open(&w->stream, call, &watcher_ops);
	on_step(&w->stream);
	return 0;
}
