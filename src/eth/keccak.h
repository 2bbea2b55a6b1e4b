/*
 * Keccak-256 as Ethereum has it: the padding of the competition's submission, not that of SHA-3.
 */
#pragma once

#include "view.h"

#define KECCAK_SIZE 32

struct keccak {
	uint64_t s[25];
	unsigned at; /* bytes in the block that is being filled */
};

void keccak_init(struct keccak *k);
void keccak_add(struct keccak *k, const void *p, size_t n);
void keccak_end(struct keccak *k, uint8_t out[KECCAK_SIZE]);
void keccak_of(struct view v, uint8_t out[KECCAK_SIZE]);
