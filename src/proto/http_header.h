/*
 * One header field, as the parsers yield it and the writers take it.
 */
#pragma once

#include "view.h"

struct http_header {
	struct view name, value; /* names are lower case */
};
