/*
 * A command whose client has gone away: it is told so by SIGHUP, as by a terminal
 * that was hung up, has a moment to tidy up, and is killed with all that it started.
 */
#pragma once

#include <sys/types.h>

struct init;

void farewell_begin(struct init *in, pid_t leader);
void farewell_stop(struct init *in);
