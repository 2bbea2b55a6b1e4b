/*
 * One request of any dialect, from its head to its answer or its abort. A handler must not touch the
 * request after a call that ends it: answer_*, rpc_reply, rpc_end, request_done, or on_gone.
 */
#pragma once

#include "arena.h"
#include "audit.h"
#include "box.h"
#include "core.h"
#include "http.h"
#include "job.h"
#include "json.h"
#include "list.h"
#include "router.h"
#include "run.h"
#include "who.h"

#define REQUEST_QUERY_MAX 64

struct answer_held;
struct answer_long;
struct serve;
struct surface;

struct request_pair {
	struct view name, value;
};

struct request {
	struct serve *serve;
	struct core *core;
	struct http_exchange *x;
	const struct surface *surface;
	void *state;               /* the dialect's */
	const struct route *route; /* NULL: of a method, or there is nothing at the path */
	struct list link;
	struct actor actor;
	char box[BOX_ID + 1]; /* whose port it came to; "": to none */
	struct view user;     /* whose rights in the box count; empty: its own user's */
	bool admitted;        /* it was authenticated, or need not be */
	struct view params[ROUTE_PARAMS];
	struct request_pair *query;
	size_t n_query;
	struct buf body;                     /* of ROUTE_JSON and ROUTE_WHOLE */
	struct arena arena;                  /* of the parsed body */
	struct job *job;                     /* what is under way; abandoned when the client goes */
	void (*on_gone)(struct request *r);  /* the client went away: cancel the rest */
	void (*on_drain)(struct request *r); /* the daemon goes down: an answer without an end ends itself */
	void (*release)(struct request *r);  /* cancels and gives back; also after a good end */
	void (*fail)(struct request *r, const struct err *e); /* of a call of rpc.h; else NULL */
	void *own;                                            /* the handler's; freed with the request */
	struct buf out;                                       /* the answer that answer_json writes */
	struct answer_long *answer;                           /* the holes in it: answer_long.h; or NULL */
	struct output kept;                                   /* of a command, while the answer is sent */
	struct json_out json;
	uint64_t record;        /* in the audit log, while it is open (record.h); else 0 */
	enum err_code failed;   /* as record_failed said */
	struct audit_wait wait; /* of an answer that is not sent before its entry is on disk: */
	void (*then)(struct request *r);
	struct answer_held *held;
};

/* A request for a surface. `b` and `a` where it came to a port of a box, else NULL. */
void request_begin(struct serve *s, struct http_exchange *x, const struct surface *f, void *state,
		   const struct box *b, const struct actor *a);
/* After http_end, http_break or http_reply. */
void request_done(struct request *r);
/* Ends it where no answer can be sent. */
void request_break(struct request *r);
/* Whether a handler has not answered yet; r may be gone. */
bool request_goes_on(const struct serve *s, const struct request *r);
/* For the http_ops of handlers that need no more than this. */
void request_abort(struct http_exchange *x);
void request_drop_body(struct http_exchange *x, struct view data, bool last);

/* A handler's own memory, zeroed; on failure the answer is sent. */
void *request_own(struct request *r, size_t size);
/* The body as it is; an empty one is refused. */
int request_read_doc(struct request *r, struct json **ret, struct err *e) _must_check_;
/* And against a schema. On failure the answer is sent. */
int request_read(struct request *r, const struct json_schema *s, void *out) _must_check_;
/* Before something that would hold much memory for it: ERR_QUOTA where its tenant has too much of that. */
int request_may_hold(const struct request *r, struct err *e) _must_check_;
/* A query parameter's value; p == NULL: absent. */
struct view request_query(const struct request *r, const char *name);
/* "1" and "true", "0", "false" and absence. On failure the answer is sent. */
int request_query_flag(struct request *r, const char *name, bool *ret) _must_check_;
/* The parameter `limit` of a page, from 1 to `most`; *ret stays where it is absent. */
int request_query_limit(const struct request *r, uint32_t most, uint32_t *ret, struct err *e) _must_check_;
/* The token behind "Bearer " in Authorization, or X-API-Key. p == NULL: neither. */
struct view request_token(const struct http_exchange *x);
/* Whether it came, without a key, by a listener that asks for none. */
bool request_is_anonymous(const struct request *r);
/* Whether a page of this server sent it, or no page at all: browsers send keys and tickets for whoever asks
 * them to. */
bool request_same_origin(const struct http_exchange *x);
