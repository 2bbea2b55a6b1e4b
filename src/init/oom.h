/*
 * Memory: whether the kernel has killed something of the box for want of it, and
 * thrashing. A box whose programs need more than its limit without one large
 * allocation may not be killed at all: the kernel drops the pages of their code and
 * reads them again, for minutes. PID 1 ends that: when nearly all of the limit is
 * memory of programs (so that there is next to nothing left to drop) and pages are
 * read again and again, for so many seconds, the largest program is killed.
 */
#pragma once

#include "loop.h"

struct init;

/* At the start: seconds of thrashing that are borne; 0: any. */
void oom_limit(unsigned seconds);
/* Something was started: from now on it is looked at, until nothing runs any more. */
void oom_watch(struct init *in);
void oom_stop(struct init *in);
/* PID 1 is to be killed last. */
void oom_shelter(void);
/* A program that was just started is to be killed before PID 1. */
void oom_offer(pid_t pid);
/* How many were killed so far, by the kernel or by us. Cheap. */
uint64_t oom_kills(void);
uint64_t oom_memory(void); /* the limit in bytes, 0: unknown */
uint64_t oom_used(void);   /* of it */
uint64_t oom_processes(void);

/* Pure: one look. */
struct oom_look {
	uint64_t limit, anon, faults; /* faults: major ones, since the beginning */
	uint64_t at_ms;
};
