/*
 * Connections of the box: see relay.h.
 *
 * Reading stops where the stream has no room, writing where the socket has none,
 * so back-pressure goes from end to end. A hang-up that epoll reports while
 * nothing is wanted would come again at once: the socket then leaves the loop,
 * and what it still holds is read when the caller makes room.
 */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "scratch.h"
#include "wire_gen.h"
#include "poison.h"

#define CONNECT_MS 10000
#define ROUNDS     8 /* of reading before others get their turn */

static struct relay *relay_of(struct stream *s)
{
	return CONTAINER(s, struct relay, stream);
}

static void fail(struct relay *r, enum err_code code, int error, const char *what)
{
	struct err e = { 0 };
	err_sys(&e, code, error, "%s", what);
	stream_fail(&r->stream, &e);
}

/* ---- carrying --------------------------------------------------------- */

/* False: the stream is over. */
static bool read_some(struct relay *r)
{
	for (int i = 0; i < ROUNDS && !r->eof; i++) {
		size_t room = stream_room(&r->stream);
		ssize_t n = room ? recv(r->fd, scratch, room, 0) : -1;
		if (room == 0 || (n < 0 && errno == EAGAIN))
			return true;
		if (n < 0) {
			fail(r, ERR_UNAVAILABLE, errno, "the connection in the sandbox broke");
			return false;
		}
		if (n == 0) {
			r->eof = true;
			stream_reply(&r->stream, &wire_connection_ended_msg,
				     &(struct wire_connection_ended){ 0 });
		} else {
			stream_data(&r->stream, 0, (struct view){ scratch, (size_t)n });
		}
	}
	return true;
}

/* The other end takes no more: what comes is dropped, but what it has said is still read. */
static void stop_writing(struct relay *r)
{
	r->shut = true;
	stream_consumed(&r->stream, buf_len(&r->out));
	buf_done(&r->out);
}

static void write_some(struct relay *r)
{
	while (buf_len(&r->out) && !r->shut) {
		struct view v = buf_view(&r->out);
		ssize_t n = send(r->fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			stop_writing(r);
			return;
		}
		buf_consume(&r->out, (size_t)n);
		stream_consumed(&r->stream, (size_t)n);
	}
	buf_shrink(&r->out);
	if (r->stream.ended && !r->shut) {
		(void)shutdown(r->fd, SHUT_WR);
		r->shut = true;
	}
}

static void settle(struct relay *r)
{
	uint32_t in = !r->eof && stream_room(&r->stream) ? EPOLLIN : 0,
		 out = buf_len(&r->out) && !r->shut ? EPOLLOUT : 0;

	if (!r->hung && loop_io_want(&r->io, in | out) < 0)
		fail(r, ERR_UNAVAILABLE, ENOMEM, "the connection in the sandbox");
}

static void pump(struct relay *r)
{
	if (!read_some(r))
		return;
	write_some(r);
	if (r->eof && r->shut)
		stream_finish(&r->stream, &wire_connection_done_msg, &(struct wire_connection_done){ 0 });
	else if (r->hung && !r->eof && stream_room(&r->stream))
		stream_again(&r->stream);
	else
		settle(r);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct relay *r = CONTAINER(io, struct relay, io);
	uint32_t wanted = io->events;

	if ((events & (EPOLLHUP | EPOLLERR)) && !(wanted & EPOLLIN)) {
		loop_io_stop(io);
		r->hung = true;
	}
	pump(r);
}

void relay_open(struct relay *r, int fd)
{
	int on = 1;

	r->fd = fd;
	r->open = true;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	loop_timer_stop(&r->timer);
	if (loop_io_start(r->stream.init->loop, &r->io, fd, EPOLLIN, on_io) < 0) {
		fail(r, ERR_UNAVAILABLE, ENOMEM, "the connection in the sandbox");
		return;
	}
	stream_reply(&r->stream, &wire_connected_msg, &(struct wire_connected){ 0 });
	pump(r);
}

/* ---- connecting ------------------------------------------------------- */

