/*
 * One header field, as the parsers yield it and the writers take it.
 */
#pragma once

#include "view.h"

struct http_header {
	struct view name, value; /* names are lower case */
	/* Which of the name's first letters its sender wrote in upper case, the first one in the lowest bit:
	 * for whoever hands it on over HTTP/1, to programs that are not supposed to care and do. */
	uint64_t upper;
};

#define HTTP_HEADER_UPPER 63 /* letters that are remembered */
