/*
 * The reverse proxy: one exchange of a client to one connection of a server in a
 * box, streamed both ways with back-pressure from end to end. Each exchange has a
 * connection of its own, so that nothing can be smuggled from one to the next.
 */
#pragma once

#include "http.h"
#include "list.h"
#include "who.h"

struct core;
struct plane_name;

/* How an error is told: as E2B's proxy does, or as our own REST. */
enum proxy_style { PROXY_E2B, PROXY_REST };

struct proxy_wish {
	struct core *core;
	struct actor actor;
	struct view box;    /* its id */
	struct view path;   /* what the box sees; may be empty */
	struct view prefix; /* the path of ours before it; empty: an origin of its own */
	struct view host;   /* what the box sees; in the exchange's arena */
	uint16_t port;
	enum proxy_style style;
	struct list *list;          /* of all that are under way */
	void (*on_idle)(void *arg); /* the list is empty again */
	void *arg;
};

/* Takes the exchange. */
void proxy_start(struct http_exchange *x, const struct proxy_wish *w);

/* An answer of the proxy's own. `message` is a sentence; port 0: none. */
void proxy_refuse(struct http_exchange *x, enum proxy_style style, int status, struct view box, unsigned port,
		  const char *message);
