/*
 * The boxes that no client knows, at an orderly end of the daemon: see retire_boxes in box.h. Boxes of
 * clients go on and are adopted by the next start; these would only hold the disk.
 */
#include "boxes.h"
#include "core_base.h"
#include "job.h"
#include "pool.h"
#include "remove.h"
#include "poison.h"

static void settle(struct core *c)
{
	if (--c->retire->waits == 0 && !c->stopping)
		c->retire->done(c->retire->arg);
}

static void on_gone(void *arg, const void *result, const struct err *e)
{
	settle(arg);
}

void retire_made(struct core *c, struct box *b)
{
	if (!b || !remove_unwanted_then(b, on_gone, c))
		settle(c);
}

void retire_boxes(struct core *c, void (*done)(void *arg), void *arg)
{
	c->retire->done = done;
	c->retire->arg = arg;
	c->retire->waits = c->pool->making ? 2 : 1;
	c->pool->closed = true;
	loop_timer_stop(&c->pool->refill);
	/* Nothing leaves the map before the keeper has answered. */
	for (struct map_node *n = map_first(&c->boxes->by_id); n; n = map_next(&c->boxes->by_id, n)) {
		struct box *b = BOX_OF(n, by_id);

		if ((!b->in->hidden && !b->in->pooled) || b->state.status == BOX_CREATING)
			continue;
		pool_forget(b);
		c->retire->waits += remove_unwanted_then(b, on_gone, c) != NULL;
	}
	settle(c);
}
