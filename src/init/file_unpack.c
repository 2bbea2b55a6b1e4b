/*
 * TreeWrite: a tar archive, unpacked below a directory as it comes, with the
 * user's rights. An archive is somebody else's: no name in it leads out of the
 * directory. Every parent is opened below it without following a single link
 * (openat2), so neither ".." nor a link that the archive itself has made gets
 * anywhere; such entries, devices and what we do not know are skipped and
 * counted. Hard links may only be to what is below as well.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fd.h"
#include "stream.h"
#include "tar.h"
#include "wire_gen.h"
#include "poison.h"

#define LATER_MAX 4096

/* A directory whose mode would keep us out: it gets it at the end. */
struct later {
	uint32_t mode;
	char path[];
};

struct unpacker {
	struct stream stream;
	struct user user;
	int root;
	struct tar_reader tar;
	/* the parent that was used last */
	int dir;
	char dir_path[PATH_MAX];
	/* the file at hand */
	int fd;                 /* -1: its bytes are dropped */
	uint64_t left, padding; /* of its bytes */
	struct tar_entry entry; /* its views are not used any more */
	char path[PATH_MAX];    /* of the entry at hand; in errors */
	struct later **later;
	size_t n_later;
	struct wire_tree_done sum;
};

static struct unpacker *unpacker_of(struct stream *s)
{
	return CONTAINER(s, struct unpacker, stream);
}

/* ---- names ------------------------------------------------------------ */

