/*
 * Keys that are written down as words (BIP-39, the English list), and the key of an account that comes from
 * them (BIP-32, m/44'/60'/0'/0/N), as every wallet for Ethereum makes it.
 *
 * Words that are read may stand in any case with any space between them; the sentence that counts has small
 * letters and single spaces. Bytes are secret and wiped: the caller wipes what it is given.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "sig.h"

#define BIP39_WORDS   2048
#define BIP39_WORD    9   /* of the longest word, with the NUL */
#define BIP39_TEXT    256 /* of 24 words, with the NUL */
#define BIP39_ENTROPY 32  /* of 24 words */
#define BIP39_SEED    64

extern const char bip39_words[BIP39_WORDS][BIP39_WORD];

/* 16, 20, 24, 28 or 32 bytes give 12, 15, 18, 21 or 24 words; -EINVAL. */
int bip39_write(const uint8_t *entropy, size_t n, char ret[static BIP39_TEXT]) _must_check_;
/* The sentence as it counts, and its bytes. -1: not words of the list, or words that do not belong together.
 */
int bip39_read(struct view text, char ret[static BIP39_TEXT], uint8_t entropy[static BIP39_ENTROPY],
	       size_t *ret_n, struct err *e) _must_check_;
/* Of a sentence that bip39_read or bip39_write returned. The passphrase is ASCII: others would have to be
 * normalised. */
int bip39_seed(const char *sentence, struct view passphrase, uint8_t ret[static BIP39_SEED],
	       struct err *e) _must_check_;
/* m/44'/60'/0'/0/account */
int bip39_account(const uint8_t seed[static BIP39_SEED], uint32_t account, uint8_t ret[static SIG_KEY],
		  struct err *e) _must_check_;
