/*
 * File descriptors: owned by exactly one place, closed once, always O_CLOEXEC.
 */
#pragma once

#include <errno.h>
#include <unistd.h>

#include "buf.h"

static inline void fd_close(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* never retried: the number may be somebody else's by then */
}
static inline void closep(int *fd)
{
	fd_close(*fd);
	*fd = -EBADF;
}
static inline void freep(void *p)
{
	extern void free(void *);
	free(*(void **)p);
}

/* All of it or -errno (-EIO at an early end). For files and blocking sockets. */
int fd_write_all(int fd, const void *p, size_t n) _must_check_;
int fd_read_all(int fd, void *p, size_t n) _must_check_;
/* The whole of a (small) file, up to the buffer's maximum. */
int fd_slurp(int dirfd, const char *path, struct buf *out) _must_check_;
/* One write(2) of a whole small file, as the kernel's control files want it. */
int fd_put(int dirfd, const char *path, const char *text) _must_check_;
/* Written beside, synced where `sync`, then renamed over. */
int fd_replace(int dirfd, const char *path, const void *p, size_t n, unsigned mode, bool sync) _must_check_;
int fd_nonblock(int fd, bool on) _must_check_;
/* The mount that it was opened through (Linux 5.8). */
int fd_mount(int fd, uint64_t *ret_id) _must_check_;
