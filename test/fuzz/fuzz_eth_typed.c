/*
 * Typed data: nothing is read past the end, and what is accepted has a digest and a class.
 */
#include "call.h"
#include "fuzz.h"
#include "typed.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(4u << 20);
	struct typed t;
	struct err e = { 0 };
	struct call c;

	if (typed_parse(&a, (struct view){ (const char *)data, size }, &t, &e) < 0) {
		FUZZ_CHECK(e.code && e.msg[0]);
	} else {
		FUZZ_CHECK(t.signature.n && t.message && t.domain);
		call_read_typed(&t, address_native, &c);
		FUZZ_CHECK(c.n <= CALL_EFFECTS);
		for (unsigned i = 0; i < c.n; i++)
			FUZZ_CHECK(!c.effects[i].unlimited || c.effects[i].approval);
		buf_done(&c.tree);
	}
	arena_done(&a);
	return 0;
}
