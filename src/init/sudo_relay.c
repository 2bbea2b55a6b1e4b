/*
 * See sudo_relay.h.
 *
 * The command is a child of PID 1 and so in a session of its own, in which the
 * caller's terminal can be nobody's controlling terminal. So an interactive
 * command gets a new one, as sudo's use_pty does, and the bytes are carried
 * between the two: job control, /dev/tty and Ctrl-C are then the command's own.
 */
#include "sudo_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#include "fd.h"
#include "poison.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT };

static struct termios before;

int sudo_relay_prepare(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ELEMS(passed); i++)
		sigaddset(&set, passed[i]);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int sudo_relay_terminal(int *ret_master, int *ret_slave)
{
	struct winsize size;
	int unlock = 0;
	_cleanup_(closep) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0 || tcgetattr(0, &before) < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(slave, TIOCSWINSZ, &size);
	(void)tcsetattr(slave, TCSANOW, &before);
	*ret_master = TAKE_FD(master);
	*ret_slave = slave;
	return 0;
}

static void on_signals(const struct sudo_relay *r, int signals)
{
	struct signalfd_siginfo si;
	while (read(signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		struct winsize size;
		int signo = (int)si.ssi_signo;
		if (signo == SIGWINCH) {
			if (r->master >= 0 && ioctl(0, TIOCGWINSZ, &size) == 0)
				(void)ioctl(r->master, TIOCSWINSZ, &size);
			continue;
		}
		const char said[] = { 'K', (char)signo };
		(void)!send(r->socket, said, sizeof(said), MSG_NOSIGNAL);
		if (signo == SIGTSTP)
			(void)raise(SIGSTOP);
	}
}

/* What there is, from one side to the other; false at the end. */
static bool carry(int from, int to)
{
	char chunk[16384];
	ssize_t n = read(from, chunk, sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	for (ssize_t at = 0; at < n;) {
		ssize_t w = write(to, chunk + at, (size_t)(n - at));
		if (w < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = to, .events = POLLOUT };
			(void)poll(&p, 1, 1000);
		} else if (w < 0 && errno != EINTR) {
			return false;
		}
		at += w > 0 ? w : 0;
	}
	return true;
}

/* The last of its output: what is in the terminal when the command is gone. */
static void drain(int master)
{
	struct pollfd p = { .fd = master, .events = POLLIN };
	while (poll(&p, 1, 0) > 0 && p.revents & POLLIN)
		if (!carry(master, 1))
			return;
}

static bool ended(int socket, int *ret_status)
{
	unsigned char said[16];
	ssize_t n = recv(socket, said, sizeof(said), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == 5 && said[0] == 'X')
		*ret_status = (int)(said[1] | (uint32_t)said[2] << 8 | (uint32_t)said[3] << 16 |
				    (uint32_t)said[4] << 24);
	else
		*ret_status = -ECONNRESET;
	return true;
}

int sudo_relay_run(struct sudo_relay *r, int signals)
{
	struct pollfd p[] = { { .fd = r->socket, .events = POLLIN },
			      { .fd = signals, .events = POLLIN },
			      { .fd = r->master, .events = POLLIN },
			      { .fd = r->master < 0 ? -1 : 0, .events = POLLIN } };
	int status = -ECONNRESET;
	if (r->master >= 0) {
		struct termios raw = before;
		cfmakeraw(&raw);
		(void)tcsetattr(0, TCSADRAIN, &raw);
	}
	for (;;) {
		if (poll(p, ELEMS(p), -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			on_signals(r, signals);
		if (p[2].revents && !carry(r->master, 1))
			p[2].fd = -1;
		if (p[3].revents && !carry(0, r->master)) {
			p[3].fd = -1;
			const char hup[] = { 'K', SIGHUP };
			(void)!send(r->socket, hup, sizeof(hup), MSG_NOSIGNAL);
		}
		if (p[0].revents && ended(r->socket, &status))
			break;
	}
	if (r->master >= 0) {
		drain(r->master);
		(void)tcsetattr(0, TCSADRAIN, &before);
	}
	return status;
}
