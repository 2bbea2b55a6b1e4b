/*
 * Processes that are started for a caller: pipes, time limit, exit.
 */
#pragma once

#include <sys/types.h>

#include "conn.h"

int proc_start(const struct call *call, struct err *e) _must_check_;
int proc_signal(const struct call *call, struct err *e) _must_check_;
/* Collects every child that has exited, our own and those that were left to PID 1. */
void proc_reap(struct init *in);
void proc_stop(struct init *in); /* part of init_stop */
