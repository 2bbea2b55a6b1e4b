/*
 * Which events are kept, and the numbers that tenants see.
 *
 * The log has EVENTS_KEPT places for all. When they are taken, the tenant with the most events loses its
 * oldest: nobody pushes out what others have, as long as these have less.
 *
 * An event has an id, counted for the whole installation, and a number, counted for its tenant. Only admins
 * see ids: from the gaps between its own, a tenant could tell how much others do. A tenant's newest event
 * always stays: its number is what the next one is counted from.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "events.h"
#include "ledger.h"
#include "poison.h"

#define KEPT_MS ((int64_t)EVENTS_DAYS * 24 * 60 * 60 * 1000)

/* What the log knows of a tenant. */
struct events_of {
	struct map_node by_tenant;
	const struct tenant *tenant;
	uint64_t next; /* number of its next event */
	size_t n;      /* of it that are kept */
};

static struct events_of *find(const struct events *v, const struct tenant *t)
{
	struct map_node *n = t ? map_get(&v->tenants, view_of(t->id)) : NULL;
	return n ? CONTAINER(n, struct events_of, by_tenant) : NULL;
}

static struct events_of *find_or_make(struct events *v, const struct tenant *t)
{
	struct events_of *of = find(v, t);

	if (of)
		return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	of->tenant = t;
	of->next = t->events_from + 1;
	if (map_put(&v->tenants, &of->by_tenant, view_of(t->id)) < 0) {
		free(of);
		return NULL;
	}
	return of;
}

int events_number(struct core *c, struct event *event)
{
	struct events_of *of = find_or_make(c->events, event->tenant);

	if (!of)
		return -ENOMEM;
	event->id = c->events->next_id++;
	event->number = of->next++;
	return 0;
}

/* ---- what is kept ---- */

static void drop(struct core *c, size_t i)
{
	struct events *v = c->events;
	struct event *event = v->kept[i];
	struct events_of *of = find(v, event->tenant);

	ledger_count(c, event->tenant, LEDGER_EVENTS, -1);
	of->n--;
	memmove(v->kept + i, v->kept + i + 1, (v->n - i - 1) * sizeof(*v->kept));
	v->n--;
	free(event);
}

/* The oldest of the tenant that has the most. */
static size_t find_victim(const struct core *c)
{
	const struct tenant *most = ledger_largest(c, LEDGER_EVENTS);
	const struct events *v = c->events;
	size_t i = 0;

	while (most && i + 1 < v->n && v->kept[i]->tenant != most)
		i++;
	return i;
}

int events_keep(struct core *c, struct event *event)
{
	struct events *v = c->events;
	struct events_of *of = find_or_make(v, event->tenant);

	if (!of)
		return -ENOMEM;
	v->next_id = MAX(v->next_id, event->id + 1);
	of->next = MAX(of->next, event->number + 1);
	of->n++;
	ledger_count(c, event->tenant, LEDGER_EVENTS, 1);
	v->kept[v->n++] = event; /* it has one place more than may be taken */
	if (v->n > EVENTS_KEPT) {
		size_t i = find_victim(c);
		if (v->started && !c->stopping)
			store_event_drop(c->store, v->kept[i]->id, core_store_done, c);
		drop(c, i);
	}
	return 0;
}

void events_trim(struct core *c)
{
	struct events *v = c->events;
	int64_t oldest_ms = clock_wall_ms() - KEPT_MS;
	bool some = false;

	for (size_t i = 0; i < v->n;) {
		const struct events_of *of = find(v, v->kept[i]->tenant);
		if (v->kept[i]->at_ms >= oldest_ms || of->n == 1) {
			i++;
			continue;
		}
		drop(c, i);
		some = true;
	}
	if (some && !c->stopping)
		store_event_trim(c->store, oldest_ms, core_store_done, c);
}

size_t events_place_after(const struct core *c, uint64_t after)
{
	const struct events *v = c->events;
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (v->kept[mid]->id <= after)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- what an actor sees of it ---- */

static bool sees_all(const struct actor *a)
{
	return a->role == STORE_ROLE_ADMIN;
}

uint64_t events_shown(const struct actor *a, const struct event *v)
{
	return sees_all(a) ? v->id : v->number;
}

uint64_t events_last_shown(const struct core *c, const struct actor *a)
{
	for (size_t i = c->events->n; i > 0; i--)
		if (sees_all(a) || c->events->kept[i - 1]->tenant == a->tenant)
			return events_shown(a, c->events->kept[i - 1]);
	return sees_all(a) ? c->events->next_id - 1 : a->tenant ? a->tenant->events_from : 0;
}

uint64_t events_first_shown(const struct core *c, const struct actor *a)
{
	for (size_t i = 0; i < c->events->n; i++)
		if (sees_all(a) || c->events->kept[i]->tenant == a->tenant)
			return events_shown(a, c->events->kept[i]);
	return events_last_shown(c, a) + 1;
}

uint64_t events_meant(const struct core *c, const struct actor *a, uint64_t shown)
{
	const struct events *v = c->events;

	if (sees_all(a))
		return shown;
	for (size_t i = v->n; i > 0; i--)
		if (v->kept[i - 1]->tenant == a->tenant && v->kept[i - 1]->number <= shown)
			return v->kept[i - 1]->id;
	return 0;
}

/* ---- life ---- */

int events_init(struct core *c)
{
	c->events->next_id = 1;
	list_init(&c->events->watches);
	map_init(&c->events->tenants);
	c->events->kept = calloc(EVENTS_KEPT + 1, sizeof(struct event *));
	return c->events->kept ? 0 : -ENOMEM;
}

void events_done(struct core *c)
{
	struct events *v = c->events;
	struct map_node *n;

	loop_timer_stop(&v->trim);
	while (v->n)
		drop(c, v->n - 1);
	free(v->kept);
	v->kept = NULL;
	while ((n = map_first(&v->tenants))) {
		map_del(&v->tenants, n);
		free(CONTAINER(n, struct events_of, by_tenant));
	}
	map_done(&v->tenants);
}
