/*
 * What running boxes used, for an hour: a sample of each every ten seconds, in memory.
 * Sampling goes through a queue in which whoever was sampled waits at its end, with few
 * questions to the keeper at once, so that a thousand boxes delay nobody.
 */
#pragma once

#include "box.h"
#include "keeper.h"
#include "list.h"

struct box_part;
struct core;

#define HISTORY_AT_ONCE 4

/* A ring that grows as it fills. */
struct history {
	struct box *box;
	struct history_sample *samples;
	unsigned cap, n, head;
	struct list queue; /* of sampler.queue or sampler.fresh, or on none */
	uint64_t due_ms;
	uint64_t oom_kills; /* that were told of */
};

struct sampler {
	struct core *core;
	struct list queue; /* boxes that were sampled, the one that is due first at the front */
	struct list fresh; /* boxes that never were, likewise */
	struct loop_timer timer;
	struct sampling {
		struct core *core;
		struct call call;
		char box[24];
		bool busy;
	} slots[HISTORY_AT_ONCE];
};

void history_init(struct core *c);
void history_stop(struct core *c);
/* Begins to follow a box that runs; does nothing when it is followed. */
void history_follow(struct box *b);
extern const struct box_part history_part;
