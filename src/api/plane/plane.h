/*
 * The sandbox plane: what is meant for a box and not for us. A request names a
 * box and a port by its host (PORT-ID.domain), by E2B's headers, or by a path of
 * ours; a port is served by a server in the box, through the proxy, or by this
 * process itself (the table of plane_serve). Everything else goes to the dialect
 * behind.
 */
#pragma once

#include <stdio.h>

#include "box.h"
#include "core.h"
#include "http.h"
#include "who.h"

struct plane;

#define PLANE_ENVD        49983
#define PLANE_INTERPRETER 49999

/* Which port of which box. Gone when the handler returns: copy what is needed. */
struct plane_target {
	struct core *core;
	const struct box *box;
	struct actor actor; /* somebody of the box's tenant; a port that is not guarded must check who asks */
	uint16_t port;
};

typedef void plane_handler(struct http_exchange *x, const struct plane_target *t, void *arg);

/* A port that the api serves itself. guarded: who asks was permitted to reach the box's ports. */
struct plane_own {
	uint16_t port;
	bool guarded;
	plane_handler *serve;
	void *arg;
	/* For a request that names no box: its id, where something in the request tells; else VIEW_NONE. May
	 * be NULL. */
	struct view (*find)(const struct http_exchange *x, struct core *c, void *arg);
};

/* Requests that are for no box go to `next`. */
struct plane *plane_new(struct core *c, void (*next)(struct http_exchange *x, void *arg), void *arg,
			struct err *e) _must_check_;
void plane_free(struct plane *p); /* after the server */
#define PLANE_OWN_MAX 8
void plane_serve(struct plane *p, const struct plane_own *own); /* copied */
/* Called once nothing is proxied; perhaps at once. */
void plane_when_idle(struct plane *p, void (*on_idle)(void *arg), void *arg);
/* "METHOD /path/{x}" lines, for the check of api/openapi.yaml. */
void plane_print_routes(FILE *out);
/* http_config.on_request; arg is the struct plane. */
void plane_request(struct http_exchange *x, void *arg);

/* 502, as E2B's proxy says it. */
void plane_unknown_box(struct http_exchange *x, struct view id);
