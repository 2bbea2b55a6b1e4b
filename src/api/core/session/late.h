/*
 * What a process wrote while nobody listened (between two commands of a shell, two
 * executions of a context): the newest of it, for whoever comes next.
 */
#pragma once

#include "exec.h"

struct late {
	struct buf channels[EXEC_CHANNELS];
	bool cut; /* there was more */
};

void late_keep(struct late *l, unsigned channel, struct view data); /* 1 or 2 */
/* The caller's from now on. */
struct buf late_take(struct late *l, unsigned channel);
bool late_take_cut(struct late *l);
void late_done(struct late *l);
