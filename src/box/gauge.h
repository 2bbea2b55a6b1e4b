/*
 * Files of /proc that show a box its own figures instead of the machine's: paddock-gauge
 * answers for them (FUSE), the walls put them into boxes, the keeper tells it which box has
 * which range of uids. That goes by a table in shared memory, which only the keeper can
 * write, so that a start costs no message and a new paddock-gauge knows all boxes at once.
 */
#pragma once

#include "defs.h"

enum gauge_file { GAUGE_MEMINFO, GAUGE_CPUINFO, GAUGE_STAT, GAUGE_LOADAVG, GAUGE_SWAPS, GAUGE_FILES };

extern const char *const gauge_names[GAUGE_FILES]; /* below /proc */

#define GAUGE_ID 24

/* By the number of the range: slots.h. */
struct gauge_slot {
	uint32_t turn;       /* odd while it is written */
	uint32_t own_uptime; /* it has a time namespace, in which it was booted when it was started */
	uint64_t started;    /* clock ticks since the machine's boot */
	char id[GAUGE_ID];
};

/* What the program has done, for the keeper to see: requests that it went to read, and those that are done.
 */
struct gauge_beat {
	uint64_t taken, answered;
};

/* An empty id: nobody has it. */
void gauge_put(struct gauge_slot *s, const char *id, uint64_t started, bool own_uptime);
/* -ENOENT: nobody has it. -EAGAIN: it is being written. */
int gauge_get(const struct gauge_slot *s, char id[GAUGE_ID], uint64_t *started,
	      bool *own_uptime) _must_check_;
