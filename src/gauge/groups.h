/*
 * What the control groups of a box say, version 1 or 2: below directories that the keeper
 * has handed over.
 */
#pragma once

#include "figures.h"

#define GROUPS_DIRS 8

struct groups {
	int dirs[GROUPS_DIRS];
	size_t n;
	uint64_t machine_memory;
	unsigned machine_cpus;
};

/* -ENOENT: there is no such box (any more). */
int groups_read(const struct groups *g, const char *id, struct figures *ret) _must_check_;
