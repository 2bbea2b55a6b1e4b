/*
 * The start of the core, after the rows are in memory: see adopt.c.
 */
#pragma once

#include "err.h"

struct core;

/* Ends with core->on_ready, or with on_lost when the keeper does not play along. */
int adopt_begin(struct core *c, struct err *e) _must_check_;
void adopt_stop(struct core *c);
