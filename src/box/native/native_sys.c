/*
 * See native_sys.h.
 *
 * Runtimes look for limits in four places. `nproc` and Go count the processors of
 * the affinity mask, so a program of a box with a limit of 1.5 gets a mask of two
 * (src/init/cpus.h). glibc (and so Python)
 * counts those of /sys/devices/system/cpu/online. The JVM and Node read control
 * groups below /sys/fs/cgroup; the JVM believes those of version 1 only where cpuset
 * is mounted, too: all boxes share one group of it, which limits nothing.
 */
#include "native_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "mnt.h"
#include "poison.h"

#define CPUSET   "/sys/fs/cgroup/cpuset"
#define READONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static const char *const names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPUACCT] = "cpuacct",
};

static unsigned machine_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

/* Processors of a box with this limit: the limit, rounded up. */
static unsigned native_cpus(uint32_t cpu_milli, unsigned machine)
{
	unsigned n = (cpu_milli + 999) / 1000;
	return n < 1 ? 1 : MIN(n, machine);
}

void native_sys_open(struct native *n)
{
	static const char *const inherited[] = { "cpuset.cpus", "cpuset.mems" };
	n->cpuset = n->cpuset_tasks = -1;
	if (mkdir(CPUSET "/paddock", 0755) < 0 && errno != EEXIST)
		return;
	for (size_t i = 0; i < ELEMS(inherited); i++) {
		_cleanup_(buf_done) struct buf text = BUF_INIT(4096);
		char from[64], to[64];
		snprintf(from, sizeof(from), CPUSET "/%s", inherited[i]);
		snprintf(to, sizeof(to), CPUSET "/paddock/%s", inherited[i]);
		/* Nothing can join before it has some of both. */
		if (fd_slurp(AT_FDCWD, from, &text) < 0 || buf_putc(&text, 0) < 0 ||
		    fd_put(AT_FDCWD, to, text.p) < 0)
			return;
	}
	n->cpuset_tasks = open(CPUSET "/paddock/tasks", O_WRONLY | O_CLOEXEC);
	if (n->cpuset_tasks >= 0)
		n->cpuset = open(CPUSET "/paddock", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The first controller that a v1 hierarchy has names its directory, others are links to it. */
static const char *first_name(const struct cgroup_tree *t)
{
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		if (t->controllers & 1u << c)
			return names[c];
	return NULL;
}

static bool is_pure(const struct cgroup_host *h)
{
	return h->unified >= 0 && h->trees[h->unified].controllers & 1u << CGROUP_MEMORY;
}

static int fill_cgroups(const struct native *n, int dir)
{
	if (is_pure(&n->cgroups))
		return 0; /* the group itself is mounted there */
	for (unsigned i = 0; i < n->cgroups.n; i++) {
		const struct cgroup_tree *t = &n->cgroups.trees[i];
		const char *first = t->v2 ? NULL : first_name(t);
		if (!first)
			continue;
		if (mkdirat(dir, first, 0755) < 0)
			return -errno;
		for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
			if (t->controllers & 1u << c && names[c] != first &&
			    symlinkat(first, dir, names[c]) < 0)
				return -errno;
	}
	return mkdirat(dir, "cpuset", 0755) < 0 ? -errno : 0;
}

/* Read-only where it lies, so that a copy of it needs no call more. */
static int put_view(int from, int to, const char *at)
{
	_cleanup_(closep) int fd = mnt_tree(from, "", READONLY, -1);
	return fd < 0 ? fd : mnt_move(fd, to, at);
}

/* A tree for all boxes with this many processors. */
static int fill_template(const struct native *n, const char *name, unsigned cpus)
{
	static const char *const dirs[] = { "",    "/devices",  "/devices/system", "/devices/system/cpu",
					    "/fs", "/fs/cgroup" };
	static const char *const files[] = { "online", "possible", "present" };
	char path[64], text[24];
	for (size_t i = 0; i < ELEMS(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", name, dirs[i]);
		if (mkdirat(n->scratch, path, 0755) < 0)
			return -errno;
	}
	snprintf(text, sizeof(text), cpus > 1 ? "0-%u\n" : "0\n", cpus - 1);
	for (size_t i = 0; i < ELEMS(files); i++) {
		snprintf(path, sizeof(path), "%s/devices/system/cpu/%s", name, files[i]);
		int r = fd_replace(n->scratch, path, text, strlen(text), 0444, false);
		if (r < 0)
			return r;
	}
	snprintf(path, sizeof(path), "%s/fs/cgroup", name);
	_cleanup_(closep) int dir = openat(n->scratch, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : fill_cgroups(n, dir);
}

static int make_template(const struct native *n, const char *name, unsigned cpus)
{
	char path[64];
	int r = fill_template(n, name, cpus);
	if (r < 0)
		return r;
	_cleanup_(closep) int dir = openat(n->scratch, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? -errno : put_view(dir, n->scratch, name);
	if (r < 0 || n->cpuset < 0 || is_pure(&n->cgroups))
		return r;
	snprintf(path, sizeof(path), "%s/fs/cgroup/cpuset", name);
	return put_view(n->cpuset, n->scratch, path);
}

/* A hierarchy that is copied for each box: its directory of ours, read-only. */
static int group_view(struct native *n, unsigned i)
{
	char name[16];
	if (n->group_views[i] >= 0)
		return n->group_views[i];
	snprintf(name, sizeof(name), "group%u", i);
	if (mkdirat(n->scratch, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(closep) int fd = mnt_tree(n->cgroups.trees[i].dir, "", READONLY, -1);
	int r = fd < 0 ? fd : mnt_move(fd, n->scratch, name);
	return r < 0 ? r : (n->group_views[i] = TAKE_FD(fd));
}

static int group_copy(struct native *n, unsigned i, const char *id)
{
	int dir = group_view(n, i);
	return dir < 0 ? dir : mnt_tree(dir, id, 0, -1);
}

static int add(struct native_view *v, unsigned *n, int fd, const char *at)
{
	if (fd < 0)
		return fd;
	v[(*n)++] = (struct native_view){ fd, at };
	return 0;
}

static int add_groups(struct native *n, const char *group, struct native_view *views, unsigned *at)
{
	static const char *const places[CGROUP_CONTROLLERS] = {
		[CGROUP_MEMORY] = "fs/cgroup/memory",
		[CGROUP_CPU] = "fs/cgroup/cpu",
		[CGROUP_PIDS] = "fs/cgroup/pids",
		[CGROUP_CPUACCT] = "fs/cgroup/cpuacct",
	};
	const struct cgroup_host *h = &n->cgroups;
	if (is_pure(h))
		return add(views, at, group_copy(n, (unsigned)h->unified, group), "fs/cgroup");
	for (unsigned i = 0; i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];
		unsigned c = 0;
		while (c < CGROUP_CONTROLLERS && !(t->controllers & 1u << c))
			c++;
		int r = t->v2 || c == CGROUP_CONTROLLERS ? 0
							 : add(views, at, group_copy(n, i, group), places[c]);
		if (r < 0)
			return r;
	}
	return 0;
}

int native_sys_views(struct native *n, const struct plan *p, const char *group,
		     struct native_view views[NATIVE_VIEWS], unsigned *ret_n)
{
	unsigned cpus = native_cpus(p->spec.limits.cpu_milli, machine_cpus());
	char name[16];
	snprintf(name, sizeof(name), "sys%u", cpus);
	if (faccessat(n->scratch, name, F_OK, 0) < 0) {
		int r = make_template(n, name, cpus);
		if (r < 0)
			return r;
	}
	int r = add(views, ret_n, mnt_trees(n->scratch, name), "/sys");
	return r < 0 ? r : add_groups(n, group, views, ret_n);
}

void native_sys_argument(const struct plan *p, char dst[NATIVE_ARGUMENT])
{
	snprintf(dst, NATIVE_ARGUMENT, "cpus=%u", native_cpus(p->spec.limits.cpu_milli, UINT32_MAX));
}
