/*
 * Clocks: see clock.h.
 */
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "num.h"
#include "poison.h"

#define FIRST_MS (-62135596800000ll) /* 0001-01-01T00:00:00.000Z */
#define LAST_MS  253402300799999ll   /* 9999-12-31T23:59:59.999Z */

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

uint64_t clock_stamp(uint64_t last)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return MAX(last + 1, (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
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
		 (tm.tm_mon + 1u) % 100, tm.tm_mday % 100u, tm.tm_hour % 100u, tm.tm_min % 100u,
		 tm.tm_sec % 100u, ms);
}

/* The digits at `at`, which must all be there. */
static bool take(struct view v, size_t at, size_t n, unsigned min, unsigned max, int *ret)
{
	uint32_t u;
	if (at + n > v.n || num_u32((struct view){ v.p + at, n }, &u) < 0 || u < min || u > max)
		return false;
	*ret = (int)u;
	return true;
}

/* What stands behind the seconds: a fraction, then Z or an offset. */
static bool take_end(struct view v, int *ret_ms, int *ret_offset_s)
{
	int scale = 100, hours, minutes;

	*ret_ms = *ret_offset_s = 0;
	if (v.n > 1 && v.p[0] == '.') {
		size_t digits = 0;
		for (v = view_skip(v, 1); v.n && v.p[0] >= '0' && v.p[0] <= '9';
		     v = view_skip(v, 1), digits++) {
			*ret_ms += (v.p[0] - '0') * scale;
			scale /= 10;
		}
		if (!digits)
			return false;
	}
	if (view_is(v, "Z") || view_is(v, "z"))
		return true;
	if (v.n != 6 || (v.p[0] != '+' && v.p[0] != '-') || v.p[3] != ':' || !take(v, 1, 2, 0, 23, &hours) ||
	    !take(v, 4, 2, 0, 59, &minutes))
		return false;
	*ret_offset_s = (hours * 3600 + minutes * 60) * (v.p[0] == '-' ? -1 : 1);
	return true;
}

int clock_from_rfc3339(struct view v, int64_t *ret_wall_ms)
{
	struct tm tm = { 0 };
	int year, month, ms, offset_s;

	if (v.n < 20 || v.p[4] != '-' || v.p[7] != '-' || (v.p[10] != 'T' && v.p[10] != 't') ||
	    v.p[13] != ':' || v.p[16] != ':' || !take(v, 0, 4, 1, 9999, &year) ||
	    !take(v, 5, 2, 1, 12, &month) || !take(v, 8, 2, 1, 31, &tm.tm_mday) ||
	    !take(v, 11, 2, 0, 23, &tm.tm_hour) || !take(v, 14, 2, 0, 59, &tm.tm_min) ||
	    !take(v, 17, 2, 0, 60, &tm.tm_sec) || !take_end(view_skip(v, 19), &ms, &offset_s))
		return -EINVAL;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	*ret_wall_ms = ((int64_t)timegm(&tm) - offset_s) * 1000 + ms;
	return 0;
}
