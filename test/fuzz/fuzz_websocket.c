/*
 * WebSocket frames: where the network cuts must not matter; what is given out is
 * bounded, and text is UTF-8 as a whole.
 */
#include <string.h>

#include "buf.h"
#include "fuzz.h"
#include "text.h"
#include "websocket.h"

#include "poison.h"

#define MAX_MESSAGE 5000

struct outcome {
	int end; /* -1: refused */
	uint16_t code;
	struct buf log;
};

static void feed(enum websocket_role role, struct view in, size_t step, struct outcome *o)
{
	struct websocket w;
	struct websocket_piece p;
	struct buf text = BUF_INIT(MAX_MESSAGE);
	bool open = false;
	int r = 0;

	*o = (struct outcome){ .log = BUF_INIT(1u << 24) };
	websocket_init(&w, role, MAX_MESSAGE);
	while (in.n && r >= 0) {
		struct view now = view_head(in, step);
		in = view_skip(in, now.n);
		while ((r = websocket_next(&w, &now, &p)) > 0) {
			bool control = p.kind >= WEBSOCKET_CLOSE;
			FUZZ_CHECK(p.data.n <= WEBSOCKET_PIECE);
			FUZZ_CHECK(!control || (p.first && p.last && p.data.n <= WEBSOCKET_CONTROL));
			FUZZ_CHECK(control || p.first == !open);
			open = control ? open : !p.last;
			if (p.first || control)
				buf_printf(&o->log, "<%d %u>", p.kind,
					   p.kind == WEBSOCKET_CLOSE ? p.code : 0);
			buf_add(&o->log, p.data);
			if (p.last)
				buf_putc(&o->log, '>');
			if (p.kind == WEBSOCKET_TEXT) {
				FUZZ_CHECK(buf_add(&text, p.data) >= 0);
				FUZZ_CHECK(!p.last || text_is_utf8(buf_view(&text)));
				if (p.last)
					buf_clear(&text);
			}
		}
		FUZZ_CHECK(r < 0 || now.n == 0);
	}
	o->end = r;
	o->code = w.failed ? w.code : 0;
	FUZZ_CHECK((r < 0) == w.failed);
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = { (const char *)data, size };
	struct outcome whole, pieces;

	if (size < 2)
		return 0;
	enum websocket_role role = data[0] & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
	size_t step = 1 + (data[0] >> 1);
	in = view_skip(in, 1);
	feed(role, in, in.n, &whole);
	feed(role, in, step, &pieces);
	FUZZ_CHECK(whole.end == pieces.end && whole.code == pieces.code);
	/* A refusal may come before the last good bytes of a piece were given out, but not the reverse. */
	struct view a = buf_view(&whole.log), b = buf_view(&pieces.log);
	FUZZ_CHECK(whole.end < 0 ? memcmp(a.p ? a.p : "", b.p ? b.p : "", MIN(a.n, b.n)) == 0
				 : view_eq(a, b));
	buf_done(&whole.log);
	buf_done(&pieces.log);
	return 0;
}
