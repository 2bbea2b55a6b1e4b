/*
 * The internal protocol. The first byte says what the rest is: 0 a run of
 * frames, otherwise a message of one of the types of api/wire.proto (the top bit:
 * unknown fields are skipped). What is accepted must encode to something that
 * decodes and encodes to the same bytes.
 */
#include "frame.h"
#include "fuzz.h"
#include "wire_gen.h"

#include "poison.h"

#define ARENA_MAX (16u << 20)

static void fuzz_frames(struct view in)
{
	struct frame f;
	size_t size;

	while (frame_parse(in, &f, &size) == 1) {
		struct buf b = BUF_INIT(FRAME_HEADER + FRAME_BODY_MAX);

		FUZZ_CHECK(size <= in.n && f.body.p + f.body.n == in.p + size);
		FUZZ_CHECK(frame_put(&b, &f) == 0);
		FUZZ_CHECK(view_eq(buf_view(&b), view_head(in, size)));
		buf_done(&b);
		in = view_skip(in, size);
	}
	FUZZ_CHECK(size >= FRAME_HEADER);
}

static void fuzz_message(const struct pb_msg *m, unsigned flags, struct view in)
{
	struct arena a = ARENA_INIT(ARENA_MAX);
	struct buf once = BUF_INIT(ARENA_MAX), twice = BUF_INIT(ARENA_MAX);
	void *first = arena_alloc(&a, m->size), *second = arena_alloc(&a, m->size);

	if (pb_decode(m, in, flags, &a, first) == 0) {
		FUZZ_CHECK(pb_encode(m, first, &once) == 0);
		FUZZ_CHECK(pb_decode(m, buf_view(&once), 0, &a, second) == 0);
		FUZZ_CHECK(pb_encode(m, second, &twice) == 0);
		FUZZ_CHECK(view_eq(buf_view(&once), buf_view(&twice)));
	}
	buf_done(&once);
	buf_done(&twice);
	arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct view rest = { (const char *)data + 1, size - 1 };
	unsigned which = data[0] & 0x7f;

	if (which == 0)
		fuzz_frames(rest);
	else
		fuzz_message(wire_messages[(which - 1) % WIRE_MESSAGES], data[0] & 0x80 ? PB_SKIP_UNKNOWN : 0,
			     rest);
	return 0;
}
