/*
 * The heads of proxied requests and answers: what a server in a box sees of a request, and what a
 * client sees of its answer. Pure.
 *
 * Removed in both directions: headers of a single connection (RFC 9110, 7.6.1). Removed from requests:
 * Paddock's keys and tokens in every header, cookie and member of the query (proxy_secrets.h), its cookie,
 * and below a path of the API all cookies and the referrer. Removed from answers: headers that affect more
 * than the box's own origin.
 */
#pragma once

#include "buf.h"
#include "http1_response.h"

#define PROXY_HEAD_OURS   "paddock_" /* how the names of our cookies begin */
#define PROXY_HEAD_COOKIE PROXY_HEAD_OURS "preview"

struct proxy_head {
	struct view method, path, query; /* query.p == NULL: none */
	struct view host;                /* what the box sees */
	struct view client_host;         /* what the client said */
	struct view peer;                /* its address */
	struct view prefix;      /* the path of ours that stands for "/"; empty: an origin of its own */
	const char *credentials; /* members of the query that hold them, "api_key ticket"; NULL: none */
	const struct http_header *headers;
	size_t n_headers;
	int64_t content_length; /* -1: chunked */
	bool tls;
	bool websocket; /* asks for an upgrade */
};

/* Whether it asks to become a WebSocket. Other upgrades are not passed on. */
bool proxy_head_is_websocket(const struct http_header *headers, size_t n);
int proxy_head_request(struct buf *out, const struct proxy_head *h);

/* The headers for the client, at most n_headers + PROXY_HEAD_MORE of them; text is made in `room`.
 * prefix as above. */
#define PROXY_HEAD_MORE 2
size_t proxy_head_response(const struct http1_response *r, struct view prefix, struct buf *room,
			   struct http_header *out);

/* "${PORT}" replaced. */
void proxy_head_mask(struct buf *out, struct view mask, unsigned port);
/* Whether this value of Authorization or X-API-Key is a key of ours. */
bool proxy_head_is_key(struct view value);
/* The value of the next cookie of this name; *rest is what follows it. p == NULL: there is none. */
struct view proxy_head_cookie(struct view *rest, const char *name);
