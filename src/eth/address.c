/*
 * Addresses: see address.h.
 */
#include "address.h"

#include <errno.h>

#include "keccak.h"
#include "text.h"
#include "poison.h"

const uint8_t address_native[ADDRESS_SIZE] = { 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee,
					       0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee };
const uint8_t address_zero[ADDRESS_SIZE] = { 0 };

void address_text(const uint8_t a[ADDRESS_SIZE], char out[ADDRESS_TEXT])
{
	uint8_t hash[KECCAK_SIZE];

	out[0] = '0';
	out[1] = 'x';
	text_hex(a, ADDRESS_SIZE, out + 2);
	keccak_of((struct view){ out + 2, 2 * ADDRESS_SIZE }, hash);
	for (unsigned i = 0; i < 2 * ADDRESS_SIZE; i++) {
		const unsigned nibble = i % 2 ? hash[i / 2] & 15 : hash[i / 2] >> 4;
		if (out[2 + i] >= 'a' && nibble >= 8)
			out[2 + i] = (char)(out[2 + i] - 'a' + 'A');
	}
}

int address_parse(struct view v, uint8_t ret[ADDRESS_SIZE])
{
	char right[ADDRESS_TEXT];
	uint8_t bytes[ADDRESS_SIZE];
	bool has_lower = false, has_upper = false;

	if (v.n != ADDRESS_TEXT - 1 || v.p[0] != '0' || v.p[1] != 'x')
		return -EINVAL;
	if (text_unhex(view_skip(v, 2), bytes, sizeof(bytes)) < 0)
		return -EINVAL;
	for (unsigned i = 2; i < v.n; i++) {
		has_upper |= v.p[i] >= 'A' && v.p[i] <= 'F';
		has_lower |= v.p[i] >= 'a' && v.p[i] <= 'f';
	}
	address_text(bytes, right);
	if (has_lower && has_upper && memcmp(right, v.p, v.n) != 0)
		return -EBADMSG;
	memcpy(ret, bytes, sizeof(bytes));
	return 0;
}
