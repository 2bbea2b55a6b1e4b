/*
 * paddock-gauge: shows each box its own figures in /proc.
 *
 * Peers:        the kernel, by /dev/fuse (a device for each file); behind it boxes (hostile),
 *               who have no say in more than when to read how much of which file. Whose
 *               request it is the kernel says: by the uid of the host, which lies in the
 *               range of the box and cannot be another's.
 * Holds:        a table of the boxes (shared memory that only the keeper can write),
 *               directories of their control groups.
 * Runs as:      uids.gauge of the configuration; started as root by the keeper, it reads
 *               /proc/cpuinfo and drops before it reads anything else.
 * Capabilities: none, in all five sets; no_new_privs.
 * Files:        control groups of this keeper's boxes, to read (Landlock).
 * Calls:        src/os/seccomp_gauge.c: reading, writing, waiting.
 *
 * When it dies the kernel fails the request that it had, and others wait for the next
 * instance: the keeper holds the file systems.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "clock.h"
#include "confine.h"
#include "fd.h"
#include "groups.h"
#include "log.h"
#include "plan.h"
#include "seccomp.h"
#include "service.h"
#include "poison.h"

enum { FD_TABLE = 3, FD_BEAT, FD_DEVICES, FD_GROUPS = FD_DEVICES + GAUGE_FILES };

#define HZ 100u /* of the kernel's interfaces */

/* Figures are reckoned once in this time for a box. Reading the control groups is nearly all of a request's
 * cost, and a box that asks in a loop must not cost more time here than it has itself. */
#define FRESH_MS 20
#define RECENT   1024 /* boxes whose last figures are kept; two of one place take turns */

struct recent {
	char id[GAUGE_ID];
	uint64_t at_ms;
	struct figures figures;
};

static struct {
	const struct gauge_slot *slots;
	size_t n_slots;
	uint32_t base;
	struct groups groups;
	struct buf cpuinfo;
	struct gauge_beat *beat;
	struct recent recent[RECENT];
} g;

struct asked {
	enum gauge_file file;
};

static int figures_of(uint32_t slot, const char *id, struct figures *ret)
{
	struct recent *last = &g.recent[slot % RECENT];
	uint64_t now = clock_mono_ms();
	if (strcmp(last->id, id) == 0 && now - last->at_ms < FRESH_MS) {
		*ret = last->figures;
		return 0;
	}
	struct figures f = { .cpuinfo = buf_view(&g.cpuinfo) };
	int r = groups_read(&g.groups, id, &f);
	if (r < 0)
		return r;
	snprintf(last->id, sizeof(last->id), "%s", id);
	last->at_ms = now;
	*ret = last->figures = f;
	return 0;
}

static int text_of(void *arg, uint32_t uid, struct buf *out)
{
	const struct asked *a = arg;
	char id[GAUGE_ID];
	uint64_t started;
	bool own_uptime;
	struct timespec now;
	struct figures f;
	if (uid < g.base || (uid - g.base) / PLAN_STRIDE >= g.n_slots)
		return -EACCES;
	uint32_t slot = (uid - g.base) / PLAN_STRIDE;
	int r = gauge_get(&g.slots[slot], id, &started, &own_uptime);
	if (r == 0)
		r = figures_of(slot, id, &f);
	if (r == 0 && clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		r = -errno;
	if (r < 0)
		return r;
	uint64_t ticks = (uint64_t)now.tv_sec * HZ + (uint64_t)now.tv_nsec / (1000000000u / HZ);
	f.age = ticks - MIN(ticks, started);
	f.boot_s = (uint64_t)clock_wall_ms() / 1000 - (own_uptime ? f.age : ticks) / HZ;
	figures_print(&f, a->file, out);
	return 0;
}

/* 0: answered, or nothing to do. -ENODEV: the file system is gone. */
static int serve_one(int fd, enum gauge_file file)
{
	static char request[ANSWER_REQUEST];
	_cleanup_(buf_done) struct buf out = BUF_INIT((1u << 20) + 4096);
	ssize_t n = read(fd, request, sizeof(request));
	/* ENOENT: the caller was killed before we could read what it wanted. */
	if (n < 0)
		return errno == EAGAIN || errno == EINTR || errno == ENOENT ? 0 : -errno;
	int r = answer_make(request, (size_t)n, text_of, &(struct asked){ file }, &out);
	if (r < 0 || out.bad)
		return r < 0 ? r : out.bad;
	if (out.n && write(fd, out.p, out.n) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* For the keeper, which ends a program that does not come from one to the other. */
static void count(uint64_t *n)
{
	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

static int run(void)
{
	struct pollfd polls[GAUGE_FILES];
	for (unsigned i = 0; i < GAUGE_FILES; i++)
		polls[i] = (struct pollfd){ .fd = FD_DEVICES + (int)i, .events = POLLIN };
	for (;;) {
		if (poll(polls, GAUGE_FILES, -1) < 0 && errno != EINTR)
			return -errno;
		for (unsigned i = 0; i < GAUGE_FILES; i++) {
			if (!polls[i].revents)
				continue;
			count(&g.beat->taken);
			int r = serve_one(polls[i].fd, (enum gauge_file)i);
			if (r < 0)
				return r;
			count(&g.beat->answered);
		}
	}
}

static int setup(struct err *e)
{
	struct landlock_rule rules[GROUPS_DIRS];
	struct stat st;
	uint32_t uid, n;
	if (service_number("PADDOCK_GAUGE_UID", &uid, e) < 0 ||
	    service_number("PADDOCK_GAUGE_BASE", &g.base, e) < 0 ||
	    service_number("PADDOCK_GAUGE_GROUPS", &n, e) < 0)
		return -1;
	if (n > GROUPS_DIRS)
		return err_set(e, ERR_INTERNAL, "%u control groups", n);
	if (service_close_from(FD_GROUPS + n, e) < 0)
		return -1;
	if (fstat(FD_TABLE, &st) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the table");
	g.n_slots = (size_t)st.st_size / sizeof(*g.slots);
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, FD_TABLE, 0);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_INTERNAL, errno, "the table");
	g.slots = p;
	p = mmap(NULL, sizeof(*g.beat), PROT_READ | PROT_WRITE, MAP_SHARED, FD_BEAT, 0);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_INTERNAL, errno, "the beat");
	g.beat = p;
	/* It works for boxes, so it has their priority and not the keeper's. */
	if (setpriority(PRIO_PROCESS, 0, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "its priority");
	g.groups.n = n;
	g.groups.machine_memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	g.groups.machine_cpus = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
	for (unsigned i = 0; i < n; i++) {
		g.groups.dirs[i] = FD_GROUPS + (int)i;
		rules[i] = (struct landlock_rule){ FD_GROUPS + (int)i, LANDLOCK_READ };
	}
	for (unsigned i = 0; i < GAUGE_FILES; i++)
		if (fd_nonblock(FD_DEVICES + (int)i, true) < 0)
			return err_sys(e, ERR_INTERNAL, errno, "a device");
	g.cpuinfo = BUF_INIT(1u << 20);
	int r = fd_slurp(AT_FDCWD, "/proc/cpuinfo", &g.cpuinfo);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "/proc/cpuinfo");
	return confine_identity("uids.gauge", uid, -1, e) < 0 ? -1
							      : confine_reach(rules, n, seccomp_gauge, e);
}

int main(void)
{
	struct err e = { 0 };

	service_init("paddock-gauge");
	if (setup(&e) < 0)
		return service_fail(&e);
	int r = run();
	if (r != -ENODEV)
		log_error("%s", strerror(-r));
	return EXIT_FAILURE;
}
