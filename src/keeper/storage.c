/*
 * Storage of boxes: see storage.h.
 */
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clone.h"
#include "fd.h"
#include "sweep.h"
#include "walls.h"
#include "poison.h"

#define NEXT "next" /* in spare/: of a box that has no name yet */

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int open_made(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_dir(dir, name);
}

static void spare_name(unsigned i, char dst[16])
{
	snprintf(dst, 16, "%u", i);
}

void storage_close(struct storage *s)
{
	fd_close(s->boxes);
	fd_close(s->spare);
	fd_close(s->snapshots);
	fd_close(s->workspaces);
	fd_close(s->trash);
	s->boxes = s->spare = s->snapshots = s->workspaces = s->trash = -1;
}

int storage_open(struct storage *s, struct err *e)
{
	s->boxes = open_made(s->disk.root, "boxes");
	s->spare = open_made(s->disk.root, "spare");
	s->snapshots = open_made(s->disk.root, "snapshots");
	s->workspaces = open_made(s->disk.root, "workspaces");
	s->trash = open_made(s->disk.root, "trash");
	if (s->boxes < 0 || s->spare < 0 || s->snapshots < 0 || s->workspaces < 0 || s->trash < 0)
		return err_set(e, ERR_STORAGE, "cannot open the sandboxes' storage");
	clone_clear(s->boxes, s->trash);
	clone_clear(s->snapshots, s->trash);
	clone_clear(s->workspaces, s->trash);
	/* A spare counts once it has its number; what was half made has another name. */
	char name[16];
	struct stat st;
	s->n = 0;
	do
		spare_name(s->n, name);
	while (fstatat(s->spare, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ++s->n);
	return 0;
}

/* The plan of an ordinary box with two layers: what others need besides is added, what
 * they do not use stays empty. */
static int fill(int dir, struct err *e)
{
	struct plan_image image = { .n = 2, .layers = { { .at = "/" }, { .at = "/usr" } } };
	struct spec s = { .limits = { .memory_mb = 1 } };
	struct plan p;
	return plan_make(&s, &image, 0, 100000, &p, e) < 0 ? -1 : walls_storage(&p, dir, e);
}

bool storage_refill(struct storage *s)
{
	static const char half[] = "half";
	struct err e = { 0 };
	if (s->n >= s->wanted)
		return false;
	int r = disk_make(&s->disk, s->spare, half);
	_cleanup_(closep) int dir = r < 0 && r != -EEXIST ? r : open_dir(s->spare, half);
	char name[16];
	spare_name(s->n, name);
	if (dir < 0 || fill(dir, &e) < 0 || renameat(s->spare, half, s->spare, name) < 0)
		return false; /* a create makes its own then, and reports what is wrong */
	s->n++;
	return s->n < s->wanted;
}

/* An overlay refuses a work directory that a volatile one has used: it begins anew. */
static int renew_work(int dir)
{
	for (unsigned i = 0; i < PLAN_LAYERS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "work%u", i);
		int fd = open_dir(dir, name);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		sweep_tree(fd);
	}
	return 0;
}

static int make_from_unit(struct storage *s, const struct plan *p, int unit)
{
	int r = disk_snapshot(&s->disk, unit, s->boxes, p->spec.id, false);
	_cleanup_(closep) int dir = r < 0 ? r : open_dir(s->boxes, p->spec.id);
	return dir < 0 ? dir : renew_work(dir);
}

static int make_from_snapshot(struct storage *s, const struct plan *p)
{
	_cleanup_(closep) int from = open_dir(s->snapshots, p->spec.snapshot);
	return from < 0 ? from : make_from_unit(s, p, from);
}

static int make_existing(struct storage *s, const struct plan *p)
{
	_cleanup_(closep) int dir = open_dir(s->boxes, p->spec.id);
	return dir < 0 ? dir : renew_work(dir);
}

static int make_new(struct storage *s, int dir, const char *to)
{
	char name[16];
	if (s->n) {
		spare_name(--s->n, name);
		if (renameat(s->spare, name, dir, to) == 0)
			return 0;
	}
	return disk_make(&s->disk, dir, to);
}

static int make_files(struct storage *s, const struct plan *p, int unit)
{
	if (p->spec.existing)
		return make_existing(s, p);
	if (p->spec.snapshot[0])
		return make_from_snapshot(s, p);
	return unit >= 0 ? make_from_unit(s, p, unit) : make_new(s, s->boxes, p->spec.id);
}

