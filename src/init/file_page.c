/*
 * A page of a directory or a tree, in the order of names, without ever holding
 * more than a page of them: each directory is read as often as needed, keeping
 * the smallest names behind the last one that was used (a heap of at most `limit`
 * names). So a directory of a million entries costs time, not memory, and a page
 * begins where the one before ended by its last path alone.
 *
 * A directory stands before what is in it, and that before the next name.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "clock.h"
#include "dents.h"
#include "fd.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define LIMIT_MAX 1000
#define DEPTH_MAX 64

struct name {
	uint8_t type;
	char text[];
};

struct level {
	int fd;
	struct name **names; /* while it is read: a heap, the greatest first; then in order */
	size_t n, at;
	bool more;      /* there are names behind these */
	bool ready;     /* all of it has been looked at */
	bool inclusive; /* the first name may be `after` itself: it was sent, what is in it was not */
	char after[NAME_MAX + 1]; /* only what is greater */
	size_t path_n;            /* of this directory */
};

struct pager {
	struct stream stream;
	struct user user;
	size_t limit, depth;
	size_t sent;
	bool truncated;
	uint64_t bytes;
	struct level levels[DEPTH_MAX];
	size_t n;
	struct dents dents;
	char path[PATH_MAX];
	char after[PATH_MAX]; /* where the page begins; "": nowhere */
	const char *resume;   /* what is left of it for the next level, or NULL */
	struct buf batch;
};

static struct pager *pager_of(struct stream *s)
{
	return CONTAINER(s, struct pager, stream);
}

static void forget(struct level *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	l->n = l->at = 0;
}

/* ---- the heap --------------------------------------------------------- */

static bool less(const struct name *a, const struct name *b)
{
	return strcmp(a->text, b->text) < 0;
}

static void sift_down(struct name **h, size_t n, size_t i)
{
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= n)
			return;
		if (c + 1 < n && less(h[c], h[c + 1]))
			c++;
		if (!less(h[i], h[c]))
			return;
		struct name *t = h[i];
		h[i] = h[c];
		h[c] = t;
		i = c;
	}
}

static void sift_up(struct name **h, size_t i)
{
	while (i > 0 && less(h[(i - 1) / 2], h[i])) {
		struct name *t = h[i];
		h[i] = h[(i - 1) / 2];
		h[(i - 1) / 2] = t;
		i = (i - 1) / 2;
	}
}

static int keep(struct level *l, size_t limit, const struct dents_entry *d)
{
	size_t len = strlen(d->name) + 1;
	if (l->n == limit) {
		l->more = true;
		if (strcmp(d->name, l->names[0]->text) >= 0)
			return 0;
	}
	struct name *nm = malloc(sizeof(*nm) + len);
	if (!nm)
		return -ENOMEM;
	nm->type = d->type;
	memcpy(nm->text, d->name, len);
	if (l->n < limit) {
		l->names[l->n] = nm;
		sift_up(l->names, l->n++);
	} else {
		free(l->names[0]);
		l->names[0] = nm;
		sift_down(l->names, l->n, 0);
	}
	return 0;
}

static void sort(struct level *l)
{
	for (size_t end = l->n; end > 1; end--) {
		struct name *t = l->names[0];
		l->names[0] = l->names[end - 1];
		l->names[end - 1] = t;
		sift_down(l->names, end - 1, 0);
	}
}

/* ---- levels ----------------------------------------------------------- */

/* Takes fd. */
static int push(struct pager *p, int fd_taken, size_t path_n)
{
	_cleanup_(closep) int fd = fd_taken;
	struct level *l = &p->levels[p->n];
	*l = (struct level){ .fd = -1, .path_n = path_n };
	l->names = reallocarray(NULL, p->limit + 1, sizeof(*l->names));
	if (!l->names)
		return -ENOMEM;
	l->fd = TAKE_FD(fd);
	if (p->resume) {
		struct view rest, first = view_split(view_of(p->resume), '/', &rest);
		if (view_to_str(first, l->after, sizeof(l->after)) < 0)
			l->after[0] = 0;
		l->inclusive = l->after[0] != 0;
		p->resume = rest.n ? rest.p : NULL;
	}
	p->n++;
	dents_reset(&p->dents);
	return 0;
}

static void pop(struct pager *p)
{
	struct level *l = &p->levels[--p->n];
	forget(l);
	free(l->names);
	fd_close(l->fd);
}

/* Looks for the next names; 1: goes on in the next round. */
static int look(struct pager *p, struct level *l, uint64_t until)
{
	for (unsigned i = 1;; i++) {
		struct dents_entry d;
		int r = dents_next(&p->dents, l->fd, &d);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		int order = strcmp(d.name, l->after);
		if (order > 0 || (order == 0 && l->inclusive))
			r = keep(l, p->limit + 1, &d);
		if (r < 0)
			return r;
		if (i % 64 == 0 && clock_mono_ns() >= until)
			return 1;
	}
	sort(l);
	l->ready = true;
	return 0;
}

