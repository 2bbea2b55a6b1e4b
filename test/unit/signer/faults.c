/*
 * Faults for paddock-signer, loaded before libc by tests (LD_PRELOAD): a shared page, which the test maps as
 * well, says when the program dies and how far its clocks are set. Built with the tests, never installed.
 *
 * Deaths: every call that changes a file or sends an answer counts `left` down; the one that reaches 0 does
 * not happen (or, with `half`, happens to the first half of its bytes) and the program is killed by SIGKILL.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct page {
	int64_t wall_ms, boot_ms; /* added to the clocks */
	int64_t left;             /* calls until the end; 0: it lives on */
	int64_t half;
	int64_t kind; /* what counts: 0 all, else one of these */
	int64_t seen; /* calls so far */
};

enum { WRITE = 1, SYNC, SEND, NAME };

static struct page *page;

static __attribute__((constructor)) void start(void)
{
	const char *path = getenv("FAULTS_PAGE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		_exit(99);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		_exit(99);
}

/* SIGKILL is not blocked by anything, and tgkill passes the filter. */
static void die(void)
{
	syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGKILL);
	_exit(98);
}

/* Whether this call is the one. */
static bool due(int kind)
{
	page->seen++;
	return (!page->kind || page->kind == kind) && page->left > 0 && --page->left == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	static __typeof__(&pwrite64) real;

	real = real ? real : REAL(pwrite64);
	if (due(WRITE)) {
		if (page->half)
			(void)!real(fd, p, n / 2, at);
		die();
	}
	return real(fd, p, n, at);
}

ssize_t write(int fd, const void *p, size_t n)
{
	static __typeof__(&write) real;

	real = real ? real : REAL(write);
	if (fd > 2 && due(WRITE)) {
		if (page->half)
			(void)!real(fd, p, n / 2);
		die();
	}
	return real(fd, p, n);
}

#define DIES(kind, type, name, params, args)                                                                 \
	type name params                                                                                     \
	{                                                                                                    \
		static __typeof__(&name) real;                                                               \
		real = real ? real : REAL(name);                                                             \
		if (due(kind))                                                                               \
			die();                                                                               \
		return real args;                                                                            \
	}

DIES(SYNC, int, fdatasync, (int fd), (fd))
DIES(SYNC, int, fsync, (int fd), (fd))
DIES(WRITE, int, ftruncate64, (int fd, off64_t n), (fd, n))
DIES(NAME, int, unlink, (const char *path), (path))
DIES(NAME, int, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))
DIES(SEND, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))

int clock_gettime(clockid_t id, struct timespec *ret)
{
	static __typeof__(&clock_gettime) real;

	real = real ? real : REAL(clock_gettime);
	int r = real(id, ret);
	const int64_t add = id == CLOCK_REALTIME ? page->wall_ms : id == CLOCK_BOOTTIME ? page->boot_ms : 0;
	int64_t ns = (int64_t)ret->tv_sec * 1000000000 + ret->tv_nsec + add * 1000000;
	ret->tv_sec = ns / 1000000000;
	ret->tv_nsec = ns % 1000000000;
	return r;
}
