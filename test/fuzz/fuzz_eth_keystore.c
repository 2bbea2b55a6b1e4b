/*
 * Keystores: the file is read without doing the work that it asks for.
 */
#include "fuzz.h"
#include "keystore.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };

	if (keystore_check((struct view){ (const char *)data, size }, &e) < 0)
		FUZZ_CHECK(e.code && e.msg[0]);
	return 0;
}
