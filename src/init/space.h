/*
 * Disk and memory as the box may use them. The kernel tells statfs how large the whole file system is, and
 * sysinfo how much memory the machine has; of limits it says nothing. So the box's filter hands these calls
 * to PID 1 (seccomp's user notification), which answers for the box's own disks and its memory with the limit
 * and what is used of it, and lets the kernel answer for everything else: other file systems, paths that are
 * not there, memory that cannot be written.
 *
 * An answer is information and no decision: a program that changes its path meanwhile, or asks past the
 * filter, gets another figure and nothing else.
 */
#pragma once

#include "loop.h"

struct init;

/* From `ask=` and `disk=` in the environment that the walls give PID 1: native_space.c. */
void space_start(struct init *in, char *const *env);
void space_stop(struct init *in);
/* Takes no question for SECCOMP_REST_MS: who asks waits, and can be frozen. */
void space_rest(struct init *in);

/* Pure: what statfs is to say where `limit` bytes may be used and `used` are. `s` is the kernel's. */
struct statfs;
void space_limit(struct statfs *s, uint64_t limit, uint64_t used);
/* The same of sysinfo: no swap, no load (nobody counts it for a group). */
struct sysinfo;
void space_memory(struct sysinfo *s, uint64_t limit, uint64_t used, uint64_t processes);
