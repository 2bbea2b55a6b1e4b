/*
 * A stream of envelopes as text: "[message]…", "!" for a failure, "." when the
 * body may end there. It must not depend on how the stream is cut.
 */
#pragma once

#include "connect.h"

static inline void connect_feed(struct buf *out, struct view in, size_t step, size_t max)
{
	struct connect_reader r;
	struct view msg = VIEW_NONE;
	int x = 0;

	connect_reader_init(&r, max);
	while (in.n && x >= 0) {
		struct view now = view_head(in, step);
		in = view_skip(in, now.n);
		while ((x = connect_next(&r, &now, &msg)) > 0) {
			buf_putc(out, '[');
			buf_add(out, msg);
			buf_putc(out, ']');
		}
	}
	if (x < 0)
		buf_printf(out, "!%d", -x);
	else if (connect_is_between(&r))
		buf_putc(out, '.');
	connect_reader_done(&r);
}
