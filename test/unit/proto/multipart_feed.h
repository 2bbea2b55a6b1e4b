/*
 * Feeds a form to the parser in pieces and writes down what comes out. Shared by
 * the unit test and the fuzz target.
 */
#pragma once

#include "multipart.h"

static inline void multipart_feed(struct buf *out, struct view type, struct view body, size_t piece)
{
	struct multipart m;
	bool in_data = false;
	int r = multipart_init(&m, type);
	while (r >= 0 && body.n) {
		/* A copy that is exactly as long: reading past it is seen. */
		struct view part = view_head(body, piece);
		struct buf copy = BUF_INIT(part.n + 1);
		buf_add(&copy, part);
		body = view_skip(body, part.n);
		part = buf_view(&copy);
		while (part.n && r >= 0) {
			r = multipart_next(&m, &part);
			if (r == MULTIPART_DATA && !in_data)
				buf_puts(out, "data ");
			if (r == MULTIPART_DATA)
				buf_add(out, m.data);
			else if (in_data && r > MULTIPART_MORE)
				buf_putc(out, '\n');
			in_data = r == MULTIPART_DATA || (in_data && r == MULTIPART_MORE);
			if (r == MULTIPART_PART)
				buf_printf(out, "part %.*s %.*s\n", VIEW_ARG(m.name.p ? m.name : VIEW("-")),
					   VIEW_ARG(m.filename.p ? m.filename : VIEW("-")));
			if (r == MULTIPART_PART_END)
				buf_puts(out, "end\n");
			if (r == MULTIPART_END)
				buf_puts(out, "over\n");
		}
		buf_done(&copy);
	}
	if (r < 0)
		buf_puts(out, "bad\n");
	else if (!multipart_is_over(&m))
		buf_puts(out, "cut\n");
	multipart_done(&m);
}
