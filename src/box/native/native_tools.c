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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

static int copy_program(int init, int bin)
{
	struct stat st;
	if (fstat(init, &st) < 0)
		return -errno;
	/* Another file each time: a box that still runs has the old one open. */
	(void)unlinkat(bin, ".new", 0);
	_cleanup_(closep) int to = openat(bin, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (to < 0)
		return -errno;
	off_t at = 0;
	while (at < st.st_size) {
		ssize_t n = sendfile(to, init, &at, (size_t)(st.st_size - at));
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	if (fchmod(to, 0755) < 0 || renameat(bin, ".new", bin, "sudo") < 0)
		return -errno;
	(void)unlinkat(bin, "su", 0);
	return linkat(bin, "sudo", bin, "su", 0) < 0 ? -errno : 0;
}

int native_tools(struct native *n, int dir, struct err *e)
{
	static const char *const dirs[] = { "tools", "tools/usr", "tools/usr/bin" };
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if ((mkdirat(dir, dirs[i], 0755) < 0 && errno != EEXIST) ||
		    fchmodat(dir, dirs[i], 0755, 0) < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot make the tools of sandboxes");
	_cleanup_(closep) int bin = openat(dir, "tools/usr/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = bin < 0 ? -errno : copy_program(n->init, bin);
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot make the tools of sandboxes");
	n->tools = openat(dir, "tools", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return n->tools < 0 ? err_sys(e, ERR_STORAGE, errno, "cannot open the tools of sandboxes") : 0;
}
