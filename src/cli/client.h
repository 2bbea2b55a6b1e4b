/*
 * A blocking HTTP/1.1 client for one server: one connection, kept alive between
 * requests, bodies streamed both ways. Every wait has an end: a time limit, or
 * cancel_fd becoming readable.
 */
#pragma once

#include <sys/types.h>

#include "buf.h"
#include "response.h"
#include "url.h"

struct client {
	struct url url;
	const char *key; /* sent as a bearer token; NULL: none */
	const char *ca;  /* for https: a PEM file of authorities; NULL: the system's */
	pid_t relay;     /* of tls.h; 0: none */
	int fd;          /* -1 while not connected */
	int cancel_fd;   /* -1: none */
	/* Called when cancel_fd is readable or the moment has come; -1 breaks the wait off. NULL: cancel_fd
	 * does. */
	int (*on_wake)(void *arg, struct err *e);
	void *wake_arg;
	uint64_t wake_at_ms; /* of clock_mono_ms; 0: never */
	struct buf in;
	struct response_body body;
	size_t shown; /* bytes of `in` that client_read gave out, dropped by its next call */
	bool keep;    /* the connection, after this answer */
	/* Told of bytes of bodies as they go and come; may be NULL. */
	void (*on_moved)(void *arg, size_t bytes);
	void *moved_arg;
};

struct client_request {
	const char *method;
	struct view path; /* percent-encoded, begins with '/' */
	const char *content_type;
	const char *accept;  /* the wished type of the answer; NULL: any */
	struct view headers; /* further lines, each with its CRLF */
	const char
		*upgrade_key; /* asks for a WebSocket; an answer of 101 leaves the connection to the caller */
	struct view body;     /* p == NULL: none */
	bool streamed;        /* the body comes from body_fd instead */
	int body_fd;
	int64_t body_size; /* of body_fd; below 0: not known, sent in chunks */
	/* Called at body_fd's end, may be NULL: whether that was all (a program that
	 * writes into a pipe may have failed). -1: the body is broken off. */
	int (*at_end)(void *ctx, struct err *e);
	void *ctx;
	uint64_t timeout_ms; /* from the request's end to the answer's head; 0: no limit */
};

void client_init(struct client *c, const struct url *url, const char *key);
void client_done(struct client *c);

/* Sends the request and reads the answer's head. The body must be read to its
 * end (or the client closed) before the next request. */
int client_send(struct client *c, const struct client_request *rq, struct response *ret,
		struct err *e) _must_check_;
/* The next piece of the body, valid until the next call: 1, 0 at its end, or -1. */
int client_read(struct client *c, struct view *ret, struct err *e) _must_check_;
/* All of the rest. */
int client_read_all(struct client *c, struct buf *out, struct err *e) _must_check_;
int client_read_to_fd(struct client *c, int fd, struct err *e) _must_check_;
void client_close(struct client *c);

/* ---- after an upgrade: the connection's own bytes ---- */

/* Sends all of it. */
int client_push(struct client *c, struct view data, struct err *e) _must_check_;
/* More bytes into c->in, which the caller consumes: 1, 0 at the connection's end, or -1. Call it
 * when the connection is readable: it waits. */
int client_pull(struct client *c, struct err *e) _must_check_;
