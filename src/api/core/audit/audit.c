/*
 * The audit log: see audit.h.
 *
 * An entry goes to the store when its record ends. The store writes in the order of the calls, so that one
 * number (`settled`) says which entries are on disk, and the chain on disk is the one in memory. An entry
 * that the disk refuses is written to the daemon's log, lets its answer go, and is tried again.
 */
#include <errno.h>
#include <stdlib.h>

#include "audit_chain.h"
#include "audit_log.h"
#include "clock.h"
#include "core_base.h"
#include "keys.h"
#include "log.h"
#include "text.h"
#include "poison.h"

#define RETRY_MS 1000

struct record {
	struct list link;
	uint64_t number;
	const char *action, *via;
	char from[48], request[72];
	struct buf target;
};

static const char *const verdicts[AUDIT_VERDICTS] = { "", "done", "refused", "failed", "left" };
static const char *const chains[AUDIT_KINDS] = { "admins", "admins-sandboxes", "users", "users-sandboxes" };

const char *audit_verdict_name(enum audit_verdict v)
{
	return verdicts[v];
}

const char *audit_chain_name(const struct audit_entry *n)
{
	return chains[n->kind];
}

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

/* As much of it as fits, in whole characters of UTF-8 and without NUL: what is hashed is what is shown. */
static void cut(struct view v, char *out, size_t size)
{
	struct buf b = BUF_INIT(v.n * 3 + 1);
	struct view fixed;

	(void)!text_utf8_fix(&b, v);
	fixed = view_head(buf_view(&b), MIN(buf_len(&b), size - 1));
	fixed.n = text_utf8_prefix(fixed);
	for (size_t i = 0; i < fixed.n; i++)
		out[i] = fixed.p[i] ? fixed.p[i] : '?';
	out[fixed.n] = '\0';
	buf_done(&b);
}

static struct audit_entry *by_id(struct audit_log *log, uint64_t id)
{
	for (size_t k = 0; k < AUDIT_KINDS; k++)
		for (size_t i = log->rings[k].n; i > 0; i--) {
			struct audit_entry *v = at(&log->rings[k], i - 1);
			if (v->id == id)
				return v;
			if (v->id < id)
				break;
		}
	return NULL;
}

static void chain(struct audit_ring *r, struct audit_entry *v)
{
	const struct audit_fact fact = { .chain = view_of(audit_chain_name(v)),
					 .number = v->number,
					 .id = v->id,
					 .at_ms = v->at_ms,
					 .tenant = view_of(v->tenant->id),
					 .role = view_of(keys_role_name(v->role)),
					 .key = view_of(v->key),
					 .via = view_of(v->via),
					 .from = view_of(v->from),
					 .request = view_of(v->request),
					 .action = view_of(v->action),
					 .target = view_of(v->target),
					 .detail = view_of(v->detail),
					 .verdict = view_of(audit_verdict_name(v->verdict)),
					 .code = view_of(v->code) };

	memcpy(v->before, r->hash, sizeof(v->before));
	audit_chain_hash(&fact, v->before, v->hash);
	memcpy(r->hash, v->hash, sizeof(r->hash));
}

/* ---- the store ---- */

/* Of one row. */
struct row {
	struct core *core;
	uint64_t id;
};

static void on_retry(struct loop_timer *t);

static void wake(struct audit_log *log)
{
	while (!list_empty(&log->waits)) {
		struct audit_wait *w = CONTAINER(log->waits.next, struct audit_wait, link);
		if (w->id > log->settled)
			return;
		list_del(&w->link);
		w->stored(w);
	}
}

static void on_stored(void *arg, const struct err *e)
{
	struct row *row = arg;
	struct core *c = row->core;
	struct audit_log *log = c->audit;
	struct audit_entry *v = by_id(log, row->id); /* NULL: pushed out since */

	core_store_result(c, e);
	if (v) {
		v->stored = !e;
		v->failed = e;
	}
	if (e && v && row->id > log->settled)
		log_error("the audit log cannot be written (%s): %s of %s by key %s, request %s: %s", e->msg,
			  v->action, log_quoted(view_of(v->target)), v->key, v->request,
			  audit_verdict_name(v->verdict));
	if (e && v && !loop_timer_active(&log->retry) && !c->stopping)
		loop_timer_start(c->loop, &log->retry, RETRY_MS, on_retry);
	log->settled = MAX(log->settled, row->id);
	free(row);
	wake(log);
}

