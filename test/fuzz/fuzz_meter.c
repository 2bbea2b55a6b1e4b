/*
 * A provider's answer, in two cuts: the same figures, and nothing is lost or made up.
 * The first byte chooses the API and the kind, the second the size of the pieces.
 */
#include "fuzz.h"
#include "meter.h"
#include "poison.h"

static void run(const uint8_t *data, size_t size, uint8_t kind, size_t piece, struct buf *out,
		struct meter_usage *ret)
{
	struct meter m;
	struct view v = { (const char *)data, size };

	meter_init(&m, (enum meter_api)(1 + (kind & 3)), kind & 4, kind & 8);
	for (; v.n; v = view_skip(v, piece))
		meter_feed(&m, view_head(v, piece), out);
	meter_end(&m, out);
	(void)meter_result(&m, 10, ret);
	meter_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);
	struct meter_usage a, b;

	if (size < 2 || size > 1 << 16)
		return 0;
	run(data + 2, size - 2, data[0], size, &one, &a);
	run(data + 2, size - 2, data[0], 1 + data[1], &two, &b);
	FUZZ_CHECK(view_eq(buf_view(&one), buf_view(&two)));
	FUZZ_CHECK(a.input == b.input && a.output == b.output && a.cache_read == b.cache_read &&
		   a.cache_write == b.cache_write);
	FUZZ_CHECK(buf_len(&one) <= size - 2 && ((data[0] & 8) || buf_len(&one) == size - 2));
	buf_done(&one);
	buf_done(&two);
	return 0;
}
