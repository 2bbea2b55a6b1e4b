/*
 * The routes that are a WebSocket: the handshake, and the session that follows it.
 * A session answers pings and sends its own, gathers text messages, keeps what the
 * client sent until it is taken, and counts what the client has not taken.
 *
 * A handler embeds a struct rest_websocket at the beginning of its memory
 * (rest_websocket_own), checks the request, begins what stands behind it, and calls
 * rest_websocket_open when that is there. From then on it ends with
 * rest_websocket_leave, or on_gone alone when the client went.
 */
#pragma once

#include "rest_impl.h"
#include "websocket.h"

#define REST_WEBSOCKET_MESSAGE (1024u * 1024)

struct rest_websocket;

struct rest_websocket_ops {
	/* Bytes wait in w->input; take them with rest_websocket_taken, now or later. */
	void (*on_input)(struct rest_websocket *w);
	/* A whole message. Nonsense: false, with what is wrong in e. */
	bool (*on_text)(struct rest_websocket *w, struct view text, struct err *e);
	/* The client took n bytes of output that rest_websocket_send kept. */
	void (*on_sent)(struct rest_websocket *w, size_t n);
	/* The end: let go of what stands behind it. */
	void (*on_gone)(struct rest_websocket *w);
};

struct rest_websocket {
	const struct rest_websocket_ops *ops;
	struct req *r;
	bool open;
	struct buf input;
	size_t input_high;    /* so many bytes wait before we stop reading */
	bool input_ended;     /* the client said that it sends no more bytes */
	struct view protocol; /* that was chosen; p == NULL: none was offered */

	struct websocket ws;
	char accept[WEBSOCKET_ACCEPT];
	struct buf frame, text;
	bool full;
	size_t held;
	struct loop_timer ping;
	uint64_t heard_ms;
};

/* A handler's own memory that begins with a session; on failure the answer is sent. */
void *rest_websocket_own(struct req *r, size_t size, const struct rest_websocket_ops *ops, size_t input_high);
/* Whether the request can become one. ERR_BAD_REQUEST. */
int rest_websocket_check(struct rest_websocket *w, struct err *e) _must_check_;
/* What is behind it is there: switches over. */
void rest_websocket_open(struct rest_websocket *w);
/* Bytes for the client. How many of them it has taken: all, or none and on_sent follows. */
size_t rest_websocket_send(struct rest_websocket *w, struct view data);
void rest_websocket_text(struct rest_websocket *w, struct view text);
/* The first n bytes of w->input are used. */
void rest_websocket_taken(struct rest_websocket *w, size_t n);
/* Says good-bye. The handler's memory is gone afterwards. */
void rest_websocket_leave(struct rest_websocket *w, uint16_t code, struct view reason);
/* Of one that is not open: the answer is an error. The memory is gone, too. */
void rest_websocket_fail(struct rest_websocket *w, const struct err *e);
