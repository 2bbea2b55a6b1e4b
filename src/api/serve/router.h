/*
 * Tables of routes, which map a method and a path to a handler. Pure.
 */
#pragma once

#include <stdio.h>

#include "buf.h"
#include "err.h"
#include "view.h"

#define ROUTE_PARAMS     4
#define ROUTE_ANY_QUERY  "*"
#define ROUTE_ANY_METHOD "*" /* what no other route of the path takes */

struct json_schema;
struct request;

/* The zero value asks for a key. SIGNED: or for a signature in the query, which the handler checks. */
enum route_auth { ROUTE_KEY, ROUTE_OPEN, ROUTE_SIGNED };
/* JSON and WHOLE are collected before the handler is called; WHOLE may be of any type. STREAM: the handler
 * takes the pieces. */
enum route_body { ROUTE_NONE, ROUTE_JSON, ROUTE_WHOLE, ROUTE_STREAM };

struct route {
	const char *method, *pattern; /* {x} is one segment; as the last one {path} is all that follows */
	void (*handle)(struct request *r);
	enum route_auth auth;
	int (*permit)(struct request *r,
		      struct err *e); /* of ROUTE_OPEN: asked for something else before anything is read */
	enum route_body body;
	uint64_t body_max;                /* of JSON and WHOLE; 0: what the configuration says */
	const struct json_schema *schema; /* of the JSON, for documents; may be NULL */
	bool secret;                      /* the body is wiped wherever it was */
	const char *audit;                /* its name in the audit log, where it has entries; else NULL */
	bool audit_body;                  /* the body is shown there, too: it has no secrets */
	const char *query; /* the names that are allowed, between spaces; "x.*" allows a prefix, "x+" more
			      than one; ROUTE_ANY_QUERY: the handler looks itself, with http_get_query */
};

/* A table ends with a NULL method, a list of tables with NULL (and may be NULL). The raw values of {…} are
 * stored; `allow` gets the methods that the path takes. exact: HEAD is not GET. */
const struct route *router_find(const struct route *const *tables, bool exact, struct view method,
				struct view path, struct view params[ROUTE_PARAMS], struct buf *allow);
/* "METHOD /path/{x}" lines. */
void router_print(FILE *out, const struct route *const *tables);
