/*
 * Removing a tree in steps; see file_tree.c. All with the rights of whoever calls.
 */
#pragma once

#include "dents.h"

struct remover_level;

struct remover {
	int top; /* the directory that holds the tree */
	struct remover_level *levels;
	size_t n, cap;
	unsigned lifted; /* subtrees that were too deep */
	struct dents dents;
};

/* Takes `dir`, also on failure. 0: it is removed, 1: there is work, -errno. */
int remover_begin(struct remover *rm, int dir, const char *name, bool recursive) _must_check_;
/* Until that time at most. 0: done, 1: there is more, -errno. */
int remover_work(struct remover *rm, uint64_t until_ns) _must_check_;
const char *remover_place(const struct remover *rm); /* for errors */
void remover_done(struct remover *rm);
