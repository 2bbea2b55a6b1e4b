/*
 * A real server on a loop in a thread of its own, with a small dialect that shows
 * each thing an exchange can do, and clients that are plain blocking sockets.
 *
 *   /health          answers at once
 *   /n?i=K           answers K at once;  /later?i=K a few milliseconds later
 *   /echo            sends the body back as it comes, with back-pressure
 *   /big?n=BYTES     an answer of that many bytes, with back-pressure
 *   /trickle         bytes that keep coming after http_write said stop, until on_writable comes
 *   /hold            takes the exchange and its body, never answers
 *   /full            the same, and never takes a byte of the body
 *   /break           an answer that stops in the middle
 *   /short           promises more than it sends
 *   /trailers        an answer with trailers
 *   /nobody          is not taken
 */
#pragma once

#include <stdatomic.h>

#include "http.h"

struct http_rig_counts {
	atomic_int aborts, lasts,
		live; /* exchanges that were aborted, whose body came to its end, that live */
	atomic_llong written, body_bytes; /* by /big; by /echo, /hold */
	atomic_int blocked;               /* times that http_write said stop */
};

struct http_rig {
	struct http_rig_counts counts;
	struct http_server *server;
	/* the rest is the rig's own */
	struct loop *loop;
	void *tls;
	char path[108];
	unsigned long thread;
	struct loop_task stop;
};

/* Serves on a unix socket. Limits that are 0 have their defaults; cert and key may be NULL. */
void http_rig_start(struct http_rig *r, const struct http_limits *limits, const char *cert, const char *key);
/* Checks that every exchange has come to its end exactly once. */
void http_rig_stop(struct http_rig *r);
int http_rig_connect(const struct http_rig *r);
/* Waits for a counter that another thread moves; fails the test after five seconds. */
void http_rig_wait(atomic_int *counter, int value);

/* ---- clients ---- */

void http_rig_send(int fd, const char *text);
void http_rig_send_bytes(int fd, const void *p, size_t n);
/* Reads until the connection ends; true when it ended properly (not by a reset). */
bool http_rig_read_all(int fd, struct buf *out);
/* Reads one answer with Content-Length or chunks: its head and its decoded body. */
int http_rig_read_answer(int fd, struct buf *head, struct buf *body, bool is_head);
/* Sends, reads one answer; returns its status. */
int http_rig_ask(int fd, const char *request, struct buf *body);
