/*
 * Watchers for the core itself: see file.h.
 */
#pragma once

#include "file.h"
#include "list.h"
#include "loop.h"

struct tenant;

struct watchers {
	struct list all;
};

void watchers_done(struct core *c);
