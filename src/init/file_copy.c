/*
 * Copying a file or a tree, and moving one: a rename where that is possible, else
 * a copy and a removal.
 *
 * The source is walked by descriptors; the directory that is being filled is held
 * open, and when the walk comes back up it is opened again by its path below the
 * root of the copy, never through a link. A file is copied some milliseconds at a
 * time. It ends where it ended when it was opened, however much is added to it.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "remover.h"
#include "rnd.h"
#include "scratch.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#define PIECE       (1u << 20)
#define UNSIZED_MAX (64u << 20) /* of a file that says 0, as those of /proc do */
#define TEMP_PREFIX ".paddock-"
#define TEMP_RANDOM 12
#define WAY_UP_MAX  PATH_MAX

/* A name in an open directory. */
struct place {
	int dir;
	char name[NAME_MAX + 1];
};

struct copier {
	struct stream stream;
	struct user user;
	struct place from, to;
	struct stat st; /* of the source */
	bool moves, overwrite;
	bool removing; /* the copy is complete, the source goes */
	/* a tree */
	struct walk walk;
	int root, dir;              /* of the copy; the directory that is being filled */
	uint8_t made[PATH_MAX / 8]; /* a bit for each level that is ours and gets the source's mode */
	struct remover rm;
	/* the file that is being copied */
	int in, out;
	int out_dir; /* borrowed */
	char out_name[NAME_MAX + 1], final_name[NAME_MAX + 1];
	struct stat in_st;
	uint64_t left;
	bool by_hand; /* copy_file_range does not do it */
	struct wire_tree_done sum;
};

static struct copier *copier_of(struct stream *s)
{
	return CONTAINER(s, struct copier, stream);
}

static void place_done(struct place *p)
{
	fd_close(TAKE_FD(p->dir));
}

/* Gives the file back half-made. As the user. */
static void drop_file(struct copier *c)
{
	if (c->out >= 0)
		(void)unlinkat(c->out_dir, c->out_name, 0);
	fd_close(TAKE_FD(c->in));
	fd_close(TAKE_FD(c->out));
}

/* ---- one file --------------------------------------------------------- */

