/*
 * WalletConnect's cryptography: the keys of pairings and sessions, topics, and the envelopes in which
 * messages travel through the relay, which sees neither their content nor their sender.
 */
#pragma once

#include "buf.h"

#define WC_KEY         32
#define WC_TOPIC       65 /* 64 hexadecimal digits and a NUL */
#define WC_MESSAGE_MAX (256u * 1024)

/* A key pair of X25519. The secret one must be wiped by the caller. */
void wc_crypto_pair(uint8_t ret_secret[WC_KEY], uint8_t ret_public[WC_KEY]);
void wc_crypto_public(const uint8_t secret[WC_KEY], uint8_t ret_public[WC_KEY]);
/* What both sides of a session derive: HKDF-SHA-256 of the shared point. -EINVAL for a public key that makes
 * the result known to everybody. */
int wc_crypto_agree(const uint8_t secret[WC_KEY], const uint8_t peer[WC_KEY],
		    uint8_t ret_key[WC_KEY]) _must_check_;
/* The topic that belongs to a key: its SHA-256. */
void wc_crypto_topic(const uint8_t key[WC_KEY], char ret[WC_TOPIC]);
bool wc_crypto_is_topic(struct view v); /* 64 hexadecimal digits, small letters */

/* An envelope of type 0 in base64, with a nonce of its own. -ENOMEM, -ENOBUFS. */
int wc_crypto_seal(const uint8_t key[WC_KEY], struct view text, struct buf *out) _must_check_;
/* The same with a given nonce: for tests. A nonce must never be used twice with one key. */
int wc_crypto_seal_with(const uint8_t key[WC_KEY], const uint8_t nonce[12], struct view text,
			struct buf *out) _must_check_;
/* Type 0. Type 1, which names the sender's public key, is opened with the key that `secret` and it make; with
 * secret == NULL it is refused. -EBADMSG: damaged, of another key, or of no type that exists. */
int wc_crypto_open(const uint8_t key[WC_KEY], const uint8_t *secret, struct view envelope,
		   struct buf *out) _must_check_;

/* The URI that a wallet reads from the QR code. */
struct wc_pairing {
	char topic[WC_TOPIC];
	uint8_t key[WC_KEY];
	int64_t expiry_s; /* since 1970 */
};
int wc_crypto_uri(const struct wc_pairing *p, struct buf *out);
