/*
 * SHA-256 (FIPS 180-4), for key hashes and content addresses. Streaming.
 */
#pragma once

#include "view.h"

#define SHA256_SIZE 32

struct sha256 {
	uint32_t h[8];
	uint64_t len;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_SIZE]);
void sha256_of(struct view v, uint8_t out[SHA256_SIZE]);
/* HMAC-SHA256 (RFC 2104). */
void sha256_hmac(struct view key, struct view text, uint8_t out[SHA256_SIZE]);
