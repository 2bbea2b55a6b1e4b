/*
 * The Connect protocol without I/O: content types, envelopes, deadlines, and how
 * errors and the end of a stream are written. A message is whatever the codec
 * makes of it; its bytes are all that is known here. The envelope is that of gRPC.
 *
 *   unary   the body is the message; an error is a status and {"code","message"}
 *   stream  flags u8, length u32 big-endian, message; again and again. The last of
 *           an answer has flag 2 and is {} or {"error":{…}}; the status is 200.
 */
#pragma once

#include "buf.h"
#include "err.h"

enum connect_codec { CONNECT_NONE, CONNECT_JSON, CONNECT_PROTO };

struct connect_type {
	enum connect_codec codec; /* NONE: not a content type of this protocol */
	bool stream;
};
struct connect_type connect_type(struct view content_type);
const char *connect_type_name(struct connect_type t); /* "application/connect+json"; NULL for NONE */

#define CONNECT_HEAD 5
enum { CONNECT_COMPRESSED = 1, CONNECT_END = 2 };

struct connect_reader {
	uint8_t head[CONNECT_HEAD];
	size_t n_head;
	uint32_t want; /* bytes of the message, once the head is whole */
	struct buf part;
	bool given, bad;
};

void connect_reader_init(struct connect_reader *r, size_t max); /* max: of one message */
void connect_reader_done(struct connect_reader *r);
/* 1: a message, good until the next call, 0: all of the input is taken. From the first failure on it
 * fails: -EBADMSG (flags that a client may not send), -EOPNOTSUPP (compressed), -EMSGSIZE, -ENOMEM. */
int connect_next(struct connect_reader *r, struct view *in, struct view *ret) _must_check_;
bool connect_is_between(const struct connect_reader *r); /* whether the body may end here */

/* The head of an envelope; the message follows it. */
void connect_head(uint8_t ret[CONNECT_HEAD], unsigned flags, uint32_t n);
/* An error as an answer of its own, and the status it comes with. */
int connect_put_error(struct buf *out, const struct err *e);
int connect_status(enum err_code code);
/* The last envelope of an answer; e may be NULL. */
int connect_put_end(struct buf *out, const struct err *e);

/* Connect-Timeout-Ms: at most ten digits. -EINVAL */
int connect_timeout(struct view header, uint64_t *ret_ms) _must_check_;
