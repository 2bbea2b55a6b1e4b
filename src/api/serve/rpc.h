/*
 * Calls: methods that take and give messages of protobuf, as JSON or in binary,
 * whole or as streams; over Connect, gRPC or gRPC-Web, as the client likes. A handler is called with a struct
 * request, whose arena holds the message; answer_fail ends a call with an error in its protocol.
 *
 *   UNARY   handle, then rpc_reply
 *   SERVER  handle, then rpc_begin, rpc_send again and again, rpc_end
 *   CLIENT  handle for each message, then rpc_go_on; `end` when there are no more,
 *           then rpc_reply
 *   BIDI    as CLIENT, and rpc_begin, rpc_send, rpc_end at any time
 *
 * A message is gone when the next one comes: what is needed longer is copied.
 */
#pragma once

#include "connect.h"
#include "grpc.h"
#include "request.h"

#define RPC_ANSWER_MAX (64u * 1024 * 1024) /* without the strings that are sent from where they are */

enum rpc_kind { RPC_UNARY, RPC_SERVER, RPC_CLIENT, RPC_BIDI }; /* which side streams */

struct pb_msg;

/* A table ends with a NULL path, a list of tables with NULL. */
struct rpc_method {
	const char *path;
	enum rpc_kind kind;
	const struct pb_msg *request, *reply;
	void (*handle)(struct request *r, const void *msg);
	void (*end)(struct request *r);
	const char *audit; /* its name in the audit log, where it has entries (unary only); else NULL */
};

struct rpc {
	struct request r;
	const struct rpc_method *method;
	struct connect_type type; /* of Connect, or as gRPC's is in its terms */
	struct grpc_type grpc;    /* form NONE: it is Connect */
	struct connect_reader reader;
	struct loop_timer deadline, ping;
	uint64_t timeout_ms, ping_ms; /* 0: none */
	const void *ping_msg;
	struct buf held;  /* the answer, while it waits for the audit log */
	bool begun, full; /* the answer has begun; the client does not keep up */
	bool last, busy;  /* the body is complete; a message of it is being dealt with */
	void (*on_writable)(struct request *r);
};

/* Of a request with a method. */
static inline struct rpc *rpc_of(struct request *r)
{
	return CONTAINER(r, struct rpc, r);
}

/* Long strings must live as long as the request: they are sent from where they are. */
void rpc_reply(struct request *r, const void *msg);
struct rpc_content;
/* The same with a field whose content is read meanwhile: rpc_long.h. */
void rpc_reply_from(struct request *r, const void *msg, const struct rpc_content *c);
/* ping_msg: sent while there is nothing else to send, as often as the client wishes; may be NULL. */
void rpc_begin(struct request *r, const void *ping_msg);
void rpc_send(struct request *r, const void *msg); /* rpc_of(r)->full: stop until on_writable */
void rpc_end(struct request *r);
void rpc_go_on(struct request *r);
/* For a surface's `fail`: an error in the protocol of the request's content type, though it is no call
 * (nobody knows the path, or who asks). False: it has no such type, and nothing is sent. */
bool rpc_fail_head(struct request *r, const struct err *e);

/* ---- for request.c ---- */

const struct rpc_method *rpc_find(const struct rpc_method *const *tables, struct view path);
struct request *rpc_new(const struct rpc_method *m, const struct http_exchange *x); /* NULL: no memory */
void rpc_take(struct request *r);                                                   /* it has been admitted */
void rpc_release(struct request *r);
