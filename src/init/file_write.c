/*
 * Writing a file: into a new one beside it, which takes its name at END. A
 * reader sees the old content or the new, never half; a write that is cancelled
 * or fails leaves nothing. Appending is different: bytes go to the end of the
 * file itself as they come, and stay.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fd.h"
#include "rnd.h"
#include "stream.h"
#include "wire_gen.h"
#include "poison.h"

/* Behind the prefix: 'o' when it will replace a file, 'n' when there is none. Who watches the
 * directory can tell by it what the rename means. */
#define TEMP_PREFIX ".paddock-"
#define TEMP_RANDOM 12

struct writer {
	struct stream stream;
	struct user user;
	int dir; /* of the file; the names below are in it */
	int fd;  /* of the new file, -1 after it was renamed or removed */
	char temp[sizeof(TEMP_PREFIX) + 1 + TEMP_RANDOM];
	char path[PATH_MAX]; /* absolute; with detail */
	char name[NAME_MAX + 1];
	bool existed;
	bool append; /* fd is the file itself */
	bool exclusive;
	bool detail;
	struct stat old;
	uint32_t mode; /* as asked for, 0: none */
};

static struct writer *writer_of(struct stream *s)
{
	return CONTAINER(s, struct writer, stream);
}

/* Removes the new file, if it is still there. */
static void undo(struct writer *w)
{
	if (w->fd < 0)
		return;
	if (w->append) {
		fd_close(TAKE_FD(w->fd));
		return;
	}
	bool entered = user_enter(&w->user) == 0;
	(void)unlinkat(w->dir, w->temp, 0);
	if (entered)
		user_leave();
	fd_close(TAKE_FD(w->fd));
}

static void fail(struct writer *w, int error)
{
	struct err e;
	undo(w);
	file_error(&e, error, w->name);
	stream_fail(&w->stream, &e);
}

static void on_data(struct stream *s, struct view data)
{
	struct writer *w = writer_of(s);
	int r = fd_write_all(w->fd, data.p, data.n);
	if (r < 0)
		fail(w, r);
	else
		stream_consumed(s, data.n);
}

/* Owner and mode of the file that is replaced, as far as the user may; never its
 * set-id bits, which the kernel takes from a file that is written to as well. */
static int dress(struct writer *w)
{
	uint32_t mode = w->mode ? w->mode & 07777 : w->existed ? w->old.st_mode & 01777 : 0644;
	struct stat st;
	if (fstat(w->fd, &st) < 0)
		return -errno;
	/* With root's rights it becomes the user's, whoever had it. */
	bool same =
		!w->existed || w->user.as_root || (st.st_uid == w->old.st_uid && st.st_gid == w->old.st_gid);
	if (!same && fchown(w->fd, w->old.st_uid, w->old.st_gid) < 0)
		mode &= 01777; /* those asked for were meant for the old owner */
	return fchmod(w->fd, mode) < 0 ? -errno : 0;
}

static int publish(struct writer *w, struct stat *ret)
{
	if (w->append)
		return fstat(w->fd, ret) < 0 ? -errno : 0;
	int r = user_enter(&w->user);
	if (r < 0)
		return r;
	r = dress(w);
	if (r == 0 && fstat(w->fd, ret) < 0)
		r = -errno;
	if (r == 0)
		r = file_rename(w->dir, w->temp, w->dir, w->name, !w->exclusive);
	user_leave();
	return r;
}

static void on_end(struct stream *s)
{
	struct writer *w = writer_of(s);
	struct stat st;
	int r = publish(w, &st);
	if (r < 0) {
		fail(w, r);
		return;
	}
	fd_close(TAKE_FD(w->fd));
	struct wire_file_info info;
	struct wire_env_var metadata[FILE_METADATA_N];
	struct file_detail detail = { .metadata = metadata };
	_cleanup_(user_names_done) struct user_names names = { 0 };
	file_info(&st, view_of(w->name), &info);
	if (w->detail && user_enter(&w->user) == 0) {
		user_names_load(&names);
		file_detail(AT_FDCWD, w->path, &names, &detail, &info);
		user_leave();
		info.path = view_of(w->path);
	}
	struct wire_file_written msg = { .info = &info, .created = !w->existed };
	stream_finish(s, &wire_file_written_msg, &msg);
}

static void on_cancel(struct stream *s, bool lost)
{
	struct err e;
	undo(writer_of(s));
	err_set(&e, ERR_CANCELLED, "cancelled");
	if (!lost)
		stream_fail(s, &e);
}

