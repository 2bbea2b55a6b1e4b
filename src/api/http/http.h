/*
 * One HTTP exchange as the dialects see it, the same over HTTP/1.1, HTTP/2 and
 * TLS. src/api/http turns bytes into exchanges and back; a dialect never sees a
 * connection.
 *
 * Life: when a request's head is complete, the server's on_request is called.
 * The dialect takes the exchange by setting x->ops and x->ctx (or answers at
 * once with http_reply). Then on_body is called for each piece of the body (with
 * last=true exactly once, perhaps with no bytes), unless the dialect has called
 * http_body_pause. The exchange ends by http_reply or http_end, or by on_abort
 * when the peer went away or broke the protocol: after any of these the dialect
 * must not touch it again. Exactly one of "the dialect finished it" and
 * "on_abort was called" happens.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "http_header.h"
#include "loop.h"

#define HTTP_ORIGIN       24
#define HTTP_ORIGIN_CONNS 128
#define HTTP_BODY_STEP    (16u * 1024)
#define HTTP_ADOPTED      255 /* came by no listener */
#define HTTP_REQUEST_ID   72  /* a UUID and more, with its NUL */

struct http_exchange;

struct http_ops {
	void (*on_body)(struct http_exchange *x, struct view data, bool last);
	void (*on_abort)(struct http_exchange *x);
	void (*on_writable)(struct http_exchange *x); /* after http_write returned false; may be NULL */
};

struct http_exchange {
	/* the request; views live as long as the exchange */
	struct view method; /* "GET" */
	struct view path;   /* as sent, still percent-encoded, begins with '/'; "*" for OPTIONS only */
	struct view prefix; /* that a dialect took off the path (dialect.enter); empty at first */
	struct view query;  /* without '?', may be empty */
	struct view host;   /* Host or :authority */
	struct view peer;   /* the client's address, as text; may be empty */
	struct view origin; /* of a connection that was adopted; else empty */
	unsigned listener;  /* by which it came: the first one is 0; HTTP_ADOPTED */
	bool crowded;       /* its origin has too many connections: whoever serves it says so */
	const struct http_header *headers;
	size_t n_headers;
	int64_t content_length; /* -1: unknown (chunked or HTTP/2 without it); 0: no body */
	bool tls;
	uint8_t version;                  /* 10, 11 or 20 */
	char request_id[HTTP_REQUEST_ID]; /* from X-Request-Id where it is sane, else made */
	struct arena *arena;              /* of the exchange */

	/* the dialect's */
	const struct http_ops *ops;
	void *ctx;
	bool patient;    /* the body may take as long as it likes: somebody is typing it */
	bool eof_aborts; /* a client that half-closes is gone: for answers without an end in sight; events are
			    such */
	struct loop *loop;
};

struct view http_get_header(const struct http_exchange *x, const char *name); /* p == NULL: absent */
/* The value of a query parameter, decoded into the exchange's arena; p == NULL: absent. */
struct view http_get_query(const struct http_exchange *x, const char *name);

/* A whole answer. content_type may be NULL for an empty body. Extra headers may be NULL. */
void http_reply(struct http_exchange *x, int status, const char *content_type, struct view body,
		const struct http_header *extra, size_t n_extra);
/* The same with a body that is constant and never freed: it is not copied. */
void http_reply_shared(struct http_exchange *x, int status, const char *content_type, struct view body,
		       const struct http_header *extra, size_t n_extra);
/* An answer in pieces. length -1: chunked (or by END_STREAM in HTTP/2). */
void http_begin(struct http_exchange *x, int status, const char *content_type, int64_t length,
		const struct http_header *extra, size_t n_extra);
/* Always takes all of the data; false says: stop until on_writable. */
bool http_write(struct http_exchange *x, struct view data);
/* There is more to write, but not now: on_writable comes when other connections had their turn. Behind
 * http_write. */
