/*
 * The table of boxes for paddock-gauge: see gauge.h.
 */
#include "gauge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "poison.h"

const char *const gauge_names[GAUGE_FILES] = {
	[GAUGE_MEMINFO] = "meminfo", [GAUGE_CPUINFO] = "cpuinfo", [GAUGE_STAT] = "stat",
	[GAUGE_LOADAVG] = "loadavg", [GAUGE_SWAPS] = "swaps",
};

void gauge_put(struct gauge_slot *s, const char *id, uint64_t started, bool own_uptime)
{
	uint32_t turn = __atomic_load_n(&s->turn, __ATOMIC_RELAXED);
	turn += turn & 1; /* of a keeper that was killed while it wrote there is no table any more */
	__atomic_store_n(&s->turn, turn + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	snprintf(s->id, sizeof(s->id), "%s", id);
	s->started = started;
	s->own_uptime = own_uptime;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&s->turn, turn + 2, __ATOMIC_RELAXED);
}

int gauge_get(const struct gauge_slot *s, char id[GAUGE_ID], uint64_t *started, bool *own_uptime)
{
	for (int tries = 0; tries < 1000; tries++) {
		uint32_t turn = __atomic_load_n(&s->turn, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		memcpy(id, s->id, GAUGE_ID);
		*started = s->started;
		*own_uptime = s->own_uptime;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (turn & 1 || turn != __atomic_load_n(&s->turn, __ATOMIC_RELAXED))
			continue;
		id[GAUGE_ID - 1] = 0;
		return id[0] ? 0 : -ENOENT;
	}
	return -EAGAIN;
}
