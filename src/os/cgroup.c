/*
 * Groups and their limits: see cgroup.h.
 */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "poison.h"

#define CPU_PERIOD   100000u
#define CPU_SHARES   1024u /* of a new group, v1 */
#define CPU_WEIGHT   100u  /* and v2 */
#define SOCKET_SHARE 8     /* of the memory, beside it (cgroup v1) */
#define SOCKET_LEAST (8ull << 20)

static const char *const controller_names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPUACCT] = "cpuacct",
};

static int put_in(const struct cgroup_tree *t, const char *group, const char *file, const char *value)
{
	char path[192];
	if (snprintf(path, sizeof(path), "%s/%s", group, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return fd_put(t->dir, path, value);
}

static int put_u64(const struct cgroup_tree *t, const char *group, const char *file, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return put_in(t, group, file, text);
}

static int limit_memory(const struct cgroup_host *h, const struct cgroup_tree *t, const char *name,
			uint64_t bytes)
{
	if (t->v2) {
		int r = put_u64(t, name, "memory.max", bytes);
		if (r == 0)
			r = put_in(t, name, "memory.swap.max", "0");
		return r == -ENOENT && h->swap_limit ? 0 : r;
	}
	int r = put_u64(t, name, "memory.limit_in_bytes", bytes);
	if (r < 0)
		return r;
	/* Memory and swap together: the same figure means no swap. */
	r = put_u64(t, name, "memory.memsw.limit_in_bytes", bytes);
	if (r < 0 && !(r == -ENOENT && h->swap_limit))
		return r;
	/* v1 counts buffers of TCP and UDP sockets apart from the rest, and only where they have a limit. */
	return h->socket_limit ? put_u64(t, name, "memory.kmem.tcp.limit_in_bytes",
					 MAX(bytes / SOCKET_SHARE, SOCKET_LEAST))
			       : 0;
}

static int limit_cpu(const struct cgroup_tree *t, const char *name, uint32_t milli)
{
	uint64_t quota = (uint64_t)milli * (CPU_PERIOD / 1000);
	if (t->v2) {
		char text[48];
		snprintf(text, sizeof(text), "%llu %u", (unsigned long long)quota, CPU_PERIOD);
		return put_in(t, name, "cpu.max", text);
	}
	return put_u64(t, name, "cpu.cfs_quota_us", quota); /* of CPU_PERIOD, as a new group has it */
}

static int limit_in(const struct cgroup_host *h, const struct cgroup_tree *t, const char *name,
		    const struct cgroup_limits *l, enum cgroup_controller c)
{
	switch (c) {
	case CGROUP_MEMORY:
		return limit_memory(h, t, name, l->memory_bytes);
	case CGROUP_CPU:
		return limit_cpu(t, name, l->cpu_milli);
	case CGROUP_PIDS:
		return put_u64(t, name, "pids.max", l->pids);
	case CGROUP_CPUACCT:
	case CGROUP_CONTROLLERS:
		break;
	}
	return 0;
}

static int make_in(const struct cgroup_host *h, const struct cgroup_tree *t, const char *name,
		   const struct cgroup_limits *l, struct err *e)
{
	if (mkdirat(t->dir, name, 0755) < 0)
		return err_sys(e, ERR_WALLS, errno, "cannot make a control group in %s", t->path);
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
		if (!(t->controllers & 1u << c))
			continue;
		int r = limit_in(h, t, name, l, (enum cgroup_controller)c);
		if (r < 0)
			return err_sys(e, ERR_WALLS, r, "cannot set the %s limit", controller_names[c]);
	}
	return 0;
}

/* v1 keeps memory below memory and swap: whichever way it goes, one of two orders works. */
static int relimit_memory(const struct cgroup_host *h, const struct cgroup_tree *t, const char *name,
			  uint64_t bytes)
{
	if (!t->v2)
		(void)!put_u64(t, name, "memory.memsw.limit_in_bytes", bytes);
	return limit_memory(h, t, name, bytes);
}

int cgroup_limit(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l)
{
	struct cgroup_usage u = { 0 };
	int r = cgroup_usage(h, name, &u);

	if (r < 0)
		return r;
	/* The kernel would kill until it fits. */
	if (u.memory_bytes > l->memory_bytes)
		return -EBUSY;
	for (unsigned i = 0; i < h->n; i++)
		for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
			const struct cgroup_tree *t = &h->trees[i];

			if (!(t->controllers & 1u << c))
				continue;
			r = c == CGROUP_MEMORY ? relimit_memory(h, t, name, l->memory_bytes)
					       : limit_in(h, t, name, l, (enum cgroup_controller)c);
			if (r < 0)
				return r;
		}
	return 0;
}