void http_later(struct http_exchange *x);
bool http_is_full(const struct http_exchange *x); /* on_writable is due */
void http_end(struct http_exchange *x);
/* After http_begin, when the rest cannot be sent: the peer must see a broken answer, not a short one. */
void http_break(struct http_exchange *x);
/* Ends the exchange for a dialect that did not ask for it: the peer sees a broken answer, and on_abort is
 * called. False: it has ended, or nobody has taken it yet. Not from within one of its calls. */
bool http_cut(struct http_exchange *x);
/* Trailers: before http_end. Over HTTP/1.1 only with an answer of unknown length, over 1.0 never. */
void http_trailers(struct http_exchange *x, const struct http_header *t, size_t n);

/* Answers 101, and from here on the connection's own bytes go to on_body (never the last) and come
 * from http_write, until http_end. False, and nothing is sent, where there is no connection to be
 * had for one exchange: HTTP/1.0 and HTTP/2. */
bool http_upgrade(struct http_exchange *x, const char *protocol, const struct http_header *extra,
		  size_t n_extra) _must_check_;

void http_body_pause(struct http_exchange *x);
void http_body_resume(struct http_exchange *x);
/* The client has shown a key of this party (any number): its connection is no stranger's any more, of
 * whom there may be fewer, and who make place first. */
void http_vouch(struct http_exchange *x, uint64_t party);
/* The dialect keeps so many bytes for this exchange now: they count with those of its party. */
void http_hold(struct http_exchange *x, size_t bytes);
/* Its party holds too much already: better to refuse what would add much to it. */
bool http_is_pressed(const struct http_exchange *x);
/* Sends "100 Continue" when the client waits for it; called by the server itself
 * as soon as on_request returned without an answer. */

/* ---- the server ---- */

struct http_server;

struct http_limits {
	uint32_t head_bytes;  /* 32 KiB: request line and headers */
	uint32_t headers;     /* 100 */
	uint32_t idle_ms;     /* keep-alive without a request: 75 s */
	uint32_t head_ms;     /* first byte to the end of the head: 10 s */
	uint32_t stall_ms;    /* body (while no answer has begun) or answer without progress: 60 s. Of a body
			       * less than HTTP_BODY_STEP bytes are none. */
	uint32_t connections; /* 4096 */
	uint32_t strangers;   /* of those, without a key: three quarters */
	uint32_t party;       /* and of one address without, or one party with a key: half */
	uint32_t streams;     /* concurrent HTTP/2 streams a connection: 128 */
	uint32_t useless_ms;  /* without use, until a newcomer may take its place: 1 s */
};

/* Bytes, of one party and of all. */
struct http_held {
	size_t party, all;
};

struct http_config {
	struct http_limits limits;
	/* What is held beside the exchanges, for a party with a key: one budget for both. May be NULL. */
	struct http_held (*beside)(void *arg, uint64_t party);
	void (*on_request)(struct http_exchange *x, void *arg);
	void *arg;
	void *tls; /* struct tls_server *, or NULL */
};

struct http_server *http_server_new(struct loop *l, const struct http_config *c, struct err *e) _must_check_;
/* Takes the listening socket (non-blocking); the exchanges that come by it know how many were before it. */
int http_server_listen(struct http_server *s, int fd, struct err *e) _must_check_;
/* A connection that somebody else has accepted (taken). `origin` comes with its exchanges, of which those
 * beyond HTTP_ORIGIN_CONNS connections are `crowded`. Closed where there are too many even of those. */
void http_server_adopt(struct http_server *s, int fd, const char *origin);
/* Accepts no more; what is open goes on. */
void http_server_stop_listening(struct http_server *s);
void http_server_free(struct http_server *s);
/* What its exchanges hold, of a party with a key and of all. */
struct http_held http_server_held(struct http_server *s, uint64_t party);
struct http_stats {
	uint64_t requests, connections_total, connections_open, connections_refused, bad_requests;
} http_server_stats(const struct http_server *s);
