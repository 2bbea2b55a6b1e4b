/*
 * A started process, from Start to Exited.
 *
 * Output is read only while the caller has room for it, so that back-pressure
 * reaches the program; past its limit it is read and dropped, so that the
 * program does not hang. When the main process has exited, exactly what stands
 * in the pipes at that moment is still sent: a background child that keeps them
 * open delays nothing. What such a child writes later is read and dropped
 * (struct drain), since closing the pipe would kill it.
 */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "clock.h"
#include "fd.h"
#include "scratch.h"
#include "launch.h"
#include "stream.h"
#include "tree.h"
#include "wire_gen.h"
#include "poison.h"

#define DRAINS 64 /* pipes of background children that are kept open at once */

struct proc;

/* The end of stdout or stderr that we read. */
struct sink {
	struct proc *proc;
	struct loop_io io; /* stopped while there is no room */
	int fd;            /* -1 after its end */
	uint16_t channel;
	uint64_t left; /* bytes that may still be sent */
	bool truncated;
	size_t rest; /* after the exit: bytes to read before it is done with */
};

struct proc {
	struct stream stream;
	struct list node; /* of init->procs */
	pid_t pid;
	struct sink sinks[2];
	int in_fd; /* -1: closed */
	struct loop_io in_io;
	struct buf in;
	struct loop_timer deadline;
	uint64_t started_ns, ended_ns;
	bool exited, timed_out;
	int status;
};

static struct proc *proc_of(struct stream *s)
{
	return CONTAINER(s, struct proc, stream);
}

/* ---- what outlives its stream ----------------------------------------- */

struct drain {
	struct loop_io io;
	struct list node; /* of init->drains */
	struct init *init;
	struct loop_task task;
};

static void drain_free(struct loop_task *task)
{
	free(CONTAINER(task, struct drain, task));
}

static void drain_close(struct drain *d)
{
	int fd = d->io.fd;
	loop_io_stop(&d->io);
	fd_close(fd);
	list_del(&d->node);
	d->init->n_drains--;
	loop_defer(d->init->loop, &d->task, drain_free);
}

static void drain_event(struct loop_io *io, uint32_t events)
{
	struct drain *d = CONTAINER(io, struct drain, io);
	(void)events;
	ssize_t n = read(io->fd, scratch, SCRATCH_SIZE);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	drain_close(d);
}

/* Takes fd. */
static void drain_adopt(struct init *in, int fd)
{
	struct drain *d = in->n_drains < DRAINS ? calloc(1, sizeof(*d)) : NULL;
	if (!d || loop_io_start(in->loop, &d->io, fd, EPOLLIN, drain_event) < 0) {
		fd_close(fd);
		free(d);
		return;
	}
	d->init = in;
	list_append(&in->drains, &d->node);
	in->n_drains++;
}

void proc_stop(struct init *in)
{
	LIST_EACH (it, &in->drains)
		drain_close(CONTAINER(it, struct drain, node));
}

/* ---- output ----------------------------------------------------------- */

static void sink_close(struct sink *k)
{
	loop_io_stop(&k->io);
	fd_close(TAKE_FD(k->fd));
}

static void finish(struct proc *p);

static bool sinks_done(const struct proc *p)
{
	return (p->sinks[0].fd < 0 || p->sinks[0].rest == 0) && (p->sinks[1].fd < 0 || p->sinks[1].rest == 0);
}

/* Sends what the limit allows of n bytes in the scratch buffer, drops the rest. */
static void sink_pass(struct sink *k, size_t n)
{
	size_t send = n < k->left ? n : (size_t)k->left;
	if (send)
		stream_data(&k->proc->stream, k->channel, (struct view){ scratch, send });
	k->left -= send;
	k->truncated |= send < n;
}

/* One read. Whether another may follow at once. */
static bool sink_read(struct sink *k)
{
	size_t room = stream_room(&k->proc->stream);
	/* Only what will be sent needs room. */
	size_t want = k->left <= room ? SCRATCH_SIZE : room;
	if (k->proc->exited && want > k->rest)
		want = k->rest;
	if (want == 0) {
		loop_io_stop(&k->io); /* until on_ready; an armed pipe would report its hang-up for ever */
		return false;
	}
	ssize_t n = read(k->fd, scratch, want);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		k->rest = 0;
		return false;
	}
	if (n <= 0) {
		sink_close(k);
		return false;
	}
	sink_pass(k, (size_t)n);
	k->rest -= k->proc->exited ? (size_t)n : 0;
	return true;
}

static void sink_event(struct loop_io *io, uint32_t events)
{
	struct sink *k = CONTAINER(io, struct sink, io);
	(void)events;
	(void)sink_read(k);
	if (k->proc->exited && sinks_done(k->proc))
		finish(k->proc);
}

