/*
 * See cpus.h.
 */
#include "cpus.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "poison.h"

static unsigned limit;

bool cpus_pick(const cpu_set_t *all, unsigned count, unsigned first, cpu_set_t *ret)
{
	if (count < 1 || count >= (unsigned)CPU_COUNT(all))
		return false;
	CPU_ZERO(ret);
	for (unsigned i = 0; i < CPU_SETSIZE && count; i++) {
		unsigned cpu = (first + i) % CPU_SETSIZE;
		if (CPU_ISSET(cpu, all)) {
			CPU_SET(cpu, ret);
			count--;
		}
	}
	return true;
}

void cpus_limit(unsigned count)
{
	limit = count;
}

void cpus_take(void)
{
	cpu_set_t all, mine;
	unsigned here = 0;
	CPU_ZERO(&all);
	if (!limit || syscall(SYS_getcpu, &here, NULL, NULL) < 0 ||
	    syscall(SYS_sched_getaffinity, 0, sizeof(all), &all) < 0 || !cpus_pick(&all, limit, here, &mine))
		return;
	(void)syscall(SYS_sched_setaffinity, 0, sizeof(mine), &mine);
}