static void writer_free(struct stream *s)
{
	struct writer *w = writer_of(s);
	undo(w);
	fd_close(w->dir);
	free(w);
}

static const struct stream_ops writer_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_cancel = on_cancel,
	.free = writer_free,
};

/* ---- the beginning; all as the user ----------------------------------- */

/* Whether a file that is there may be replaced: as far as write permission goes. */
static int check_old(const struct stat *st, const char *path, struct err *e)
{
	if (S_ISDIR(st->st_mode))
		return err_set(e, ERR_INVALID, "'%.120s' is a directory", path);
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_INVALID, "'%.120s' is not a regular file", path);
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ETXTBSY) /* a running program may be replaced, not overwritten */
		return file_error(e, errno, path);
	return 0;
}

/* What stands at `path`; a symlink is replaced by what it leads to. */
static int look(struct writer *w, char path[PATH_MAX], struct err *e)
{
	if (lstat(path, &w->old) < 0)
		return errno == ENOENT ? 0 : file_error(e, errno, path);
	if (S_ISLNK(w->old.st_mode)) {
		char *real = realpath(path, NULL);
		if (!real && errno == ENOENT)
			return err_sys(e, ERR_NOT_FOUND, ENOENT, "'%.100s' is a symlink that leads nowhere",
				       path);
		if (!real)
			return file_error(e, errno, path);
		int n = snprintf(path, PATH_MAX, "%s", real);
		free(real);
		if (n >= PATH_MAX || lstat(path, &w->old) < 0)
			return file_error(e, n >= PATH_MAX ? ENAMETOOLONG : errno, path);
	}
	w->existed = true;
	return w->exclusive ? file_error(e, EEXIST, path) : check_old(&w->old, path, e);
}

/* The file itself, for appending; no link is followed, `look` has done that. */
static int open_end(struct writer *w, struct err *e)
{
	int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	w->fd = openat(w->dir, w->name, flags | (w->existed ? 0 : O_CREAT), 0644);
	struct stat st;
	if (w->fd < 0 || fstat(w->fd, &st) < 0)
		return file_error(e, errno, w->name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%.120s' is not a regular file", w->name);
	if (!w->existed && w->mode && fchmod(w->fd, w->mode & 07777) < 0)
		return file_error(e, errno, w->name);
	return 0;
}

static int open_beside(struct writer *w, char *path, bool parents, struct err *e)
{
	const char *dir, *name;
	size_t n = strlen(path);
	if (path[n - 1] == '/')
		return err_set(e, ERR_INVALID, "'%.120s' is the name of a directory", path);
	int r = parents && !w->existed ? file_make_parents(path) : 0;
	if (r < 0)
		return file_error(e, r, path);
	if (file_split(path, &dir, &name) < 0)
		return err_set(e, ERR_INVALID, "'%.120s' is not the name of a file", path);
	if (view_to_str(view_of(name), w->name, sizeof(w->name)) < 0)
		return file_error(e, ENAMETOOLONG, name);
	w->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->dir < 0)
		return file_error(e, errno, dir);
	if (w->append)
		return open_end(w, e);
	memcpy(w->temp, TEMP_PREFIX, sizeof(TEMP_PREFIX));
	w->temp[strlen(TEMP_PREFIX)] = w->existed ? 'o' : 'n';
	rnd_name(w->temp + strlen(TEMP_PREFIX) + 1, TEMP_RANDOM);
	w->fd = openat(w->dir, w->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return w->fd < 0 ? file_error(e, errno, dir) : 0;
}

int file_write(const struct conn_call *call, struct err *e)
{
	const struct wire_file_write *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	struct writer *w = calloc(1, sizeof(*w));
	if (!w) {
		user_leave();
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	}
	w->dir = w->fd = -1;
	w->mode = msg->mode;
	w->append = msg->append;
	w->exclusive = msg->exclusive;
	w->user = t.user;
	w->detail = msg->detail;
	memcpy(w->path, t.path, sizeof(w->path));
	int r = file_within(t.path, msg->within.items, msg->within.n, e);
	if (r == 0)
		r = look(w, t.path, e);
	if (r == 0)
		r = open_beside(w, t.path, msg->parents, e);
	if (r == 0 && msg->metadata.n) {
		int x = msg->append ? -EINVAL
				    : file_set_metadata(w->fd, msg->metadata.items, msg->metadata.n);
		r = x < 0 ? file_error(e, x, "metadata") : 0;
	}
	user_leave();
	if (r < 0) {
		writer_free(&w->stream);
		return -1;
	}
	stream_open(&w->stream, call, &writer_ops);
	return 0;
}
