/*
 * Addresses of accounts and contracts: 20 bytes, written as 0x and 40 digits. The case of the letters
 * is a checksum (EIP-55).
 */
#pragma once

#include "view.h"

#define ADDRESS_SIZE 20
#define ADDRESS_TEXT 43 /* with the NUL */

extern const uint8_t address_native[ADDRESS_SIZE]; /* 0xeeee…: the native asset (ERC-7528) */
extern const uint8_t address_zero[ADDRESS_SIZE];

/* All lower case, all upper case, or a correct checksum. -EINVAL; -EBADMSG: the checksum is wrong. */
int address_parse(struct view v, uint8_t ret[ADDRESS_SIZE]) _must_check_;
void address_text(const uint8_t a[ADDRESS_SIZE], char out[ADDRESS_TEXT]); /* with the checksum */

static inline bool address_eq(const uint8_t a[ADDRESS_SIZE], const uint8_t b[ADDRESS_SIZE])
{
	return memcmp(a, b, ADDRESS_SIZE) == 0;
}