static void sink_resume(struct sink *k)
{
	struct proc *p = k->proc;
	if (k->fd < 0 || k->io.fd >= 0 || (k->left && stream_room(&p->stream) == 0))
		return;
	if (loop_io_start(p->stream.init->loop, &k->io, k->fd, EPOLLIN, sink_event) < 0) {
		k->truncated = true; /* no memory to watch it with: better cut than hang */
		sink_close(k);
	}
}

/* ---- stdin ------------------------------------------------------------ */

static void in_close(struct proc *p)
{
	loop_io_stop(&p->in_io);
	fd_close(TAKE_FD(p->in_fd));
	stream_consumed(&p->stream, buf_len(&p->in)); /* nobody will read it: the caller need not wait */
	buf_done(&p->in);
}

static void in_event(struct loop_io *io, uint32_t events);

/* Writes what the pipe takes and watches it while something is left. */
static void in_flush(struct proc *p)
{
	while (buf_len(&p->in)) {
		struct view v = buf_view(&p->in);
		ssize_t n = write(p->in_fd, v.p, v.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* EPIPE: the program does not want it */
			in_close(p);
			return;
		}
		buf_consume(&p->in, (size_t)n);
		stream_consumed(&p->stream, (size_t)n);
	}
	if (buf_len(&p->in) == 0) {
		buf_shrink(&p->in);
		loop_io_stop(&p->in_io);
		if (p->stream.ended)
			in_close(p);
	} else if (p->in_io.fd < 0 &&
		   loop_io_start(p->stream.init->loop, &p->in_io, p->in_fd, EPOLLOUT, in_event) < 0) {
		in_close(p);
	}
}

static void in_event(struct loop_io *io, uint32_t events)
{
	(void)events;
	in_flush(CONTAINER(io, struct proc, in_io));
}

static void on_data(struct stream *s, struct view data)
{
	struct proc *p = proc_of(s);
	if (p->in_fd < 0) {
		stream_consumed(s, data.n);
		return;
	}
	if (buf_add(&p->in, data) < 0)
		in_close(p);
	else
		in_flush(p);
}

static void on_end(struct stream *s)
{
	struct proc *p = proc_of(s);
	if (p->in_fd >= 0)
		in_flush(p);
}

/* ---- the end ---------------------------------------------------------- */

static void finish(struct proc *p)
{
	bool killed = WIFSIGNALED(p->status);
	struct wire_exited msg = {
		.exit_code = killed ? 128 + (uint32_t)WTERMSIG(p->status) : (uint32_t)WEXITSTATUS(p->status),
		.signal = killed ? (uint32_t)WTERMSIG(p->status) : 0,
		.timed_out = p->timed_out,
		.stdout_truncated = p->sinks[0].truncated,
		.stderr_truncated = p->sinks[1].truncated,
		.duration_us = (p->ended_ns - p->started_ns) / 1000,
	};
	for (size_t i = 0; i < ELEMS(p->sinks); i++) {
		struct sink *k = &p->sinks[i];
		loop_io_stop(&k->io);
		if (k->fd >= 0)
			drain_adopt(p->stream.init, TAKE_FD(k->fd));
	}
	stream_finish(&p->stream, &wire_exited_msg, &msg);
}

static void on_exit_of(struct proc *p, int status)
{
	p->exited = true;
	p->status = status;
	p->ended_ns = clock_mono_ns();
	list_del(&p->node);
	loop_timer_stop(&p->deadline);
	if (p->in_fd >= 0)
		in_close(p);
	for (size_t i = 0; i < ELEMS(p->sinks); i++) {
		struct sink *k = &p->sinks[i];
		int n = 0;
		if (k->fd < 0)
			continue;
		k->rest = ioctl(k->fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
		while (k->fd >= 0 && k->rest && sink_read(k))
			;
	}
	if (sinks_done(p))
		finish(p);
}

void proc_reap(struct init *in)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		LIST_EACH (it, &in->procs) {
			struct proc *p = CONTAINER(it, struct proc, node);
			if (p->pid == pid) {
				on_exit_of(p, status);
				break;
			}
		}
	}
}

static void on_deadline(struct loop_timer *t)
{
	struct proc *p = CONTAINER(t, struct proc, deadline);
	p->timed_out = true;
	tree_kill(p->pid);
}

/* Whoever goes away takes the program along; one that has exited leaves its background in peace. */
static void on_cancel(struct stream *s, bool lost)
{
	struct proc *p = proc_of(s);
	if (!p->exited)
		tree_kill(p->pid);
	if (!lost) {
		struct err e;
		err_set(&e, ERR_CANCELLED, "cancelled");
		stream_fail(s, &e);
	}
}

static void on_ready(struct stream *s)
{
	for (size_t i = 0; i < 2; i++)
		sink_resume(&proc_of(s)->sinks[i]);
}

