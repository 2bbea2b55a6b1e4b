/*
 * Who a client is for the relay: an Ed25519 key, its name (did:key) and the token (JWT) that it shows when it
 * connects.
 */
#pragma once

#include "buf.h"

#define WC_SEED         32
#define WC_CLIENT_MAX   64 /* "did:key:z" and 48 digits of base58, with a NUL */
#define WC_TOKEN_LIFE_S 86400

struct wc_token {
	struct view audience; /* the relay's URL */
	struct view subject;  /* random */
	int64_t issued_s, expires_s;
};
int wc_identity_token(const uint8_t seed[WC_SEED], const struct wc_token *t, struct buf *out) _must_check_;