/* Without "." and double slashes. False: absolute, "..", or too long. */
static bool clean_path(struct view v, char ret[PATH_MAX])
{
	size_t n = 0;
	if (v.n == 0 || v.p[0] == '/')
		return false;
	while (v.p) {
		struct view part = view_split(v, '/', &v);
		if (part.n == 0 || view_is(part, "."))
			continue;
		if (view_is(part, "..") || part.n > NAME_MAX || n + part.n + 2 > PATH_MAX)
			return false;
		if (n)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = 0;
	return true;
}

/* Errors that mean: the way there is not ours to go. */
static bool leads_out(int r)
{
	return r == -ELOOP || r == -EXDEV || r == -ENOTDIR;
}

/* Opens a directory below the root, making what is missing. */
static int open_made(struct unpacker *u, const char *path)
{
	int fd = file_open_beneath(u->root, path, O_PATH | O_DIRECTORY);
	if (fd != -ENOENT)
		return fd;
	fd = file_open_beneath(u->root, "", O_PATH | O_DIRECTORY);
	for (struct view rest = view_of(path); fd >= 0 && rest.p;) {
		char name[NAME_MAX + 1];
		_cleanup_(closep) int parent = fd;
		fd = view_to_str(view_split(rest, '/', &rest), name, sizeof(name));
		if (fd == 0 && mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
			fd = -errno;
		if (fd == 0)
			fd = file_open_beneath(parent, name, O_PATH | O_DIRECTORY);
	}
	return fd;
}

/* The directory that is to hold `path`, and the last name in it. */
static int open_parent(struct unpacker *u, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	*ret_name = slash ? slash + 1 : path;
	if (u->dir >= 0 && strlen(u->dir_path) == n && memcmp(u->dir_path, path, n) == 0)
		return 0;
	fd_close(TAKE_FD(u->dir));
	memcpy(u->dir_path, path, n);
	u->dir_path[n] = 0;
	u->dir = open_made(u, u->dir_path);
	return u->dir < 0 ? u->dir : 0;
}

/* ---- entries ---------------------------------------------------------- */

/* Removes what is in the way; a directory stays, and is an error. */
static int clear_way(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static mode_t mode_for(const struct unpacker *u, const struct tar_entry *en, mode_t mask)
{
	/* Set-id bits only with the owner that they were meant for. */
	return en->mode & (u->user.uid == 0 ? 07777 : mask);
}

static int make_file(struct unpacker *u, const char *name)
{
	int r = clear_way(u->dir, name);
	if (r < 0)
		return r;
	u->fd = openat(u->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return u->fd < 0 ? -errno : 0;
}

/* Owner, mode and time of a file that is complete. */
static int dress(struct unpacker *u)
{
	const struct tar_entry *en = &u->entry;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = en->mtime } };
	if (u->user.uid == 0 && fchown(u->fd, en->uid, en->gid) < 0)
		return -errno;
	if (fchmod(u->fd, mode_for(u, en, 01777)) < 0)
		return -errno;
	(void)futimens(u->fd, times); /* a time that the file system does not know */
	return 0;
}

static int finish_file(struct unpacker *u)
{
	if (u->fd < 0)
		return 0;
	int r = dress(u);
	fd_close(TAKE_FD(u->fd));
	u->sum.files++;
	return r;
}

static int remember(struct unpacker *u, const char *path, mode_t mode)
{
	size_t n = strlen(path) + 1;
	if (u->n_later == LATER_MAX)
		return 0; /* the rest stays open to its owner */
	if (!u->later && !(u->later = calloc(LATER_MAX, sizeof(struct later *))))
		return -ENOMEM;
	struct later *l = malloc(sizeof(*l) + n);
	if (!l)
		return -ENOMEM;
	l->mode = mode;
	memcpy(l->path, path, n);
	u->later[u->n_later++] = l;
	return 0;
}

static int make_dir(struct unpacker *u, const char *path, const char *name)
{
	const struct tar_entry *en = &u->entry;
	mode_t mode = mode_for(u, en, 01777);
	if (mkdirat(u->dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(closep) int fd = file_open_beneath(u->dir, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (u->user.uid == 0 && fchown(fd, en->uid, en->gid) < 0)
		return -errno;
	if (fchmod(fd, mode | 0700) < 0)
		return errno == EPERM ? 0 : -errno; /* it was there, and is somebody else's */
	u->sum.directories++;
	return (mode & 0700) == 0700 ? 0 : remember(u, path, mode);
}

static int make_symlink(struct unpacker *u, const char *name, struct view target)
{
	char text[PATH_MAX];
	if (target.n == 0 || view_to_str(target, text, sizeof(text)) < 0)
		return -ENAMETOOLONG;
	int r = clear_way(u->dir, name);
	if (r == 0 && symlinkat(text, u->dir, name) < 0)
		r = -errno;
	if (r == 0 && u->user.uid == 0 &&
	    fchownat(u->dir, name, u->entry.uid, u->entry.gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	u->sum.files += r == 0;
	return r;
}

/* 1: its target is not one that we link to. */
static int make_link(struct unpacker *u, const char *name, struct view target)
{
	char path[PATH_MAX], *slash;
	if (!clean_path(target, path) || !path[0])
		return 1;
	slash = strrchr(path, '/');
	if (slash)
		*slash = 0;
	_cleanup_(closep) int dir = file_open_beneath(u->root, slash ? path : "", O_PATH | O_DIRECTORY);
	if (dir < 0)
		return leads_out(dir) || dir == -ENOENT ? 1 : dir;
	struct stat st, old;
	const char *from = slash ? slash + 1 : path;
	if (fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 1 : -errno;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return 1;
	if (fstatat(u->dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_dev == st.st_dev &&
	    old.st_ino == st.st_ino)
		return 0;
	int r = clear_way(u->dir, name);
	if (r == 0 && linkat(dir, from, u->dir, name, 0) < 0)
		r = -errno;
	u->sum.files += r == 0;
	return r;
}

static int make_fifo(struct unpacker *u, const char *name)
{
	int r = clear_way(u->dir, name);
	if (r == 0 && mkfifoat(u->dir, name, mode_for(u, &u->entry, 0777)) < 0)
		r = -errno;
	u->sum.files += r == 0;
	return r;
}

static int make_entry(struct unpacker *u, const struct tar_entry *en, const char *path, const char *name)
{
	switch (en->type) {
	case TAR_FILE:
		return make_file(u, name);
	case TAR_DIRECTORY:
		return make_dir(u, path, name);
	case TAR_SYMLINK:
		return make_symlink(u, name, en->target);
	case TAR_LINK:
		return make_link(u, name, en->target);
	case TAR_FIFO:
		return make_fifo(u, name);
	case TAR_CHAR:
	case TAR_BLOCK_DEVICE:
	case TAR_OTHER:
		break;
	}
	return 1;
}

/* Its bytes are next; where it is skipped they are dropped. */
static int begin_entry(struct unpacker *u, const struct tar_entry *en)
{
	const char *name;
	u->entry = *en;
	u->left = en->size;
	u->padding = tar_padding(en->size);
	if (!clean_path(en->path, u->path)) {
		u->path[0] = 0;
		u->sum.skipped++;
		return 0;
	}
	if (!u->path[0] && en->type == TAR_DIRECTORY)
		return 0; /* "./", the root itself */
	int r = u->path[0] ? open_parent(u, u->path, &name) : 1;
	if (r == 0)
		r = make_entry(u, en, u->path, name);
	if (r > 0 || leads_out(r)) {
		u->sum.skipped++;
		return 0;
	}
	if (r == 0 && u->left == 0)
		r = finish_file(u);
	return r;
}

/* ---- the stream ------------------------------------------------------- */

static int take_bytes(struct unpacker *u, struct view *in)
{
	size_t n = (size_t)MIN(u->left, (uint64_t)in->n);
	int r = u->fd >= 0 ? fd_write_all(u->fd, in->p, n) : 0;
	if (r < 0)
		return r;
	if (u->fd >= 0)
		u->sum.bytes += n;
	*in = view_skip(*in, n);
	u->left -= n;
	return u->left ? 0 : finish_file(u);
}

static int take(struct unpacker *u, struct view in)
{
	while (in.n) {
		struct tar_entry en;
		int r = 0;
		if (u->left) {
			r = take_bytes(u, &in);
		} else if (u->padding) {
			size_t n = (size_t)MIN(u->padding, (uint64_t)in.n);
			in = view_skip(in, n);
			u->padding -= n;
		} else {
			r = tar_read(&u->tar, &in, &en);
			if (r > 0)
				r = begin_entry(u, &en);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void fail(struct unpacker *u, int r)
{
	struct err e;
	if (u->tar.why)
		err_set(&e, ERR_INVALID, "not a tar archive: %s", u->tar.why);
	else
		file_error(&e, r, u->path);
	stream_fail(&u->stream, &e);
}

static void on_data(struct stream *s, struct view data)
{
	struct unpacker *u = unpacker_of(s);
	int r = user_enter(&u->user);
	if (r == 0) {
		r = take(u, data);
		user_leave();
	}
	if (r < 0)
		fail(u, r);
	else
		stream_consumed(s, data.n);
}

static int set_modes(struct unpacker *u)
{
	int r = user_enter(&u->user);
	if (r < 0)
		return r;
	while (u->n_later) { /* the innermost came last */
		struct later *l = u->later[--u->n_later];
		_cleanup_(closep) int fd = file_open_beneath(u->root, l->path, O_RDONLY | O_DIRECTORY);
		if (fd >= 0)
			(void)fchmod(fd, l->mode);
		free(l);
	}
	user_leave();
	return 0;
}

static void on_end(struct stream *s)
{
	struct unpacker *u = unpacker_of(s);
	struct err e;
	if (u->left || u->padding || !tar_may_end(&u->tar)) {
		err_set(&e, ERR_INVALID, "the archive is cut off");
		stream_fail(s, &e);
		return;
	}
	int r = set_modes(u);
	if (r < 0)
		fail(u, r);
	else
		stream_finish(s, &wire_tree_done_msg, &u->sum);
}

static void unpacker_free(struct stream *s)
{
	struct unpacker *u = unpacker_of(s);
	fd_close(u->fd);
	fd_close(u->dir);
	fd_close(u->root);
	while (u->n_later)
		free(u->later[--u->n_later]);
	free(u->later);
	tar_reader_done(&u->tar);
	free(u);
}

static const struct stream_ops unpacker_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_cancel = file_on_cancel,
	.free = unpacker_free,
};

/* As the user. */
static int begin(struct unpacker *u, char *path)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = 0;
	int r = file_make_parents(path);
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	u->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return u->root < 0 ? -errno : 0;
}

int file_unpack(const struct conn_call *call, struct err *e)
{
	const struct wire_tree_write *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, false, e) < 0)
		return -1;
	struct unpacker *u = calloc(1, sizeof(*u));
	int r = -ENOMEM;
	if (u) {
		u->root = u->dir = u->fd = -1;
		u->user = t.user;
		tar_reader_init(&u->tar);
		r = begin(u, t.path);
	}
	user_leave();
	if (r < 0) {
		if (u)
			unpacker_free(&u->stream);
		return file_error(e, r, t.path);
	}
	stream_open(&u->stream, call, &unpacker_ops);
	return 0;
}