static int look_again(struct pager *p, struct level *l)
{
	memcpy(l->after, l->names[l->n - 1]->text, strlen(l->names[l->n - 1]->text) + 1);
	forget(l);
	l->more = l->ready = l->inclusive = false;
	dents_reset(&p->dents);
	return lseek(l->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static bool set_path(struct pager *p, const struct level *l, const char *name, size_t *ret_n)
{
	size_t at = l->path_n, n = strlen(name);
	if (at + 1 + n >= sizeof(p->path))
		return false;
	if (at)
		p->path[at++] = '/';
	memcpy(p->path + at, name, n + 1);
	*ret_n = at + n;
	return true;
}

/* Sends the next name and goes into it. 0: the page is full. */
static int use(struct pager *p, struct level *l)
{
	struct name *nm = l->names[l->at++];
	bool known = l->inclusive && strcmp(nm->text, l->after) == 0;
	size_t n;
	if (!set_path(p, l, nm->text, &n))
		return 1;
	if (!known) {
		p->resume = NULL; /* what it led to is gone */
		if (p->sent == p->limit) {
			p->truncated = true;
			return 0;
		}
		int r = file_put_entry(&p->batch, l->fd, nm->text, nm->type, (struct view){ p->path, n },
				       NULL);
		if (r < 0)
			return r;
		p->sent += r == 0;
	}
	if ((nm->type == DT_DIR || nm->type == DT_UNKNOWN) && p->n < p->depth) {
		int fd = walk_open(l->fd, nm->text);
		if (fd >= 0)
			return push(p, fd, n) < 0 ? -ENOMEM : 1;
		if (fd == -EMFILE || fd == -ENFILE)
			return fd;
	}
	if (known)
		p->resume = NULL;
	return 1;
}

/* 0: done, 1: there is more. */
static int advance(struct pager *p, uint64_t until)
{
	struct level *l = &p->levels[p->n - 1];
	if (!l->ready) {
		int r = look(p, l, until);
		if (r != 0)
			return r;
	}
	if (l->at < l->n)
		return use(p, l);
	if (l->more && l->n) {
		int r = look_again(p, l);
		return r < 0 ? r : 1;
	}
	pop(p);
	dents_reset(&p->dents);
	return p->n > 0;
}

static int fill(struct pager *p, size_t room)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	int r = user_enter(&p->user);
	if (r < 0)
		return r;
	do
		r = advance(p, until);
	while (r > 0 && buf_len(&p->batch) + FILE_ENTRY_MAX <= room && clock_mono_ns() < until);
	user_leave();
	return r;
}

static void on_step(struct stream *s)
{
	struct pager *p = pager_of(s);
	size_t room = stream_room(s);
	if (room < FILE_ENTRY_MAX)
		return;
	int r = fill(p, room);
	if (r < 0) {
		file_fail(s, r, "the directory cannot be read to its end");
		return;
	}
	p->bytes += buf_len(&p->batch);
	if (buf_len(&p->batch))
		stream_data(s, 0, buf_view(&p->batch));
	buf_clear(&p->batch);
	struct wire_file_done done = { .bytes = p->bytes, .truncated = p->truncated };
	if (r == 0)
		stream_finish(s, &wire_file_done_msg, &done);
	else
		stream_again(s);
}

static void pager_free(struct stream *s)
{
	struct pager *p = pager_of(s);
	while (p->n)
		pop(p);
	buf_done(&p->batch);
	free(p);
}

static const struct stream_ops pager_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.free = pager_free,
};

int file_page(const struct conn_call *call, const struct user *u, int dir, struct err *e)
{
	const struct wire_file_list *msg = call->msg;
	_cleanup_(closep) int fd = dir;
	if (msg->limit > LIMIT_MAX || msg->depth > DEPTH_MAX)
		return err_set(e, ERR_INVALID, "limit is at most %d, depth %d", LIMIT_MAX, DEPTH_MAX);
	struct pager *p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	p->user = *u;
	p->limit = msg->limit;
	p->depth = msg->depth ? msg->depth : 1;
	buf_init(&p->batch, FRAME_DATA_MAX);
	int r = view_to_str(msg->after, p->after, sizeof(p->after));
	if (r == 0) {
		p->resume = p->after[0] ? p->after : NULL;
		r = push(p, TAKE_FD(fd), 0);
	}
	if (r < 0) {
		pager_free(&p->stream);
		return file_error(e, r, "page");
	}
	stream_open(&p->stream, call, &pager_ops);
	on_step(&p->stream);
	return 0;
}
