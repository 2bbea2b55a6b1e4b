/*
 * Ending a program with all that it has started.
 */
#pragma once

#include <sys/types.h>

/* SIGKILL for the process, its session, and their descendants in other sessions. */
void tree_kill(pid_t leader);
