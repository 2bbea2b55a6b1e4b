/*
 * SOCKS 5: what is understood lies within what came, and less of it is never understood
 * as something else.
 */
#include "fuzz.h"
#include "socks5.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = { (const char *)data, size };
	struct socks5_request r, less;
	uint8_t method;
	int n = socks5_greeting(in, &method);

	FUZZ_CHECK(n <= (int)size);
	if (n > 0)
		FUZZ_CHECK(socks5_greeting(view_head(in, (size_t)n - 1), &method) == 0);
	n = socks5_parse(in, &r);
	FUZZ_CHECK(n <= (int)size);
	if (n > 0) {
		FUZZ_CHECK(r.port && r.host.n && r.host.p > in.p && r.host.p + r.host.n + 2 <= in.p + size);
		for (int i = 0; i < n; i++)
			FUZZ_CHECK(socks5_parse(view_head(in, (size_t)i), &less) == 0);
	}
	return 0;
}
