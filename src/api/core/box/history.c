/*
 * Sampling: see history.h.
 */
#include "history.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "events.h"
#include "quotas.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 10000
#define FIRST_MS  1000 /* after a box was seen to run */
#define STEP      24   /* samples that a ring grows by: four minutes */

static void ask(struct core *c);

static void on_timer(struct loop_timer *t)
{
	ask(CONTAINER(t, struct sampler, timer)->core);
}

/* ---- the ring ---- */

static void add(struct history *h, const struct history_sample *s)
{
	if (h->n == h->cap && h->cap < HISTORY_SAMPLES) {
		unsigned cap = MIN(h->cap + STEP, (unsigned)HISTORY_SAMPLES);
		struct history_sample *grown =
			realloc(h->samples, cap * sizeof(*grown)); /* head is 0 until it is full */
		if (grown) {
			h->samples = grown;
			h->cap = cap;
		}
	}
	if (h->cap == 0)
		return;
	if (h->n < h->cap) {
		h->samples[(h->head + h->n++) % h->cap] = *s;
		return;
	}
	h->samples[h->head] = *s;
	h->head = (h->head + 1) % h->cap;
}

unsigned history_count(const struct box *b)
{
	return b->in->history->n;
}

const struct history_sample *history_get(const struct box *b, unsigned i)
{
	return &b->in->history->samples[(b->in->history->head + i) % b->in->history->cap];
}

bool history_load(const struct box *b, struct history_load *ret)
{
	unsigned n = history_count(b);

	if (n == 0 || b->state.status != BOX_RUNNING)
		return false;
	const struct history_sample *last = history_get(b, n - 1),
				    *before = n > 1 ? history_get(b, n - 2) : last;
	int64_t ms = last->at_ms - before->at_ms;
	ret->cpu = ms > 0 && last->cpu_usec >= before->cpu_usec
			   ? (double)(last->cpu_usec - before->cpu_usec) / 1000.0 / (double)ms
			   : 0;
	ret->memory_bytes = (uint64_t)last->memory_kb * 1024;
	return true;
}

/* ---- sampling ---- */

static void take(struct box *b, const struct wire_stats_reply *r)
{
	struct history_sample s = { .at_ms = clock_wall_ms(),
				    .cpu_usec = r->cpu_usec,
				    .memory_kb = (uint32_t)MIN(r->memory_bytes >> 10, UINT32_MAX),
				    .disk_kb = (uint32_t)MIN(r->disk_bytes >> 10, UINT32_MAX),
				    .pids = (uint32_t)MIN(r->pids, UINT32_MAX),
				    .oom_kills = (uint32_t)MIN(r->oom_kills, UINT32_MAX),
				    .net_rx_kb = (uint32_t)MIN(r->net_rx_bytes >> 10, UINT32_MAX),
				    .net_tx_kb = (uint32_t)MIN(r->net_tx_bytes >> 10, UINT32_MAX) };
	add(b->in->history, &s);
	quotas_measured(b, r->memory_bytes);
	if (r->oom_kills > b->in->history->oom_kills)
		events_oom(b->in->core, b);
	b->in->history->oom_kills = r->oom_kills;
}

static int on_stats(struct call *call, const struct frame *f, int fd)
{
	struct sampling *s = CONTAINER(call, struct sampling, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_stats_reply reply;
	int r = mux_reply(call, f, &wire_stats_reply_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	struct box *b = boxes_by_id(s->core, view_of(s->box));
	s->busy = false;
	if (b && !list_empty(&b->in->history->queue))
		take(b, &reply);
	ask(s->core);
	return 0;
}

/* It has ended meanwhile, or the keeper is busy: the next round will tell. */
static void on_fail(struct call *call, const struct err *e)
{
	struct sampling *s = CONTAINER(call, struct sampling, call);
	s->busy = false;
	if (!s->core->stopping)
		ask(s->core);
}

static const struct call_ops ops = { .on_reply = on_stats, .on_fail = on_fail };

static struct sampling *free_slot(struct core *c)
{
	for (size_t i = 0; i < HISTORY_AT_ONCE; i++)
		if (!c->sampler->slots[i].busy)
			return &c->sampler->slots[i];
	return NULL;
}

static struct box *front(struct list *queue)
{
	return list_empty(queue) ? NULL : CONTAINER(queue->next, struct history, queue)->box;
}

/* Whoever is due first, or NULL. */
static struct box *first_due(struct sampler *q)
{
	struct box *fresh = front(&q->fresh), *old = front(&q->queue);
	return !fresh || (old && old->in->history->due_ms < fresh->in->history->due_ms) ? old : fresh;
}

static int sample(struct core *c, struct sampling *s, const struct box *b)
{
	struct wire_stats msg = { 0 };

	memcpy(s->box, b->id, sizeof(b->id));
	msg.id = view_of(s->box);
	s->call.ops = &ops;
	int r = keeper_call_for(c, view_of(b->spec.backend), &s->call, WIRE_TYPE_STATS, KEEPER_MS,
				&wire_stats_msg, &msg);
	s->busy = r >= 0;
	return r;
}

static void ask(struct core *c)
{
	struct sampler *q = c->sampler;
	uint64_t now = loop_now(c->loop);
	struct sampling *s;
	struct box *b;

	while ((b = first_due(q)) && (s = free_slot(c))) {
		if (b->in->history->due_ms > now) {
			loop_timer_start(c->loop, &q->timer, b->in->history->due_ms - now, on_timer);
			return;
		}
		list_del(&b->in->history->queue);
		if (b->state.status != BOX_RUNNING)
			continue; /* followed again when it runs again */
		b->in->history->due_ms = now + HISTORY_PERIOD_MS;
		list_append(&q->queue, &b->in->history->queue);
		if (sample(c, s, b) < 0)
			return; /* the program is about to end */
	}
}

void history_follow(struct box *b)
{
	struct core *c = b->in->core;

	if (c->stopping || b->in->hidden || !list_empty(&b->in->history->queue))
		return;
	b->in->history->due_ms = loop_now(c->loop) + FIRST_MS;
	list_append(&c->sampler->fresh, &b->in->history->queue);
	if (first_due(c->sampler) == b)
		loop_timer_start(c->loop, &c->sampler->timer, FIRST_MS, on_timer);
}

static void forget(struct box *b, const struct err *why)
{
	list_del(&b->in->history->queue);
	free(b->in->history->samples);
	b->in->history->samples = NULL;
	b->in->history->cap = b->in->history->n = b->in->history->head = 0;
}

static void init(struct box *b)
{
	b->in->history->box = b;
	list_init(&b->in->history->queue);
}

const struct box_part history_part = {
	.slot = offsetof(struct box_inside, history),
	.size = sizeof(struct history),
	.init = init,
	.runs = history_follow,
	.forget = forget,
};

void history_init(struct core *c)
{
	list_init(&c->sampler->queue);
	list_init(&c->sampler->fresh);
	for (size_t i = 0; i < HISTORY_AT_ONCE; i++)
		c->sampler->slots[i].core = c;
}

void history_stop(struct core *c)
{
	loop_timer_stop(&c->sampler->timer);
	for (size_t i = 0; i < HISTORY_AT_ONCE; i++)
		mux_cancel(&c->sampler->slots[i].call);
}
