/*
 * HTTP/1.1 answers, without I/O: the head of one, and its body in pieces. As
 * strict as the daemon's own parser; a client that shrugs at bad framing hands
 * one answer's bytes to the next request.
 */
#pragma once

#include <sys/types.h>

#include "err.h"
#include "view.h"

#define RESPONSE_HEAD_MAX (32u << 10)

enum response_framing { RESPONSE_EMPTY, RESPONSE_LENGTH, RESPONSE_CHUNKED, RESPONSE_TO_END };

struct response {
	int status;
	bool keep_alive;
	enum response_framing framing;
	uint64_t length;   /* with RESPONSE_LENGTH */
	bool json;         /* Content-Type: application/json */
	unsigned mode;     /* X-File-Mode, permission bits only; 0: not said */
	bool events;       /* Content-Type: text/event-stream */
	char accept[32];   /* Sec-WebSocket-Accept; "": not said */
	char session[129]; /* Mcp-Session-Id; "": not said */
	char next[129];    /* Paddock-Next: there is more behind this one; "": not said */
	char cookie[129];  /* NAME=VALUE of the last Set-Cookie; "": none that fits */
};

struct response_body {
	enum response_framing framing;
	uint64_t left;                                                 /* of the length or of the chunk */
	enum { BODY_SIZE, BODY_DATA, BODY_DATA_END, BODY_TRAILER } at; /* chunked */
	size_t trailer_bytes;
	bool done;
};

/* 1: *ret and *ret_used are set; 0: more bytes are needed; -1: e is. `to_head`:
 * the request was HEAD, whose answer has no body whatever it says. */
int response_head(struct view in, bool to_head, struct response *ret, size_t *ret_used,
		  struct err *e) _must_check_;

void response_body_init(struct response_body *b, const struct response *r);
/* Consumes from `in` and yields at most one piece of the body. The bytes consumed
 * (0 and not done: more are needed), or -EBADMSG. */
ssize_t response_body_next(struct response_body *b, struct view in, struct view *ret_data) _must_check_;
/* The connection ended: 0 if that is how this body ends, else -EBADMSG. */
int response_body_eof(struct response_body *b) _must_check_;
