/*
 * Whole reads and writes of files: see fd.h.
 */
#include "fd.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "rnd.h"
#include "poison.h"

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n) {
		ssize_t r = write(fd, at, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

int fd_read_all(int fd, void *p, size_t n)
{
	char *at = p;
	while (n) {
		ssize_t r = read(fd, at, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -EIO;
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

int fd_slurp(int dirfd, const char *path, struct buf *out)
{
	_cleanup_(closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		size_t want = MIN((size_t)4096, buf_room(out));
		char one;
		char *p = want ? buf_reserve(out, want) : &one;
		if (!p)
			return out->bad;
		ssize_t r = read(fd, p, want ? want : 1);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return 0;
		if (!want)
			return -EFBIG;
		buf_commit(out, (size_t)r);
	}
}

int fd_put(int dirfd, const char *path, const char *text)
{
	_cleanup_(closep) int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t n = strlen(text);
	ssize_t r;
	/* Control groups answer EINTR where a signal waits, which need not be one of ours: a tracer's will
	 * do. */
	do
		r = write(fd, text, n);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return (size_t)r == n ? 0 : -EIO;
}

int fd_replace(int dirfd, const char *path, const void *p, size_t n, unsigned mode, bool sync)
{
	char tmp[300], tail[9];
	rnd_name(tail, 8);
	if (snprintf(tmp, sizeof(tmp), "%s.%s", path, tail) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	_cleanup_(closep) int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, p, n);
	if (r == 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

int fd_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	int want = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	if (want != flags && fcntl(fd, F_SETFL, want) < 0)
		return -errno;
	return 0;
}

int fd_mount(int fd, uint64_t *ret_id)
{
	struct statx st;
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -EOPNOTSUPP;
	*ret_id = st.stx_mnt_id;
	return 0;
}
