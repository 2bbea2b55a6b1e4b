/*
 * Start: pipes or a terminal, the launch, and the stream that asked for it as
 * the first attachment.
 */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "fd.h"
#include "launch.h"
#include "proc_attach.h"
#include "pty.h"
#include "secrets.h"
#include "spare.h"
#include "tree.h"
#include "poison.h"

#define ABOUT_ARGV 4096 /* bytes of the arguments that are remembered */

/* The program's ends; closed when it runs. */
struct ends {
	int in, out, err, control_in, control_out;
};

static void ends_close(struct ends *e)
{
	for (int *fd = &e->in; fd <= &e->control_out; fd++)
		closep(fd);
}

/* The end that we keep does not block; the program's does, as programs expect. It belongs
 * to the program's user, who may open it again as /dev/stdout or /dev/stderr. */
static int make_pipe(int *ret_read, int *ret_write, bool ours_reads, const struct user *user, struct err *e)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "pipe");
	*ret_read = fds[0];
	*ret_write = fds[1];
	if (fchown(fds[0], user->uid, user->gid) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "pipe");
	int r = fd_nonblock(ours_reads ? fds[0] : fds[1], true);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "pipe") : 0;
}

/* Out of the way of the numbers that the child gives to its copies. */
static int move_up(int *fd, struct err *e)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, LAUNCH_FREE);
	if (high < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno,
			       "a control channel needs descriptors above %d; the sandbox's limit",
			       LAUNCH_FREE);
	fd_close(*fd);
	*fd = high;
	return 0;
}

