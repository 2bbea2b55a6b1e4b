/*
 * What a box sees of its limits: /sys with the number of its processors and its own control groups,
 * read-only. None of this is part of the isolation.
 */
#pragma once

#include "native.h"

#define NATIVE_VIEWS    8
#define NATIVE_ARGUMENT 32

/* A detached mount and where it belongs. */
struct native_view {
	int fd;
	const char *at;
};

/* At the start: which hierarchies there are. */
void native_sys_open(struct native *n);
/* Makes them; the caller closes. What cannot be shown is left out: -errno only where something is odd. */
int native_sys_views(struct native *n, const struct plan *p, const char *group,
		     struct native_view views[NATIVE_VIEWS], unsigned *ret_n) _must_check_;
/* What PID 1 is told: how many processors its programs count. */
void native_sys_argument(const struct plan *p, char dst[NATIVE_ARGUMENT]);
