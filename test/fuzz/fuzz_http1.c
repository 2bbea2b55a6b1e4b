/*
 * HTTP/1.1: what a connection's bytes mean must not depend on how they are cut.
 * The first byte chooses how; the rest is the stream.
 */
#include "fuzz.h"
#include "http1_feed.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct view stream = { (const char *)data + 1, size - 1 };
	struct http1_feed whole, pieces;
	http1_feed(&whole, stream, size);
	http1_feed(&pieces, stream, data[0] % 64 + 1);
	FUZZ_CHECK(strcmp(whole.outcome, pieces.outcome) == 0);
	FUZZ_CHECK(view_eq(buf_view(&whole.bodies), buf_view(&pieces.bodies)));
	buf_done(&whole.bodies);
	buf_done(&pieces.bodies);
	return 0;
}
