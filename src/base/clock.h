/*
 * Time: monotonic for waiting, wall for showing.
 */
#pragma once

#include "view.h"

#define CLOCK_RFC3339_SIZE 28

uint64_t clock_mono_ns(void);
uint64_t clock_mono_ms(void);
int64_t clock_wall_ms(void); /* since 1970 */
/* An id greater than the last one: microseconds since 1970. It tells when, not how many others there are. */
uint64_t clock_stamp(uint64_t last);
/* "2026-11-15T08:12:52.123Z"; writes at most CLOCK_RFC3339_SIZE bytes. */
void clock_rfc3339(int64_t wall_ms, char dst[CLOCK_RFC3339_SIZE]);
/* The same and its relatives: any number of digits of a second, or none; Z or an offset. -EINVAL. */
int clock_from_rfc3339(struct view v, int64_t *ret_wall_ms) _must_check_;
