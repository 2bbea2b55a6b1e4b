/*
 * See space.h.
 *
 * PID 1 must not ask itself: it would wait for its own answer. Its own calls have the argument by which the
 * filter lets them through, and none are made between fork and exec.
 *
 * The caller's memory is reached by /proc/PID/mem with the caller's own rights. From the moment that we have
 * the question until it is answered only a deadly signal wakes the caller (the filter's flag,
 * native_space.c), so what we write cannot hit memory that it uses for something else by then.
 */
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "fd.h"
#include "init.h"
#include "num.h"
#include "seccomp.h"
#include "user.h"
#include "poison.h"

#define DISKS           9 /* its own, and workspaces */
#define MOUNTS          24
#define NOTIF_SET_FLAGS _IOW('!', 4, uint64_t) /* newer than the headers; so the next */
#define SYNC_WAKE_UP    1ul
#define SYSINFO_SIZE    112 /* the kernel's; musl's is longer */

static_assert(sizeof(struct statfs) == 120, "the kernel's, which is written to the caller");

enum { LIMIT, USED, RESERVED, FIGURES };

static struct disk {
	int figures[FIGURES];
	uint64_t mounts[MOUNTS];
	unsigned n_mounts;
} disks[DISKS];
static unsigned n_disks;

void space_limit(struct statfs *s, uint64_t limit, uint64_t used)
{
	uint64_t size = s->f_bsize > 0 ? (uint64_t)s->f_bsize : 4096;
	s->f_blocks = limit / size;
	s->f_bfree = (limit - MIN(used, limit)) / size;
	s->f_bavail = MIN(s->f_bavail, s->f_bfree); /* the machine's disk may be the fuller one */
}

void space_memory(struct sysinfo *s, uint64_t limit, uint64_t used, uint64_t processes)
{
	const struct sysinfo own = { .uptime = s->uptime,
				     .totalram = limit,
				     .freeram = limit - MIN(used, limit),
				     .procs = (unsigned short)MIN(processes, USHRT_MAX),
				     .mem_unit = 1 };
	*s = own;
}

static int read_figure(int fd, uint64_t *ret)
{
	char text[32];
	struct view rest;
	ssize_t n = pread(fd, text, sizeof(text), 0);
	return n < 0 ? -errno : num_u64(view_split((struct view){ text, (size_t)n }, '\n', &rest), ret);
}

static const struct disk *disk_of(int fd)
{
	uint64_t id;
	if (fd_mount(fd, &id) < 0)
		return NULL;
	for (unsigned i = 0; i < n_disks; i++)
		for (unsigned j = 0; j < disks[i].n_mounts; j++)
			if (disks[i].mounts[j] == id)
				return &disks[i];
	return NULL;
}

/* ---- a question ---- */

