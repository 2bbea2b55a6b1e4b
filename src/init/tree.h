/*
 * Signals to a program with all that it has started.
 */
#pragma once

#include <sys/types.h>

#include "defs.h"

/* SIGKILL for the process, its session, and their descendants in other sessions. */
void tree_kill(pid_t leader);
/* Any signal for the same; how many got it. */
unsigned tree_signal(pid_t leader, int signo);
/* The same without the leader itself, and without what was started before a moment
 * (wall clock; 0: everything counts), nor what is started by such older ones. */
unsigned tree_signal_below(pid_t leader, int signo, int64_t since_ms);
