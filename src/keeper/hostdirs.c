/*
 * See hostdirs.h.
 */
#include "hostdirs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "wire_gen.h"
#include "poison.h"

const struct spec_mounts *hostdirs_read(const struct wire_box_spec *w, struct arena *a, struct err *e)
{
	struct spec_mounts *m = arena_array(a, 1, sizeof(*m));
	if (!m || w->mounts.n > SPEC_MOUNTS) {
		err_set(e, ERR_INVALID, "mounts: at most %d", SPEC_MOUNTS);
		return NULL;
	}
	*m = (struct spec_mounts){ 0 };
	for (size_t i = 0; i < w->mounts.n; i++, m->n++) {
		const struct wire_host_mount *from = &w->mounts.items[i];
		if (!config_is_path(from->source) || !config_is_mount_point(from->target) ||
		    view_to_str(from->source, m->items[i].source, SPEC_MOUNT_PATH) < 0 ||
		    view_to_str(from->target, m->items[i].target, SPEC_MOUNT_PATH) < 0) {
			err_set(e, ERR_INVALID, "mounts[%zu]: not a path that can be mounted", i);
			return NULL;
		}
		m->items[i].readonly = from->readonly;
	}
	return m;
}

static int open_dir(int at, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
				.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static int open_one(const struct config *c, const char *source, bool readonly, struct err *e)
{
	const struct config_mount *m = config_mount(c, view_of(source));
	char root[SPEC_MOUNT_PATH];
	if (!m || view_to_str(m->path, root, sizeof(root)) < 0)
		return err_set(e, ERR_FORBIDDEN,
			       "mounts: %.120s is not within mounts.allow of the configuration", source);
	if (!readonly && !m->writable)
		return err_set(e, ERR_FORBIDDEN, "mounts: %.120s may only be mounted read-only", source);
	/* The administrator's own path, then what the client adds to it: that stays within, also within the
	 * same file system. */
	_cleanup_(closep) int top = open_dir(AT_FDCWD, root, 0);
	const char *rest = source + m->path.n;
	int fd = top < 0 ? top : open_dir(top, *rest ? rest + 1 : ".", RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	if (fd == -ELOOP || fd == -EXDEV)
		return err_set(e, ERR_INVALID, "mounts: %.120s leads through a link or another file system",
			       source);
	return fd < 0 ? err_sys(e, ERR_INVALID, fd, "mounts: %.120s", source) : fd;
}

int hostdirs_open(const struct config *c, const struct spec_mounts *m, struct hostdirs *ret, struct err *e)
{
	struct hostdirs h = HOSTDIRS_INIT;
	for (; h.n < m->n; h.n++) {
		h.fds[h.n] = open_one(c, m->items[h.n].source, m->items[h.n].readonly, e);
		if (h.fds[h.n] < 0) {
			hostdirs_close(&h);
			return -1;
		}
	}
	*ret = h;
	return 0;
}

void hostdirs_close(struct hostdirs *h)
{
	while (h->n)
		fd_close(h->fds[--h->n]);
}
