/*
 * Words of BIP-39: what is read is written again as the same words, and what is refused has a reason.
 */
#include "bip39.h"
#include "fuzz.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[BIP39_TEXT], again[BIP39_TEXT];
	uint8_t entropy[BIP39_ENTROPY];
	struct err e = { 0 };
	size_t n;

	if (bip39_read((struct view){ (const char *)data, size }, text, entropy, &n, &e) < 0) {
		FUZZ_CHECK(e.code && e.msg[0]);
		return 0;
	}
	FUZZ_CHECK(bip39_write(entropy, n, again) == 0 && strcmp(text, again) == 0);
	return 0;
}
