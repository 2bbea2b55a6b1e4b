/*
 * See proc_out.h.
 *
 * When the main process has exited, exactly what stands in the pipes at that
 * moment still belongs to it: a background child that keeps them open delays
 * nothing. What such a child writes later is read and dropped (struct drain),
 * since closing the pipe would kill it.
 */
#include "proc_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "fd.h"
#include "proc_attach.h"
#include "scratch.h"
#include "poison.h"

#define DRAINS     64 /* pipes of background children that are kept open at once */
#define READ_MAX   (256u * 1024)
#define PIPE_SIZE  (64 * 1024)   /* as they are made */
#define PIPE_LARGE (256 * 1024)  /* of those that are written in earnest */
#define PTY_REST   (128u * 1024) /* more than a terminal can hold */
#define RESUME     (16u * 1024)  /* room that is worth the while */

/* ---- what outlives its process ---------------------------------------- */

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

void proc_out_stop_drains(struct init *in)
{
	LIST_EACH (it, &in->drains)
		drain_close(CONTAINER(it, struct drain, node));
}

/* ---- the order of control bytes --------------------------------------- */

static size_t standing(int fd)
{
	int n = 0;
	return ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

static bool is_over(const struct channel *ch)
{
	return ch->fd < 0 || ch->over;
}

/* First the control bytes are counted, then the output: what was written before them is in the count. */
static void order_mark(struct proc *p)
{
	p->order->quota = standing(p->channels[PROC_CONTROL].fd);
	for (unsigned i = 0; i < 2; i++) {
		const struct channel *ch = &p->channels[i];
		size_t n = is_over(ch) ? 0 : p->pty ? PTY_REST : standing(ch->fd);
		p->order->need[i] = ch->taken + n;
	}
}

static bool order_met(const struct proc *p)
{
	for (unsigned i = 0; i < 2; i++)
		if (!is_over(&p->channels[i]) && p->channels[i].taken < p->order->need[i])
			return false;
	return true;
}

static void order_fence(struct proc *p)
{
	struct proc_order *o = p->order;
	unsigned n = o->n_fences;
	/* Those before the ring's oldest byte are of no use. */
	while (n && o->fences[0].control <= p->channels[PROC_CONTROL].ring.begin)
		memmove(o->fences, o->fences + 1, --n * sizeof(o->fences[0]));
	if (n ==
	    PROC_FENCES) /* the two oldest become one: those bytes wait for a little more than they need */
		memmove(o->fences, o->fences + 1, --n * sizeof(o->fences[0]));
	o->fences[n].control = p->channels[PROC_CONTROL].ring.end;
	for (unsigned i = 0; i < 2; i++)
		o->fences[n].offsets[i] = p->channels[i].ring.end;
	o->n_fences = n + 1;
}

uint64_t proc_out_control_end(const struct proc *p, const uint64_t at[PROC_CHANNELS])
{
	const struct proc_order *o = p->order;
	uint64_t end = at[PROC_CONTROL];
	for (unsigned i = 0; o && i < o->n_fences; i++) {
		if (o->fences[i].control <= at[PROC_CONTROL])
			continue;
		if (at[PROC_OUT] < o->fences[i].offsets[PROC_OUT] ||
		    at[PROC_ERR] < o->fences[i].offsets[PROC_ERR])
			break;
		end = o->fences[i].control;
	}
	return end;
}

/* ---- reading ---------------------------------------------------------- */

static uint64_t floor_of(const struct channel *ch)
{
	const struct proc *p = ch->proc;
	if (list_empty(&p->attachments))
		return p->held ? p->hold_at[ch->index] : UINT64_MAX;
	uint64_t low = UINT64_MAX;
	LIST_EACH (it, &p->attachments) {
		uint64_t at = proc_attach_floor(CONTAINER(it, struct attachment, node), ch->index);
		low = MIN(low, at);
	}
	return low;
}

static void end_channel(struct channel *ch)
{
	loop_io_stop(&ch->io);
	ch->over = true;
	ch->rest = 0;
	if (ch->index == PROC_CONTROL)
		ch->proc->order->quota = 0;
	if (!ch->proc->pty || ch->index != PROC_OUT)
		fd_close(TAKE_FD(ch->fd));
}

/* Where the next bytes go. NULL: there is no room for them now. */
static char *target(struct channel *ch, size_t *ret_n, bool *ret_drop)
{
	uint64_t floor = floor_of(ch);
	*ret_drop = false;
	if (ch->left) {
		char *p = ring_reserve(&ch->ring, floor, ret_n);
		if (p) {
			*ret_n = (size_t)MIN(*ret_n, ch->left);
			return p;
		}
		if (ring_room(&ch->ring, floor) == 0)
			return NULL;
	}
	/* Past the limit, or no memory for a ring: better cut than hang. */
	*ret_drop = true;
	*ret_n = SCRATCH_SIZE;
	return scratch;
}

static void took(struct channel *ch, size_t n, bool drop)
{
	struct proc *p = ch->proc;
	ch->taken += n;
	ch->rest -= p->exited ? n : 0;
	if (drop) {
		ch->truncated = true;
		if (p->keep)
			ring_skip(&ch->ring, n);
	} else {
		ring_commit(&ch->ring, n);
		ch->left -= n;
	}
	if (ch->index == PROC_CONTROL) {
		p->order->quota -= n;
		order_fence(p);
	}
	/* It was full: fewer and larger reads from now on. Where the user has too many of them, never mind.
	 */
	if (n >= PIPE_SIZE && !ch->grown) {
		ch->grown = true;
		(void)fcntl(ch->fd, F_SETPIPE_SZ, PIPE_LARGE);
	}
}

/* What others than the process itself have written becomes zeros, which mean nothing in any protocol but
 * that something is wrong. */
static ssize_t read_guarded(const struct proc *p, int fd, char *to, size_t size)
{
	union {
		char room[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { to, size };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct ucred from = { 0 };
	/* One call returns the bytes of one writer. Descriptors that come along are closed by the kernel. */
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&from, CMSG_DATA(c), sizeof(from));
	if (n > 0 && from.pid != p->pid)
		memset(to, 0, (size_t)n);
	return n;
}

/* One read. Whether another may follow at once. */
static bool take(struct channel *ch)
{
	struct proc *p = ch->proc;
	size_t want = p->exited ? MIN(ch->rest, READ_MAX) : READ_MAX, room = 0;
	bool drop;
	if (ch->index == PROC_CONTROL)
		want = MIN(want, order_met(p) ? p->order->quota : 0);
	if (is_over(ch) || want == 0)
		return false;
	char *to = target(ch, &room, &drop);
	if (!to) {
		loop_io_stop(&ch->io); /* until there is; an armed pipe would report its hang-up for ever */
		return false;
	}
	bool guarded = p->guarded && ch->index == PROC_CONTROL;
	ssize_t n =
		guarded ? read_guarded(p, ch->fd, to, MIN(want, room)) : read(ch->fd, to, MIN(want, room));
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN) {
		ch->rest = 0;
		if (ch->index == PROC_CONTROL)
			p->order->quota = 0;
		else if (p->order)
			p->order->need[ch->index] = ch->taken; /* a terminal's was a bound only */
		return false;
	}
	if (n <= 0) {
		end_channel(ch);
		return false;
	}
	took(ch, (size_t)n, drop);
	return true;
}

static void take_control(struct proc *p)
{
	struct channel *ch = &p->channels[PROC_CONTROL];
	for (unsigned i = 0; i < 2; i++)
		while (!order_met(p) && take(&p->channels[i]))
			;
	while (p->order->quota && take(ch))
		;
	if (p->order->quota)
		loop_io_stop(&ch->io); /* until the output before it has been taken */
}

/* After the exit, others may still write: not to be watched for ever. */
static bool is_done(struct channel *ch)
{
	if (ch->proc->exited && ch->rest == 0)
		loop_io_stop(&ch->io);
	return ch->io.fd < 0;
}

static void settle_when_read(struct proc *p)
{
	bool all = p->exited && !p->settled;
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		all &= is_over(&p->channels[i]) || p->channels[i].rest == 0;
	if (all)
		proc_settle(p);
}

/* After reading: whoever can get it gets it. */
static void pass_on(struct proc *p)
{
	settle_when_read(p);
	proc_attach_pump(p);
}

static void on_output(struct loop_io *io, uint32_t events)
{
	struct channel *ch = CONTAINER(io, struct channel, io);
	struct proc *p = ch->proc;
	(void)events;
	if (is_done(ch))
		return;
	(void)take(ch);
	if (p->order && p->order->quota)
		take_control(p);
	pass_on(p);
}

static void on_control(struct loop_io *io, uint32_t events)
{
	struct channel *ch = CONTAINER(io, struct channel, io);
	struct proc *p = ch->proc;
	if (is_done(ch))
		return;
	if (p->order->quota == 0)
		order_mark(p);
	if (p->order->quota)
		take_control(p);
	else if (events & (EPOLLHUP | EPOLLERR))
		end_channel(ch); /* nobody is left to write, and nothing stands in it */
	pass_on(p);
}

static void resume(struct channel *ch)
{
	struct proc *p = ch->proc;
	if (is_over(ch) || ch->io.fd >= 0 || (p->exited && ch->rest == 0))
		return;
	if (ch->left && ring_room(&ch->ring, floor_of(ch)) < RESUME)
		return;
	bool control = ch->index == PROC_CONTROL;
	if (control && p->order->quota && !order_met(p))
		return;
	if (loop_io_start(p->init->loop, &ch->io, ch->fd, EPOLLIN, control ? on_control : on_output) < 0) {
		ch->truncated = true; /* no memory to watch it with */
		end_channel(ch);
	}
}

static uint64_t taken(const struct proc *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		sum += p->channels[i].taken;
	return sum;
}

bool proc_out_resume(struct proc *p)
{
	uint64_t before = taken(p);
	bool was_settled = p->settled;

	/* Of a terminal's output the end is seen only by reading once more. If there was no room for that,
	 * what stands behind the output must not wait for an event: there may be nothing more to come. */
	if (p->order && p->order->quota) {
		take_control(p);
		settle_when_read(p);
	}
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		resume(&p->channels[i]);
	return taken(p) > before || p->settled != was_settled;
}

/* ---- the beginning and the end ---------------------------------------- */

void proc_out_init(struct proc *p, const uint64_t limits[2], size_t ring_size)
{
	for (unsigned i = 0; i < PROC_CHANNELS; i++) {
		struct channel *ch = &p->channels[i];
		*ch = (struct channel){ .proc = p, .io.fd = -1, .fd = -1, .index = i };
		ch->left = p->keep || i == PROC_CONTROL ? UINT64_MAX : limits[i];
		ring_init(&ch->ring, ring_size);
	}
}

void proc_out_exited(struct proc *p)
{
	if (p->order && !is_over(&p->channels[PROC_CONTROL])) {
		order_mark(p);
		p->channels[PROC_CONTROL].rest = p->order->quota;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct channel *ch = &p->channels[i];
		ch->rest = is_over(ch) ? 0 : p->pty ? PTY_REST : standing(ch->fd);
		while (take(ch))
			;
	}
	if (p->order && p->order->quota)
		take_control(p);
	pass_on(p);
}

void proc_out_close(struct proc *p, bool drain)
{
	for (unsigned i = 0; i < PROC_CHANNELS; i++) {
		struct channel *ch = &p->channels[i];
		loop_io_stop(&ch->io);
		if (drain && !is_over(ch))
			drain_adopt(p->init, TAKE_FD(ch->fd));
		else
			fd_close(TAKE_FD(ch->fd));
	}
}

void proc_out_forget(struct proc *p)
{
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		ring_forget(&p->channels[i].ring);
}
