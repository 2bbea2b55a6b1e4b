/*
 * Signatures over secp256k1, by libsecp256k1: deterministic (RFC 6979), with a low s, and such that
 * the signer's address can be recovered. And the hash that personal_sign signs (EIP-191).
 */
#pragma once

#include "address.h"
#include "u256.h"

#define SIG_KEY    32
#define SIG_HASH   32
#define SIG_PUBLIC 33
#define SIG_SIZE   65 /* r, s, v */

struct sig {
	struct u256 r, s;
	uint8_t y; /* 0 or 1 */
};

/* Once, before the first call of the others; blinds the multiplications with random bytes. */
int sig_init(void) _must_check_;
void sig_done(void);
bool sig_key_valid(const uint8_t key[SIG_KEY]);
int sig_address(const uint8_t key[SIG_KEY], uint8_t ret[ADDRESS_SIZE]) _must_check_; /* -EINVAL */
/* The compressed point; -EINVAL. */
int sig_public(const uint8_t key[SIG_KEY], uint8_t ret[SIG_PUBLIC]) _must_check_;
/* Modulo the group's order; -EINVAL where the sum is no key. */
int sig_key_add(uint8_t key[SIG_KEY], const uint8_t add[SIG_KEY]) _must_check_;
int sig_sign(const uint8_t key[SIG_KEY], const uint8_t hash[SIG_HASH], struct sig *ret) _must_check_;
/* -EBADMSG: not a signature, or one with a high s. */
int sig_recover(const struct sig *s, const uint8_t hash[SIG_HASH], uint8_t ret[ADDRESS_SIZE]) _must_check_;

/* 65 bytes with v 27 or 28; read also with 0 or 1. -EBADMSG. */
void sig_store(const struct sig *s, uint8_t out[SIG_SIZE]);
int sig_load(struct view v, struct sig *ret) _must_check_;

void sig_message_hash(struct view message, uint8_t ret[SIG_HASH]); /* EIP-191, version 'E' */
