/*
 * The Range of a request for bytes (RFC 9110, section 14), and the Content-Range of its answer.
 */
#pragma once

#include "view.h"

#define HTTP_RANGE_TEXT 80

struct http_range {
	bool given;
	bool from_end; /* the last `length` bytes: http_range_from_end says where they begin */
	uint64_t first;
	uint64_t length; /* 0: to the end; of from_end: none */
};

/* One range of bytes; several, or something else, count as none. */
void http_range_parse(struct view header, struct http_range *ret);
/* Now that the size is known; false: there are no such bytes. */
bool http_range_from_end(struct http_range *r, uint64_t size) _must_check_;
/* How many bytes there are of it, and the header's value; 0: none, and `text` says how many there are at all.
 */
uint64_t http_range_fit(const struct http_range *r, uint64_t size, char text[HTTP_RANGE_TEXT]);
