/*
 * See password.h.
 */
#include "password.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "fd.h"

#include "poison.h"

int password_slurp(const char *file, struct buf *ret, struct err *e)
{
	bool standard = strcmp(file, "-") == 0;
	_cleanup_(closep) int fd = standard ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0) {
		char *room = buf_reserve(ret, MIN((size_t)1024, MAX(buf_room(ret), (size_t)1)));
		if (!room)
			return err_set(e, ERR_TOO_LARGE, "%.100s is too large", file);
		n = read(fd, room, MIN((size_t)1024, buf_room(ret)));
		if (n > 0)
			buf_commit(ret, (size_t)n);
	}
	return n < 0 ? err_sys(e, ERR_INVALID, errno, "%.100s", standard ? "standard input" : file) : 0;
}

/* Signals come while it waits and at no other time: -EINTR. */
static int read_line(int tty, const sigset_t *open, struct buf *ret)
{
	struct pollfd p = { .fd = tty, .events = POLLIN };
	char c;
	ssize_t n;

	while ((n = ppoll(&p, 1, NULL, open)) == 1 && (n = read(tty, &c, 1)) == 1 && c != '\n')
		if (buf_putc(ret, c) < 0)
			return ret->bad;
	return n < 0 ? -errno : 0;
}

static volatile sig_atomic_t caught;

static void on_signal(int n)
{
	caught = n;
}

/* Whoever gives up gets back a terminal that shows what is typed. */
static const int SIGNALS[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP };

static int ask(int tty, const char *prompt, struct buf *ret, struct err *e)
{
	const struct sigaction wake = { .sa_handler = on_signal };
	struct sigaction kept[ELEMS(SIGNALS)];
	struct termios old, silent;
	sigset_t closed, open_set;

	if (tcgetattr(tty, &old) < 0)
		return err_sys(e, ERR_INVALID, errno, "the terminal");
	caught = 0;
	sigemptyset(&closed);
	for (size_t i = 0; i < ELEMS(SIGNALS); i++) {
		sigaddset(&closed, SIGNALS[i]);
		(void)sigaction(SIGNALS[i], &wake, &kept[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &closed, &open_set);
	silent = old;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	(void)tcsetattr(tty, TCSAFLUSH, &silent);
	dprintf(tty, "%s: ", prompt); /* after it: what is typed at the sight of it is not shown */
	int r = read_line(tty, &open_set, ret);
	(void)tcsetattr(tty, TCSAFLUSH, &old);
	dprintf(tty, "\n");
	for (size_t i = 0; i < ELEMS(SIGNALS); i++)
		(void)sigaction(SIGNALS[i], &kept[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &open_set, NULL);
	if (caught)
		(void)raise(caught);
	return r < 0 ? err_sys(e, ERR_INVALID, r, "the password") : 0;
}

static int ask_all(const char *prompt, bool twice, struct buf *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf again = { .max = ret->max, .secret = true };
	_cleanup_(closep) int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (tty < 0)
		return err_set(e, ERR_INVALID,
			       "there is no terminal to ask for the password: use "
			       "--password-file");
	if (ask(tty, prompt, ret, e) < 0 || (twice && ask(tty, "the same again", &again, e) < 0))
		return -1;
	if (twice && !view_eq(buf_view(ret), buf_view(&again)))
		return err_set(e, ERR_INVALID, "the passwords differ");
	return 0;
}

int password_read(const char *file, const char *prompt, bool twice, struct buf *ret, struct err *e)
{
	if (!file)
		return ask_all(prompt, twice, ret, e);
	if (password_slurp(file, ret, e) < 0)
		return -1;
	if (ret->n && ret->p[ret->n - 1] == '\n')
		ret->n--;
	if (ret->n && ret->p[ret->n - 1] == '\r')
		ret->n--;
	return 0;
}
