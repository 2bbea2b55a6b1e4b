/*
 * What the connections of one box share: see box.h.
 */
#include "box.h"

#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "poison.h"

#define NAMES          512 /* addresses that are remembered for a box */
#define REFILL_MS      50
#define QUESTIONS      50.0 /* to DNS in a second */
#define QUESTIONS_MOST 200.0

/* ---- life ---- */

void box_init(struct gate_box *b, struct flows *all)
{
	b->all = all;
	b->tcp.fd = b->steer = -1;
	b->questions_left = QUESTIONS_MOST;
	list_init(&b->flows);
	list_init(&b->lingers);
}

void box_done(struct gate_box *b)
{
	flow_end_all(b);
	loop_timer_stop(&b->refill);
	loop_io_close(&b->tcp);
	policy_free(b->policy);
	for (unsigned i = 0; i < b->n_names; i++)
		free(b->names[i].name);
	free(b->names);
}

/* ---- limits ---- */

static void refill(struct gate_box *b)
{
	uint64_t now = loop_now(b->all->loop), passed = now - b->tokens_ms;
	const struct policy *p = b->policy;

	if (b->tokens_ms == 0)
		passed = 1000;
	if (passed == 0)
		return;
	b->tokens_ms = now;
	passed = MIN(passed, 1000u);
	b->questions_left = MIN(QUESTIONS_MOST, b->questions_left + QUESTIONS * (double)passed / 1000);
	if (p && p->bytes_per_second)
		b->bytes_left = MIN(p->bytes_per_second, b->bytes_left + p->bytes_per_second * passed / 1000);
	if (p && p->connects_per_second)
		b->connects_left =
			MIN((double)p->connects_per_second,
			    b->connects_left + (double)p->connects_per_second * (double)passed / 1000);
}

static void on_refill(struct loop_timer *t)
{
	struct gate_box *b = CONTAINER(t, struct gate_box, refill);
	refill(b);
	if (b->tcp.fd >= 0) /* stopped when there were no fds left */
		(void)!loop_io_want(&b->tcp, EPOLLIN);
	flow_let_go(b);
}

bool box_may_connect(struct gate_box *b)
{
	refill(b);
	if (!b->policy || !b->policy->connects_per_second)
		return true;
	if (b->connects_left < 1)
		return false;
	b->connects_left -= 1;
	return true;
}

bool box_may_ask(struct gate_box *b)
{
	refill(b);
	if (b->questions_left < 1)
		return false;
	b->questions_left -= 1;
	return true;
}

size_t box_allowance(struct gate_box *b, size_t want)
{
	const struct policy *p = b->policy;

	if (!p || !p->bytes_per_second)
		return want;
	refill(b);
	if (b->bytes_left == 0 && !loop_timer_active(&b->refill))
		loop_timer_start(b->all->loop, &b->refill, REFILL_MS, on_refill);
	return (size_t)MIN((uint64_t)want, b->bytes_left);
}

uint64_t box_used(const struct gate_box *b)
{
	return b->bytes_before + b->bytes_in + b->bytes_out;
}

void box_count(struct gate_box *b, bool out, size_t n)
{
	*(out ? &b->bytes_out : &b->bytes_in) += n;
	b->bytes_left -= MIN(b->bytes_left, n);
	b->all->ops->used(b);
}

/* ---- names of addresses ---- */

void box_remember(struct gate_box *b, const struct addr *a, const char *name)
{
	if (box_was_told(b, a, view_of(name)) && view_is(box_name(b, a), name))
		return;
	if (!b->names)
		b->names = calloc(NAMES, sizeof(*b->names));
	char *copy = b->names ? strdup(name) : NULL;
	if (!copy)
		return;
	struct box_name *n = &b->names[b->next_name];
	free(n->name);
	*n = (struct box_name){ *a, copy };
	b->next_name = (b->next_name + 1) % NAMES;
	b->n_names = MIN(b->n_names + 1, NAMES);
}

/* The latest one. */
struct view box_name(const struct gate_box *b, const struct addr *a)
{
	for (unsigned i = 0; i < b->n_names; i++) {
		const struct box_name *n = &b->names[(b->next_name + NAMES - 1 - i) % NAMES];
		if (addr_eq(&n->addr, a))
			return view_of(n->name);
	}
	return VIEW("");
}

bool box_was_told(const struct gate_box *b, const struct addr *a, struct view name)
{
	for (unsigned i = 0; i < b->n_names; i++)
		if (addr_eq(&b->names[i].addr, a) && view_is(name, b->names[i].name))
			return true;
	return false;
}

void box_later(struct gate_box *b)
{
	(void)!loop_io_want(&b->tcp, 0);
	if (!loop_timer_active(&b->refill))
		loop_timer_start(b->all->loop, &b->refill, REFILL_MS, on_refill);
}
