/*
 * Modes and owners, of one thing or of a tree. What is changed is held by a
 * descriptor that was not opened through a link, so that nothing can be put in
 * its place; links keep theirs. A directory comes after what is in it, since it
 * may lock us out.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define EMPTY_PATH 0x1000 /* AT_EMPTY_PATH */
#define NO_ID      ((uid_t)-1)

struct change {
	mode_t mode;
	bool has_mode;
	uid_t uid;
	gid_t gid;
};

struct changer {
	struct stream stream;
	struct user user;
	struct change change;
	struct stat st;
	int top; /* O_PATH, of what was named */
	struct walk walk;
	uint64_t changed;
};

static struct changer *changer_of(struct stream *s)
{
	return CONTAINER(s, struct changer, stream);
}

static int set_mode(int fd, mode_t mode)
{
	if (syscall(SYS_fchmodat2, fd, "", mode, EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	/* Older kernels, and filters that do not know it. */
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) < 0 ? -errno : 0;
}

static int apply(const struct change *ch, int fd)
{
	bool owner = ch->uid != NO_ID || ch->gid != NO_ID;
	if (owner && fchownat(fd, "", ch->uid, ch->gid, EMPTY_PATH) < 0)
		return -errno;
	return ch->has_mode ? set_mode(fd, ch->mode) : 0; /* a new owner takes set-id bits away: mode last */
}

static int apply_at(struct changer *c, const struct walk_entry *en)
{
	struct stat st;
	_cleanup_(closep) int fd = openat(en->dir, en->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return 0;
	int r = apply(&c->change, fd);
	c->changed += r == 0;
	return r;
}

static int advance(struct changer *c)
{
	struct walk_entry en;
	int r = walk_next(&c->walk, &en);
	if (r < 0 || r == WALK_END)
		return r;
	if (r == WALK_LEAVE)
		return apply_at(c, &en);
	if (en.type == DT_DIR) {
		r = walk_enter(&c->walk);
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	}
	return apply_at(c, &en);
}

/* 0: done, 1: there is more. */
static int work(struct changer *c)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	int r = 0;
	while (c->walk.n) {
		for (int i = 0; c->walk.n && i < 8; i++) {
			r = advance(c);
			if (r < 0)
				return r;
		}
		if (c->walk.n && clock_mono_ns() >= until)
			return 1;
	}
	r = apply(&c->change, c->top);
	c->changed += r == 0;
	return r;
}

static void on_step(struct stream *s)
{
	struct changer *c = changer_of(s);
	int r = user_enter(&c->user);
	if (r == 0) {
		r = work(c);
		user_leave();
	}
	if (r < 0)
		file_fail(s, r, c->walk.n ? c->walk.path : "the path");
	else if (r > 0)
		stream_again(s);
	else
		stream_finish(s, &wire_file_chmod_reply_msg,
			      &(struct wire_file_chmod_reply){ .changed = c->changed });
}

static void changer_free(struct stream *s)
{
	struct changer *c = changer_of(s);
	walk_done(&c->walk);
	fd_close(c->top);
	free(c);
}

static const struct stream_ops changer_ops = {
	.on_step = on_step,
	.on_cancel = file_on_cancel,
	.free = changer_free,
};

/* "name", "name:", "name:group", ":group"; a group is a number, or that of a user. As with chown(1) a
 * number need not be that of a user, unless his group is asked for. */
static int read_owner(struct view v, struct change *ret, struct err *e)
{
	struct user u;
	struct view group, name = view_split(v, ':', &group);
	bool his_group = group.p && group.n == 0;
	struct err unknown = { 0 };
	if (name.n && user_find(name, &u, &unknown) == 0) {
		ret->uid = u.uid;
		if (his_group)
			ret->gid = u.gid;
	} else if (name.n && (his_group || num_u32(name, &ret->uid) < 0 || ret->uid == NO_ID)) {
		*e = unknown;
		return -1;
	}
	if (group.n && (num_u32(group, &ret->gid) < 0 || ret->gid == NO_ID)) {
		if (user_find(group, &u, e) < 0)
			return -1;
		ret->gid = u.gid;
	}
	return 0;
}

static int begin(struct changer *c, const char *path, bool recursive)
{
	c->top = open(path, O_PATH | O_CLOEXEC);
	if (c->top < 0 || fstat(c->top, &c->st) < 0)
		return -errno;
	if (!recursive || !S_ISDIR(c->st.st_mode))
		return 0;
	int fd = walk_open(c->top, ".");
	return fd < 0 ? fd : walk_start(&c->walk, fd);
}

int file_chmod(const struct conn_call *call, struct err *e)
{
	const struct wire_file_chmod *msg = call->msg;
	struct file_target t;
	struct change change = {
		.mode = msg->mode & 07777, .has_mode = msg->has_mode, .uid = NO_ID, .gid = NO_ID
	};
	if (!msg->has_mode && msg->owner.n == 0)
		return err_set(e, ERR_INVALID, "a mode or an owner is needed");
	if (read_owner(msg->owner, &change, e) < 0 ||
	    file_enter(&t, call, msg->path, msg->user, false, e) < 0)
		return -1;
	struct changer *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;
	if (c) {
		c->top = -1;
		c->user = t.user;
		c->change = change;
		c->walk.strict = true;
		r = begin(c, t.path, msg->recursive);
	}
	user_leave();
	if (r < 0) {
		if (c)
			changer_free(&c->stream);
		return file_error(e, r, t.path);
	}
	stream_open(&c->stream, call, &changer_ops);
	on_step(&c->stream);
	return 0;
}
