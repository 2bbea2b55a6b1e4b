/*
 * Clocks: see clock.h.
 */
#include "clock.h"

#include <stdio.h>
#include <time.h>

#include "poison.h"

#define FIRST_MS (-62135596800000ll) /* 0001-01-01T00:00:00.000Z */
#define LAST_MS 253402300799999ll    /* 9999-12-31T23:59:59.999Z */

uint64_t clock_mono_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ms(void)
{
	return clock_mono_ns() / 1000000u;
}

int64_t clock_wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void clock_rfc3339(int64_t wall_ms, char dst[CLOCK_RFC3339_SIZE])
{
	/* Years have four digits; a file's time may be anything, so what is outside is cut. */
	wall_ms = MIN(MAX(wall_ms, FIRST_MS), LAST_MS);
	time_t sec = (wall_ms - FIRST_MS) / 1000 + FIRST_MS / 1000; /* rounds down before 1970 too */
	unsigned ms = (unsigned)((wall_ms - FIRST_MS) % 1000);
	struct tm tm = { 0 };
	gmtime_r(&sec, &tm);
	snprintf(dst, CLOCK_RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (tm.tm_year + 1900u) % 10000,
		 (tm.tm_mon + 1u) % 100, tm.tm_mday % 100u, tm.tm_hour % 100u, tm.tm_min % 100u, tm.tm_sec % 100u, ms);
}