int cgroup_weigh(const struct cgroup_host *h, const char *name, unsigned times)
{
	for (unsigned i = 0; i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];

		if (t->controllers & 1u << CGROUP_CPU)
			return t->v2 ? put_u64(t, name, "cpu.weight", CPU_WEIGHT * times)
				     : put_u64(t, name, "cpu.shares", CPU_SHARES * times);
	}
	return 0;
}

static int can_make(const struct cgroup_host *h, struct err *e)
{
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		if (h->why[c][0] && c != CGROUP_CPUACCT)
			return err_set(e, ERR_WALLS, "the %s limit cannot be set: %s", controller_names[c],
				       h->why[c]);
	if (!h->swap_limit)
		return err_set(e, ERR_WALLS, "the machine has swap and no way to limit it per sandbox");
	return 0;
}

int cgroup_make(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l, struct err *e)
{
	if (can_make(h, e) < 0)
		return -1;
	for (unsigned i = 0; i < h->n; i++)
		if (make_in(h, &h->trees[i], name, l, e) < 0) {
			(void)!cgroup_remove(h, name);
			return -1;
		}
	return 0;
}

bool cgroup_renames(const struct cgroup_host *h)
{
	bool any = false;
	for (unsigned i = 0; i < h->n; i++)
		any |= !h->trees[i].v2;
	return any;
}

int cgroup_make_ahead(const struct cgroup_host *h, const char *name, const struct cgroup_limits *l,
		      struct err *e)
{
	if (can_make(h, e) < 0)
		return -1;
	for (unsigned i = 0; i < h->n; i++)
		if (!h->trees[i].v2 && make_in(h, &h->trees[i], name, l, e) < 0) {
			(void)!cgroup_remove(h, name);
			return -1;
		}
	return 0;
}

int cgroup_take(const struct cgroup_host *h, const char *ahead, const char *name,
		const struct cgroup_limits *l, struct err *e)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];
		if (t->v2)
			r = make_in(h, t, name, l, e);
		else if (renameat(t->dir, ahead, t->dir, name) < 0)
			r = err_sys(e, ERR_WALLS, errno, "cannot rename a control group in %s", t->path);
	}
	if (r < 0) {
		(void)!cgroup_remove(h, ahead);
		(void)!cgroup_remove(h, name);
	}
	return r;
}

static int join_fd(const struct cgroup_tree *t, const char *name, struct err *e)
{
	char path[192];
	snprintf(path, sizeof(path), t->v2 ? "%s" : "%s/tasks", name);
	int fd = openat(t->dir, path, t->v2 ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : O_WRONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, ERR_WALLS, errno, "cannot open the control group in %s", t->path) : fd;
}

int cgroup_task_fds(const struct cgroup_host *h, const char *name, int ret_tasks[CGROUP_TREES],
		    unsigned *ret_n, struct err *e)
{
	unsigned n = 0;
	for (unsigned i = 0; i < h->n; i++) {
		if (h->trees[i].v2)
			continue;
		ret_tasks[n] = join_fd(&h->trees[i], name, e);
		if (ret_tasks[n] < 0) {
			while (n)
				fd_close(ret_tasks[--n]);
			return -1;
		}
		n++;
	}
	*ret_n = n;
	return 0;
}

int cgroup_unified_fd(const struct cgroup_host *h, const char *name, int *ret, struct err *e)
{
	*ret = -1;
	for (unsigned i = 0; i < h->n; i++)
		if (h->trees[i].v2)
			return (*ret = join_fd(&h->trees[i], name, e)) < 0 ? -1 : 0;
	return 0;
}

static int read_u64(const struct cgroup_tree *t, const char *name, const char *file, const char *key,
		    uint64_t *ret);

/* v1 has no cgroup.kill: everything that is listed gets SIGKILL, until nothing new appears. */
static int kill_listed(const struct cgroup_tree *t, const char *name)
{
	char path[192];
	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	for (int round = 0; round < 64; round++) {
		struct buf b = BUF_INIT(1u << 20);
		int r = fd_slurp(t->dir, path, &b);
		struct view rest = buf_view(&b);
		bool any = false;
		while (r == 0 && rest.n) {
			uint32_t pid;
			struct view line = view_split(rest, '\n', &rest);
			if (num_u32(line, &pid) == 0 && pid > 1) {
				any = true;
				(void)kill((pid_t)pid, SIGKILL);
			}
		}
		buf_done(&b);
		if (r == -ENOENT || r == -ENODEV)
			return 0;
		if (r < 0 || !any)
			return r;
	}
	return 0;
}

int cgroup_kill(const struct cgroup_host *h, const char *name)
{
	if (h->unified >= 0 && !h->no_kill) {
		int r = put_in(&h->trees[h->unified], name, "cgroup.kill", "1");
		if (r == 0)
			return 0;
	}
	int r = 0;
	for (unsigned i = 0; i < h->n; i++) {
		int one = kill_listed(&h->trees[i], name);
		r = r < 0 ? r : one;
	}
	return r;
}