/* Of a shell: nobody can open a socket by /proc/PID/fd, and who writes to one is known. */
static int make_sockets(struct proc *p, struct ends *ends, struct err *e)
{
	int in[2], out[2], on = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "sockets");
	p->feeds[PROC_CONTROL_IN].fd = in[0];
	ends->control_in = in[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "sockets");
	p->channels[PROC_CONTROL].fd = out[0];
	ends->control_out = out[1];
	p->guarded = true;
	if (setsockopt(out[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    fd_nonblock(in[0], true) < 0 || fd_nonblock(out[0], true) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "sockets");
	return 0;
}

static int make_control(struct proc *p, const struct wire_start *msg, const struct user *user,
			struct ends *ends, struct err *e)
{
	p->order = calloc(1, sizeof(*p->order));
	if (!p->order)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	int r = view_starts(msg->tag, "shell:") ? make_sockets(p, ends, e)
		: make_pipe(&ends->control_in, &p->feeds[PROC_CONTROL_IN].fd, false, user, e) < 0
			? -1
			: make_pipe(&p->channels[PROC_CONTROL].fd, &ends->control_out, true, user, e);
	if (r < 0)
		return r;
	return move_up(&ends->control_in, e) < 0 ? -1 : move_up(&ends->control_out, e);
}

/* One terminal is all three; we read and write it by two descriptors, as the loop wants them. */
static int make_terminal(struct proc *p, const struct wire_pty *size, uid_t uid, struct ends *ends,
			 struct err *e)
{
	int *master = &p->channels[PROC_OUT].fd;
	if (pty_open(size->cols, size->rows, uid, master, &ends->in, e) < 0)
		return -1;
	p->feeds[PROC_STDIN].fd = fcntl(*master, F_DUPFD_CLOEXEC, 3);
	ends->out = fcntl(ends->in, F_DUPFD_CLOEXEC, 3);
	ends->err = fcntl(ends->in, F_DUPFD_CLOEXEC, 3);
	if (p->feeds[PROC_STDIN].fd < 0 || ends->out < 0 || ends->err < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "a terminal");
	return 0;
}

static int make_pipes(struct proc *p, bool with_stdin, const struct user *user, struct ends *ends,
		      struct err *e)
{
	if (with_stdin && make_pipe(&ends->in, &p->feeds[PROC_STDIN].fd, false, user, e) < 0)
		return -1;
	if (make_pipe(&p->channels[PROC_OUT].fd, &ends->out, true, user, e) < 0)
		return -1;
	return make_pipe(&p->channels[PROC_ERR].fd, &ends->err, true, user, e);
}

/* For the list of processes; long arguments are cut. */
static int remember(struct proc *p, const struct wire_start *msg, const char *cwd, struct err *e)
{
	struct wire_process_info *i = &p->about;
	size_t n = MIN(msg->argv.n, ABOUT_ARGV / 16), left = ABOUT_ARGV;
	i->tag = arena_view(&p->memory, msg->tag);
	i->user = arena_view(&p->memory, msg->user);
	i->cwd = arena_view(&p->memory, view_head(view_of(cwd), ABOUT_ARGV));
	i->argv.items = arena_array(&p->memory, n, sizeof(struct view));
	bool ok = i->tag.p && i->user.p && i->cwd.p && i->argv.items;
	for (; ok && i->argv.n < n && left; i->argv.n++) {
		struct view arg = arena_view(&p->memory, view_head(msg->argv.items[i->argv.n], left));
		i->argv.items[i->argv.n] = arg;
		left -= arg.n;
		ok = arg.p;
	}
	return ok ? 0 : err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
}

int proc_launch(struct proc *p, const struct wire_start *msg, struct arena *a, struct err *e)
{
	_cleanup_(ends_close) struct ends ends = { -1, -1, -1, -1, -1 };
	struct user user;
	struct launch plan = { .user = &user, .terminal = msg->pty };
	int r = user_find(msg->user, &user, e);
	if (r == 0)
		r = launch_prepare(&plan, msg, a, e);
	if (r == 0 && p->keep)
		r = remember(p, msg, plan.cwd, e);
	if (r == 0)
		r = msg->pty ? make_terminal(p, msg->pty, user.uid, &ends, e)
			     : make_pipes(p, msg->stdin_, &user, &ends, e);
	if (r == 0 && msg->control)
		r = make_control(p, msg, &user, &ends, e);
	if (r < 0)
		return r;
	memcpy(plan.fds, (int[]){ ends.in, ends.out, ends.err }, sizeof(plan.fds));
	memcpy(plan.control, (int[]){ ends.control_in, ends.control_out }, sizeof(plan.control));
	p->started_ns = clock_mono_ns();
	p->about.started_ms = clock_wall_ms();
	p->oom_before = oom_kills();
	r = launch_run(&plan, &p->pid, e);
	p->about.pid = (uint32_t)p->pid;
	if (r == 0)
		oom_offer(p->pid);
	return r;
}

/* A shell that was made ahead has the command now: from here on it is what was asked for. */
static struct proc *take_spare(struct init *in, const struct wire_start *msg)
{
	struct proc *p = spare_take(in, msg);
	struct err e;
	if (!p)
		return NULL;
	p->about.argv.n = 0;
	char cwd[PATH_MAX];
	if (view_to_str(p->about.cwd, cwd, sizeof(cwd)) < 0 || remember(p, msg, cwd, &e) < 0)
		p->about.argv.n = 0; /* it runs: a list without its arguments is the smaller evil */
	p->started_ns = clock_mono_ns();
	p->about.started_ms = clock_wall_ms();
	p->oom_before = oom_kills();
	return p;
}

static int check(struct init *in, const struct wire_start *msg, struct err *e)
{
	if (!msg->keep && (msg->tag.n || msg->wait_reader || msg->ring_bytes))
		return err_set(e, ERR_INVALID, "tag, ring_bytes and wait_reader are for kept processes");
	if (msg->tag.n > PROC_TAG || (msg->tag.n && memchr(msg->tag.p, 0, msg->tag.n)))
		return err_set(e, ERR_INVALID, "a tag has at most %d bytes and no NUL", PROC_TAG);
	if (msg->ring_bytes > PROC_RING_MAX)
		return err_set(e, ERR_INVALID, "ring_bytes is at most %u", PROC_RING_MAX);
	return msg->keep ? proc_admit(in, msg->tag, e) : 0;
}

static size_t ring_size(const struct wire_start *msg)
{
	size_t wish = msg->ring_bytes ? msg->ring_bytes : PROC_RING;
	return msg->keep ? (MAX(wish, PROC_RING_MIN) + 4095) / 4096 * 4096 : PROC_RING_PLAIN;
}

static struct proc *start_new(struct init *in, const struct wire_start *msg, struct arena *a,
			      struct attachment **ret_attachment, struct err *e)
{
	struct proc *p = proc_new(in);
	if (!p) {
		err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
		return NULL;
	}
	p->keep = msg->keep;
	p->pty = p->about.pty = msg->pty;
	p->wait_reader = msg->wait_reader;
	proc_out_init(p, (uint64_t[]){ msg->stdout_limit, msg->stderr_limit }, ring_size(msg));
	struct attachment *first = proc_attach_new(p, e);
	if (!first || proc_launch(p, msg, a, e) < 0) {
		free(first);
		proc_free(p);
		return NULL;
	}
	*ret_attachment = first;
	return p;
}

int proc_start(const struct conn_call *call, struct err *e)
{
	struct wire_start with = *(const struct wire_start *)call->msg, *msg = &with;
	struct init *in = call->conn->init;
	if (check(in, msg, e) < 0)
		return -1;
	if (msg->secret)
		call->conn->link.in.secret = call->arena->secret = true;
	if (secrets_add_env(call->arena, msg) < 0)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	if (msg->ahead) {
		spare_ahead(in, msg, msg->ahead);
		conn_reply(call, &wire_started_msg, &(struct wire_started){ 0 });
		return 0;
	}
	struct attachment *a = NULL;
	struct proc *p = take_spare(in, msg);
	if (!p)
		p = start_new(in, msg, call->arena, &a, e);
	if (!p)
		return -1;
	proc_add(p, call->deadline_ms);
	if (!a)
		a = proc_attach_new(p, e);
	if (!a) { /* no memory: it is kept, and nobody's */
		tree_kill(p->pid);
		return -1;
	}
	spare_plan(in, msg);
	a->kill = !p->keep || msg->kill;
	a->starter = true;
	proc_attach_open(a, call);
	stream_reply(&a->stream, &wire_started_msg, &(struct wire_started){ .pid = (uint32_t)p->pid });
	proc_attach_pump(p);
	return 0;
}
