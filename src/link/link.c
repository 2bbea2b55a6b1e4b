/*
 * Frames over a stream socket: see link.h.
 *
 * The usual frame never enters the output queue: header and body go to the
 * socket in one sendmsg, and only what it does not take is copied. Both buffers
 * give their memory back when they run empty, since most links are idle; but not
 * while much is coming, or every frame would cost a mapping and its faults.
 */
#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fd.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define READ_SIZE   16384
#define BULK_READ   (256u * 1024)
#define BULK_MS     200          /* without much, until the buffers are given back */
#define SOCKET_SIZE (512 * 1024) /* of the socket's own buffer, as far as the system lets us */

struct link_fd {
	int fd;
	uint64_t at; /* goes with this byte, counted from the first ever queued */
};

/* ---- the end ---------------------------------------------------------- */

static void close_fds(struct link *l)
{
	for (unsigned i = 0; i < l->n_fds; i++)
		fd_close(l->fds[i]);
	for (unsigned i = 0; i < l->n_out_fds; i++)
		fd_close(l->out_fds[i].fd);
	free(l->out_fds);
	l->out_fds = NULL;
	l->n_fds = l->n_out_fds = l->room_out_fds = 0;
}

static void shut(struct link *l)
{
	int fd = l->io.fd;
	loop_timer_stop(&l->trim);
	loop_io_stop(&l->io);
	fd_close(fd);
	close_fds(l);
	buf_done(&l->out);
}

static void on_closing(struct loop_task *task)
{
	struct link *l = CONTAINER(task, struct link, closing);
	buf_done(&l->in);
	l->ops->on_closed(l, l->error == -ESHUTDOWN ? 0 : l->error);
}

/* -ESHUTDOWN: the peer closed in order. */
static int fail(struct link *l, int error)
{
	if (l->error == 0) {
		struct loop *loop = l->io.loop;
		l->error = error;
		shut(l);
		loop_defer(loop, &l->closing, on_closing);
	}
	return l->error;
}

void link_stop(struct link *l)
{
	if (!l->ops)
		return;
	if (l->gone)
		*l->gone = true;
	if (l->error == 0)
		shut(l);
	list_del(&l->closing.link);
	buf_done(&l->in);
	*l = (struct link){ .io.fd = -1 };
}

/* ---- sending ---------------------------------------------------------- */

static bool is_held(const struct link *l)
{
	return l->hold && buf_len(&l->out) > l->hold;
}

static int want(struct link *l)
{
	int r = loop_io_want(&l->io, (is_held(l) ? 0 : EPOLLIN) | (buf_len(&l->out) ? EPOLLOUT : 0));
	return r < 0 ? fail(l, r) : 0;
}

