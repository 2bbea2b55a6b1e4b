/*
 * Warm boxes: started ahead with the default limits, for the images that the
 * configuration names, and claimed by a create that asks for just that. A claim changes
 * nothing in the box (its host name is its id, as of every box without a name), only who
 * it belongs to and what we know about it, so that it costs one write to the store.
 *
 * In the store they are rows with the status "pool"; after a restart they are adopted.
 * They are refilled one at a time. An empty pool means that a box is made as ever.
 */
#pragma once

#include "job.h"
#include "list.h"
#include "loop.h"
#include "spec.h"

struct tenant;
struct box;
struct box_part;
struct core;

struct pool_image;

struct pool {
	struct core *core;
	bool closed; /* it is not filled any more */
	struct pool_image *images;
	size_t n;
	unsigned total;     /* boxes in it */
	struct job *making; /* the one that is being made */
	struct loop_timer refill;
	uint64_t wanting_ms; /* since when something is missing that waits for a quiet moment; 0: nothing */
	uint64_t claimed_ms; /* when the last was given away; 0: never */
	uint64_t claims;
	struct loop_timer ready;
	void (*on_warm)(struct core *c, const struct box *b); /* or NULL: pool_ready */
};

int pool_init(struct core *c) _must_check_; /* -errno */
void pool_done(struct core *c);
void pool_stop(struct core *c);
/* Everything is adopted: begins to fill. */
void pool_start(struct core *c);
/* A row of the pool, at the start; false: it has been done away with. */
bool pool_adopt(struct box *b, bool runs);
/* It was taken, or is done away with. Accepts any box. */
void pool_forget(struct box *b);
extern const struct box_part pool_part;
/* Its PID 1 has ended. */
void pool_exited(struct box *b);

/* For a tenant that may make a box. NULL with no error (e->code 0): there is none that fits. The result is a
 * const struct box *. `arena` is the spec's; it is empty when the spec was taken over. */
struct job *pool_claim(struct core *c, const struct tenant *t, struct box_spec *s, struct arena *arena,
		       job_done *done, void *arg, struct err *e) _must_check_;
