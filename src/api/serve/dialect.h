/*
 * A dialect: one API through which clients use the core. It is a folder below src/api/dialect with one
 * const struct dialect, and one line in the array of main.c. It decides which requests belong to it,
 * identifies the caller, maps paths to handlers and formats errors. Everything else between the
 * connection and a handler is shared code in src/api/serve.
 */
#pragma once

#include "request.h"
#include "router.h"
#include "rpc.h"

struct proxy_refusal;
struct reflect_file;

/* A set of paths with one way to authenticate and one way to write an error. */
struct surface {
	/* The heading of its routes in `paddock-api --routes`. "": they stand with the API's own; NULL: they
	 * are not shown. */
	const char *heading;
	const struct route *const *routes;       /* tables, ends with NULL; may be NULL */
	const struct rpc_method *const *methods; /* likewise; asked first */
	const struct reflect_file *files;        /* of the methods, for reflection; may be NULL */
	const struct route *otherwise;           /* takes what no route takes; NULL: it is a 404 or 405 */

	/* Answers at once, without a request. False: it is something else. `b` as of dialect_port. May be
	 * NULL. */
	bool (*quick)(struct http_exchange *x, const struct box *b);
	/* Who asks, into r->actor. Not called for a route that is open. Without a route and a method in r
	 * there is nothing at the path, and 0 means that this may be told. NULL: everybody may. */
	int (*authenticate)(struct request *r, struct err *e);
	/* For a caller without a key, by a listener that asks for none (r->actor is set): what else
	 * authenticate finds out. May be NULL. */
	int (*welcome)(struct request *r, struct err *e);
	/* Writes an error as a whole answer; the request ends behind it. */
	void (*fail)(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra);
	/* What the core said, as this dialect's clients expect it. May be NULL. */
	void (*translate)(struct err *e);
	/* Asked first about every error: ends the request in a way of its own, or returns false. May be NULL.
	 */
	bool (*lost)(struct request *r, const struct err *e);

	const struct http_header *headers; /* of every answer that answer.c and rpc.c write */
	size_t n_headers;
	const char *no_path, *no_method; /* the messages of 404 and 405; NULL: the usual ones */
	bool exact;                      /* HEAD is not GET here */
};

/* A port of every box that this process serves itself: in the box there is nothing. The box's id is
 * r->box, r->actor somebody of its tenant. */
struct dialect_port {
	uint16_t port;
	bool guarded; /* who asks was permitted to reach the box's ports; else `authenticate` must check */
	bool shut; /* of a guarded one: also where the box's ports are public, who asks must show something */
	/* How the frame refuses somebody here, or says that there is no such box. NULL: as E2B's proxy does.
	 */
	void (*words)(struct json_out *o, const struct proxy_refusal *why);
	/* Where it is not guarded: whether the request shows something else than a key or a token that only
	 * somebody who was told of the box can have. To all others a box with private ports looks like none.
	 * May be NULL. */
	bool (*proves)(const struct http_exchange *x, const struct core *c, const struct box *b);
	/* Answers what is the same for every box, also for one that is not there. May be NULL. */
	bool (*anyway)(struct http_exchange *x);
	bool usual; /* is meant by a request whose headers name a box and no port */
	/* For a request that names no box: its id, where something in the request tells; else VIEW_NONE. May
	 * be NULL. */
	struct view (*find)(const struct http_exchange *x, struct core *c);
	/* A request whose headers name a box and this port, though it is for the dialect's own paths: clients
	 * with one address for both send the same headers to both. May be NULL. */
	bool (*strays)(const struct http_exchange *x);
	const struct surface *surface;
};

/* Tools about one sandbox that other dialects may offer in their own words. */
struct dialect_tools {
	struct view (*list)(void); /* as MCP has them: a JSON array */
	bool (*has)(struct view name);
	/* For the sandbox r->box, as r->actor. `args` is an object in r->arena, which is taken. r->own must
	 * not be in use. `then` ends the request: with MCP's result, a JSON object, or with an error. */
	void (*call)(void *state, struct request *r, struct view name, const struct json *args,
		     void (*then)(struct request *r, struct view result, const struct err *e));
};

struct dialect {
	const char *name;
	const char *version; /* of what it speaks; NULL: it is not shown among what is served */
	const char *under; /* on the common listener its paths are below this, which `enter` takes off; may be
			      NULL */
	const char *alias; /* another beginning that all its paths may have; may be NULL */
	/* Names between spaces of dialects that its own listener has besides, each with what it claims; its
	 * original serves them at the same address. May be NULL. */
	const char *with;
	bool ports_here; /* the ports of boxes are reached by its own listener, too */
	/* Tells what of it is off in this installation, and why. May be NULL. */
	void (*off)(const struct core *c, void (*say)(void *arg, const char *what, const char *why),
		    void *arg);
	/* Whether a request is its own: by host, path, header or listener. Dialects are asked in the order
	 * of the array. NULL: it takes what is left. */
	bool (*claims)(const struct http_exchange *x, void *state);
	/* The request is its own: may take a prefix off x->path. May be NULL. */
	void (*enter)(struct http_exchange *x);
	bool inside; /* is asked for what comes from within a box, too (x->origin says which) */
	const struct surface *surface;     /* NULL: it has ports only */
	const struct dialect_port *ports;  /* ends with port 0; may be NULL */
	const struct dialect_tools *tools; /* may be NULL */
	/* What it keeps, r->state; both may be NULL. */
	void *(*new)(struct core *c, struct err *e);
	void (*free)(void *state);
};
