/*
 * What all file operations share, and the two that are a single system call:
 * see file.h.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "fd.h"
#include "stream.h"
#include "wire_gen.h"
#include "poison.h"

int file_enter(struct file_target *t, const struct conn_call *call, struct view path, struct view user,
	       bool as_root, struct err *e)
{
	if (path.n == 0)
		return err_set(e, ERR_INVALID, "path is empty");
	if (user_find(user, &t->user, e) < 0)
		return -1;
	/* Without sudo root's rights are not for the box's programs, which could lend them by a link. */
	t->user.as_root = as_root && call->conn->init->sudo.fd >= 0;
	struct buf b = { .p = t->path, .cap = sizeof(t->path), .max = sizeof(t->path) }; /* never grows */
	if (path.p[0] != '/') {
		(void)buf_puts(&b, t->user.home);
		(void)buf_putc(&b, '/');
	}
	(void)buf_add(&b, path);
	if (buf_putc(&b, 0) < 0)
		return file_error(e, ENAMETOOLONG, "path");
	if (memchr(path.p, 0, path.n))
		return err_set(e, ERR_INVALID, "path has a NUL byte");
	int r = user_enter(&t->user);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "taking on user %u", t->user.uid) : 0;
}

static bool lies_in(const char *real, struct view dir)
{
	char name[PATH_MAX], at[PATH_MAX];

	if (view_to_str(dir, name, sizeof(name)) < 0 || !realpath(name, at))
		return false;
	size_t n = strlen(at);
	return strncmp(real, at, n) == 0 && (real[n] == 0 || real[n] == '/');
}

int file_within(const char *path, const struct view *dirs, size_t n, struct err *e)
{
	char at[PATH_MAX], real[PATH_MAX];

	if (n == 0)
		return 0;
	if (view_to_str(view_of(path), at, sizeof(at)) < 0)
		return file_error(e, ENAMETOOLONG, "path");
	/* What is not there yet will be where the directory before it is. */
	while (!realpath(at, real)) {
		char *slash = errno == ENOENT ? strrchr(at, '/') : NULL;
		if (!slash || slash == at)
			return file_error(e, errno, path);
		*slash = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (lies_in(real, dirs[i]))
			return 0;
	return err_sys(e, ERR_FORBIDDEN, EXDEV, "'%.100s' leads to another place", path);
}

int file_split(char *path, const char **ret_dir, const char **ret_name)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = 0;
	char *slash = strrchr(path, '/');
	const char *name = slash + 1;
	if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	*slash = 0;
	*ret_dir = slash == path ? "/" : path;
	*ret_name = name;
	return 0;
}

enum err_code file_code(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOENT:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return ERR_FORBIDDEN;
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL:
	case ENXIO:
		return ERR_INVALID;
	case EEXIST:
	case ENOTEMPTY:
	case EBUSY:
	case ETXTBSY:
	case EAGAIN: /* somebody has a lease on it */
		return ERR_CONFLICT;
	case ENOSPC:
	case EDQUOT:
		return ERR_STORAGE;
	case EFBIG:
		return ERR_TOO_LARGE;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return ERR_UNAVAILABLE;
	default:
		return ERR_INTERNAL;
	}
}

int file_error(struct err *e, int error, const char *path)
{
	return err_sys(e, file_code(error), error, "'%.120s'", path);
}

static int32_t type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return WIRE_FILE_TYPE_FILE;
	case S_IFDIR:
		return WIRE_FILE_TYPE_DIRECTORY;
	case S_IFLNK:
		return WIRE_FILE_TYPE_SYMLINK;
	case S_IFIFO:
		return WIRE_FILE_TYPE_FIFO;
	case S_IFSOCK:
		return WIRE_FILE_TYPE_SOCKET;
	case S_IFCHR:
	case S_IFBLK:
		return WIRE_FILE_TYPE_DEVICE;
	default:
		return WIRE_FILE_TYPE_NONE;
	}
}

