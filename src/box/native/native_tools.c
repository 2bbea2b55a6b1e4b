/*
 * The programs that a box has of us: see native_tools in native.h.
 *
 * They are the lowest-but-one layer of the overlay that shows /usr/bin, so that a
 * box costs one more mount and nothing is written into it. They lie on the boxes'
 * disk because a tmpfs can be mapped to a box's ids only since Linux 6.3.
 */
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

/* A start on a full disk writes nothing that is there already. */
static bool is_there(int init, const struct stat *st, int bin)
{
	static const char *const names[] = { "sudo", "su" };
	char ours[16384], theirs[sizeof(ours)];
	struct stat have[ELEMS(names)];
	_cleanup_(closep) int fd = openat(bin, names[0], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	for (size_t i = 0; i < ELEMS(names); i++)
		if (fd < 0 || fstatat(bin, names[i], &have[i], AT_SYMLINK_NOFOLLOW) < 0 ||
		    have[i].st_size != st->st_size || (have[i].st_mode & 07777) != 0755 ||
		    have[i].st_ino != have[0].st_ino)
			return false;
	for (off_t at = 0; at < st->st_size;) {
		ssize_t n = pread(init, ours, sizeof(ours), at);
		if (n <= 0 || pread(fd, theirs, (size_t)n, at) != n || memcmp(ours, theirs, (size_t)n) != 0)
			return false;
		at += n;
	}
	return true;
}

static int copy_program(int init, int bin)
{
	struct stat st;
	if (fstat(init, &st) < 0)
		return -errno;
	if (is_there(init, &st, bin))
		return 0;
	/* Another file each time: a box that still runs has the old one open. */
	(void)unlinkat(bin, ".new", 0);
	_cleanup_(closep) int to = openat(bin, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (to < 0)
		return -errno;
	int r = 0;
	for (off_t at = 0; r == 0 && at < st.st_size;) {
		ssize_t n = sendfile(to, init, &at, (size_t)(st.st_size - at));
		if (n <= 0)
			r = n < 0 ? -errno : -EIO;
	}
	if (r == 0 && (fchmod(to, 0755) < 0 || renameat(bin, ".new", bin, "sudo") < 0))
		r = -errno;
	if (r < 0) {
		(void)unlinkat(bin, ".new", 0);
		return r;
	}
	(void)unlinkat(bin, "su", 0);
	return linkat(bin, "sudo", bin, "su", 0) < 0 ? -errno : 0;
}

int native_tools(struct native *n, int dir, struct err *e)
{
	static const char *const dirs[] = { "tools", "tools/usr", "tools/usr/bin" };
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if (mkdirat(dir, dirs[i], 0755) == 0 ? fchmodat(dir, dirs[i], 0755, 0) < 0 : errno != EEXIST)
			return err_sys(e, ERR_STORAGE, errno, "cannot make the tools of sandboxes");
	/* Also where they cannot be renewed: the older ones still serve. */
	fd_close(n->tools);
	n->tools = openat(dir, "tools", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (n->tools < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot open the tools of sandboxes");
	_cleanup_(closep) int bin = openat(dir, "tools/usr/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = bin < 0 ? -errno : copy_program(n->init, bin);
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot make the tools of sandboxes") : 0;
}
