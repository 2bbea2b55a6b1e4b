/*
 * The samples of the whole installation: see core.h.
 */
#include "box.h"
#include "boxes.h"
#include "clock.h"
#include "core.h"
#include "core_base.h"
#include "trend_ring.h"
#include "who.h"
#include "poison.h"

static void take(struct core *c, struct trend_sample *s)
{
	*s = (struct trend_sample){ .at_ms = clock_wall_ms() };
	core_stats(c, &s->stats);
	LIST_EACH (it, &c->boxes->all) {
		struct history_load load;
		if (!history_load(BOX_OF(it, order), &load))
			continue;
		s->cpu += load.cpu;
		s->memory_bytes += load.memory_bytes;
	}
}

static void on_timer(struct loop_timer *timer)
{
	struct core *c = CONTAINER(timer, struct trend, timer)->core;
	struct trend *t = c->trend;

	take(c, &t->samples[(t->head + t->n) % TREND_SAMPLES]);
	if (t->n < TREND_SAMPLES)
		t->n++;
	else
		t->head = (t->head + 1) % TREND_SAMPLES;
	loop_timer_start(c->loop, timer, TREND_MS, on_timer);
}

int trend_each(const struct core *c, const struct actor *a,
	       void (*each)(void *arg, const struct trend_sample *s), void *arg, struct err *e)
{
	const struct trend *t = c->trend;

	if (auth_permit(a, ACT_METRICS, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		each(arg, &t->samples[(t->head + i) % TREND_SAMPLES]);
	return 0;
}

void trend_start(struct core *c)
{
	on_timer(&c->trend->timer);
}

void trend_stop(struct core *c)
{
	loop_timer_stop(&c->trend->timer);
}