/* The directories of the plan, and the limit; returns the fd. */
static int furnish(struct storage *s, int at, const char *name, const struct plan *p, struct err *e)
{
	_cleanup_(closep) int dir = open_dir(at, name);
	if (dir < 0)
		return err_sys(e, ERR_STORAGE, dir, "cannot open the sandbox's storage");
	if (walls_storage(p, dir, e) < 0)
		return -1;
	/* After the directories are made: at the limit not even that would work. */
	int r = disk_limit(&s->disk, dir, p->spec.limits.disk_mb << 20);
	if (r < 0)
		return err_sys(e, ERR_WALLS, r, "the disk limit cannot be set (data.backend)");
	return TAKE_FD(dir);
}

int storage_make(struct storage *s, const struct plan *p, int unit, struct err *e)
{
	int r = make_files(s, p, unit);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND,
			       p->spec.existing ? "the sandbox has no files" : "no such snapshot");
	if (r < 0)
		return disk_snapshot_error(r, "sandbox's storage", e);
	return furnish(s, s->boxes, p->spec.id, p, e);
}

int storage_prepare(struct storage *s, const struct plan *p, struct err *e)
{
	int r = make_new(s, s->spare, NEXT);
	return r < 0 ? disk_snapshot_error(r, "sandbox's storage", e) : furnish(s, s->spare, NEXT, p, e);
}

int storage_take(struct storage *s, const char *id)
{
	return renameat(s->spare, NEXT, s->boxes, id) < 0 ? -errno : 0;
}

/* Not a spare again: an overlay was there. */
void storage_forget(struct storage *s)
{
	(void)!disk_remove(&s->disk, s->spare, NEXT, s->trash);
}

int storage_drop(struct storage *s, const char *id)
{
	return disk_remove(&s->disk, s->boxes, id, s->trash);
}

int storage_usage(const struct storage *s, const char *id, uint64_t *ret_bytes)
{
	_cleanup_(closep) int dir = open_dir(s->boxes, id);
	uint64_t limit;
	return dir < 0 ? dir : disk_usage(&s->disk, dir, ret_bytes, &limit);
}

int storage_snapshot(struct storage *s, const char *box, const char *id, struct err *e)
{
	_cleanup_(closep) int from = open_dir(s->boxes, box);
	int r = from < 0 ? from : disk_snapshot(&s->disk, from, s->snapshots, id, true);
	return r < 0 ? disk_snapshot_error(r, "snapshot", e) : 0;
}

int storage_open_snapshot(const struct storage *s, const char *id)
{
	return open_dir(s->snapshots, id);
}

int storage_drop_snapshot(struct storage *s, const char *id, struct err *e)
{
	int r = disk_remove(&s->disk, s->snapshots, id, s->trash);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot remove the snapshot") : 0;
}

int storage_open_workspace(struct storage *s, const char *id, struct err *e)
{
	int fd = open_dir(s->workspaces, id);
	if (fd == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no such workspace");
	return fd < 0 ? err_sys(e, ERR_STORAGE, fd, "cannot open the workspace") : fd;
}

int storage_open_workspaces(struct storage *s, const struct spec_workspaces *w,
			    struct storage_workspaces *ret, struct err *e)
{
	struct storage_workspaces d = { .n = 0 };
	for (; w && d.n < w->n; d.n++) {
		d.fds[d.n] = storage_open_workspace(s, w->items[d.n].id, e);
		if (d.fds[d.n] < 0) {
			storage_close_workspaces(&d);
			return -1;
		}
	}
	*ret = d;
	return 0;
}

void storage_close_workspaces(struct storage_workspaces *w)
{
	while (w->n)
		fd_close(w->fds[--w->n]);
}

int storage_make_workspace(struct storage *s, const char *id, uint64_t bytes, const char *from, struct err *e)
{
	int r;
	if (from[0]) {
		_cleanup_(closep) int source = storage_open_workspace(s, from, e);
		if (source < 0)
			return -1;
		r = disk_snapshot(&s->disk, source, s->workspaces, id, false);
	} else {
		r = disk_make(&s->disk, s->workspaces, id);
	}
	if (r == -EEXIST)
		return err_set(e, ERR_CONFLICT, "the workspace exists");
	if (r < 0)
		return disk_snapshot_error(r, "workspace", e);
	return storage_finish_workspace(s, id, bytes, e);
}

int storage_finish_workspace(struct storage *s, const char *id, uint64_t bytes, struct err *e)
{
	_cleanup_(closep) int dir = storage_open_workspace(s, id, e);
	if (dir < 0)
		return -1;
	if (fchmod(dir, 0755) < 0 || fchown(dir, PLAN_USER, PLAN_USER) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot make the workspace");
	int r = disk_limit(&s->disk, dir, bytes);
	return r < 0 ? err_sys(e, ERR_WALLS, r, "the workspace's limit cannot be set (data.backend)") : 0;
}

int storage_drop_workspace(struct storage *s, const char *id, struct err *e)
{
	int r = disk_remove(&s->disk, s->workspaces, id, s->trash);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot remove the workspace") : 0;
}
