/*
 * Clocks: see clock.h.
 */
#include "clock.h"

#include <stdio.h>
#include <time.h>

#include "poison.h"

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
	time_t sec = wall_ms / 1000;
	unsigned ms = (unsigned)(wall_ms % 1000);
	struct tm tm;
	size_t n = gmtime_r(&sec, &tm) ? strftime(dst, CLOCK_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
	snprintf(dst + n, CLOCK_RFC3339_SIZE - n, ".%03uZ", ms % 1000);
}