static void put(struct core *c, const struct audit_entry *v)
{
	struct row *row = malloc(sizeof(*row));

	if (!row) {
		log_error("no memory for the audit log: %s by key %s", v->action, v->key);
		c->audit->settled = MAX(c->audit->settled, v->id);
		return;
	}
	*row = (struct row){ c, v->id };
	store_audit_put(c->store,
			&(struct store_audit){ .id = v->id,
					       .kind = v->kind,
					       .number = v->number,
					       .at_ms = v->at_ms,
					       .role = v->role,
					       .tenant = view_of(v->tenant->id),
					       .key = view_of(v->key),
					       .via = view_of(v->via),
					       .origin = view_of(v->from),
					       .request = view_of(v->request),
					       .action = view_of(v->action),
					       .target = view_of(v->target),
					       .detail = view_of(v->detail),
					       .verdict = view_of(audit_verdict_name(v->verdict)),
					       .code = view_of(v->code),
					       .hash = { (const char *)v->before, 2 * SHA256_SIZE } },
			on_stored, row);
}

static void on_retry(struct loop_timer *t)
{
	struct audit_log *log = CONTAINER(t, struct audit_log, retry);

	for (size_t k = 0; k < AUDIT_KINDS; k++)
		for (size_t i = 0; i < log->rings[k].n; i++) {
			struct audit_entry *v = at(&log->rings[k], i);
			if (!v->failed)
				continue;
			v->failed = false;
			put(log->core, v);
		}
}

/* ---- records ---- */

uint64_t audit_open(struct core *c, const struct audit_opening *o)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r) {
		log_error("no memory for the audit log: %s", o->action);
		return 0;
	}
	r->number = ++c->audit->next_record;
	r->action = o->action;
	r->via = o->via;
	cut(o->from, r->from, sizeof(r->from));
	cut(o->request, r->request, sizeof(r->request));
	buf_init(&r->target, AUDIT_TARGET);
	list_append(&c->audit->records, &r->link);
	return r->number;
}

static struct record *find(struct core *c, uint64_t number)
{
	if (number)
		LIST_EACH (it, &c->audit->records)
			if (CONTAINER(it, struct record, link)->number == number)
				return CONTAINER(it, struct record, link);
	return NULL;
}

static void end(struct record *r)
{
	list_del(&r->link);
	buf_done(&r->target);
	free(r);
}

static bool has(struct view objects, struct view one)
{
	while (objects.p)
		if (view_eq(view_split(objects, ' ', &objects), one))
			return true;
	return false;
}

void audit_about(struct core *c, const struct actor *a, struct view object)
{
	struct record *r = a ? find(c, a->record) : NULL;

	if (!r || !object.n || has(buf_view(&r->target), object))
		return;
	if (buf_len(&r->target))
		(void)!buf_putc(&r->target, ' ');
	(void)!buf_add(&r->target, view_head(object, MIN(object.n, AUDIT_TARGET - buf_len(&r->target))));
}

void audit_drop(struct core *c, uint64_t record)
{
	struct record *r = find(c, record);

	if (r)
		end(r);
}

static uint8_t kind_of(const struct actor *a, struct view action)
{
	bool often = view_starts(action, "sandbox.") || view_starts(action, "dashboard."),
	     admin = a->role == STORE_ROLE_ADMIN;

	return admin ? (often ? AUDIT_BOXES : AUDIT_BY_ADMINS)
		     : (often ? AUDIT_BOXES_OF_USERS : AUDIT_BY_USERS);
}

static struct audit_entry *add(struct core *c, const struct record *r, const struct actor *a,
			       enum audit_verdict verdict, enum err_code code, struct view detail)
{
	uint8_t kind = kind_of(a, view_of(r->action));
	struct audit_ring *ring = &c->audit->rings[kind];
	struct audit_entry *v = push(ring);

	if (!v) {
		log_error("no memory for the audit log: %s by key %s", r->action, a->key);
		return NULL;
	}
	*v = (struct audit_entry){ .id = ++c->audit->next_id,
				   .number = ++ring->number,
				   .at_ms = clock_wall_ms(),
				   .tenant = a->tenant,
				   .role = a->role,
				   .verdict = verdict,
				   .kind = kind };
	memcpy(v->from, r->from, sizeof(v->from));
	memcpy(v->request, r->request, sizeof(v->request));
	cut(view_of(a->key), v->key, sizeof(v->key));
	cut(view_of(r->via), v->via, sizeof(v->via));
	cut(view_of(r->action), v->action, sizeof(v->action));
	cut(buf_view(&r->target), v->target, sizeof(v->target));
	cut(detail, v->detail, sizeof(v->detail));
	cut(view_of(code ? err_name(code) : ""), v->code, sizeof(v->code));
	chain(ring, v);
	return v;
}

bool audit_close(struct core *c, uint64_t record, const struct actor *a, enum audit_verdict verdict,
		 enum err_code code, struct view detail, struct audit_wait *w)
{
	struct audit_log *log = c->audit;
	struct record *r = find(c, record);
	struct audit_entry *v = r && a->tenant && !c->stopping ? add(c, r, a, verdict, code, detail) : NULL;

