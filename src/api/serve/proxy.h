/*
 * The reverse proxy: connects one exchange of a client to one connection of a server in a box,
 * streamed in both directions with back-pressure from end to end. Each exchange has its own
 * connection, so that nothing can be smuggled from one to the next.
 */
#pragma once

#include "http.h"
#include "json.h"
#include "who.h"

struct request;
struct serve;

/* An answer of the proxy's own, and how a dialect tells it: an object of JSON. */
struct proxy_refusal {
	int status;
	struct view box;     /* its id; may be empty */
	unsigned port;       /* 0: none */
	const char *message; /* a sentence */
	const char *request_id;
};
typedef void proxy_words(struct json_out *o, const struct proxy_refusal *why);
proxy_words proxy_words_e2b, proxy_words_rest; /* as E2B's proxy does; as our own REST */

struct proxy_wish {
	struct serve *serve;
	struct actor actor;
	struct view box;    /* its id */
	struct view path;   /* what the box sees; may be empty */
	struct view prefix; /* the path of ours before it; empty: an origin of its own */
	struct view host;   /* what the box sees; in the exchange's arena */
	uint16_t port;
	const char *credentials; /* members of the query that the box must not see; NULL: none */
	proxy_words *words;
};

/* Takes the exchange; of a handler whose route streams its body, proxy_take, which ends the request. */
void proxy_start(struct http_exchange *x, const struct proxy_wish *w);
void proxy_take(struct request *r, const struct proxy_wish *w);

/* One that goes on in the name of a key that was removed. False: there is none. */
bool proxy_end_revoked(struct serve *s);

/* As HTML to who accepts it, else in these words. request_id is filled in. */
void proxy_refuse(struct http_exchange *x, proxy_words *words, int status, struct view box, unsigned port,
		  const char *message);
/* 502, as E2B's proxy says it. */
void proxy_unknown_box(struct http_exchange *x, struct view id);
