/*
 * Drops every privilege that paddock-api does not need.
 */
#pragma once

#include "err.h"

/* From root to `uid` (also the gid) without groups, capabilities, new privileges,
 * files outside `store_fd` and calls outside the filter. For good; must come
 * before the first thread. */
int drop_privileges(uint32_t uid, int store_fd, struct err *e) _must_check_;
