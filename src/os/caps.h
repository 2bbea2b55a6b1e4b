/*
 * Capabilities by the raw calls: masks of 1 << CAP_x. All async-signal-safe.
 */
#pragma once

#include "defs.h"

#define CAPS(c) (1ull << (c))

struct caps {
	uint64_t effective, permitted, inheritable;
};

int caps_get(struct caps *ret) _must_check_;
int caps_set(const struct caps *c) _must_check_;
/* Empties the bounding set (needs CAP_SETPCAP in the current user namespace) but for `keep`. */
int caps_bound(uint64_t keep) _must_check_;
/* Everything gone: bounding, ambient, permitted, effective, inheritable; no_new_privs set. */
int caps_drop_all(void) _must_check_;
