/*
 * The bytes below a connection: a plain socket, or TLS on one. Drivers see no
 * difference. Results are counts, 0 for the end of the stream (recv), or -errno;
 * -EAGAIN means "wait for what http_transport_events asks for".
 */
#pragma once

#include <sys/types.h>

#include "tls.h"

struct http_transport {
	int fd;
	struct tls_conn *tls; /* NULL: plain */
};

ssize_t http_transport_recv(struct http_transport *t, void *p, size_t n) _must_check_;
ssize_t http_transport_send(struct http_transport *t, const void *p, size_t n) _must_check_;
/* Bytes that have been taken from the socket already, for which no event will come. */
bool http_transport_pending(const struct http_transport *t);
/* The epoll events for a wish to read or write. */
uint32_t http_transport_events(const struct http_transport *t, bool read, bool write);
/* No more will be sent; reading goes on. */
/* TLS says goodbye, once; -EAGAIN when there is no room for it now. */
int http_transport_notify(struct http_transport *t);
void http_transport_shutdown(struct http_transport *t);
/* `reset`: the peer must see that something was cut off. */
void http_transport_close(struct http_transport *t, bool reset);
