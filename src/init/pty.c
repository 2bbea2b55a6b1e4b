/*
 * See pty.h.
 */
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "fd.h"
#include "poison.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

#define SIZE_MAX_CELLS 10000
#define DEFAULT_COLS   80
#define DEFAULT_ROWS   24

int pty_resize(int master, uint32_t cols, uint32_t rows, struct err *e)
{
	if (cols > SIZE_MAX_CELLS || rows > SIZE_MAX_CELLS)
		return err_set(e, ERR_INVALID, "a terminal has at most %d columns and rows", SIZE_MAX_CELLS);
	struct winsize size = { .ws_col = (unsigned short)(cols ? cols : DEFAULT_COLS),
				.ws_row = (unsigned short)(rows ? rows : DEFAULT_ROWS) };
	if (ioctl(master, TIOCSWINSZ, &size) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the terminal's size");
	return 0;
}

/* By the master where the kernel can, so that no path has to be believed. */
static int open_slave(int master)
{
	int flags = O_RDWR | O_NOCTTY | O_CLOEXEC, unlock = 0, n;
	char path[32];
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -1;
	int fd = ioctl(master, TIOCGPTPEER, flags);
	if (fd >= 0 || (errno != EINVAL && errno != ENOTTY))
		return fd;
	if (ioctl(master, TIOCGPTN, &n) < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/pts/%d", n);
	return open(path, flags);
}

int pty_open(uint32_t cols, uint32_t rows, uid_t uid, int *ret_master, int *ret_slave, struct err *e)
{
	_cleanup_(closep) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(closep) int slave = master < 0 ? -1 : open_slave(master);
	if (slave < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "a terminal");
	if (pty_resize(master, cols, rows, e) < 0)
		return -1;
	/* Programs open their terminal by name, too. Where that cannot be, they have it open already. */
	int r = fchown(slave, uid, (gid_t)-1);
	(void)r;
	*ret_master = TAKE_FD(master);
	*ret_slave = TAKE_FD(slave);
	return 0;
}