int cgroup_frozen(const struct cgroup_host *h, const char *name, bool *ret)
{
	uint64_t frozen;
	if (h->unified < 0)
		return -EOPNOTSUPP;
	int r = read_u64(&h->trees[h->unified], name, "cgroup.events", "frozen", &frozen);
	if (r == 0)
		*ret = frozen != 0;
	return r;
}

/* The kernel sends at most one notification in 10 ms for a group, and the next too late: after a thaw a
 * freeze would always take that long. So it is also looked at without one, first soon, then more and more
 * rarely. */
static int wait_frozen(const struct cgroup_host *h, const char *name, int wait_ms)
{
	long step_us = 50;
	char path[192];
	snprintf(path, sizeof(path), "%s/cgroup.events", name);
	_cleanup_(closep) int fd = openat(h->trees[h->unified].dir, path, O_RDONLY | O_CLOEXEC);
	uint64_t until = clock_mono_ms() + (uint64_t)wait_ms;
	for (;;) {
		bool frozen = false;
		/* Reading arms the next notification of this descriptor. */
		char text[128];
		if (fd < 0 || pread(fd, text, sizeof(text), 0) < 0)
			return -errno;
		int r = cgroup_frozen(h, name, &frozen);
		if (r < 0 || frozen)
			return r;
		uint64_t now = clock_mono_ms();
		if (now >= until)
			return -ETIMEDOUT;
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		(void)ppoll(&p, 1, &(struct timespec){ .tv_nsec = step_us * 1000 }, NULL);
		step_us = MIN(step_us * 2, 10000);
	}
}

int cgroup_freeze(const struct cgroup_host *h, const char *name, bool freeze, int wait_ms)
{
	if (h->unified < 0 || (h->no_freeze && freeze))
		return -EOPNOTSUPP;
	const struct cgroup_tree *t = &h->trees[h->unified];
	int r = put_in(t, name, "cgroup.freeze", freeze ? "1" : "0");
	if (r < 0 || !freeze)
		return r;
	r = wait_frozen(h, name, wait_ms);
	if (r < 0)
		(void)!put_in(t, name, "cgroup.freeze", "0");
	return r;
}

int cgroup_remove(const struct cgroup_host *h, const char *name)
{
	int r = 0;
	for (unsigned i = 0; i < h->n; i++)
		if (unlinkat(h->trees[i].dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
	return r;
}

static int read_u64(const struct cgroup_tree *t, const char *name, const char *file, const char *key,
		    uint64_t *ret)
{
	char path[192];
	snprintf(path, sizeof(path), "%s/%s", name, file);
	struct buf b = BUF_INIT(16384);
	int r = fd_slurp(t->dir, path, &b);
	struct view rest = buf_view(&b);
	if (r == 0 && !key)
		r = num_u64(view_split(rest, '\n', &rest), ret);
	bool found = !key;
	while (r == 0 && !found && rest.n) {
		struct view value, line = view_split(rest, '\n', &rest);
		if (view_is(view_split(line, ' ', &value), key)) {
			r = num_u64(value, ret);
			found = true;
		}
	}
	buf_done(&b);
	return r < 0 ? r : found ? 0 : -ENOENT;
}

int cgroup_usage(const struct cgroup_host *h, const char *name, struct cgroup_usage *ret)
{
	struct cgroup_usage u = { 0 };
	for (unsigned i = 0; i < h->n; i++) {
		const struct cgroup_tree *t = &h->trees[i];
		int r = 0;
		if (t->controllers & 1u << CGROUP_MEMORY) {
			r = read_u64(t, name, t->v2 ? "memory.current" : "memory.usage_in_bytes", NULL,
				     &u.memory_bytes);
			if (r == 0)
				r = read_u64(t, name, t->v2 ? "memory.events" : "memory.oom_control",
					     "oom_kill", &u.oom_kills);
		}
		if (r == 0 && t->controllers & 1u << CGROUP_PIDS)
			r = read_u64(t, name, "pids.current", NULL, &u.pids);
		if (r == 0 && t->controllers & 1u << CGROUP_CPUACCT) {
			r = t->v2 ? read_u64(t, name, "cpu.stat", "usage_usec", &u.cpu_usec)
				  : read_u64(t, name, "cpuacct.usage", NULL, &u.cpu_usec);
			u.cpu_usec /= t->v2 ? 1 : 1000;
		}
		if (r < 0)
			return r;
	}
	*ret = u;
	return 0;
}

void cgroup_each(const struct cgroup_host *h, void (*fn)(void *arg, const char *name), void *arg)
{
	for (unsigned i = 0; i < h->n; i++) {
		int fd = openat(h->trees[i].dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		if (!d) {
			fd_close(fd);
			continue;
		}
		for (struct dirent *de; (de = readdir(d));)
			if (de->d_type == DT_DIR && de->d_name[0] != '.')
				fn(arg, de->d_name);
		closedir(d);
	}
}