static int open_path(int proc, int mem, uint64_t at)
{
	char path[PATH_MAX];
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	ssize_t n = pread(mem, path, sizeof(path), (off_t)at);
	if (n <= 0 || !memchr(path, 0, (size_t)n))
		return -EFAULT;
	_cleanup_(closep) int cwd =
		path[0] == '/' ? -EBADF : openat(proc, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The box has one root and one mount namespace: ours are the caller's. */
	long fd = syscall(SYS_openat2, cwd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static int open_number(int proc, uint64_t number)
{
	char name[16];
	snprintf(name, sizeof(name), "fd/%d", (int)number);
	int fd = openat(proc, name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool find_disk(const struct seccomp_notif *q, int proc, int mem, struct statfs *ret)
{
	uint64_t limit, used, reserved;
	_cleanup_(closep) int fd = q->data.nr == SYS_statfs ? open_path(proc, mem, q->data.args[0])
							    : open_number(proc, q->data.args[0]);
	const struct disk *d = fd < 0 ? NULL : disk_of(fd);
	if (!d || read_figure(d->figures[LIMIT], &limit) < 0 || read_figure(d->figures[USED], &used) < 0 ||
	    read_figure(d->figures[RESERVED], &reserved) < 0 || !limit)
		return false;
	if (syscall(SYS_fstatfs, fd, ret, (unsigned long)SECCOMP_UNASKED) < 0)
		return false;
	space_limit(ret, limit, used + reserved);
	return true;
}

static bool find_memory(struct sysinfo *ret)
{
	uint64_t limit = oom_memory();
	if (!limit || syscall(SYS_sysinfo, ret, 0ul, (unsigned long)SECCOMP_UNASKED) < 0)
		return false;
	space_memory(ret, MIN(limit, (uint64_t)ret->totalram * ret->mem_unit), oom_used(), oom_processes());
	return true;
}

/* Whether it was answered; what it cannot answer, or need not, the kernel does. */
static bool answer(int listener, const struct seccomp_notif *q, int proc)
{
	union {
		struct statfs disk;
		struct sysinfo memory;
	} a = { 0 };
	bool memory = q->data.nr == SYS_sysinfo;
	size_t size = memory ? SYSINFO_SIZE : sizeof(a.disk);
	_cleanup_(closep) int mem = openat(proc, "mem", O_RDWR | O_CLOEXEC);
	if (mem < 0 || !(memory ? find_memory(&a.memory) : find_disk(q, proc, mem, &a.disk)))
		return false;
	/* Still the same caller: its number may be another's once it is gone. */
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->id) == 0 &&
	       pwrite(mem, &a, size, (off_t)q->data.args[!memory]) == (ssize_t)size;
}

static bool answer_as_caller(int listener, const struct seccomp_notif *q)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%u", q->pid);
	_cleanup_(closep) int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || fstat(proc, &st) < 0)
		return false;
	const struct user caller = { .uid = st.st_uid, .gid = st.st_gid };
	if (user_enter(&caller) < 0)
		return false;
	bool done = answer(listener, q, proc);
	user_leave();
	return done;
}

static void on_question(struct loop_io *io, uint32_t events)
{
	union {
		struct seccomp_notif q;
		char room[256]; /* a newer kernel's may be longer */
	} u = { 0 };
	(void)events;
	/* There is one, or there was: ENOENT when its caller has been killed. It never waits for the next. */
	if (ioctl(io->fd, SECCOMP_IOCTL_NOTIF_RECV, &u) < 0)
		return;
	struct seccomp_notif_resp a = { .id = u.q.id };
	if (!answer_as_caller(io->fd, &u.q))
		a.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(io->fd, SECCOMP_IOCTL_NOTIF_SEND, &a);
}

/* ---- the start ---- */

static bool next(struct view *rest, uint64_t *ret)
{
	return rest->n && num_u64(view_split(*rest, ',', rest), ret) == 0;
}

static bool read_disk(struct view text, struct disk *ret)
{
	struct disk d = { 0 };
	uint64_t n;
	for (unsigned i = 0; i < FIGURES; i++) {
		if (!next(&text, &n))
			return false;
		d.figures[i] = (int)n;
		(void)fcntl((int)n, F_SETFD, FD_CLOEXEC);
	}
	while (d.n_mounts < MOUNTS && next(&text, &n))
		d.mounts[d.n_mounts++] = n;
	*ret = d;
	return true;
}

void space_start(struct init *in, char *const *env)
{
	uint32_t listener = 0;
	for (; *env; env++) {
		if (strncmp(*env, "ask=", 4) == 0)
			(void)!num_u32(view_of(*env + 4), &listener);
		else if (strncmp(*env, "disk=", 5) == 0 && n_disks < DISKS)
			n_disks += read_disk(view_of(*env + 5), &disks[n_disks]);
	}
	if (!listener)
		return;
	(void)fcntl((int)listener, F_SETFD, FD_CLOEXEC);
	/* The caller sleeps until we are done: no need to look for another processor. */
	(void)ioctl((int)listener, NOTIF_SET_FLAGS, SYNC_WAKE_UP);
	/* Nobody who asks must wait forever: closed, the kernel answers ENOSYS. */
	if (loop_io_start(in->loop, &in->space, (int)listener, EPOLLIN, on_question) < 0)
		fd_close((int)listener);
}

static void on_rested(struct loop_timer *t)
{
	struct init *in = CONTAINER(t, struct init, space_rest);
	(void)!loop_io_want(&in->space, EPOLLIN);
}

void space_rest(struct init *in)
{
	if (in->space.fd < 0 || loop_io_want(&in->space, 0) < 0)
		return;
	loop_timer_start(in->loop, &in->space_rest, SECCOMP_REST_MS, on_rested);
}

void space_stop(struct init *in)
{
	loop_timer_stop(&in->space_rest);
	loop_io_close(&in->space);
}
