/*
 * A connection to a named host for our own requests (webhooks, calls to models): name resolution,
 * address, socket, TLS. The caller decides what is sent over it. The connection goes to the address
 * that was checked.
 */
#pragma once

#include "names.h"
#include "tls.h"

struct outgoing;

struct outgoing_ops {
	/* Why an address must not be dialled, or NULL. May be NULL: none is refused. */
	const char *(*refuses)(struct outgoing *o, const struct sockaddr *to);
	void (*on_ready)(struct outgoing *o); /* connected and, with TLS, the certificate is right */
	void (*on_event)(struct outgoing *o, uint32_t events); /* after that: what outgoing_want asked for */
	/* Before on_ready: in words or, where `why` is NULL, an errno. The user stops it. */
	void (*on_fail)(struct outgoing *o, int error, const char *why);
};

struct outgoing_host {
	struct view name; /* or an address */
	uint16_t port;
	struct tls_client *tls; /* NULL: in clear */
};

struct outgoing {
	const struct outgoing_ops *ops;
	struct loop *loop;
	struct names *names;
	struct names_waiter waiter;
	struct loop_io io;
	struct tls_client *client;
	struct tls_conn *tls;
	uint16_t port;
	char host[256];
};

#define OUTGOING_NONE ((struct outgoing){ .io = { .fd = -1 } })

/* `ops` may be called before it returns. */
void outgoing_start(struct outgoing *o, struct loop *loop, struct names *names,
		    const struct outgoing_host *to, const struct outgoing_ops *ops);
/* Closes; accepts one that was not started, and one that was stopped. TLS lives on until
 * outgoing_done, so that it can be called from within. */
void outgoing_stop(struct outgoing *o);
void outgoing_done(struct outgoing *o);

/* Bytes; 0 (recv): the end; -EAGAIN: outgoing_want tells when; else -errno. */
ssize_t outgoing_send(struct outgoing *o, struct view data) _must_check_;
ssize_t outgoing_recv(struct outgoing *o, char *p, size_t n) _must_check_;
/* Awaits what a wish to read or write takes; with neither only the end of the connection. */
int outgoing_want(struct outgoing *o, bool read, bool write) _must_check_;
int outgoing_error(const struct outgoing *o); /* the socket's errno, or 0 */
/* What -errno of these functions means, in words. */
const char *outgoing_why(const struct outgoing *o, ssize_t error);
