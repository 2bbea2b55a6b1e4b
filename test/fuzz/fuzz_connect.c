/*
 * Connect: what a stream says must not depend on how it is cut (the first byte
 * chooses how), and what is a message must be read or refused, as JSON and as
 * protobuf; what was read is written and read again to the same.
 */
#include "connect_feed.h"
#include "envd_gen.h"
#include "fuzz.h"
#include "pb_json.h"
#include "poison.h"

#define MAX_MESSAGE 4096

static void check_message(const struct pb_msg *m, struct view text)
{
	struct arena a = ARENA_INIT(1 << 22);
	struct buf one = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20), bytes = BUF_INIT(1 << 20);
	struct err e = { 0 };
	void *msg = arena_alloc(&a, m->size), *again = arena_alloc(&a, m->size);

	if (pb_json_read(m, text, &a, msg, &e) >= 0) {
		FUZZ_CHECK(pb_json_write(m, msg, &one) == 0);
		FUZZ_CHECK(pb_encode(m, msg, &bytes) == 0);
		FUZZ_CHECK(pb_decode(m, buf_view(&bytes), 0, &a, again) == 0);
		FUZZ_CHECK(pb_json_write(m, again, &two) == 0);
		FUZZ_CHECK(view_eq(buf_view(&one), buf_view(&two)));
	} else {
		FUZZ_CHECK(e.code != ERR_OK);
	}
	buf_done(&one);
	buf_done(&two);
	buf_done(&bytes);
	arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct view in = { (const char *)data + 1, size - 1 };
	struct buf whole = BUF_INIT(1 << 24), pieces = BUF_INIT(1 << 24);

	connect_feed(&whole, in, size, MAX_MESSAGE);
	connect_feed(&pieces, in, data[0] % 64 + 1, MAX_MESSAGE);
	FUZZ_CHECK(view_eq(buf_view(&whole), buf_view(&pieces)));
	buf_done(&whole);
	buf_done(&pieces);
	check_message(envd_messages[data[0] % ENVD_MESSAGES], in);
	return 0;
}
