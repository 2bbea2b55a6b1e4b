/*
 * Listening sockets: see acceptor.h. A connection that nobody waits for stays in
 * the kernel's queue.
 */
#include "acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "relay.h"
#include "wire_gen.h"
#include "poison.h"

#define BACKLOG 128

struct acceptor {
	struct stream stream;
	struct list node; /* of init->acceptors */
	struct loop_io io;
	int fd;
	uint16_t port;
	struct list waiting; /* relays without a socket */
};

static struct acceptor *acceptor_of(struct stream *s)
{
	return CONTAINER(s, struct acceptor, stream);
}

static void settle(struct acceptor *a)
{
	(void)!loop_io_want(&a->io, list_empty(&a->waiting) ? 0 : EPOLLIN);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct acceptor *a = CONTAINER(io, struct acceptor, io);

	if (!list_empty(&a->waiting)) {
		int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct relay *r = CONTAINER(a->waiting.next, struct relay, waiting);
		struct err e = { 0 };
		if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
			return;
		list_del(&r->waiting);
		if (fd >= 0) {
			relay_open(r, fd);
		} else {
			err_sys(&e, ERR_UNAVAILABLE, errno, "accept");
			stream_fail(&r->stream, &e);
		}
	}
	settle(a);
}

/* Before anybody is told: who knows that it is over may want the port again at once. */
static void shut(struct acceptor *a)
{
	struct err e = { 0 };

	if (a->fd < 0)
		return;
	loop_io_stop(&a->io);
	list_del(&a->node);
	fd_close(TAKE_FD(a->fd));
	err_set(&e, ERR_CANCELLED, "nobody listens on port %u any more", a->port);
	while (!list_empty(&a->waiting)) {
		struct relay *r = CONTAINER(a->waiting.next, struct relay, waiting);
		list_del(&r->waiting);
		stream_fail(&r->stream, &e);
	}
}

static void on_cancel(struct stream *s, bool lost)
{
	struct err e = { 0 };
	err_set(&e, ERR_CANCELLED, "cancelled");
	shut(acceptor_of(s));
	if (!lost)
		stream_fail(s, &e);
}

static void on_stop(struct stream *s)
{
	shut(acceptor_of(s));
}

static void on_free(struct stream *s)
{
	free(acceptor_of(s));
}

static const struct stream_ops acceptor_ops = { .on_cancel = on_cancel, .stop = on_stop, .free = on_free };

static int open_socket(uint16_t port, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		return errno == EADDRINUSE
			       ? err_set(e, ERR_CONFLICT, "port %u of the sandbox is taken", port)
			       : err_sys(e, ERR_UNAVAILABLE, errno, "port %u of the sandbox", port);
	return TAKE_FD(fd);
}

int acceptor_listen(const struct conn_call *call, struct err *e)
{
	const struct wire_listen *msg = call->msg;

	if (msg->port < 1 || msg->port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "a port is a number from 1 to 65535");
	_cleanup_(closep) int fd = open_socket((uint16_t)msg->port, e);
	if (fd < 0)
		return -1;
	struct acceptor *a = calloc(1, sizeof(*a));
	if (!a || loop_io_start(call->conn->init->loop, &a->io, fd, 0, on_io) < 0) {
		free(a);
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	}
	a->fd = TAKE_FD(fd);
	a->port = (uint16_t)msg->port;
	list_init(&a->waiting);
	stream_open(&a->stream, call, &acceptor_ops);
	list_append(&a->stream.init->acceptors, &a->node);
	stream_reply(&a->stream, &wire_listening_msg, &(struct wire_listening){ 0 });
	return 0;
}

int acceptor_accept(const struct conn_call *call, struct err *e)
{
	const struct wire_accept *msg = call->msg;

	LIST_EACH (it, &call->conn->init->acceptors) {
		struct acceptor *a = CONTAINER(it, struct acceptor, node);
		if (a->port != msg->port || a->stream.conn != call->conn)
			continue;
		struct relay *r = relay_new(call, msg->port, e);
		if (!r)
			return -1;
		list_append(&a->waiting, &r->waiting);
		settle(a);
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "this link does not listen on port %u", msg->port);
}
