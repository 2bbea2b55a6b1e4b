/*
 * See walk.h.
 */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fd.h"
#include "poison.h"

#define OPEN_LEVELS 16

int walk_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int push(struct walk *w, int fd_taken)
{
	_cleanup_(closep) int fd = fd_taken;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 16;
		struct walk_level *levels = reallocarray(w->levels, cap, sizeof(*levels));
		if (!levels)
			return -ENOMEM;
		w->levels = levels;
		w->cap = cap;
	}
	if (w->n >= OPEN_LEVELS)
		fd_close(TAKE_FD(w->levels[w->n - OPEN_LEVELS].fd));
	w->levels[w->n++] = (struct walk_level){
		.fd = TAKE_FD(fd), .dev = st.st_dev, .ino = st.st_ino, .path_n = w->path_n
	};
	dents_reset(&w->dents);
	w->entry = false;
	return 0;
}

int walk_start(struct walk *w, int fd)
{
	bool strict = w->strict;
	*w = (struct walk){ .strict = strict };
	return push(w, fd);
}

void walk_done(struct walk *w)
{
	while (w->n)
		fd_close(w->levels[--w->n].fd);
	free(w->levels);
	w->levels = NULL;
	w->cap = 0;
}

/* Makes sure that the level above the deepest one is open. */
static int reopen_above(struct walk *w)
{
	struct walk_level *l = &w->levels[w->n - 1], *above = l - 1;
	struct stat st;
	if (above->fd >= 0)
		return 0;
	_cleanup_(closep) int fd = walk_open(l->fd, "..");
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != above->dev || st.st_ino != above->ino)
		return -EBUSY; /* somebody moved it */
	above->fd = TAKE_FD(fd);
	return 0;
}

static const char *last_name(const struct walk *w)
{
	const char *slash = memrchr(w->path, '/', w->path_n);
	return slash ? slash + 1 : w->path;
}

static int leave(struct walk *w, struct walk_entry *ret)
{
	struct walk_level *l = &w->levels[w->n - 1];
	if (w->n == 1) {
		fd_close(l->fd);
		w->n = 0;
		return WALK_END;
	}
	int r = reopen_above(w);
	if (r < 0)
		return r;
	w->path_n = l->path_n;
	w->path[w->path_n] = 0;
	fd_close(l->fd);
	w->n--;
	l--;
	dents_reset(&w->dents);
	if (lseek(l->fd, l->pos, SEEK_SET) < 0)
		return -errno;
	*ret = (struct walk_entry){ .dir = l->fd, .name = last_name(w), .type = DT_DIR };
	return WALK_LEAVE;
}

/* False when it does not fit. */
static bool set_path(struct walk *w, const char *name)
{
	size_t at = w->levels[w->n - 1].path_n, n = strlen(name);
	if (at + 1 + n >= sizeof(w->path))
		return false;
	if (at)
		w->path[at++] = '/';
	memcpy(w->path + at, name, n + 1);
	w->path_n = at + n;
	return true;
}

int walk_next(struct walk *w, struct walk_entry *ret)
{
	struct dents_entry d;
	w->entry = false;
	if (w->n == 0)
		return WALK_END;
	struct walk_level *l = &w->levels[w->n - 1];
	for (;;) {
		int r = dents_next(&w->dents, l->fd, &d);
		if (r <= 0)
			return r < 0 ? r : leave(w, ret);
		if (set_path(w, d.name))
			break;
		w->cut = true;
		if (w->strict)
			return -ENAMETOOLONG;
	}
	if (d.type == DT_UNKNOWN) {
		struct stat st;
		if (fstatat(l->fd, d.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			d.type = IFTODT(st.st_mode);
	}
	w->after = d.after;
	w->entry = true;
	*ret = (struct walk_entry){ .dir = l->fd, .name = d.name, .type = d.type };
	return WALK_ENTRY;
}

int walk_enter(struct walk *w)
{
	assert(w->entry && w->n);
	struct walk_level *l = &w->levels[w->n - 1];
	int fd = walk_open(l->fd, last_name(w));
	if (fd < 0)
		return fd;
	l->pos = w->after;
	return push(w, fd);
}
