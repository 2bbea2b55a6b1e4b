/*
 * Amounts and addresses as text: what is read is written again as the same text.
 */
#include "address.h"
#include "fuzz.h"
#include "u256.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct view all = { (const char *)data, size };
	struct u256 v, w;
	char text[U256_UNITS];
	uint8_t a[ADDRESS_SIZE], b[ADDRESS_SIZE];
	char checked[ADDRESS_TEXT];

	if (u256_parse(all, &v) == 0) {
		u256_text(&v, text);
		FUZZ_CHECK(view_is(all, text));
	}
	if (u256_parse_hex(all, &v) == 0)
		FUZZ_CHECK(u256_bits(&v) <= 4 * (size - 2));
	for (unsigned decimals = 0; decimals <= 36; decimals += 6) {
		if (u256_parse_units(all, decimals, &v) < 0)
			continue;
		u256_units(&v, decimals, text);
		FUZZ_CHECK(u256_parse_units(view_of(text), decimals, &w) == 0 && u256_cmp(&v, &w) == 0);
	}
	if (address_parse(all, a) == 0) {
		address_text(a, checked);
		FUZZ_CHECK(address_parse(view_of(checked), b) == 0 && address_eq(a, b));
	}
	return 0;
}
