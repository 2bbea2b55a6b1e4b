/*
 * ClientHello: an answer does not change when more comes behind it, and one that was
 * refused stays so.
 */
#include <string.h>

#include "fuzz.h"
#include "peek.h"
#include "tls_hello.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_hello h, whole;
	struct peek_memory none = { 0 }, slow = { 0 };
	size_t need = 0;
	int all = tls_hello_parse((struct view){ (const char *)data, size }, &whole), r = 0;
	char name[256];

	for (size_t n = 0; n <= size && r == 0; n += n < 64 ? 1 : 61) {
		r = tls_hello_parse((struct view){ (const char *)data, n }, &h);
		FUZZ_CHECK(r == 0 || r == all);
		FUZZ_CHECK(r != 1 || n >= need);
		FUZZ_CHECK(r != 0 || h.need > n);
		need = r == 0 ? h.need : need;
		if (r == 1)
			FUZZ_CHECK(strcmp(h.name, whole.name) == 0 && h.ech == whole.ech);
	}
	if (all == 1)
		FUZZ_CHECK(strlen(whole.name) < sizeof(whole.name));
	enum peek what = peek_look(&none, (struct view){ (const char *)data, size }, name), same = PEEK_MORE;
	for (size_t n = 0; n <= size && same == PEEK_MORE; n++)
		same = peek_look(&slow, (struct view){ (const char *)data, n }, name);
	FUZZ_CHECK(same == what || what == PEEK_BAD || all < 0);
	if (what == PEEK_TLS || what == PEEK_ECH)
		FUZZ_CHECK(all == 1 && whole.ech == (what == PEEK_ECH));
	return 0;
}
