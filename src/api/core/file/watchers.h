/*
 * Watchers for the core itself: see file.h.
 */
#pragma once

#include "file.h"
#include "list.h"
#include "loop.h"

struct tenant;

void watchers_done(struct core *c);
