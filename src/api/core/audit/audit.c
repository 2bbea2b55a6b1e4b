/*
 * The audit log: see audit.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "audit_log.h"
#include "clock.h"
#include "core_base.h"
#include "keys.h"
#include "log.h"
#include "poison.h"

#define FLUSH_MS 1000

/* ---- the rings ---- */

static struct audit_entry *at(const struct audit_ring *r, size_t i)
{
	return &r->entries[(r->head + i) % AUDIT_KEPT];
}

/* The place of a new entry: that of the oldest where all are taken. NULL: no memory. */
static struct audit_entry *push(struct audit_ring *r)
{
	if (!r->entries)
		r->entries = calloc(AUDIT_KEPT, sizeof(*r->entries));
	if (!r->entries)
		return NULL;
	if (r->n < AUDIT_KEPT)
		return at(r, r->n++);
	r->head = (r->head + 1) % AUDIT_KEPT;
	return at(r, AUDIT_KEPT - 1);
}

/* As much of it as fits; whole characters. */
static void cut(struct view v, char *out, size_t size)
{
	size_t n = MIN(v.n, size - 1);

	while (n < v.n && n > 0 && ((unsigned char)v.p[n] & 0xc0) == 0x80)
		n--;
	memcpy(out, v.p ? v.p : "", n);
	out[n] = '\0';
}

static void fill(struct audit_entry *v, const struct store_audit *row, const struct tenant *tenant)
{
	*v = (struct audit_entry){
		.id = row->id, .at_ms = row->at_ms, .tenant = tenant, .role = row->role, .status = row->status
	};
	cut(row->key, v->key, sizeof(v->key));
	cut(row->via, v->via, sizeof(v->via));
	cut(row->action, v->action, sizeof(v->action));
	cut(row->target, v->target, sizeof(v->target));
	cut(row->detail, v->detail, sizeof(v->detail));
}

/* ---- the store ---- */

static void flush_ring(struct core *c, uint32_t kind)
{
	struct audit_ring *r = &c->audit->rings[kind];
	bool some = false;

	for (size_t i = 0; i < r->n; i++) {
		const struct audit_entry *v = at(r, i);
		if (v->id <= r->stored)
			continue;
		r->stored = v->id;
		some = true;
		store_audit_put(c->store,
				&(struct store_audit){ .id = v->id,
						       .kind = kind,
						       .status = v->status,
						       .at_ms = v->at_ms,
						       .role = v->role,
						       .tenant = view_of(v->tenant->id),
						       .key = view_of(v->key),
						       .via = view_of(v->via),
						       .action = view_of(v->action),
						       .target = view_of(v->target),
						       .detail = view_of(v->detail) },
				core_store_done, c);
	}
	if (some && r->n == AUDIT_KEPT)
		store_audit_trim(c->store, kind, at(r, 0)->id, core_store_done, c);
}

static void flush(struct core *c)
{
	for (uint32_t kind = 0; kind < AUDIT_KINDS; kind++)
		flush_ring(c, kind);
}

static void on_flush(struct loop_timer *t)
{
	flush(CONTAINER(t, struct audit_log, flush)->core);
}

/* ---- taking and showing ---- */

static uint32_t kind_of(const struct actor *a, struct view action)
{
	if (view_starts(action, "sandbox.") || view_starts(action, "dashboard."))
		return AUDIT_BOXES;
	return a->role == STORE_ROLE_ADMIN ? AUDIT_BY_ADMINS : AUDIT_BY_USERS;
}

void audit_note(struct core *c, const struct actor *a, const struct audit_note *n)
{
	struct audit_log *log = c->audit;

	if (c->stopping)
		return;
	struct audit_entry *v = push(&log->rings[kind_of(a, view_of(n->action))]);
	if (!v) {
		log_error("no memory for the audit log: %s by key %s", n->action, a->key);
		return;
	}
	fill(v,
	     &(struct store_audit){ .id = ++log->next_id,
				    .at_ms = clock_wall_ms(),
				    .role = a->role,
				    .status = n->status,
				    .key = view_of(a->key),
				    .via = view_of(n->via),
				    .action = view_of(n->action),
				    .target = n->target,
				    .detail = n->detail },
	     a->tenant);
	if (!loop_timer_active(&log->flush))
		loop_timer_start(c->loop, &log->flush, FLUSH_MS, on_flush);
}

int audit_each(struct core *c, const struct actor *a, uint64_t before, uint32_t limit,
	       void (*each)(void *arg, const struct audit_entry *n), void *arg, struct err *e)
{
	size_t left[AUDIT_KINDS];

	if (auth_permit(a, ACT_EVENTS, NULL, e) < 0)
		return -1;
	for (size_t k = 0; k < AUDIT_KINDS; k++)
		left[k] = c->audit->rings[k].n;
	while (limit) {
		const struct audit_entry *newest = NULL;
		size_t from = 0;
		for (size_t k = 0; k < AUDIT_KINDS; k++) {
			const struct audit_entry *v = left[k] ? at(&c->audit->rings[k], left[k] - 1) : NULL;
			if (v && (!newest || v->id > newest->id)) {
				newest = v;
				from = k;
			}
		}
		if (!newest)
			break;
		left[from]--;
		if ((before && newest->id >= before) ||
		    (a->role != STORE_ROLE_ADMIN && newest->tenant != a->tenant))
			continue;
		each(arg, newest);
		limit--;
	}
	return 0;
}

/* ---- life ---- */

int audit_load(struct core *c, const struct store_audit *row)
{
	const struct tenant *tenant = keys_tenant(c, row->tenant);

	c->audit->next_id = MAX(c->audit->next_id, row->id);
	if (!tenant || row->kind >= AUDIT_KINDS)
		return 0; /* of a newer version: not ours to show */
	struct audit_ring *r = &c->audit->rings[row->kind];
	struct audit_entry *v = push(r);
	if (!v)
		return -ENOMEM;
	fill(v, row, tenant);
	r->stored = row->id;
	return 0;
}

void audit_stop(struct core *c)
{
	loop_timer_stop(&c->audit->flush);
	flush(c);
}

void audit_done(struct core *c)
{
	for (size_t k = 0; k < AUDIT_KINDS; k++)
		free(c->audit->rings[k].entries);
}