/* The loop may still have news for us in the batch in which the stream is closed. */
static void on_stop(struct stream *s)
{
	struct proc *p = proc_of(s);
	loop_timer_stop(&p->deadline);
	list_del(&p->node); /* whatever becomes of the process, it is reaped as anybody's child */
	for (size_t i = 0; i < ELEMS(p->sinks); i++)
		loop_io_stop(&p->sinks[i].io);
	loop_io_stop(&p->in_io);
}

static void proc_free(struct stream *s)
{
	struct proc *p = proc_of(s);
	on_stop(s);
	for (size_t i = 0; i < ELEMS(p->sinks); i++)
		sink_close(&p->sinks[i]);
	fd_close(p->in_fd);
	buf_done(&p->in);
	free(p);
}

/* ---- the beginning ---------------------------------------------------- */

static const struct stream_ops proc_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_ready = on_ready,
	.on_cancel = on_cancel,
	.stop = on_stop,
	.free = proc_free,
};

/* A pipe whose end [ours] does not block; the program's end does, as programs expect.
 * It belongs to the program's user, who may open it again as /dev/stdout or /dev/stderr. */
static int make_pipe(int fds[2], int ours, const struct user *user, struct err *e)
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "pipe");
	if (fchown(fds[0], user->uid, user->gid) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "pipe");
	int r = fd_nonblock(fds[ours], true);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "pipe");
	return 0;
}

static void raise_oom_score(pid_t pid)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	int r = fd_put(AT_FDCWD, path, INIT_OOM_SCORE);
	(void)r; /* it may be gone already, or be nobody's business */
}

static struct proc *proc_new(const struct wire_start *msg, struct init *in)
{
	struct proc *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	list_init(&p->node);
	p->in_fd = p->in_io.fd = -1;
	buf_init(&p->in, FRAME_WINDOW);
	for (uint16_t i = 0; i < 2; i++)
		p->sinks[i] = (struct sink){
			.proc = p,
			.io.fd = -1,
			.fd = -1,
			.channel = (uint16_t)(i + 1),
			.left = i == 0 ? msg->stdout_limit : msg->stderr_limit,
		};
	p->stream.init = in;
	return p;
}

static int begin(struct proc *p, const struct call *call, struct err *e)
{
	const struct wire_start *msg = call->msg;
	struct user user;
	struct launch plan = { .user = &user, .fds = { -1, -1, -1 } };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int r = user_find(msg->user, &user, e);
	if (r == 0)
		r = launch_prepare(&plan, msg, call->arena, e);
	if (r == 0 && msg->stdin_)
		r = make_pipe(in, 1, &user, e);
	if (r == 0)
		r = make_pipe(out, 0, &user, e);
	if (r == 0)
		r = make_pipe(err, 0, &user, e);
	if (r == 0) {
		memcpy(plan.fds, (int[]){ in[0], out[1], err[1] }, sizeof(plan.fds));
		p->started_ns = clock_mono_ns();
		r = launch_run(&plan, &p->pid, e);
	}
	fd_close(in[0]);
	fd_close(out[1]);
	fd_close(err[1]);
	p->in_fd = in[1];
	p->sinks[0].fd = out[0];
	p->sinks[1].fd = err[0];
	return r;
}

int proc_start(const struct call *call, struct err *e)
{
	struct init *in = call->conn->init;
	struct proc *p = proc_new(call->msg, in);
	if (!p)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	if (begin(p, call, e) < 0) {
		proc_free(&p->stream);
		return -1;
	}
	raise_oom_score(p->pid);
	stream_open(&p->stream, call, &proc_ops);
	list_append(&in->procs, &p->node);
	stream_reply(&p->stream, &wire_started_msg, &(struct wire_started){ .pid = (uint32_t)p->pid });
	if (call->deadline_ms)
		loop_timer_start(in->loop, &p->deadline, call->deadline_ms, on_deadline);
	on_ready(&p->stream);
	return 0;
}

int proc_signal(const struct call *call, struct err *e)
{
	const struct wire_signal *msg = call->msg;
	if (msg->signo < 1 || msg->signo > 64)
		return err_set(e, ERR_INVALID, "there is no signal %u", msg->signo);
	LIST_EACH (it, &call->conn->init->procs) {
		struct proc *p = CONTAINER(it, struct proc, node);
		if ((uint32_t)p->pid != msg->pid)
			continue;
		if (kill(-p->pid, (int)msg->signo) < 0)
			return err_sys(e, ERR_INTERNAL, errno, "signal %u to process %u", msg->signo,
				       msg->pid);
		conn_reply(call, &wire_signal_reply_msg, &(struct wire_signal_reply){ 0 });
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "process %u is not running", msg->pid);
}
