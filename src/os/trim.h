/*
 * Releases memory that only the start needed: free heap, and mapped pages of code and constants that
 * were used once (libcrypto's start alone touches megabytes in every program). Pages that are used
 * again come back from the page cache with a minor fault.
 */
#pragma once

#include "loop.h"

void trim_start(void);
/* The same in a program that locked all its memory: code and constants hold no secret. At its start, and
 * after work that is rare and touches much. */
void trim_locked(void);

/* And what a burst of work needed: malloc keeps freed memory that lies below some that is in use. Looks
 * TRIM_MS after something was done, and again as long as the heap is large; an idle program is not woken. */
struct trim {
	struct loop *loop;
	struct loop_timer timer;
};

void trim_soon(struct trim *t);
void trim_stop(struct trim *t);
