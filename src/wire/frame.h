/*
 * Frames: a 16-byte header, little-endian, and a body. docs/wire.md has the
 * rules of a stream; here is only the syntax, without I/O.
 *
 *   0  u32 length of the body
 *   4  u16 type       (enum Type of api/wire.proto; for DATA the channel)
 *   6  u8  kind       (enum frame_kind)
 *   7  u8  flags
 *   8  u32 stream     (chosen by the caller, never 0; 0 = unasked events)
 *  12  u32 deadline   (milliseconds from receipt, 0 = none; only with CALL)
 */
#pragma once

#include "buf.h"

#define FRAME_HEADER   16
#define FRAME_DATA_MAX (64u * 1024)
#define FRAME_BODY_MAX (4u * 1024 * 1024)
#define FRAME_WINDOW   (256u * 1024) /* bytes of DATA a stream may send, each way, before it gets credit */

enum frame_kind {
	FRAME_CALL = 1,   /* opens a stream */
	FRAME_REPLY,      /* FRAME_LAST closes the stream */
	FRAME_FAIL,       /* body Fail; closes the stream */
	FRAME_DATA,       /* raw bytes, counted against the window */
	FRAME_END,        /* no more DATA from this side; empty body */
	FRAME_WINDOW_ADD, /* body: u32 little-endian, bytes of credit */
	FRAME_CANCEL,     /* the caller wants no more; answered by FAIL cancelled (or what was under way) */
	FRAME_EVENT,      /* unasked, stream 0 */
};

enum { FRAME_LAST = 1, FRAME_FD = 2 }; /* flags; FD: one fd comes with the frame (keeper's channel only) */

struct frame {
	uint16_t type;
	uint8_t kind, flags;
	uint32_t stream, deadline_ms;
	struct view body;
};

/* 1: *ret is filled, *ret_size bytes are its whole length; 0: more bytes are
 * needed (*ret_size says how many in all, at least); -EBADMSG: not a frame. */
int frame_parse(struct view in, struct frame *ret, size_t *ret_size) _must_check_;
int frame_put(struct buf *out, const struct frame *f) _must_check_;
/* Whether frame_parse would accept it with a body of that length. */
bool frame_valid(const struct frame *f, size_t body_len);
/* Header only, for a body that is sent by writev. */
void frame_header(char dst[FRAME_HEADER], const struct frame *f, size_t body_len);

struct pb_msg;
/* A frame whose body is a message: encoded in place, no copy. */
int frame_put_msg(struct buf *out, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		  uint32_t deadline_ms, const struct pb_msg *m, const void *msg) _must_check_;
