/*
 * Storage of boxes: see storage.h.
 */
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "native.h"
#include "poison.h"

static int open_made(int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static void spare_name(unsigned i, char dst[16])
{
	snprintf(dst, 16, "%u", i);
}

int storage_open(struct storage *s, int data, struct err *e)
{
	*s = (struct storage){ .boxes = open_made(data, "boxes"), .spare = open_made(data, "spare") };
	if (s->boxes < 0 || s->spare < 0)
		return err_sys(e, ERR_STORAGE, s->boxes < 0 ? s->boxes : s->spare, "cannot open the boxes' storage");
	/* A spare counts once it has its number; what was half made has another name. */
	char name[16];
	struct stat st;
	do
		spare_name(s->n, name);
	while (s->n < STORAGE_SPARES && fstatat(s->spare, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ++s->n);
	return 0;
}

/* The plan of an ordinary box with two layers: what others need besides is added, what they do not use stays empty. */
static int fill(int dir, struct err *e)
{
	struct plan_image image = { .n = 2, .layers = { { .at = "/" }, { .at = "/usr" } } };
	struct spec s = { .limits = { .memory_bytes = 1 << 20 } };
	struct plan p;
	return plan_make(&s, &image, 0, 100000, &p, e) < 0 ? -1 : native_storage(&p, dir, e);
}

bool storage_refill(struct storage *s)
{
	static const char half[] = "half";
	struct err e = { 0 };
	if (s->n >= STORAGE_SPARES)
		return false;
	_cleanup_(closep) int dir = open_made(s->spare, half);
	char name[16];
	spare_name(s->n, name);
	if (dir < 0 || fill(dir, &e) < 0 || renameat(s->spare, half, s->spare, name) < 0)
		return false; /* a create makes its own then, and reports what is wrong */
	s->n++;
	return s->n < STORAGE_SPARES;
}

int storage_make(struct storage *s, const struct plan *p, struct err *e)
{
	char name[16];
	const char *id = p->spec.id;
	bool ready = false;
	if (s->n) {
		spare_name(--s->n, name);
		ready = renameat(s->spare, name, s->boxes, id) == 0;
	}
	if (!ready && mkdirat(s->boxes, id, 0700) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot make the box's storage");
	_cleanup_(closep) int dir = openat(s->boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot open the box's storage");
	if (native_storage(p, dir, e) < 0)
		return -1;
	return TAKE_FD(dir);
}