/* Makes room for something that is no directory. */
static int clear_way(struct copier *c, int dir, const char *name)
{
	if (!c->overwrite)
		return -EEXIST;
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* In a tree under its own name; a single one beside, so that it replaces at once. */
static int open_out(struct copier *c, int dir, const char *name, bool beside)
{
	memcpy(c->final_name, name, strlen(name) + 1);
	memcpy(c->out_name, name, strlen(name) + 1);
	if (beside) {
		memcpy(c->out_name, TEMP_PREFIX, sizeof(TEMP_PREFIX));
		rnd_name(c->out_name + strlen(TEMP_PREFIX), TEMP_RANDOM);
	}
	c->out_dir = dir;
	for (int i = 0; i < 2; i++) {
		c->out = openat(dir, c->out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (c->out >= 0)
			return 0;
		int r = errno == EEXIST ? clear_way(c, dir, c->out_name) : -errno;
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

static int begin_file(struct copier *c, const struct walk_entry *en, int dir, const char *name, bool beside)
{
	c->in = openat(en->dir, en->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (c->in < 0 || fstat(c->in, &c->in_st) < 0)
		return -errno;
	if (!S_ISREG(c->in_st.st_mode))
		return -EBUSY; /* it was one a moment ago */
	c->by_hand = c->in_st.st_size == 0;
	c->left = c->by_hand ? UNSIZED_MAX : (uint64_t)c->in_st.st_size;
	return open_out(c, dir, name, beside);
}

static int keep_times(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* A move keeps what it can of the owner and the times. */
static int dress(struct copier *c, int fd, const struct stat *st)
{
	mode_t mode = st->st_mode & 01777;
	if (c->moves && (c->user.uid == 0 || c->user.as_root) && fchown(fd, st->st_uid, st->st_gid) == 0)
		mode = st->st_mode & 07777;
	if (fchmod(fd, mode) < 0)
		return -errno;
	return c->moves ? keep_times(fd, st) : 0;
}

static int finish_file(struct copier *c)
{
	int r = dress(c, c->out, &c->in_st);
	if (r == 0 && strcmp(c->out_name, c->final_name) != 0)
		r = file_rename(c->out_dir, c->out_name, c->out_dir, c->final_name, c->overwrite);
	if (r < 0)
		return r;
	fd_close(TAKE_FD(c->in));
	fd_close(TAKE_FD(c->out));
	c->sum.files++;
	return 0;
}

static ssize_t copy_piece(struct copier *c)
{
	size_t want = (size_t)MIN(c->left, (uint64_t)PIECE);
	if (!c->by_hand) {
		ssize_t n = copy_file_range(c->in, NULL, c->out, NULL, want, 0);
		if (n >= 0)
			return n;
		if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
			return -errno;
		c->by_hand = true;
	}
	ssize_t n = read(c->in, scratch, MIN(want, sizeof(scratch)));
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	int r = fd_write_all(c->out, scratch, (size_t)n);
	return r < 0 ? r : n;
}

/* 1: there is more. */
static int pump(struct copier *c, uint64_t until)
{
	while (c->left) {
		ssize_t n = copy_piece(c);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		c->left -= (uint64_t)n;
		c->sum.bytes += (uint64_t)n;
		if (clock_mono_ns() >= until)
			return 1;
	}
	return finish_file(c);
}

/* ---- everything else -------------------------------------------------- */

static int copy_link(struct copier *c, const struct walk_entry *en, int dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(en->dir, en->name, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	for (int i = 0; i < 2; i++) {
		if (symlinkat(target, dir, name) == 0) {
			c->sum.files++;
			return 0;
		}
		int r = errno == EEXIST ? clear_way(c, dir, name) : -errno;
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

static int copy_fifo(struct copier *c, int dir, const char *name)
{
	for (int i = 0; i < 2; i++) {
		if (mkfifoat(dir, name, 0644) == 0) {
			c->sum.files++;
			return 0;
		}
		int r = errno == EEXIST ? clear_way(c, dir, name) : -errno;
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

/* What is no directory. A file is only begun. */
static int copy_one(struct copier *c, const struct walk_entry *en, int dir, const char *name, bool beside)
{
	switch (en->type) {
	case DT_REG:
		return begin_file(c, en, dir, name, beside);
	case DT_LNK:
		return copy_link(c, en, dir, name);
	case DT_FIFO:
		return copy_fifo(c, dir, name);
	default:
		c->sum.skipped++; /* sockets and devices: nothing that a copy could be */
		return 0;
	}
}

/* ---- a tree ----------------------------------------------------------- */

/* Makes a directory, or takes the one that is there; open, or -errno. */
static int make_dir(struct copier *c, int parent, const char *name, size_t depth)
{
	bool made = mkdirat(parent, name, 0700) == 0;
	if (!made && (errno != EEXIST || !c->overwrite))
		return -errno;
	int fd = walk_open(parent, name);
	uint8_t bit = (uint8_t)(1u << depth % 8);
	c->made[depth / 8] = (uint8_t)(made ? c->made[depth / 8] | bit : c->made[depth / 8] & ~bit);
	c->sum.directories += fd >= 0;
	return fd;
}

static bool is_made(const struct copier *c, size_t depth)
{
	return c->made[depth / 8] & 1u << depth % 8;
}

static int enter_dir(struct copier *c, const struct walk_entry *en)
{
	char name[NAME_MAX + 1];
	memcpy(name, en->name, strlen(en->name) + 1); /* walk_enter forgets it */
	int r = walk_enter(&c->walk);
	if (r < 0)
		return r;
	int fd = make_dir(c, c->dir, name, c->walk.n - 1);
	if (fd < 0)
		return fd;
	fd_close(c->dir);
	c->dir = fd;
	return 0;
}

/* The directory that the walk comes out of is full: it gets its mode, and its parent is next. */
static int leave_dir(struct copier *c, const struct walk_entry *en)
{
	struct stat st;
	if (is_made(c, c->walk.n) && fstatat(en->dir, en->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		int r = S_ISDIR(st.st_mode) ? dress(c, c->dir, &st) : 0;
		if (r < 0)
			return r;
	}
	char parent[PATH_MAX];
	size_t n = (size_t)(c->walk.path_n - strlen(en->name));
	memcpy(parent, c->walk.path, n);
	parent[n ? n - 1 : 0] = 0;
	int fd = file_open_beneath(c->root, parent, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	fd_close(c->dir);
	c->dir = fd;
	return 0;
}

static int advance(struct copier *c)
{
	struct walk_entry en;
	int r = walk_next(&c->walk, &en);
	if (r == WALK_LEAVE)
		return leave_dir(c, &en);
	if (r <= 0)
		return r;
	r = en.type == DT_DIR ? enter_dir(c, &en) : copy_one(c, &en, c->dir, en.name, false);
	return r == -ENOENT ? 0 : r; /* gone meanwhile */
}

/* ---- the work --------------------------------------------------------- */

static int begin_removal(struct copier *c)
{
	c->removing = true;
	return remover_begin(&c->rm, TAKE_FD(c->from.dir), c->from.name, true);
}

/* 0: done, 1: there is more. */
static int work(struct copier *c, uint64_t until)
{
	int r = 0;
	if (c->removing)
		return remover_work(&c->rm, until);
	do {
		if (c->in >= 0)
			r = pump(c, until);
		else if (c->walk.n)
			r = advance(c);
		if (r != 0)
			return r;
		if (c->in < 0 && c->walk.n == 0) {
			if (c->root >= 0 && is_made(c, 0))
				r = dress(c, c->root, &c->st);
			return r == 0 && c->moves ? begin_removal(c) : r;
		}
	} while (clock_mono_ns() < until);
	return 1;
}

static const char *where(const struct copier *c)
{
	return c->removing ? remover_place(&c->rm) : c->walk.path_n ? c->walk.path : c->from.name;
}

static void on_step(struct stream *s)
{
	struct copier *c = copier_of(s);
	int r = user_enter(&c->user);
	if (r == 0) {
		r = work(c, clock_mono_ns() + FILE_STEP_NS);
		if (r < 0)
			drop_file(c);
		user_leave();
	}
	if (r < 0)
		file_fail(s, r, where(c));
	else if (r > 0)
		stream_again(s);
	else if (c->moves)
		stream_finish(s, &wire_file_moved_msg, &(struct wire_file_moved){ .copied = true });
	else
		stream_finish(s, &wire_tree_done_msg, &c->sum);
}

static void copier_free(struct stream *s)
{
	struct copier *c = copier_of(s);
	if (c->out >= 0 && user_enter(&c->user) == 0) {
		drop_file(c);
		user_leave();
	}
	fd_close(c->in);
	fd_close(c->out);
	fd_close(c->root);
	fd_close(c->dir);
	place_done(&c->from);
	place_done(&c->to);
	walk_done(&c->walk);
	remover_done(&c->rm);
	free(c);
}

static const struct stream_ops copier_ops = {
	.on_step = on_step,
	.on_cancel = file_on_cancel,
	.free = copier_free,
};

/* ---- the beginning; all as the user ----------------------------------- */

static struct copier *copier_new(const struct user *u)
{
	struct copier *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->user = *u;
	c->from.dir = c->to.dir = c->root = c->dir = c->in = c->out = c->out_dir = c->rm.top = -1;
	c->walk.strict = true;
	return c;
}

static int find_place(char *path, bool parents, struct place *ret)
{
	const char *dir, *name;
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = 0;
	int r = parents ? file_make_parents(path) : 0;
	if (r == 0)
		r = file_split(path, &dir, &name);
	if (r < 0)
		return r;
	if (view_to_str(view_of(name), ret->name, sizeof(ret->name)) < 0)
		return -ENAMETOOLONG;
	ret->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ret->dir < 0 ? -errno : 0;
}

/* Whether `dir` is the directory `st` or below it. */
static bool is_inside(int dir, const struct stat *st)
{
	int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat last = { 0 };
	for (int i = 0; fd >= 0 && i < WAY_UP_MAX; i++) {
		struct stat here;
		if (fstat(fd, &here) < 0 || (here.st_dev == last.st_dev && here.st_ino == last.st_ino))
			break;
		if (here.st_dev == st->st_dev && here.st_ino == st->st_ino) {
			fd_close(fd);
			return true;
		}
		last = here;
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(fd);
		fd = up;
	}
	fd_close(fd);
	return false;
}

static int begin_tree(struct copier *c, struct err *e)
{
	if (is_inside(c->to.dir, &c->st))
		return err_set(e, ERR_INVALID, "'%.100s' cannot go into itself", c->from.name);
	int fd = walk_open(c->from.dir, c->from.name);
	int r = fd < 0 ? fd : walk_start(&c->walk, fd);
	if (r == 0)
		r = c->root = make_dir(c, c->to.dir, c->to.name, 0);
	if (r >= 0)
		r = c->dir = file_open_beneath(c->root, "", O_RDONLY | O_DIRECTORY);
	return r < 0 ? file_error(e, r, r == -EEXIST ? c->to.name : c->from.name) : 0;
}

static int begin_copy(struct copier *c, bool recursive, struct err *e)
{
	struct stat to;
	bool exists = fstatat(c->to.dir, c->to.name, &to, AT_SYMLINK_NOFOLLOW) == 0;
	if (exists && to.st_dev == c->st.st_dev && to.st_ino == c->st.st_ino)
		return err_set(e, ERR_INVALID, "'%.60s' and '%.60s' are the same", c->from.name, c->to.name);
	if (exists && !c->overwrite)
		return file_error(e, EEXIST, c->to.name);
	if (exists && S_ISDIR(to.st_mode) != S_ISDIR(c->st.st_mode))
		return file_error(e, S_ISDIR(to.st_mode) ? EISDIR : ENOTDIR, c->to.name);
	if (S_ISDIR(c->st.st_mode) && !recursive)
		return err_set(e, ERR_INVALID, "'%.100s' is a directory: recursive is needed", c->from.name);
	if (S_ISDIR(c->st.st_mode))
		return begin_tree(c, e);
	struct walk_entry en = { c->from.dir, c->from.name, IFTODT(c->st.st_mode) };
	if (en.type != DT_REG && en.type != DT_LNK && en.type != DT_FIFO)
		return err_set(e, ERR_INVALID, "'%.100s' is a socket or a device", c->from.name);
	int r = copy_one(c, &en, c->to.dir, c->to.name, true);
	return r < 0 ? file_error(e, r, c->from.name) : 0;
}

/* 1: there is nothing to copy any more. */
static int begin(struct copier *c, char *from, char *to, struct err *e)
{
	int r = find_place(from, false, &c->from);
	if (r == 0 && fstatat(c->from.dir, c->from.name, &c->st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r < 0)
		return file_error(e, r, from);
	r = find_place(to, true, &c->to);
	if (r < 0)
		return file_error(e, r, to);
	if (!c->moves)
		return 0;
	r = file_rename(c->from.dir, c->from.name, c->to.dir, c->to.name, c->overwrite);
	if (r == 0)
		return 1;
	return r == -EXDEV ? 0
			   : file_error(e, r, r == -EEXIST || r == -ENOTEMPTY ? c->to.name : c->from.name);
}

/* Both paths mean the same user; file_enter has checked the second one as the first. */
static int enter_both(const struct conn_call *call, const struct wire_file_move *m, struct file_target *from,
		      struct file_target *to, struct err *e)
{
	if (file_enter(to, call, m->to, m->user, m->as_root, e) < 0)
		return -1;
	user_leave();
	return file_enter(from, call, m->from, m->user, m->as_root, e);
}

static int start(const struct conn_call *call, const struct wire_file_move *m, bool moves, bool recursive,
		 struct err *e)
{
	struct file_target from, to;
	if (enter_both(call, m, &from, &to, e) < 0)
		return -1;
	struct copier *c = copier_new(&from.user);
	if (!c) {
		user_leave();
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	}
	c->moves = moves;
	c->overwrite = m->overwrite;
	int r = begin(c, from.path, to.path, e);
	if (r == 0)
		r = begin_copy(c, moves || recursive, e);
	user_leave();
	if (r == 0) {
		stream_open(&c->stream, call, &copier_ops);
		on_step(&c->stream);
		return 0;
	}
	copier_free(&c->stream);
	if (r < 0)
		return -1;
	conn_reply(call, &wire_file_moved_msg, &(struct wire_file_moved){ 0 });
	return 0;
}

int file_move(const struct conn_call *call, struct err *e)
{
	const struct wire_file_move *m = call->msg;
	return start(call, m, true, true, e);
}

int file_copy(const struct conn_call *call, struct err *e)
{
	const struct wire_file_copy *m = call->msg;
	struct wire_file_move places = {
		.from = m->from, .to = m->to, .user = m->user, .overwrite = m->overwrite
	};
	return start(call, &places, false, m->recursive, e);
}
