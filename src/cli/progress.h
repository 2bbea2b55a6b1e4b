/*
 * How far a copy is, on a line of the terminal. Without a terminal nothing is shown.
 */
#pragma once

#include "client.h"

struct progress {
	bool shown; /* standard error is a terminal */
	char name[64];
	uint64_t total, done; /* total 0: not known */
	uint64_t began_ms, told_ms;
};

void progress_begin(struct progress *p, struct client *c, const char *name, uint64_t total);
/* The line is wiped. */
void progress_end(struct progress *p, struct client *c);
