/*
 * The time of the ledger. It begins with the clock, or with the newest entry of the ledger or the audit log
 * where that is later, and goes on by the time since the machine's start: setting the clock while the signer
 * runs changes nothing, and setting it back before the start frees and prolongs nothing.
 */
#include <time.h>

#include "clock.h"
#include "signer.h"

#include "poison.h"

static int64_t boot_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void moment_start(struct signer *s, int64_t newest_ms)
{
	s->start_wall_ms = MAX(clock_wall_ms(), newest_ms);
	s->start_boot_ms = boot_ms();
}

int64_t moment_now(const struct signer *s)
{
	return s->start_wall_ms + boot_ms() - s->start_boot_ms;
}
