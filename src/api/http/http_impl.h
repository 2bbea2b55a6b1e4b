/*
 * Inside src/api/http: the part of an exchange that the dialects do not see,
 * and what a connection driver (HTTP/1.1, HTTP/2) does for it.
 *
 * Drivers never call back into a dialect from within a call that the dialect
 * made: what follows from it (sending, on_writable, on_abort, the next request)
 * happens in the driver's own events or at the end of the loop's batch.
 */
#pragma once

#include "http.h"

#define HTTP_HIGH_WATER (256u * 1024) /* queued answer bytes at which http_write says stop */
#define HTTP_DRAIN_MAX  (64u * 1024)  /* of a body that nobody wants any more */
#define HTTP_ARENA_MAX  (16u * 1024 * 1024)
#define HTTP_OUT_MAX    (1u << 30) /* of one answer that is waiting to be sent */

struct http_impl;
struct http_conn;

struct http_answer {
	int status;
	const char *content_type;
	int64_t length; /* -1: unknown */
	const struct http_header *extra;
	size_t n_extra;
	bool whole;          /* http_reply: the dialect reads no more of the body */
	const char *upgrade; /* to this protocol, or NULL */
};

/* One per protocol. */
struct http_side {
	void (*begin)(struct http_impl *i, const struct http_answer *a);
	bool (*write)(struct http_impl *i, struct view data);
	void (*share)(struct http_impl *i, struct view data); /* all of the body, of bytes that stay */
	void (*end)(struct http_impl *i);
	void (*broken)(struct http_impl *i); /* the answer cannot be finished */
	void (*trailers)(struct http_impl *i, const struct http_header *t, size_t n);
	void (*resume)(struct http_impl *i);
	void (*upgrade)(struct http_impl *i, const struct http_answer *a); /* NULL: cannot */
};

struct http_impl {
	struct http_exchange x;
	const struct http_side *side;
	struct http_conn *conn;
	size_t kept;   /* bytes, by the dialect */
	int64_t left;  /* of the promised length, or -1 */
	bool is_head;  /* a HEAD request */
	bool begun;    /* the answer's head was given */
	bool bodyless; /* the answer has no body (HEAD, 204, 304) */
	bool overrun;  /* more was written than promised */
	bool finished; /* by the dialect, or aborted: it is not called again */
	bool paused;   /* on_body */
	bool blocked;  /* http_write said stop; on_writable is due */
};

static inline struct http_impl *http_impl_of(struct http_exchange *x)
{
	return CONTAINER(x, struct http_impl, x);
}

/* The dialect is told once that the exchange is over. */
void http_impl_abort(struct http_impl *i);
/* Gives a piece of the body to the dialect; nothing once it has finished. */
/* A body that nobody took: it may be a secret that came with a wrong key, and lies in a buffer that lives on.
 */
void http_impl_wipe(struct view data);
void http_impl_body(struct http_impl *i, struct view data, bool last);
/* The JSON body of an error that the server itself makes; `message` is a literal. */
int http_impl_error(struct buf *out, int status, const char *message, const char *request_id);
