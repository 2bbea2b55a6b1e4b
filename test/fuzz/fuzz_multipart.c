/*
 * multipart/form-data: what a form says must not depend on how it is cut. The
 * first byte chooses how; the first line is the content type, the rest the body.
 */
#include "fuzz.h"
#include "multipart_feed.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct view body, type = view_split((struct view){ (const char *)data + 1, size - 1 }, '\n', &body);
	struct buf whole = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24);
	if (!body.p)
		body = VIEW("");
	multipart_feed(&whole, type, body, size);
	multipart_feed(&pieces, type, body, data[0] % 64 + 1);
	FUZZ_CHECK(view_eq(buf_view(&whole), buf_view(&pieces)));
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
