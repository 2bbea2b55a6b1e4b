/*
 * Web3 Secret Storage, version 3: the JSON file in which wallets keep a key under a password. Reads
 * scrypt and PBKDF2-SHA-256 with AES-128-CTR; writes scrypt.
 */
#pragma once

#include "json.h"
#include "sig.h"

#define KEYSTORE_JSON_MAX (8u * 1024)
#define KEYSTORE_WORK                                                                                        \
	(1ull << 30) /* bytes that scrypt may fill in all: the signer does nothing else meanwhile */
#define KEYSTORE_MEMORY (300u << 20) /* that scrypt may take: geth's files need 256 MiB */

/* Whether it is such a file at all, without the work of opening it. */
int keystore_check(struct view json, struct err *e) _must_check_;
/* ERR_INVALID: not such a file; ERR_UNAUTHORIZED: another password. `ret` is the caller's to wipe. */
int keystore_open(struct view json, struct view password, uint8_t ret[SIG_KEY], struct err *e) _must_check_;
/* `log_n`: scrypt's cost as a power of two; 17 is what ethers takes, 18 geth. */
int keystore_make(const uint8_t key[SIG_KEY], struct view password, unsigned log_n, struct buf *out,
		  struct err *e) _must_check_;
