/*
 * The start of the core, after the rows are in memory: see adopt.c.
 */
#pragma once

#include "err.h"

struct core;

struct startup {
	struct adoption *adoption;   /* while starting */
	void (*on_ready)(void *arg); /* see struct core_setup */
	void (*on_lost)(void *arg);
	void *arg;
};

/* Ends with on_ready, or with on_lost when the keeper does not play along. */
int adopt_begin(struct core *c, struct err *e) _must_check_;
void adopt_stop(struct core *c);
