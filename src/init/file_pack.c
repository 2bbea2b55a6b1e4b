/*
 * TreeRead: a file, or what is in a directory, as a tar archive. Blocks are put
 * together in the scratch buffer and sent as far as the caller has room. A file
 * has the size that it had when its header was written: what is added to it
 * meanwhile is left out, what is taken from it is zeros.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "scratch.h"
#include "stream.h"
#include "tar.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define HEADER_MAX (4 * PATH_MAX)

struct packer {
	struct stream stream;
	struct user user;
	struct walk walk;
	int fd;          /* of the file at hand */
	uint64_t left;   /* of its bytes */
	uint64_t zeros;  /* to be sent */
	struct buf head; /* headers that wait */
	bool last;       /* the end was written */
	struct wire_tree_done sum;
};

static struct packer *packer_of(struct stream *s)
{
	return CONTAINER(s, struct packer, stream);
}

static int put_header(struct packer *p, enum tar_type type, const struct stat *st, struct view path,
		      struct view target)
{
	struct tar_entry en = {
		.type = type,
		.path = path,
		.target = target,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime = st->st_mtim.tv_sec,
	};
	buf_clear(&p->head);
	return tar_put(&p->head, &en);
}

/* -ENOENT: it is not there any more, or something else now. */
static int add_file(struct packer *p, int dir, const char *name, int flags, struct view path)
{
	struct stat st;
	_cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	if (fd < 0)
		return errno == ELOOP ? -ENOENT : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	int r = put_header(p, TAR_FILE, &st, path, VIEW_NONE);
	if (r < 0)
		return r;
	p->left = (uint64_t)st.st_size;
	p->zeros = tar_padding(p->left);
	p->fd = TAKE_FD(fd);
	p->sum.files++;
	return 0;
}

static int add_other(struct packer *p, const struct walk_entry *en, struct view path)
{
	struct stat st;
	char target[PATH_MAX];
	if (fstatat(en->dir, en->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(en->dir, en->name, target, sizeof(target));
		p->sum.files++;
		return n < 0 ? -errno
			     : put_header(p, TAR_SYMLINK, &st, path, (struct view){ target, (size_t)n });
	}
	if (S_ISFIFO(st.st_mode)) {
		p->sum.files++;
		return put_header(p, TAR_FIFO, &st, path, VIEW_NONE);
	}
	p->sum.skipped++;
	return 0;
}

static int add_dir(struct packer *p, const struct walk_entry *en, struct view path)
{
	struct stat st;
	if (fstatat(en->dir, en->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOENT;
	int r = put_header(p, TAR_DIRECTORY, &st, path, VIEW_NONE);
	p->sum.directories++;
	return r < 0 ? r : walk_enter(&p->walk);
}

static int next_entry(struct packer *p)
{
	struct walk_entry en;
	int r = walk_next(&p->walk, &en);
	if (r < 0)
		return r;
	if (r == WALK_END) {
		p->last = true;
		return tar_put_end(&p->head);
	}
	if (r == WALK_LEAVE)
		return 0;
	struct view path = { p->walk.path, p->walk.path_n };
	if (en.type == DT_REG)
		r = add_file(p, en.dir, en.name, O_NOFOLLOW, path);
	else if (en.type == DT_DIR)
		r = add_dir(p, &en, path);
	else
		r = add_other(p, &en, path);
	return r == -ENOENT ? 0 : r;
}

static size_t take_head(struct packer *p, char *dst, size_t room)
{
	struct view v = view_head(buf_view(&p->head), room);
	memcpy(dst, v.p, v.n);
	buf_consume(&p->head, v.n);
	if (buf_len(&p->head) == 0)
		buf_clear(&p->head);
	return v.n;
}

static ssize_t take_file(struct packer *p, char *dst, size_t room)
{
	ssize_t n = read(p->fd, dst, (size_t)MIN(p->left, (uint64_t)room));
	if (n < 0)
		return -errno;
	if (n == 0) {
		p->zeros += p->left; /* it has shrunk */
		p->left = 0;
	}
	p->left -= (uint64_t)n;
	p->sum.bytes += (uint64_t)n;
	if (p->left == 0)
		fd_close(TAKE_FD(p->fd));
	return n;
}

static size_t take_zeros(struct packer *p, char *dst, size_t room)
{
	size_t n = (size_t)MIN(p->zeros, (uint64_t)room);
	memset(dst, 0, n);
	p->zeros -= n;
	return n;
}

/* Some more bytes, or a step towards them. */
static ssize_t produce(struct packer *p, char *dst, size_t room)
{
	if (buf_len(&p->head))
		return (ssize_t)take_head(p, dst, room);
	if (p->fd >= 0 && p->left)
		return take_file(p, dst, room);
	if (p->fd >= 0)
		fd_close(TAKE_FD(p->fd));
	if (p->zeros)
		return (ssize_t)take_zeros(p, dst, room);
	return next_entry(p);
}

static bool is_over(const struct packer *p)
{
	return p->last && buf_len(&p->head) == 0 && p->zeros == 0 && p->fd < 0;
}

static ssize_t fill(struct packer *p, size_t room)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	size_t n = 0;
	int r = user_enter(&p->user);
	if (r < 0)
		return r;
	while (n < room && !is_over(p)) {
		ssize_t k = produce(p, scratch + n, room - n);
		if (k < 0) {
			user_leave();
			return k;
		}
		n += (size_t)k;
		if (clock_mono_ns() >= until)
			break;
	}
	user_leave();
	return (ssize_t)n;
}

static void on_step(struct stream *s)
{
	struct packer *p = packer_of(s);
	size_t room = MIN(stream_room(s), sizeof(scratch));
	if (room == 0)
		return; /* on_ready comes back */
	ssize_t n = fill(p, room);
	if (n < 0) {
		file_fail(s, (int)n, p->walk.path);
		return;
	}
	if (n > 0)
		stream_data(s, 0, (struct view){ scratch, (size_t)n });
	if (is_over(p))
		stream_finish(s, &wire_tree_done_msg, &p->sum);
	else
		stream_again(s);
}

static void packer_free(struct stream *s)
{
	struct packer *p = packer_of(s);
	fd_close(p->fd);
	walk_done(&p->walk);
	buf_done(&p->head);
	free(p);
}

static const struct stream_ops packer_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.free = packer_free,
};

/* As the user. A link at the path itself is followed, as a reader would. */
static int begin(struct packer *p, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
		return fd < 0 ? -errno : walk_start(&p->walk, fd);
	}
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return add_file(p, AT_FDCWD, path, 0, file_name(path)); /* then the walk is over at once */
}

int file_pack(const struct conn_call *call, struct err *e)
{
	const struct wire_tree_read *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, false, e) < 0)
		return -1;
	struct packer *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;
	if (p) {
		p->fd = -1;
		p->user = t.user;
		p->walk.strict = true;
		buf_init(&p->head, HEADER_MAX);
		r = begin(p, t.path);
	}
	user_leave();
	if (r < 0) {
		if (p)
			packer_free(&p->stream);
		return file_error(e, r, t.path);
	}
	stream_open(&p->stream, call, &packer_ops);
	on_step(&p->stream);
	return 0;
}
