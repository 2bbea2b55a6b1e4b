/*
 * The destination that a request names.
 */
#pragma once

#include "addr.h"

struct target {
	char name[256]; /* in lower case; "": it is an address */
	struct addr addr;
	uint16_t port; /* 0: none was given */
};

/* "name", "name:80", "[::1]:80". -EINVAL */
int target_parse(struct view text, struct target *ret) _must_check_;
