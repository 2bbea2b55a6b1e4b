/*
 * Shells for the core itself: see session.h.
 */
#pragma once

#include "exec.h"
#include "procs.h"
#include "session.h"

/* By exec_start, for a wish with a shell. */
int shells_exec(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e) _must_check_;
void shells_consumed(struct exec *x, size_t n);
void shells_abandon(struct exec *x); /* nobody waits for this command any more */
extern const struct box_part shells_part;