/* One sendmsg; the fd, when there is one, goes with the first byte. */
static ssize_t send_some(struct link *l, struct iovec *iov, size_t n_iov, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n_iov };
	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	for (;;) {
		ssize_t n = sendmsg(l->io.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno == EAGAIN)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* Sends from the queue up to the next fd's place; 0 when the socket is full. */
static ssize_t flush_step(struct link *l)
{
	struct view v = buf_view(&l->out);
	int fd = -1;
	unsigned next = 0;
	if (l->n_out_fds && l->out_fds[0].at == l->sent) {
		fd = l->out_fds[0].fd;
		next = 1;
	}
	if (next < l->n_out_fds)
		v = view_head(v, (size_t)(l->out_fds[next].at - l->sent));
	ssize_t n = send_some(l, &(struct iovec){ (void *)v.p, v.n }, 1, fd);
	if (n <= 0)
		return n;
	if (fd >= 0) {
		fd_close(fd);
		l->n_out_fds--;
		memmove(l->out_fds, l->out_fds + 1, l->n_out_fds * sizeof(l->out_fds[0]));
		if (!l->n_out_fds) {
			free(l->out_fds);
			l->out_fds = NULL;
			l->room_out_fds = 0;
		}
	}
	l->sent += (uint64_t)n;
	buf_consume(&l->out, (size_t)n);
	return n;
}

static int flush(struct link *l)
{
	while (buf_len(&l->out)) {
		ssize_t n = flush_step(l);
		if (n < 0)
			return fail(l, (int)n);
		if (n == 0)
			break;
	}
	bool waits = buf_len(&l->out) != 0;
	if (!waits && !loop_timer_active(&l->trim))
		buf_shrink(&l->out);
	return want(l);
}

int link_send(struct link *l, const struct frame *f)
{
	if (!link_open(l))
		return -ENOTCONN;
	if (!frame_valid(f, f->body.n) || (f->flags & FRAME_FD))
		return -EINVAL;
	char head[FRAME_HEADER];
	frame_header(head, f, f->body.n);
	size_t done = 0, whole = sizeof(head) + f->body.n;
	if (buf_len(&l->out) == 0) {
		struct iovec iov[] = { { head, sizeof(head) }, { (void *)f->body.p, f->body.n } };
		ssize_t n = send_some(l, iov, f->body.n ? 2 : 1, -1);
		if (n < 0)
			return fail(l, (int)n);
		done = (size_t)n;
		l->sent += done;
	}
	if (done == whole)
		return 0;
	if (done < sizeof(head))
		(void)buf_append(&l->out, head + done, sizeof(head) - done);
	(void)buf_add(&l->out, view_skip(f->body, done > sizeof(head) ? done - sizeof(head) : 0));
	if (l->out.bad)
		return fail(l, l->out.bad);
	return want(l);
}

int link_send_msg(struct link *l, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		  uint32_t deadline_ms, const struct pb_msg *m, const void *msg)
{
	if (!link_open(l))
		return -ENOTCONN;
	bool first = buf_len(&l->out) == 0;
	int r = frame_put_msg(&l->out, type, kind, flags, stream, deadline_ms, m, msg);
	if (l->out.bad)
		return fail(l, l->out.bad);
	return r == 0 && first ? flush(l) : r;
}

/* A place for one more fd that waits. A peer that is busy for a moment while many become ready is no reason
 * to end the link. */
static int make_room(struct link *l)
{
	if (l->n_out_fds < l->room_out_fds)
		return 0;
	if (l->n_out_fds == LINK_FDS_OUT)
		return -ENOBUFS;
	unsigned room = l->room_out_fds ? 2 * l->room_out_fds : LINK_FDS;
	struct link_fd *p = reallocarray(l->out_fds, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	l->out_fds = p;
	l->room_out_fds = room;
	return 0;
}

int link_send_msg_fd(struct link *l, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		     const struct pb_msg *m, const void *msg, int fd)
{
	_cleanup_(closep) int mine = fd;
	if (!link_open(l))
		return -ENOTCONN;
	if (!l->pass_fds)
		return -EINVAL;
	int r = make_room(l);
	if (r < 0)
		return fail(l, r);
	bool first = buf_len(&l->out) == 0;
	uint64_t at = l->sent + buf_len(&l->out);
	r = frame_put_msg(&l->out, type, kind, flags | FRAME_FD, stream, 0, m, msg);
	if (l->out.bad)
		return fail(l, l->out.bad);
	if (r < 0)
		return r;
	l->out_fds[l->n_out_fds++] = (struct link_fd){ TAKE_FD(mine), at };
	return first ? flush(l) : 0;
}

size_t link_backlog(const struct link *l)
{
	return buf_len(&l->out);
}

/* ---- receiving -------------------------------------------------------- */

static int keep_fds(struct link *l, struct msghdr *msg)
{
	int r = msg->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (l->pass_fds && l->n_fds < LINK_FDS) {
				l->fds[l->n_fds++] = fd;
			} else {
				fd_close(fd);
				r = -EBADMSG;
			}
		}
	}
	return r;
}

/* One recvmsg into the input buffer: > 0, 0 for nothing there, -ESHUTDOWN at the end. */
static ssize_t receive(struct link *l)
{
	struct frame f;
	size_t size, have = buf_len(&l->in);
	if (frame_parse(buf_view(&l->in), &f, &size) < 0)
		return -EBADMSG;
	size_t least = loop_timer_active(&l->trim) && !l->pass_fds ? BULK_READ : READ_SIZE;
	size_t want = size - have > least ? size - have : least;
	char *p = buf_reserve(&l->in, want);
	if (!p)
		return l->in.bad;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(LINK_FDS * sizeof(int))];
	} control;
	struct iovec iov = { p, want };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t n = recvmsg(l->io.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	int r = keep_fds(l, &msg);
	if (r < 0)
		return r;
	if (n == 0)
		return have ? -ECONNRESET : -ESHUTDOWN;
	buf_commit(&l->in, (size_t)n);
	return n;
}

/* The fd that a frame says it brings: they come in the order of the frames. */
static int claim_fd(struct link *l, const struct frame *f, int *ret_fd)
{
	*ret_fd = -1;
	if (!(f->flags & FRAME_FD))
		return 0;
	if (l->n_fds == 0)
		return -EBADMSG;
	*ret_fd = l->fds[0];
	memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(l->fds[0]));
	return 0;
}

