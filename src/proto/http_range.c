/*
 * Ranges of bytes: see http_range.h.
 */
#include "http_range.h"

#include <stdio.h>

#include "num.h"
#include "poison.h"

void http_range_parse(struct view header, struct http_range *ret)
{
	uint64_t a = 0, b = 0;
	struct view last;

	*ret = (struct http_range){ 0 };
	if (!view_starts(header, "bytes="))
		return;
	struct view first = view_trim(view_split(view_skip(header, 6), '-', &last));
	last = view_trim(last);
	if (!last.p || (!first.n && !last.n) || (first.n && num_u64(first, &a) < 0) ||
	    (last.n && num_u64(last, &b) < 0) || (first.n && last.n && b < a))
		return;
	*ret = (struct http_range){ .given = true, .from_end = !first.n, .first = a };
	/* Zero to the largest number there is, is as good as to the end: the sum is 0. */
	ret->length = !last.n ? 0 : first.n ? b - a + 1 : b;
}

bool http_range_from_end(struct http_range *r, uint64_t size)
{
	r->first = size - MIN(size, r->length);
	return r->length > 0 && size > 0;
}

uint64_t http_range_fit(const struct http_range *r, uint64_t size, char text[HTTP_RANGE_TEXT])
{
	unsigned long long all = size, first = r->first;

	if (r->first >= size) {
		snprintf(text, HTTP_RANGE_TEXT, "bytes */%llu", all);
		return 0;
	}
	uint64_t n = r->length ? MIN(size - r->first, r->length) : size - r->first;
	snprintf(text, HTTP_RANGE_TEXT, "bytes %llu-%llu/%llu", first, first + n - 1, all);
	return n;
}
