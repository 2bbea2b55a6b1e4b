/*
 * Who may have how much. A tenant's quota bounds its boxes, what they may use together,
 * and how fast they are made; the machine's budget bounds all of them. Both are checked
 * before a box is made or started; what is counted is kept up to date by quotas_part.
 *
 * The budget: where max.budget.memory_mb is set, the sum of the memory limits of the
 * boxes that run (and KERNEL_MB each for what the kernel charges to nobody) stays below
 * it: nothing is overcommitted. Where it is not set, what they use by measurement (at
 * least RESERVE_MB each, so that new ones count) stays below 90 % of the machine.
 */
#pragma once

#include "job.h"
#include "ledger.h"
#include "map.h"
#include "money.h"
#include "spec.h"
#include "store_events.h"

struct box;
struct box_part;
struct core;
struct tenant;

#define QUOTAS_KERNEL_MB  2
#define QUOTAS_RESERVE_MB 16

/* What a box is counted with at the moment. */
struct quota_mark {
	const struct tenant *tenant; /* NULL: with nobody's, e.g. in the pool */
	struct quota_use use;        /* of the tenant's */
	struct quota_use host;       /* of the machine's, while it runs */
	uint64_t measured_kb;        /* of its memory; 0: not yet, or it does not run */
	bool runs;
};

struct quotas {
	ledger_list *const *lists; /* to the first that is NULL */
	/* What is kept to save time gives way to what is asked for: so much of it. */
	void (*shrink)(struct core *c, const struct tenant *t, uint64_t mb);
	struct map by_tenant;
	struct quota_use host; /* of the boxes that run */
	uint64_t host_kb;      /* by measurement */
	uint64_t machine_mb;
};

/* ERR_QUOTA, ERR_RATE or ERR_UNAVAILABLE. `made`: the box runs already, as those of the pool do. */
int quotas_admit(struct core *c, const struct tenant *t, const struct box_limits *l, bool made,
		 struct err *e) _must_check_;
/* For a box that nobody sees: for the files of a workspace, or an import. */
int quotas_admit_hidden(struct core *c, const struct tenant *t, const struct box_limits *l,
			struct err *e) _must_check_;
/* All that count against max.boxes: hidden ones too, but not those of the pool. */
unsigned quotas_boxes(const struct core *c);
/* For one of the pool, which is nobody's yet. */
int quotas_admit_pool(struct core *c, const struct box_limits *l, struct err *e) _must_check_;
/* For a box that is to have other limits. */
int quotas_admit_change(struct core *c, const struct box *b, const struct box_limits *l,
			struct err *e) _must_check_;
/* For a box that is there and is to run again. */
int quotas_admit_start(struct core *c, const struct box *b, struct err *e) _must_check_;

/* The disk limit of something that asks for none: of a tenant with a quota of disk a share, so that the quota
 * neither locks it out nor goes to the first. */
uint64_t quotas_standard_disk(struct core *c, const struct tenant *t, uint64_t standard);

extern const struct box_part quotas_part;
void quotas_measured(struct box *b, uint64_t memory_bytes);

void quotas_init(struct core *c);
int quotas_load(struct core *c, const struct store_quota *row) _must_check_;
void quotas_done(struct core *c);
