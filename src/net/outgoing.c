/*
 * Connections to hosts by name: see outgoing.h.
 */
#include "outgoing.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "fd.h"
#include "poison.h"

static void fail(struct outgoing *o, ssize_t error, const char *why)
{
	o->ops->on_fail(o, (int)-error, why);
}

/* ---- bytes ---- */

static ssize_t result(ssize_t n)
{
	return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

ssize_t outgoing_send(struct outgoing *o, struct view data)
{
	return o->tls ? tls_conn_send(o->tls, data.p, data.n)
		      : result(send(o->io.fd, data.p, data.n, MSG_NOSIGNAL));
}

ssize_t outgoing_recv(struct outgoing *o, char *p, size_t n)
{
	return o->tls ? tls_conn_recv(o->tls, p, n) : result(recv(o->io.fd, p, n, 0));
}

int outgoing_want(struct outgoing *o, bool read, bool write)
{
	return loop_io_want(&o->io,
			    o->tls ? tls_conn_events(o->tls, read, write)
				   : (read ? (uint32_t)EPOLLIN : 0) | (write ? (uint32_t)EPOLLOUT : 0));
}

int outgoing_error(const struct outgoing *o)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return getsockopt(o->io.fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : 0;
}

const char *outgoing_why(const struct outgoing *o, ssize_t error)
{
	return o->tls && tls_conn_why(o->tls)[0] ? tls_conn_why(o->tls) : strerror((int)-error);
}

/* ---- becoming ready ---- */

static void on_event(struct loop_io *io, uint32_t events)
{
	struct outgoing *o = CONTAINER(io, struct outgoing, io);

	o->ops->on_event(o, events);
}

static void on_connecting(struct loop_io *io, uint32_t events)
{
	struct outgoing *o = CONTAINER(io, struct outgoing, io);
	int error = outgoing_error(o), r = 0;

	(void)events;
	if (error) {
		fail(o, -error, NULL);
		return;
	}
	if (o->tls)
		r = tls_conn_handshake(o->tls);
	if (r == -EAGAIN) {
		r = outgoing_want(o, true, false);
		if (r < 0)
			fail(o, r, NULL);
		return;
	}
	if (r < 0) {
		fail(o, r, tls_conn_why(o->tls)[0] ? tls_conn_why(o->tls) : NULL);
		return;
	}
	io->on_event = on_event;
	o->ops->on_ready(o);
}

static int dial(struct outgoing *o, const struct sockaddr *to, socklen_t len)
{
	_cleanup_(closep) int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0)
		(void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (fd < 0 || (connect(fd, to, len) < 0 && errno != EINPROGRESS))
		return -errno;
	if (o->client) {
		o->tls = tls_client_conn(o->client, fd, view_of(o->host));
		if (!o->tls)
			return -ENOMEM;
	}
	int r = loop_io_start(o->loop, &o->io, fd, EPOLLOUT, on_connecting);
	if (r < 0) {
		o->io.fd = -1;
		return r;
	}
	(void)TAKE_FD(fd);
	return 0;
}

static void on_name(struct names_waiter *w, const struct names_answer *a)
{
	struct outgoing *o = CONTAINER(w, struct outgoing, waiter);
	struct sockaddr_storage to;

	if (!a || a->n == 0) {
		fail(o, 0, a ? "the name has no address" : "the name server does not answer");
		return;
	}
	socklen_t len = addr_to_sockaddr(&a->addrs[0], o->port, &to);
	const char *why = o->ops->refuses ? o->ops->refuses(o, (struct sockaddr *)&to) : NULL;
	int r = why ? 0 : dial(o, (struct sockaddr *)&to, len);
	if (why || r < 0)
		fail(o, r, why);
}

void outgoing_start(struct outgoing *o, struct loop *loop, struct names *names,
		    const struct outgoing_host *to, const struct outgoing_ops *ops)
{
	*o = (struct outgoing){ .ops = ops,
				.loop = loop,
				.names = names,
				.io = { .fd = -1 },
				.client = to->tls,
				.port = to->port };
	list_init(&o->waiter.link);
	if (view_to_str(to->name, o->host, sizeof(o->host)) < 0)
		fail(o, 0, "the name is not known");
	else
		names_ask(names, to->name, &o->waiter, on_name);
}

void outgoing_stop(struct outgoing *o)
{
	names_forget(&o->waiter);
	if (o->io.fd >= 0)
		loop_io_close(&o->io);
	o->io.fd = -1;
}

void outgoing_done(struct outgoing *o)
{
	outgoing_stop(o);
	tls_conn_free(TAKE_PTR(o->tls));
}
