/*
 * The processors that programs of the box count: an affinity mask as large as the
 * box's limit. It is no wall: the limit is the control group's, and a program may
 * widen its mask.
 *
 * Each program gets the processor on which it is started and those that follow. So
 * nothing has to move (which takes milliseconds on a busy machine), and programs
 * spread as the scheduler spreads PID 1, which has no mask.
 */
#pragma once

#include <sched.h>

#include "defs.h"

/* At the start: how many; 0: all. */
void cpus_limit(unsigned count);
/* In a child between clone and exec, which makes system calls alone. */
void cpus_take(void);
/* Pure: of `all`, `count` from `first` on. False: all of them. */
bool cpus_pick(const cpu_set_t *all, unsigned count, unsigned first, cpu_set_t *ret);
