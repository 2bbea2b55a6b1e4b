/*
 * WebSocket (RFC 6455) without I/O: frames in and out for either side, and the
 * answer to a handshake. No extensions.
 *
 * Strict: a client's frames must be masked and a server's must not, reserved
 * bits and opcodes, lengths that are not the shortest, fragments out of place,
 * text that is not UTF-8 and close codes that do not exist end the conversation.
 */
#pragma once

#include "buf.h"

#define WEBSOCKET_ACCEPT  29 /* base64 of a SHA-1, and a NUL */
#define WEBSOCKET_CONTROL 125
#define WEBSOCKET_PIECE   4096

enum websocket_role { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };

enum websocket_op {
	WEBSOCKET_MORE = 0, /* continuation; as a kind: more bytes are needed */
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10,
};

enum websocket_code {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_AWAY = 1001,
	WEBSOCKET_PROTOCOL = 1002,
	WEBSOCKET_NO_CODE = 1005, /* of a close frame without one; never sent */
	WEBSOCKET_NOT_TEXT = 1007,
	WEBSOCKET_POLICY = 1008,
	WEBSOCKET_TOO_BIG = 1009,
	WEBSOCKET_INTERNAL = 1011,
};

struct websocket {
	enum websocket_role role;
	uint64_t max_message;
	const char *why; /* after a failure, with its code */
	uint16_t code;
	bool failed, closed; /* nothing more is read */

	/* the frame that is being read */
	uint8_t head[14];
	size_t n_head;
	bool in_payload, fin;
	uint8_t opcode;
	uint64_t left;
	uint8_t mask[4];
	unsigned mask_at;
	/* the message that it belongs to */
	uint8_t message; /* WEBSOCKET_TEXT, WEBSOCKET_BINARY, 0: none */
	bool begun;      /* a piece of it was given out */
	uint64_t size;
	uint32_t utf8; /* what is due: see websocket.c */
	char control[WEBSOCKET_CONTROL];
	size_t n_control;
	char piece[WEBSOCKET_PIECE];
};

/* A part of a message, or a whole control frame. Valid until the next call. */
struct websocket_piece {
	enum websocket_op kind;
	struct view data; /* of a close: the reason */
	bool first, last; /* of its message */
	uint16_t code;    /* of a close */
};

void websocket_init(struct websocket *w, enum websocket_role role, uint64_t max_message);
/* Takes bytes from the front of *in. 1: a piece; 0: *in is used up (or closed); -1: the peer is
 * wrong, w->code is what to close with. Text is checked as it comes. */
int websocket_next(struct websocket *w, struct view *in, struct websocket_piece *ret) _must_check_;

/* A whole message, or a control frame (at most WEBSOCKET_CONTROL bytes). */
int websocket_put(struct buf *out, enum websocket_role role, enum websocket_op op, struct view data);
int websocket_put_close(struct buf *out, enum websocket_role role, uint16_t code, struct view reason);

/* Sec-WebSocket-Key to Sec-WebSocket-Accept; -EINVAL for what is no key. */
int websocket_accept(struct view key, char ret[WEBSOCKET_ACCEPT]) _must_check_;
