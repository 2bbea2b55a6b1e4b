/*
 * See unpack.h. Every parent is opened with openat2 beneath the directory and without
 * following links; a file that is in the way is replaced, never written through.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "unpack.h"

#include "poison.h"

void unpack_init(struct unpack *u, int root)
{
	*u = (struct unpack){ .root = root, .fd = -1 };
	tar_reader_init(&u->tar);
}

void unpack_done(struct unpack *u)
{
	fd_close(u->fd);
	fd_close(u->root);
	u->fd = u->root = -1;
	tar_reader_done(&u->tar);
}

/* Without "." and double slashes; false: absolute, "..", or too long. */
static bool clean(struct view v, char ret[PATH_MAX])
{
	size_t n = 0;

	if (v.n && v.p[0] == '/')
		return false;
	while (v.p) {
		struct view part = view_split(v, '/', &v);

		if (part.n == 0 || view_is(part, "."))
			continue;
		if (view_is(part, "..") || part.n > NAME_MAX || n + part.n + 2 > PATH_MAX ||
		    memchr(part.p, 0, part.n))
			return false;
		if (n)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = '\0';
	return true;
}

static int open_beneath(int dir, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd = (int)syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The directory that is to hold `path`, made where it is missing, and the last name. */
static int open_parent(int root, char *path, const char **ret_name)
{
	int fd = open_beneath(root, "", O_PATH | O_DIRECTORY);
	char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		_cleanup_(closep) int above = fd;

		*slash = '\0';
		fd = mkdirat(above, path, 0777) < 0 && errno != EEXIST ? -errno : 0;
		if (fd == 0)
			fd = open_beneath(above, path, O_PATH | O_DIRECTORY);
		path = slash + 1;
	}
	*ret_name = path;
	return fd;
}

static int make_dir(int dir, const char *name, uint32_t mode)
{
	_cleanup_(closep) int fd = -EBADF;
	struct stat st;

	if (mkdirat(dir, name, 0777) == 0) {
		/* Ours to fill: what takes our own right away is not copied. */
		fd = open_beneath(dir, name, O_RDONLY | O_DIRECTORY);
		return fd < 0 || fchmod(fd, (mode & 0777) | 0700) == 0 ? 0 : -errno;
	}
	if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -EEXIST;
}

static int make_way(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_file(struct unpack *u, int dir, const char *name)
{
	int r = make_way(dir, name);

	if (r < 0)
		return r;
	u->fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       (u->mode & 0777) | S_IWUSR);
	return u->fd < 0 ? -errno : 0;
}

static int make_symlink(int dir, const char *name, struct view target)
{
	char text[PATH_MAX];
	int r = make_way(dir, name);

	if (r < 0)
		return r;
	if (target.n == 0 || view_to_str(target, text, sizeof(text)) < 0)
		return -EINVAL;
	return symlinkat(text, dir, name) < 0 ? -errno : 0;
}

/* 1: a target that is not below. */
static int make_link(struct unpack *u, int dir, const char *name, struct view target)
{
	char path[PATH_MAX];
	const char *last;
	_cleanup_(closep) int from = -EBADF;
	int r;

	if (!clean(target, path) || !path[0])
		return 1;
	from = open_parent(u->root, path, &last);
	if (from < 0)
		return 1;
	r = make_way(dir, name);
	return r < 0 ? r : linkat(from, last, dir, name, 0) < 0 ? -errno : 0;
}

static int finish_file(struct unpack *u)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = u->mtime } };
	int r;

	u->reading = false;
	if (u->fd < 0)
		return 0;
	(void)futimens(u->fd, times);
	r = close(TAKE_FD(u->fd)) < 0 ? -errno : 0;
	u->fd = -1;
	return r;
}

static int begin_entry(struct unpack *u, const struct tar_entry *en)
{
	_cleanup_(closep) int dir = -EBADF;
	char path[PATH_MAX];
	const char *name;
	int r;

	u->left = en->size;
	u->padding = tar_padding(en->size);
	u->mode = en->mode;
	u->mtime = en->mtime;
	u->reading = true;
	if (!clean(en->path, path)) {
		u->skipped++;
		return 0;
	}
	if (!path[0])
		return 0; /* the directory itself */
	dir = open_parent(u->root, path, &name);
	if (dir < 0)
		return dir;
	r = en->type == TAR_FILE        ? make_file(u, dir, name)
	    : en->type == TAR_DIRECTORY ? make_dir(dir, name, en->mode)
	    : en->type == TAR_SYMLINK   ? make_symlink(dir, name, en->target)
	    : en->type == TAR_LINK      ? make_link(u, dir, name, en->target)
					: 1;
	u->files += r == 0 && en->type != TAR_DIRECTORY;
	u->skipped += r > 0;
	return MIN(r, 0);
}

static int take_some(struct unpack *u, struct view *in)
{
	struct tar_entry en;
	size_t n;
	int r;

	if (u->left) {
		n = (size_t)MIN(u->left, (uint64_t)in->n);
		r = u->fd >= 0 ? fd_write_all(u->fd, in->p, n) : 0;
		u->left -= n;
		*in = view_skip(*in, n);
		return r;
	}
	if (u->reading) {
		r = finish_file(u);
		if (r < 0)
			return r;
	}
	if (u->padding) {
		n = (size_t)MIN(u->padding, (uint64_t)in->n);
		u->padding -= n;
		*in = view_skip(*in, n);
		return 0;
	}
	r = tar_read(&u->tar, in, &en);
	return r > 0 ? begin_entry(u, &en) : r;
}

int unpack_take(struct unpack *u, struct view data, struct err *e)
{
	while (data.n) {
		int r = take_some(u, &data);

		if (r < 0 && u->tar.why)
			return err_set(e, ERR_INTERNAL, "the daemon sent no tar archive: %s", u->tar.why);
		if (r < 0)
			return err_sys(e, ERR_INVALID, r, "cannot write %.100s", u->tar.name);
	}
	return 0;
}

int unpack_end(struct unpack *u, struct err *e)
{
	int r = u->reading && !u->left ? finish_file(u) : 0;

	if (r < 0)
		return err_sys(e, ERR_INVALID, r, "cannot write %.100s", u->tar.name);
	if (u->left || u->padding || !tar_may_end(&u->tar))
		return err_set(e, ERR_UNAVAILABLE, "the daemon's archive is cut off");
	return 0;
}
