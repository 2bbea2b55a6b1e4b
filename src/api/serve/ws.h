/*
 * Routes that are WebSockets: the handshake and the session that follows. A session answers pings and
 * sends its own, collects text messages, keeps the client's bytes until they are taken, and counts the
 * bytes that the client has not taken.
 *
 * A handler embeds a struct ws at the beginning of its memory (ws_own), checks the request, starts
 * whatever the session connects to, and calls ws_open when that is ready. From then on it ends with
 * ws_leave, or with on_gone alone if the client disconnected.
 */
#pragma once

#include "answer.h"
#include "websocket.h"

#define WS_MESSAGE (1024u * 1024)

struct ws;

struct ws_ops {
	/* Bytes wait in w->input; take them with ws_taken, now or later. */
	void (*on_input)(struct ws *w);
	/* A whole message. Nonsense: false, with what is wrong in e. */
	bool (*on_text)(struct ws *w, struct view text, struct err *e);
	/* The client took n bytes of output that ws_send kept. */
	void (*on_sent)(struct ws *w, size_t n);
	/* The end: let go of what stands behind it. */
	void (*on_gone)(struct ws *w);
};

struct ws {
	const struct ws_ops *ops;
	struct request *r;
	bool open;
	struct buf input;
	size_t input_high;    /* so many bytes wait before we stop reading */
	bool input_ended;     /* the client said that it sends no more bytes */
	struct view protocol; /* that was chosen; p == NULL: none was offered */

	struct websocket ws;
	char accept[WEBSOCKET_ACCEPT];
	struct buf frame, text;
	struct buf pong; /* the answer to the last ping, while the client does not read */
	bool full, owes; /* owes: that pong */
	size_t held;
	struct loop_timer ping;
	uint64_t heard_ms;
};

/* A handler's own memory that begins with a session; on failure the answer is sent. */
void *ws_own(struct request *r, size_t size, const struct ws_ops *ops, size_t input_high);
/* Whether the request can become one. ERR_BAD_REQUEST. */
int ws_check(struct ws *w, struct err *e) _must_check_;
/* What is behind it is there: switches over. */
void ws_open(struct ws *w);
/* Bytes for the client. How many of them it has taken: all, or none and on_sent follows. */
size_t ws_send(struct ws *w, struct view data);
void ws_text(struct ws *w, struct view text);
/* n bytes of a source were sent as texts: how many of them the client has taken, all or none, as ws_send
 * says. */
size_t ws_hold(struct ws *w, size_t n);
/* The first n bytes of w->input are used. */
void ws_taken(struct ws *w, size_t n);
/* An on_input for sessions in which only texts mean something. */
void ws_drop_input(struct ws *w);
/* Says good-bye. The handler's memory is gone afterwards. */
void ws_leave(struct ws *w, uint16_t code, struct view reason);
/* Of one that is not open: the answer is an error. The memory is gone, too. */
void ws_fail(struct ws *w, const struct err *e);
