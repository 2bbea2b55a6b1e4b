/*
 * Removing: one thing, or a whole tree.
 *
 * A tree is walked by descriptors, never by path and never through a link, for
 * some milliseconds in each round of the loop. The way down is a stack of
 * levels; only the top and the deepest few keep their descriptor, so that a tree may be
 * deeper than the number of open files. The way back up then goes through "..",
 * which must be the directory that we came from: if somebody moved it, we stop.
 * What lies deeper than LIFT_AT is moved to the top of the tree, where it is found later: Landlock
 * looks at every directory above a file, so that a deep tree would take the square of its depth. What
 * cannot be moved (a directory of the image, or of somebody else) is removed where it is.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "remover.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define OPEN_LEVELS 16
#define LIFT_AT     128
#define MAX_LEVELS  20000
#define LIFT_TRIES  100

struct remover_level {
	int fd;     /* -1: closed to save descriptors */
	char *name; /* in the level above */
	dev_t dev;
	ino_t ino;
	off_t pos;     /* where to go on after a subdirectory */
	bool progress; /* something was removed since the last look from the start */
};

/* To the top of the tree, under a name that is free there. */
static int lift(struct remover *rm, int parent, const char *name)
{
	char to[32];
	int r = -EEXIST;

	for (int i = 0; r == -EEXIST && i < LIFT_TRIES; i++) {
		snprintf(to, sizeof(to), ".removed-%u", rm->lifted++);
		r = file_rename(parent, name, rm->levels[0].fd, to, false);
	}
	rm->levels[0].progress = true; /* so that it is looked through again */
	return r;
}

static int descend(struct remover *rm, int parent, const char *name)
{
	struct stat st;

	if (rm->n >= LIFT_AT && lift(rm, parent, name) == 0)
		return 0;
	_cleanup_(closep) int fd = walk_open(parent, name);
	if (fd < 0)
		/* One that may not be read can still go when it is empty. */
		return fd == -EACCES && unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (rm->n && st.st_dev != rm->levels[0].dev)
		return -EBUSY; /* something is mounted there */
	if (rm->n == MAX_LEVELS)
		return -ENAMETOOLONG;
	if (rm->n == rm->cap) {
		size_t cap = rm->cap ? 2 * rm->cap : 16;
		struct remover_level *levels = reallocarray(rm->levels, cap, sizeof(*levels));
		if (!levels)
			return -ENOMEM;
		rm->levels = levels;
		rm->cap = cap;
	}
	char *copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (rm->n > OPEN_LEVELS)
		fd_close(TAKE_FD(rm->levels[rm->n - OPEN_LEVELS].fd));
	rm->levels[rm->n++] =
		(struct remover_level){ .fd = TAKE_FD(fd), .name = copy, .dev = st.st_dev, .ino = st.st_ino };
	dents_reset(&rm->dents);
	return 0;
}

/* Makes sure that the level above the deepest one is open. */
static int reopen_above(struct remover *rm)
{
	struct remover_level *l = &rm->levels[rm->n - 1], *above = l - 1;
	if (rm->n < 2 || above->fd >= 0)
		return 0;
	struct stat st;
	_cleanup_(closep) int fd = walk_open(l->fd, "..");
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != above->dev || st.st_ino != above->ino)
		return -EBUSY;
	above->fd = TAKE_FD(fd);
	above->pos = 0;
	return 0;
}

