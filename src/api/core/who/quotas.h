/*
 * Who may have how much. A tenant's quota bounds its boxes, what they may use together,
 * and how fast they are made; the machine's budget bounds all of them. Both are checked
 * before a box is made or started; what is counted is kept up to date by quotas_account.
 *
 * The budget: where max.budget.memory_mb is set, the sum of the memory limits of the
 * boxes that run (and KERNEL_MB each for what the kernel charges to nobody) stays below
 * it: nothing is overcommitted. Where it is not set, what they use by measurement (at
 * least RESERVE_MB each, so that new ones count) stays below 90 % of the machine.
 */
#pragma once

#include "job.h"
#include "map.h"
#include "spec.h"
#include "store_events.h"

struct actor;
struct box;
struct core;
struct tenant;

#define QUOTAS_KERNEL_MB  2
#define QUOTAS_RESERVE_MB 16

/* 0: no limit. */
struct quota {
	uint64_t boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute;
};

/* boxes and disk: of all that exist; cpu and memory: of those that run. */
struct quota_use {
	uint64_t boxes, cpu_milli, memory_mb, disk_mb;
};

/* What a box is counted with at the moment. */
struct quota_mark {
	const struct tenant *tenant; /* NULL: with nobody's, e.g. in the pool */
	struct quota_use use;
	uint64_t measured_kb; /* of its memory; 0: not yet, or it does not run */
	bool runs;
};

struct quotas {
	struct map by_tenant;
	struct quota_use host; /* of the boxes that run */
	uint64_t host_kb;      /* by measurement */
	uint64_t machine_mb;
};

struct tenant_state {
	const struct tenant *tenant;
	struct quota quota;
	struct quota_use use;
};

/* ERR_QUOTA, ERR_RATE or ERR_UNAVAILABLE. `made`: the box runs already, as those of the pool do. */
int quotas_admit(struct core *c, const struct tenant *t, const struct spec_limits *l, bool made,
		 struct err *e) _must_check_;
/* For one of the pool, which is nobody's yet. */
int quotas_admit_pool(struct core *c, const struct spec_limits *l, struct err *e) _must_check_;
/* For a box that is there and is to run again. */
int quotas_admit_start(struct core *c, const struct box *b, struct err *e) _must_check_;
/* Seconds until this tenant may make a box again, as far as the rate is concerned; at least 1. */
unsigned quotas_retry_after(struct core *c, const struct tenant *t);

/* The box's status, limits or tenant may have changed. */
void quotas_account(struct box *b);
void quotas_measured(struct box *b, uint64_t memory_bytes);

/* ---- tenants; a reference is an id or a name ---- */

int quotas_tenant(struct core *c, const struct actor *a, struct view ref, struct tenant_state *ret,
		  struct err *e) _must_check_;
int quotas_each_tenant(struct core *c, const struct actor *a,
		       void (*each)(void *arg, const struct tenant_state *s), void *arg,
		       struct err *e) _must_check_;
/* The result of both is a const struct tenant_state *. */
struct job *quotas_tenant_create(struct core *c, const struct actor *a, struct view name, job_done *done,
				 void *arg, struct err *e) _must_check_;
struct job *quotas_put(struct core *c, const struct actor *a, struct view ref, const struct quota *q,
		       job_done *done, void *arg, struct err *e) _must_check_;

void quotas_init(struct core *c);
int quotas_load(struct core *c, const struct store_quota *row) _must_check_;
void quotas_done(struct core *c);