static int64_t milliseconds(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

void file_info(const struct stat *st, struct view name, struct wire_file_info *ret)
{
	*ret = (struct wire_file_info){
		.name = name,
		.type = type_of(st->st_mode),
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_ms = milliseconds(&st->st_mtim),
		.atime_ms = milliseconds(&st->st_atim),
		.ctime_ms = milliseconds(&st->st_ctim),
	};
}

int file_make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		int r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

int file_put_entry(struct buf *out, int dir, const char *name, uint8_t type, struct view path,
		   const struct user_names *names)
{
	struct stat st;
	char target[PATH_MAX];
	struct wire_env_var metadata[FILE_METADATA_N];
	struct file_detail detail;
	ssize_t n = 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 1; /* gone meanwhile */
		/* A directory that may be read but not searched: the names are all there is. */
		st = (struct stat){ .st_mode = DTTOIF(type) };
	} else if (S_ISLNK(st.st_mode)) {
		n = readlinkat(dir, name, target, sizeof(target));
	}
	struct wire_file_info info;
	file_info(&st, path, &info);
	info.target = (struct view){ target, n > 0 ? (size_t)n : 0 };
	detail.metadata = metadata;
	if (names)
		file_detail(dir, name, names, &detail, &info);
	struct wire_file_entries one = { .entries = { .items = &info, .n = 1 } };
	return pb_encode(&wire_file_entries_msg, &one, out);
}

void file_fail(struct stream *s, int error, const char *path)
{
	struct err e;
	file_error(&e, error, path);
	stream_fail(s, &e);
}

void file_on_cancel(struct stream *s, bool lost)
{
	struct err e;
	err_set(&e, ERR_CANCELLED, "cancelled");
	if (!lost)
		stream_fail(s, &e);
}

int file_open_beneath(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	for (int i = 0; i < 16; i++) {
		long fd = syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN) /* something was renamed while it looked */
			return -errno;
	}
	return -EBUSY;
}

int file_rename(int from_dir, const char *from, int to_dir, const char *to, bool overwrite)
{
	unsigned flags = overwrite ? 0 : 1 /* RENAME_NOREPLACE */;
	return syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) < 0 ? -errno : 0;
}

/* ---- stat: the thing itself, a link as a link -------------------------- */

struct view file_name(const char *path)
{
	struct view v = view_of(path);
	while (v.n > 1 && v.p[v.n - 1] == '/')
		v.n--;
	const char *slash = memrchr(v.p, '/', v.n);
	return slash && v.n > 1 ? view_skip(v, (size_t)(slash + 1 - v.p)) : v;
}

int file_stat(const struct conn_call *call, struct err *e)
{
	const struct wire_file_stat *msg = call->msg;
	struct file_target t;
	struct stat st = { 0 };
	char target[PATH_MAX];
	struct wire_env_var metadata[FILE_METADATA_N];
	struct file_detail detail;
	_cleanup_(user_names_done) struct user_names names = { 0 };
	struct wire_file_info info;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	int r = lstat(t.path, &st) < 0 ? -errno : 0;
	ssize_t n = r == 0 && S_ISLNK(st.st_mode) ? readlink(t.path, target, sizeof(target)) : 0;
	file_info(&st, file_name(t.path), &info);
	if (r == 0 && msg->detail) {
		detail.metadata = metadata;
		info.path = view_of(t.path);
		user_names_load(&names);
		file_detail(AT_FDCWD, t.path, &names, &detail, &info);
	}
	user_leave();
	if (r < 0)
		return file_error(e, r, t.path);
	info.target = (struct view){ target, n > 0 ? (size_t)n : 0 };
	conn_reply(call, &wire_file_stat_reply_msg, &(struct wire_file_stat_reply){ .info = &info });
	return 0;
}

/* ---- mkdir ------------------------------------------------------------ */

static int make_dir(struct file_target *t, const struct wire_file_mkdir *msg)
{
	size_t n = strlen(t->path);
	while (n > 1 && t->path[n - 1] == '/')
		t->path[--n] = 0;
	int r = msg->parents ? file_make_parents(t->path) : 0;
	if (r < 0)
		return r;
	if (mkdir(t->path, 0755) == 0)
		/* The mode as asked for, whatever the umask. */
		return msg->mode && chmod(t->path, msg->mode & 07777) < 0 ? -errno : 0;
	r = -errno;
	struct stat st;
	return r == -EEXIST && msg->parents && stat(t->path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : r;
}

int file_mkdir(const struct conn_call *call, struct err *e)
{
	const struct wire_file_mkdir *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	int r = make_dir(&t, msg);
	user_leave();
	if (r < 0)
		return file_error(e, r, t.path);
	conn_reply(call, &wire_file_mkdir_reply_msg, &(struct wire_file_mkdir_reply){ 0 });
	return 0;
}
