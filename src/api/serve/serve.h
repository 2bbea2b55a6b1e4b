/*
 * The frame of every dialect: passes an exchange to the dialect that it belongs to. Owns the requests
 * in progress and the state that dialects keep.
 */
#pragma once

#include "dialect.h"

#define SERVE_DIALECTS  32
#define SERVE_LISTENERS 16

struct serve_address {
	char host[64];
	uint16_t port;
};

struct serve {
	struct core *core;
	const struct http_server *server;      /* for the metrics */
	int statm;                             /* /proc/self/statm, opened before Landlock, or negative */
	const struct dialect *const *dialects; /* ends with NULL */
	void *states[SERVE_DIALECTS];
	uint8_t bound[SERVE_LISTENERS];  /* 1 + the index of the dialect that has this listener to itself */
	bool anonymous[SERVE_LISTENERS]; /* who comes by it without a key is a user */
	struct view
		boxes[SERVE_LISTENERS]; /* the sandbox that a listener is for, by name or id; empty: all */
	struct serve_address at[SERVE_LISTENERS]; /* that a listener really has: served_note */
	unsigned n_listeners;
	struct list requests, proxies; /* that are under way */
	void (*on_idle)(void *arg);
	void *idle_arg;
};

struct serve *serve_new(struct core *c, const struct dialect *const *dialects, struct err *e) _must_check_;
void serve_free(struct serve *s); /* after the server, which aborts what is under way */
/* All that comes by a listener (x->listener) is this dialect's. ERR_INVALID: there is no such dialect. */
int serve_bind(struct serve *s, unsigned listener, struct view dialect, struct err *e) _must_check_;
/* The sandbox that its listener is for; empty: none. */
struct view serve_listener_box(const struct serve *s, const struct http_exchange *x);
/* Takes a dialect's alias off the path. */
void serve_alias(const struct serve *s, struct http_exchange *x);
/* The dialect that has this listener to itself, or with others; NULL: all are there. */
const struct dialect *serve_bound(const struct serve *s, unsigned listener);
bool serve_has(const struct serve *s, unsigned listener, const struct dialect *d);
/* Whether the ports of boxes are reached by its listener. */
bool serve_has_ports(const struct serve *s, const struct http_exchange *x);
/* The first dialect of its listener that claims it, else the listener's own; NULL: none. */
const struct dialect *serve_choose(const struct serve *s, const struct http_exchange *x, void **ret_state);
/* To that one. */
void serve_request(struct serve *s, struct http_exchange *x);
/* A port of boxes that a dialect serves; port NULL: none does. */
struct serve_at {
	const struct dialect_port *port;
	void *state; /* the dialect's */
};
struct serve_at serve_find_port(const struct serve *s, uint16_t port);
uint16_t serve_usual_port(const struct serve *s); /* 0: none */
/* The first port whose `find` knows the request's box. */
struct serve_at serve_find_box(const struct serve *s, const struct http_exchange *x, struct view *ret_id);
void serve_port(struct serve *s, struct http_exchange *x, struct serve_at at, const struct box *b,
		const struct actor *a);
/* The tools of the first dialect that has some; tools NULL: none has. */
struct serve_tools {
	const struct dialect_tools *tools;
	void *state;
};
struct serve_tools serve_find_tools(const struct serve *s);
/* Called once no request is under way and nothing is proxied; perhaps at once. Answers without an end are
 * ended. */
void serve_when_idle(struct serve *s, void (*on_idle)(void *arg), void *arg);
/* For those who took something out of one of the lists. */
void serve_let_go(struct serve *s);
/* "METHOD /path/{x}" lines under their headings, for the checks of api/. */
void serve_print_routes(FILE *out, const struct dialect *const *dialects);
