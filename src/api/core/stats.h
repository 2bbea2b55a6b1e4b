/*
 * What the keeper measures. Each ends with a job.
 */
#pragma once

#include "job.h"
#include "view.h"

struct actor;
struct box;
struct core;

struct box_stats {
	const struct box *box;
	uint64_t memory_bytes, cpu_usec, pids, oom_kills, disk_bytes, net_rx_bytes, net_tx_bytes;
};

/* The result is a const struct box_stats *. */
struct job *stats_box(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
		      void *arg, struct err *e) _must_check_;
/* The result is a const struct posture *, and core_posture has it from then on. */
struct job *stats_posture(struct core *c, const struct actor *a, job_done *done, void *arg,
			  struct err *e) _must_check_;
/* Of a box that runs: the features that it was started with. The result lives as long as the call. */
struct job *stats_box_posture(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			      void *arg, struct err *e) _must_check_;
/* The same for the core itself. */
struct job *stats_posture_unchecked(struct core *c, job_done *done, void *arg, struct err *e) _must_check_;
