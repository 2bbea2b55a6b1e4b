/*
 * The texts of /proc for one box, from what its control groups say. Pure.
 */
#pragma once

#include "buf.h"
#include "gauge.h"

struct figures {
	uint64_t memory, memory_used; /* bytes: the limit (or the machine's, if less), and what counts */
	/* parts of what is used, in bytes */
	uint64_t anon, file, shmem, mapped, dirty, writeback, slab_reclaimable, slab_unreclaimable;
	uint64_t active_anon, inactive_anon, active_file, inactive_file, unevictable;
	unsigned cpus;
	uint64_t user, system; /* clock ticks (1/100 s) that it has used */
	uint64_t age;          /* clock ticks since its start */
	uint64_t boot_s; /* what /proc/uptime and processes' start times count from, by the wall clock */
	uint64_t pids;
	struct view cpuinfo; /* the machine's */
};

/* Appends the text of a file. */
void figures_print(const struct figures *f, enum gauge_file file, struct buf *out);
