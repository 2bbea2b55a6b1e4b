/*
 * Plain and TLS bytes: see http_transport.h.
 */
#include "http_transport.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fd.h"
#include "poison.h"

ssize_t http_transport_recv(struct http_transport *t, void *p, size_t n)
{
	if (t->tls)
		return tls_conn_recv(t->tls, p, n);
	ssize_t r;
	do
		r = recv(t->fd, p, n, 0);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

ssize_t http_transport_send(struct http_transport *t, const void *p, size_t n)
{
	if (t->tls)
		return tls_conn_send(t->tls, p, n);
	ssize_t r;
	do
		r = send(t->fd, p, n, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

bool http_transport_pending(const struct http_transport *t)
{
	return t->tls && tls_conn_pending(t->tls);
}

uint32_t http_transport_events(const struct http_transport *t, bool read, bool write)
{
	if (t->tls)
		return tls_conn_events(t->tls, read, write);
	return (read ? (uint32_t)EPOLLIN : 0) | (write ? (uint32_t)EPOLLOUT : 0);
}

int http_transport_notify(struct http_transport *t)
{
	return t->tls ? tls_conn_notify(t->tls) : 0;
}

void http_transport_shutdown(struct http_transport *t)
{
	if (t->tls)
		(void)tls_conn_notify(t->tls);
	(void)shutdown(t->fd, SHUT_WR);
}

void http_transport_close(struct http_transport *t, bool reset)
{
	if (t->tls && !reset)
		(void)tls_conn_notify(t->tls);
	tls_conn_free(TAKE_PTR(t->tls));
	if (reset) {
		struct linger now = { .l_onoff = 1 };
		(void)!setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	fd_close(TAKE_FD(t->fd));
}