/* The deepest level is empty, or so it seems: removes it and goes on above. */
static int ascend(struct remover *rm)
{
	struct remover_level *l = &rm->levels[rm->n - 1];
	int r = reopen_above(rm);
	if (r < 0)
		return r;
	int parent = rm->n > 1 ? (l - 1)->fd : rm->top;
	dents_reset(&rm->dents);
	if (unlinkat(parent, l->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		/* Some file systems lose the place when entries vanish: look again from the start. */
		if (errno != ENOTEMPTY || !l->progress)
			return -errno;
		l->progress = false;
		return lseek(l->fd, 0, SEEK_SET) < 0 ? -errno : 0;
	}
	fd_close(l->fd);
	free(l->name);
	if (--rm->n == 0)
		return 0;
	(l - 1)->progress = true;
	return lseek((l - 1)->fd, (l - 1)->pos, SEEK_SET) < 0 ? -errno : 0;
}

/* One entry, or the end of one directory. */
static int advance(struct remover *rm)
{
	struct remover_level *l = &rm->levels[rm->n - 1];
	struct dents_entry d;
	int r = dents_next(&rm->dents, l->fd, &d);
	if (r <= 0)
		return r < 0 ? r : ascend(rm);
	if (d.type != DT_DIR) {
		if (unlinkat(l->fd, d.name, 0) == 0) {
			l->progress = true;
			return 0;
		}
		if (errno != EISDIR)
			return errno == ENOENT ? 0 : -errno;
	}
	l->pos = d.after;
	r = descend(rm, l->fd, d.name);
	return r == -ENOENT ? 0 : r;
}

int remover_work(struct remover *rm, uint64_t until_ns)
{
	int r = 0;
	do {
		for (int i = 0; r == 0 && rm->n && i < 8; i++)
			r = advance(rm);
	} while (r == 0 && rm->n && clock_mono_ns() < until_ns);
	return r < 0 ? r : rm->n > 0;
}

const char *remover_place(const struct remover *rm)
{
	return rm->n ? rm->levels[rm->n - 1].name : "removing";
}

void remover_done(struct remover *rm)
{
	for (size_t i = 0; i < rm->n; i++) {
		fd_close(rm->levels[i].fd);
		free(rm->levels[i].name);
	}
	fd_close(rm->top);
	free(rm->levels);
	*rm = (struct remover){ .top = -1 };
}

int remover_begin(struct remover *rm, int dir, const char *name, bool recursive)
{
	struct stat st;
	*rm = (struct remover){ .top = dir };
	if (fstatat(rm->top, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	bool is_dir = S_ISDIR(st.st_mode);
	if (unlinkat(rm->top, name, is_dir ? AT_REMOVEDIR : 0) == 0)
		return 0;
	if (!is_dir || !recursive || (errno != ENOTEMPTY && errno != EEXIST))
		return -errno;
	int r = descend(rm, rm->top, name);
	return r < 0 ? r : rm->n > 0;
}

/* ---- the operation ---------------------------------------------------- */

struct removal {
	struct stream stream;
	struct user user;
	struct remover rm;
};

static struct removal *removal_of(struct stream *s)
{
	return CONTAINER(s, struct removal, stream);
}

static void on_step(struct stream *s)
{
	struct removal *rl = removal_of(s);
	int r = user_enter(&rl->user);
	if (r == 0) {
		r = remover_work(&rl->rm, clock_mono_ns() + FILE_STEP_NS);
		user_leave();
	}
	if (r < 0)
		file_fail(s, r, remover_place(&rl->rm));
	else if (r > 0)
		stream_again(s);
	else
		stream_finish(s, &wire_file_removed_msg, &(struct wire_file_removed){ 0 });
}

static void on_cancel(struct stream *s, bool lost)
{
	struct err e;
	err_set(&e, ERR_CANCELLED, "cancelled: part of the tree is removed");
	if (!lost)
		stream_fail(s, &e);
}

static void removal_free(struct stream *s)
{
	struct removal *rl = removal_of(s);
	remover_done(&rl->rm);
	free(rl);
}

static const struct stream_ops removal_ops = {
	.on_step = on_step,
	.on_cancel = on_cancel,
	.free = removal_free,
};

/* As the user. 1: a tree to walk. */
static int begin(struct removal *rl, char *path, const char **ret_name, bool recursive)
{
	const char *dir;
	int r = file_split(path, &dir, ret_name);
	if (r < 0)
		return r;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : remover_begin(&rl->rm, fd, *ret_name, recursive);
}

int file_remove(const struct conn_call *call, struct err *e)
{
	const struct wire_file_remove *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	struct removal *rl = calloc(1, sizeof(*rl));
	const char *name = t.path;
	int r = -ENOMEM;
	if (rl) {
		rl->rm.top = -1;
		rl->user = t.user;
		r = begin(rl, t.path, &name, msg->recursive);
	}
	user_leave();
	if (r > 0) {
		stream_open(&rl->stream, call, &removal_ops);
		on_step(&rl->stream);
		return 0;
	}
	if (rl)
		removal_free(&rl->stream);
	if (r < 0)
		return file_error(e, r, name);
	conn_reply(call, &wire_file_removed_msg, &(struct wire_file_removed){ 0 });
	return 0;
}
