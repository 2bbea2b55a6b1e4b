/*
 * The wiring of PID 1's loop: connections come in, children go out.
 */
#include "init.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "conn.h"
#include "farewell.h"
#include "fd.h"
#include "proc.h"
#include "seccomp.h"
#include "space.h"
#include "spare.h"
#include "sudo.h"
#include "poison.h"

#define RETRY_MS 100

static void on_accept(struct loop_io *io, uint32_t events);

static void on_retry(struct loop_timer *t)
{
	struct init *in = CONTAINER(t, struct init, retry);
	if (loop_io_want(&in->listener, EPOLLIN) < 0)
		loop_timer_start(in->loop, t, RETRY_MS, on_retry);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	struct init *in = CONTAINER(io, struct init, listener);
	(void)events;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* The connection stays in the backlog and would be reported again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			int r = loop_io_want(io, 0);
			(void)r; /* at worst it is reported again */
			loop_timer_start(in->loop, &in->retry, RETRY_MS, on_retry);
		}
		return;
	}
	if (in->n_conns >= INIT_CONNS)
		fd_close(fd);
	else
		(void)conn_open(in, fd);
}

static void on_signal(struct loop_signals *s, int signo)
{
	struct init *in = CONTAINER(s, struct init, signals);
	if (signo == SECCOMP_REST_SIGNAL)
		space_rest(in);
	else
		proc_reap(in);
}

static void on_quit(struct loop_task *task)
{
	loop_stop(CONTAINER(task, struct init, quit)->loop, 0);
}

/* After a start that failed; nothing else ends it. */
static void init_stop(struct init *in)
{
	if (!in->loop)
		return;
	LIST_EACH (it, &in->conns)
		conn_close(CONTAINER(it, struct conn, node));
	loop_timer_stop(&in->retry);
	loop_timer_stop(&in->settling);
	loop_signals_stop(&in->signals);
	int fd = in->listener.fd;
	loop_io_stop(&in->listener);
	fd_close(fd);
	oom_stop(in);
	farewell_stop(in);
	sudo_stop(in);
	space_stop(in);
	spare_stop(in);
	proc_stop(in);
	/* What the above deferred has to run. */
	loop_defer(in->loop, &in->quit, on_quit);
	int r = loop_run(in->loop);
	(void)r;
	loop_free(in->loop);
	in->loop = NULL;
}

int init_start(struct init *in, int listen_fd, struct err *e)
{
	_cleanup_(closep) int fd = listen_fd;
	*in = (struct init){ .listener.fd = -1, .signals.io.fd = -1, .sudo.fd = -1, .space.fd = -1 };
	list_init(&in->conns);
	list_init(&in->procs);
	list_init(&in->ended);
	list_init(&in->drains);
	list_init(&in->acceptors);
	list_init(&in->sudos);
	list_init(&in->farewells);
	in->loop = loop_new(e);
	if (!in->loop)
		return -1;
	static const int signos[] = { SIGCHLD, SECCOMP_REST_SIGNAL };
	int r = fd_nonblock(fd, true);
	if (r == 0)
		r = loop_signals_start(in->loop, &in->signals, signos, ELEMS(signos), on_signal);
	if (r == 0)
		r = loop_io_start(in->loop, &in->listener, fd, EPOLLIN, on_accept);
	if (r < 0) {
		init_stop(in);
		return err_sys(e, ERR_INTERNAL, r, "listening socket");
	}
	(void)TAKE_FD(fd);
	/* Children that exited before the signal was watched. */
	proc_reap(in);
	return 0;
}
