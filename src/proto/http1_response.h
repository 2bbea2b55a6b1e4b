/*
 * The head of an HTTP/1.1 response, from a server that nobody trusts. As strict
 * as the request parser: what could be read in two ways is refused.
 */
#pragma once

#include "buf.h"
#include "http_header.h"

enum http1_framing {
	HTTP1_EMPTY,  /* no body: 1xx, 204, 304, an answer to HEAD */
	HTTP1_LENGTH, /* content_length bytes */
	HTTP1_CHUNKED,
	HTTP1_TO_END, /* as long as the connection */
};

struct http1_response {
	/* given to http1_response_init */
	struct http_header *headers;
	size_t max_headers, max_bytes;

	/* valid once the head is complete; views point into the caller's bytes */
	int status; /* 100 … 599 */
	size_t n_headers;
	int64_t content_length; /* -1: not said */
	bool chunked;
	uint8_t version; /* 10 or 11 */

	const char *why; /* after an error */

	/* where parsing stands */
	size_t line, scan;
	bool has_status, done;
};

void http1_response_init(struct http1_response *r, struct http_header *headers, size_t max_headers,
			 size_t max_bytes);
/* Looks at the n bytes at p. The head's length when it is complete, 0 when more is needed, -1 with
 * `why`. Call again with the same bytes at the same place and more behind them. Header names are
 * put into lower case in place. */
int http1_response_parse(struct http1_response *r, char *p, size_t n) _must_check_;
enum http1_framing http1_response_framing(const struct http1_response *r, bool to_head);
/* Whether a comma-separated header names this option, without regard to case. */
bool http1_response_has_option(struct view list, const char *option);