/* Delivers the whole frames that are there, unless it is held; false when the link ended meanwhile. */
static bool deliver(struct link *l)
{
	bool gone = false;
	while (!is_held(l)) {
		struct frame f;
		size_t size;
		int fd, r = frame_parse(buf_view(&l->in), &f, &size);
		if (r == 0)
			return true;
		if (r > 0)
			r = claim_fd(l, &f, &fd);
		if (r < 0) {
			fail(l, r);
			return false;
		}
		l->gone = &gone;
		l->ops->on_frame(l, &f, fd);
		if (gone)
			return false;
		l->gone = NULL;
		if (l->error)
			return false;
		buf_consume(&l->in, size);
	}
	return true;
}

static void on_trim(struct loop_timer *t)
{
	struct link *l = CONTAINER(t, struct link, trim);
	if (l->bulk) {
		l->bulk = false;
		loop_timer_start(l->io.loop, t, BULK_MS, on_trim);
		return;
	}
	buf_shrink(&l->in);
	buf_shrink(&l->out);
}

static void note_bulk(struct link *l)
{
	l->bulk = true;
	if (!loop_timer_active(&l->trim))
		loop_timer_start(l->io.loop, &l->trim, BULK_MS, on_trim);
}

static void on_event(struct loop_io *io, uint32_t events)
{
	struct link *l = CONTAINER(io, struct link, io);
	if (is_held(l) && events & (EPOLLHUP | EPOLLERR)) { /* it will never take what waits */
		fail(l, -ECONNRESET);
		return;
	}
	if (is_held(l)) {
		if (want(l) < 0)
			return;
	} else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		ssize_t n = receive(l);
		if (n < 0) {
			fail(l, (int)n);
			return;
		}
		if (!deliver(l))
			return;
		if (n >= READ_SIZE)
			note_bulk(l);
		if (!loop_timer_active(&l->trim))
			buf_shrink(&l->in);
	}
	if ((events & EPOLLOUT) && buf_len(&l->out)) {
		const bool held = is_held(l);
		if (flush(l) < 0)
			return;
		/* Frames that came before it was held: no event tells of them. */
		if (held && (!deliver(l) || want(l) < 0))
			return;
		if (buf_len(&l->out) == 0 && l->ops->on_drained)
			l->ops->on_drained(l);
	}
}

int link_start(struct link *l, struct loop *loop, int fd, bool pass_fds, const struct link_ops *ops)
{
	_cleanup_(closep) int mine = fd;
	*l = (struct link){
		.io.fd = -1,
		.ops = ops,
		.pass_fds = pass_fds,
		.in = BUF_INIT(FRAME_HEADER + FRAME_BODY_MAX + BULK_READ),
		.out = BUF_INIT(LINK_QUEUE_MAX),
	};
	list_init(&l->closing.link);
	if (!pass_fds) /* files and output, not calls */
		(void)setsockopt(mine, SOL_SOCKET, SO_SNDBUF, &(int){ SOCKET_SIZE }, sizeof(int));
	int r = fd_nonblock(mine, true);
	if (r == 0)
		r = loop_io_start(loop, &l->io, mine, EPOLLIN, on_event);
	if (r < 0) {
		*l = (struct link){ .io.fd = -1 };
		return r;
	}
	(void)TAKE_FD(mine);
	return 0;
}

/* ---- errors as frames ------------------------------------------------- */

int link_fail(struct link *l, uint16_t type, uint32_t stream, const struct err *e)
{
	struct wire_fail fail_msg = {
		.code = view_of(err_name(e->code == ERR_OK ? ERR_INTERNAL : e->code)),
		.sys = e->sys > 0 ? (uint32_t)e->sys : 0,
		.message = view_of(e->msg),
	};
	return link_send_msg(l, type, FRAME_FAIL, 0, stream, 0, &wire_fail_msg, &fail_msg);
}

/* The other side may be hostile: what it says ends up in answers and logs. */
static void make_printable(char *s)
{
	bool utf8 = text_is_utf8(view_of(s));
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f || (!utf8 && (*s & 0x80)))
			*s = '?';
}

void link_read_fail(const struct frame *f, struct err *ret)
{
	struct arena a = ARENA_INIT(4096);
	struct wire_fail msg;
	char code[64];
	*ret = (struct err){ 0 };
	if (pb_decode(&wire_fail_msg, f->body, PB_SKIP_UNKNOWN, &a, &msg) < 0 ||
	    view_to_str(msg.code, code, sizeof(code)) < 0) {
		err_set(ret, ERR_INTERNAL, "the other side sent an error that cannot be read");
	} else {
		struct view text = view_head(msg.message, sizeof(ret->msg) - 1);
		if (text.n < msg.message.n && text.n - text_utf8_prefix(text) < 4)
			text.n = text_utf8_prefix(text); /* the cut went through a character */
		err_set(ret, err_from_name(code), "%.*s", VIEW_ARG(text));
		ret->sys = msg.sys <= 4095 ? (int)msg.sys : 0;
		make_printable(ret->msg);
	}
	arena_done(&a);
}
