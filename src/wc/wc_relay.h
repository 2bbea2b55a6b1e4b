/*
 * The messages between a client and the relay: JSON-RPC, one object in each WebSocket message. Ids have up to
 * 19 digits, more than a double holds, so they stay text.
 */
#pragma once

#include "arena.h"
#include "json.h"

#define WC_ID 21 /* 20 digits and a NUL */

/* The time in milliseconds and six random digits, for the relay. */
void wc_relay_new_id(int64_t now_ms, char ret[WC_ID]);
/* And three, for wallets: theirs must fit a double. */
void wc_relay_new_sign_id(int64_t now_ms, char ret[WC_ID]);
bool wc_relay_is_id(struct view v); /* 1 to 20 digits */

struct wc_publish {
	struct view topic, envelope;
	uint32_t tag, ttl_s;
	bool prompt; /* the wallet may wake its owner */
};
int wc_relay_put_publish(struct buf *out, const char *id, const struct wc_publish *p);
int wc_relay_put_subscribe(struct buf *out, const char *id, const struct view *topics, size_t n);
int wc_relay_put_ack(struct buf *out, struct view id);

enum wc_relay_kind {
	WC_RELAY_RESULT,
	WC_RELAY_ERROR,
	WC_RELAY_MESSAGE, /* for a topic; must be acknowledged by its id */
	WC_RELAY_OTHER,   /* a request that means nothing here */
};

/* Views point into the arena. */
struct wc_relay_in {
	enum wc_relay_kind kind;
	struct view id;
	const struct json *result;
	int64_t code; /* of an error, with its text */
	struct view text;
	struct view topic, envelope;
	uint64_t tag; /* 0: not said */
};
int wc_relay_read(struct arena *a, struct view text, struct wc_relay_in *ret, struct err *e) _must_check_;
