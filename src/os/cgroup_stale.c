/*
 * Groups of daemons that are gone: see cgroup.h. A daemon that was killed leaves its empty groups, and so
 * does one whose boxes ended after it. They cost every later daemon: each new group is entered into lists as
 * long as the machine has groups.
 *
 * A daemon holds a shared lock on the directory of its instance in the first hierarchy for its life. Whoever
 * removes has the exclusive lock on the parent meanwhile; a daemon that has just opened its groups takes the
 * shared one, then its own, and looks whether they are still there. A daemon of an earlier build has no lock:
 * it is known by its open descriptors.
 */
#include "cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

#define INSTANCE 16 /* hexadecimal digits of its name */
#define AT_ONCE  64 /* so that a start does not wait for all */
#define KEEPER   "paddockd"

/* The parent of our instance in a hierarchy; *ret_own is the name of ours. */
static int open_parent(const struct cgroup_tree *t, const char **ret_own)
{
	char path[sizeof(t->path)];
	const char *slash = strrchr(t->path, '/');
	if (!slash || slash == t->path)
		return -EINVAL;
	snprintf(path, sizeof(path), "%.*s", (int)(slash - t->path), t->path);
	*ret_own = slash + 1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int lock(int fd, int how)
{
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int cgroup_lock(struct cgroup_host *h)
{
	const char *own;
	if (!h->n)
		return 0;
	_cleanup_(closep) int parent = open_parent(&h->trees[0], &own);
	/* A descriptor of its own: others are given trees[].dir. */
	_cleanup_(closep) int fd = openat(h->trees[0].dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || fd < 0)
		return -ESTALE;
	int r = lock(parent, LOCK_SH);
	if (r == 0)
		r = lock(fd, LOCK_SH);
	for (unsigned i = 0; r == 0 && i < h->n; i++)
		r = faccessat(h->trees[i].dir, "cgroup.procs", F_OK, 0) < 0 ? -ESTALE : 0;
	if (r == 0)
		h->lock = TAKE_FD(fd);
	return r;
}

static bool is_instance(const char *name)
{
	size_t n = 0;
	while (isxdigit((unsigned char)name[n]))
		n++;
	return n == INSTANCE && !name[n];
}

static DIR *open_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		fd_close(fd);
	return d;
}

/* The instances that a process has open, a line each. */
static int list_open(int proc, const char *pid, struct buf *out)
{
	char path[64], to[512];
	snprintf(path, sizeof(path), "%.20s/fd", pid);
	_cleanup_(closep) int fds = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fds < 0 ? NULL : open_list(fds);
	if (!d)
		return fds < 0 && errno == ENOENT ? 0 : -EACCES; /* it has just ended, or cannot be judged */
	for (struct dirent *de; (de = readdir(d));) {
		ssize_t n = readlinkat(fds, de->d_name, to, sizeof(to) - 1);
		to[MAX(n, 0)] = 0;
		const char *last = strrchr(to, '/');
		if (last && is_instance(last + 1))
			buf_printf(out, "%s\n", last + 1);
	}
	closedir(d);
	return out->bad;
}

static int list_live(struct buf *out)
{
	_cleanup_(closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = proc < 0 ? NULL : open_list(proc);
	int r = d ? 0 : -ENOENT;
	for (struct dirent *de; r == 0 && (de = readdir(d));) {
		char path[64];
		struct buf comm = BUF_INIT(64);
		if (!isdigit((unsigned char)de->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%.20s/comm", de->d_name);
		if (fd_slurp(proc, path, &comm) == 0 && view_is(buf_view(&comm), KEEPER "\n"))
			r = list_open(proc, de->d_name, out);
		buf_done(&comm);
	}
	if (d)
		closedir(d);
	return r;
}

static bool is_live(int first, const char *name, const struct buf *live)
{
	if (live->n && memmem(live->p, live->n, name, INSTANCE))
		return true;
	_cleanup_(closep) int dir = openat(first, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? errno != ENOENT : lock(dir, LOCK_EX | LOCK_NB) < 0;
}

/* A group with processes stays, and so what is above it. */
static void remove_empty(int parent, const char *name)
{
	_cleanup_(closep) int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = dir < 0 ? NULL : open_list(dir);
	for (struct dirent *de; d && (de = readdir(d));)
		if (de->d_type == DT_DIR && de->d_name[0] != '.')
			(void)unlinkat(dir, de->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Other instances; without `live` they are only counted. */
static unsigned each_other(const struct cgroup_tree *t, int first, const struct buf *live)
{
	const char *own;
	_cleanup_(closep) int parent = open_parent(t, &own);
	DIR *d = parent < 0 ? NULL : open_list(parent);
	unsigned n = 0;
	for (struct dirent *de; d && n < AT_ONCE && (de = readdir(d));) {
		if (de->d_type != DT_DIR || !is_instance(de->d_name) || strcmp(de->d_name, own) == 0)
			continue;
		n++;
		if (live && !is_live(first, de->d_name, live))
			remove_empty(parent, de->d_name);
	}
	if (d)
		closedir(d);
	return n;
}

void cgroup_remove_stale(const struct cgroup_host *h)
{
	const char *own;
	unsigned others = 0;
	for (unsigned i = 0; i < h->n; i++)
		others += each_other(&h->trees[i], -1, NULL);
	if (!others)
		return;
	_cleanup_(closep) int first = open_parent(&h->trees[0], &own);
	struct buf live = BUF_INIT(1u << 20);
	if (first >= 0 && lock(first, LOCK_EX | LOCK_NB) == 0 && list_live(&live) == 0)
		for (unsigned i = 0; i < h->n; i++)
			(void)each_other(&h->trees[i], first, &live);
	buf_done(&live);
}
