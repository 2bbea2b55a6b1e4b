/*
 * Loop devices: see loopdev.h.
 */
#include "loopdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "fd.h"
#include "poison.h"

#define TRIES 64 /* others look for a free one too */

/* A keeper that was killed left it attached: its boxes still use it. */
static int find_attached(const struct stat *file, char path[32])
{
	DIR *d = opendir("/sys/block");
	int found = -ENOENT;
	for (struct dirent *de; d && found < 0 && (de = readdir(d));) {
		struct loop_info64 info;
		if (strncmp(de->d_name, "loop", 4) != 0)
			continue;
		if (snprintf(path, 32, "/dev/%s", de->d_name) >= 32)
			continue;
		int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == file->st_dev &&
		    info.lo_inode == file->st_ino)
			found = fd;
		else
			fd_close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

int loopdev_attach(int file, char ret_path[32], int *ret_fd)
{
	struct stat st;
	if (fstat(file, &st) < 0)
		return -errno;
	int fd = find_attached(&st, ret_path);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	_cleanup_(closep) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return -errno;
	for (int i = 0; i < TRIES; i++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		if (n < 0)
			return -errno;
		snprintf(ret_path, 32, "/dev/loop%d", n);
		_cleanup_(closep) int dev = open(ret_path, O_RDWR | O_CLOEXEC);
		if (dev < 0)
			return -errno;
		struct loop_config c = { .fd = (uint32_t)file,
					 .block_size = 4096,
					 .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };
		if (ioctl(dev, LOOP_CONFIGURE, &c) < 0) {
			c.info.lo_flags =
				LO_FLAGS_AUTOCLEAR; /* the file system below may not do direct I/O */
			if (errno == EBUSY || ioctl(dev, LOOP_CONFIGURE, &c) < 0) {
				if (errno != EBUSY)
					return -errno;
				continue;
			}
		}
		*ret_fd = TAKE_FD(dev);
		return 0;
	}
	return -EBUSY;
}

int loopdev_refresh(int dev)
{
	return ioctl(dev, LOOP_SET_CAPACITY) < 0 ? -errno : 0;
}