	if (r)
		end(r);
	if (!v)
		return false;
	struct audit_ring *ring = &log->rings[v->kind];
	log_info("%s %s by key %s, request %s: %s", v->action, log_quoted(view_of(v->target)), v->key,
		 v->request, v->code[0] ? v->code : audit_verdict_name(v->verdict));
	put(c, v);
	if (ring->n == AUDIT_KEPT)
		store_audit_trim(c->store, v->kind, at(ring, 0)->id, core_store_done, c);
	if (!w || v->id <= log->settled)
		return false;
	w->id = v->id;
	list_append(&log->waits, &w->link);
	return true;
}

/* ---- showing ---- */

static bool matches(const struct audit_entry *v, const struct actor *a, const struct audit_filter *f)
{
	struct view action = view_of(v->action), rest;

	return (a->role == STORE_ROLE_ADMIN || v->tenant == a->tenant) && (!f->before || v->id < f->before) &&
	       (!f->since_ms || v->at_ms >= f->since_ms) && (!f->until_ms || v->at_ms < f->until_ms) &&
	       (!f->tenant.n || view_is(f->tenant, v->tenant->id) || view_is(f->tenant, v->tenant->name)) &&
	       (!f->key.n || view_is(f->key, v->key)) &&
	       (!f->action.n || view_eq(f->action, action) ||
		view_eq(f->action, view_split(action, '.', &rest))) &&
	       (!f->target.n || has(view_of(v->target), f->target));
}

int audit_each(struct core *c, const struct actor *a, const struct audit_filter *f,
	       bool (*each)(void *arg, const struct audit_entry *n), void *arg, struct err *e)
{
	size_t left[AUDIT_KINDS];

	if (auth_permit(a, ACT_EVENTS, NULL, e) < 0)
		return -1;
	for (size_t k = 0; k < AUDIT_KINDS; k++)
		left[k] = c->audit->rings[k].n;
	for (;;) {
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
			return 0;
		left[from]--;
		if (matches(newest, a, f) && !each(arg, newest))
			return 0;
	}
}

/* ---- life ---- */

void audit_init(struct core *c)
{
	list_init(&c->audit->records);
	list_init(&c->audit->waits);
}

static enum audit_verdict verdict_of(struct view name)
{
	for (unsigned i = AUDIT_DONE; i < AUDIT_VERDICTS; i++)
		if (view_is(name, verdicts[i]))
			return (enum audit_verdict)i;
	return AUDIT_FAILED;
}

int audit_load(struct core *c, const struct store_audit *row)
{
	const struct tenant *tenant = keys_tenant(c, row->tenant);

	c->audit->next_id = c->audit->settled = MAX(c->audit->next_id, row->id);
	if (!tenant || row->kind >= AUDIT_KINDS)
		return 0; /* of a newer version: not ours to show */
	struct audit_ring *r = &c->audit->rings[row->kind];
	struct audit_entry *v = push(r);
	if (!v)
		return -ENOMEM;
	*v = (struct audit_entry){ .id = row->id,
				   .number = row->number,
				   .at_ms = row->at_ms,
				   .tenant = tenant,
				   .role = row->role,
				   .verdict = verdict_of(row->verdict),
				   .kind = (uint8_t)row->kind,
				   .stored = true };
	cut(row->key, v->key, sizeof(v->key));
	cut(row->via, v->via, sizeof(v->via));
	cut(row->origin, v->from, sizeof(v->from));
	cut(row->request, v->request, sizeof(v->request));
	cut(row->action, v->action, sizeof(v->action));
	cut(row->target, v->target, sizeof(v->target));
	cut(row->detail, v->detail, sizeof(v->detail));
	cut(row->code, v->code, sizeof(v->code));
	if (row->hash.n == 2 * SHA256_SIZE) { /* as it was stored: whoever changed the row is found out */
		memcpy(v->before, row->hash.p, SHA256_SIZE);
		memcpy(v->hash, row->hash.p + SHA256_SIZE, SHA256_SIZE);
		memcpy(r->hash, v->hash, sizeof(r->hash));
		r->number = v->number;
	}
	return 0;
}

void audit_stop(struct core *c)
{
	loop_timer_stop(&c->audit->retry);
	c->audit->settled = UINT64_MAX; /* store_close writes what is under way */
	wake(c->audit);
}

void audit_done(struct core *c)
{
	LIST_EACH (it, &c->audit->records)
		end(CONTAINER(it, struct record, link));
	for (size_t k = 0; k < AUDIT_KINDS; k++)
		free(c->audit->rings[k].entries);
}