/* The socket, in *ret_fd also while it is under way (-EINPROGRESS). */
static int dial(const struct relay *r, int *ret_fd)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(r->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(r->port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	_cleanup_(closep) int fd =
		socket(r->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int rc = r->v6 ? connect(fd, (struct sockaddr *)&v6, sizeof(v6))
		       : connect(fd, (struct sockaddr *)&v4, sizeof(v4));
	if (rc < 0 && errno != EINPROGRESS)
		return -errno;
	rc = rc < 0 ? -errno : 0;
	*ret_fd = TAKE_FD(fd);
	return rc;
}

static void on_time(struct loop_timer *t)
{
	struct relay *r = CONTAINER(t, struct relay, timer);
	struct err e = { 0 };

	err_set(&e, ERR_TIMEOUT, "port %u of the sandbox does not answer", r->port);
	stream_fail(&r->stream, &e);
}

static void refused(struct relay *r, int error)
{
	struct err e = { 0 };

	if (error == -ECONNREFUSED || error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL)
		err_set(&e, ERR_NOT_FOUND, "nothing listens on port %u of the sandbox", r->port);
	else
		err_sys(&e, ERR_UNAVAILABLE, error, "port %u of the sandbox", r->port);
	stream_fail(&r->stream, &e);
}

static void on_connect(struct loop_io *io, uint32_t events);

static void attempt(struct relay *r)
{
	int fd = -EBADF, rc = dial(r, &fd);

	if (rc < 0 && rc != -EINPROGRESS && !r->v6) {
		r->v6 = true;
		rc = dial(r, &fd);
	}
	if (rc == 0) {
		relay_open(r, fd);
		return;
	}
	if (rc == -EINPROGRESS) {
		r->fd = fd;
		rc = loop_io_start(r->stream.init->loop, &r->io, fd, EPOLLOUT, on_connect);
	}
	if (rc < 0)
		refused(r, rc);
}

static void on_connect(struct loop_io *io, uint32_t events)
{
	struct relay *r = CONTAINER(io, struct relay, io);
	int error = 0, fd = TAKE_FD(r->fd);
	socklen_t n = sizeof(error);

	loop_io_stop(io);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error == 0) {
		relay_open(r, fd);
		return;
	}
	fd_close(fd);
	if (r->v6) {
		refused(r, -error);
		return;
	}
	r->v6 = true;
	attempt(r);
}

/* ---- the stream ------------------------------------------------------- */

static void on_data(struct stream *s, struct view data)
{
	struct relay *r = relay_of(s);
	size_t n = 0;

	if (r->shut) {
		stream_consumed(s, data.n);
		return;
	}
	if (r->open && buf_len(&r->out) == 0) {
		ssize_t sent = send(r->fd, data.p, data.n, MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN) {
			stop_writing(r);
			n = data.n;
		} else if (sent > 0) {
			n = (size_t)sent;
		}
		stream_consumed(s, n);
	}
	if (n == data.n)
		return;
	if (buf_add(&r->out, view_skip(data, n)) < 0)
		fail(r, ERR_UNAVAILABLE, ENOMEM, "the connection in the sandbox");
	else if (r->open)
		settle(r);
}

static void on_ready(struct stream *s)
{
	struct relay *r = relay_of(s);
	/* Not at once: lists of streams are being walked, and this may close it. */
	if (r->open)
		stream_again(s);
}

static void on_step(struct stream *s)
{
	pump(relay_of(s));
}

static void on_cancel(struct stream *s, bool lost)
{
	struct err e = { 0 };
	err_set(&e, ERR_CANCELLED, "cancelled");
	if (!lost)
		stream_fail(s, &e);
}

static void on_stop(struct stream *s)
{
	struct relay *r = relay_of(s);
	loop_io_stop(&r->io);
	loop_timer_stop(&r->timer);
	list_del(&r->waiting);
	s->init->n_relays--;
}

static void on_free(struct stream *s)
{
	struct relay *r = relay_of(s);
	fd_close(r->fd);
	buf_done(&r->out);
	free(r);
}

static const struct stream_ops relay_ops = {
	.on_data = on_data,
	.on_end = on_ready,
	.on_ready = on_ready,
	.on_step = on_step,
	.on_cancel = on_cancel,
	.stop = on_stop,
	.free = on_free,
};

struct relay *relay_new(const struct conn_call *call, uint32_t port, struct err *e)
{
	if (port < 1 || port > UINT16_MAX) {
		err_set(e, ERR_INVALID, "a port is a number from 1 to 65535");
		return NULL;
	}
	if (call->conn->init->n_relays >= RELAY_MAX) {
		err_set(e, ERR_UNAVAILABLE, "too many connections into this sandbox");
		return NULL;
	}
	struct relay *r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
		return NULL;
	}
	r->port = (uint16_t)port;
	r->fd = r->io.fd = -1;
	r->out = BUF_INIT(FRAME_WINDOW);
	list_init(&r->waiting);
	stream_open(&r->stream, call, &relay_ops);
	r->stream.init->n_relays++;
	return r;
}

int relay_connect(const struct conn_call *call, struct err *e)
{
	const struct wire_connect *msg = call->msg;
	struct relay *r = relay_new(call, msg->port, e);

	if (!r)
		return -1;
	loop_timer_start(r->stream.init->loop, &r->timer, call->deadline_ms ? call->deadline_ms : CONNECT_MS,
			 on_time);
	attempt(r);
	return 0;
}
