/*
 * Sealing of columns: XChaCha20-Poly1305 under a key that HKDF-SHA-256 makes from a master key for one
 * purpose. What a value is (its table, column and row) is authenticated with it, so that no value can
 * take another's place. nonce (24) ‖ ciphertext ‖ tag (16).
 */
#pragma once

#include "buf.h"

#define XSEAL_KEY   32
#define XSEAL_NONCE 24
#define XSEAL_TAG   16

int xseal_init(void) _must_check_; /* once */
/* RFC 5869; `n` at most 255 × 32. */
int xseal_hkdf(struct view salt, struct view secret, struct view info, uint8_t *ret, size_t n) _must_check_;
int xseal_close(const uint8_t key[XSEAL_KEY], struct view what, struct view value,
		struct buf *out) _must_check_;
/* -EBADMSG: another key, another `what`, or it was changed. */
int xseal_open(const uint8_t key[XSEAL_KEY], struct view what, struct view sealed,
	       struct buf *out) _must_check_;
