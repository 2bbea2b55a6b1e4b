/*
 * HTTP/1.1 (RFC 9112) without I/O: a strict request parser, a body decoder, and
 * writers for answers. "Strict" means that whatever two implementations could
 * read in two ways is refused here, so that nothing can be smuggled past a proxy
 * in front of us. Where the RFC lets a server be lenient, this one is not, with
 * one exception: a single empty line before a request is skipped.
 */
#pragma once

#include "buf.h"
#include "http_header.h"

/* ---- the head of a request (http1.c) ---- */

struct http1_request {
	/* given to http1_request_init */
	struct http_header *headers;
	size_t max_headers, max_bytes;

	/* valid once the head is complete; views point into the caller's bytes */
	struct view method;
	struct view path;  /* begins with '/', or is "*" (OPTIONS only) */
	struct view query; /* without the '?' */
	struct view host;  /* empty where HTTP/1.0 had none */
	size_t n_headers;
	int64_t content_length; /* -1: chunked; 0: no body */
	uint8_t version;        /* 10 or 11 */
	bool keep_alive, expect_continue;

	const char *why; /* after an error: a sentence for the client */

	/* where parsing stands */
	size_t line, scan;
	struct view authority; /* of an absolute-form target */
	uint8_t phase;
	bool has_length, has_coding, has_host, has_expect, says_close, says_keep_alive;
};

void http1_request_init(struct http1_request *r, struct http_header *headers, size_t max_headers,
			size_t max_bytes);
/*
 * Looks at the n bytes at p. Returns the head's length when it is complete, 0
 * when more is needed, or minus an HTTP status (400, 414, 417, 431, 501, 505).
 * Call again with the same bytes at the same place and more behind them. Header
 * names are put into lower case in place.
 */
int http1_request_parse(struct http1_request *r, char *p, size_t n) _must_check_;
/*
 * For who parses a head from its start each time: whether these n bytes can give another
 * answer than the first *seen of them did. *seen becomes n.
 */
bool http1_request_news(size_t *seen, const char *p, size_t n, size_t max_bytes);

/* Whether these bytes may stand in a path or query: ASCII, whole escapes. */
bool http1_is_target(struct view v);
bool http1_is_host(struct view v);
/* For what is sent and what HTTP/2 hands us: no control bytes, a token as name. */
bool http1_is_header(struct http_header h);
/* The name in its sender's spelling. */
void http1_add_name(struct buf *out, struct http_header h);

/* ---- the body of a request (http1_body.c) ---- */

enum http1_piece { HTTP1_MORE, HTTP1_DATA, HTTP1_END };

struct http1_body {
	uint64_t left;    /* of the length, or of the chunk */
	uint32_t digits;  /* of the chunk size */
	uint32_t ext;     /* bytes of chunk extensions so far */
	uint32_t trailer; /* bytes of trailers so far */
	uint8_t state;
	bool chunked;
	const char *why;
};

void http1_body_init(struct http1_body *b, int64_t content_length);
/*
 * Takes bytes from the front of *in. HTTP1_DATA: *ret_data is a piece of the
 * body; HTTP1_MORE: *in is used up; HTTP1_END: the body is complete and *in is
 * what follows it. Or minus an HTTP status. Trailers are checked and dropped.
 */
int http1_body_next(struct http1_body *b, struct view *in, struct view *ret_data) _must_check_;

/* ---- answers (http1_write.c) ---- */

#define HTTP1_METHOD_MAX     32
#define HTTP1_DATE_SIZE      30
#define HTTP1_LENGTH_CHUNKED (-1)
#define HTTP1_LENGTH_NONE    (-2) /* no body, or one that ends with the connection */

struct http1_answer {
	int status;
	int64_t length;
	const char *content_type; /* may be NULL */
	struct view date, request_id;
	uint8_t version; /* of the request */
	bool keep_alive;
	const char *upgrade; /* with 101: to this protocol */
	const struct http_header *extra;
	size_t n_extra;
};

/* Extra headers that are malformed or would change the framing are left out. */
int http1_write_head(struct buf *out, const struct http1_answer *a);
int http1_write_chunk(struct buf *out, struct view data);          /* no bytes: nothing, not the end */
int http1_write_last_chunk(struct buf *out, struct view trailers); /* whole lines, or nothing */
void http1_write_date(char dst[HTTP1_DATE_SIZE], int64_t wall_s);
bool http1_write_is_framing(struct view name); /* a header that only the server may set */
