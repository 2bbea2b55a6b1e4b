/*
 * The log of calls to models: see ailog.h.
 */
#include "ailog.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "who.h"
#include "poison.h"

struct place {
	struct map_node node;
	struct list calls; /* by their ids */
	size_t n;
	char box[48];
};

/* The text of one call. */
struct text {
	struct list link;
	struct entry *entry;
	size_t n;
	char bytes[];
};

struct entry {
	struct list all, mine;
	struct text *of; /* what l.bodies points to, or NULL */
	struct place *place;
	struct store_ai_log l; /* its views point behind it */
	char text[];
};

static struct place *place_of(const struct core *c, struct view box)
{
	struct map_node *n = map_get(&c->ailog->boxes, box);
	return n ? CONTAINER(n, struct place, node) : NULL;
}

static struct place *place_make(struct core *c, struct view box)
{
	struct place *p = place_of(c, box);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	list_init(&p->calls);
	if (view_to_str(box, p->box, sizeof(p->box)) < 0 ||
	    map_put(&c->ailog->boxes, &p->node, view_of(p->box)) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

static void count(struct core *c, const struct entry *t, enum ledger_item i, int64_t change)
{
	const struct tenant *tenant = keys_tenant(c, t->l.tenant);

	if (tenant)
		ledger_count(c, tenant, i, change);
}

static void drop_text(struct core *c, struct entry *t)
{
	if (!t->of)
		return;
	count(c, t, LEDGER_AI_TEXT, -(int64_t)t->of->n);
	list_del(&t->of->link);
	c->ailog->n_text -= t->of->n;
	free(TAKE_PTR(t->of));
	t->l.bodies = (struct store_ai_bodies){ 0 };
}

static void drop(struct core *c, struct entry *t)
{
	drop_text(c, t);
	struct place *p = t->place;

	list_del(&t->all);
	list_del(&t->mine);
	c->ailog->n--;
	count(c, t, LEDGER_AI_CALLS, -1);
	free(t);
	if (--p->n == 0) {
		map_del(&c->ailog->boxes, &p->node);
		free(p);
	}
}

static void forget(struct core *c, struct entry *t)
{
	store_ai_log_delete(c->store, t->l.id, core_store_done, c);
	drop(c, t);
}

static bool is_of(const struct entry *t, const struct tenant *tenant)
{
	return !tenant || view_is(t->l.tenant, tenant->id);
}

/* The oldest text of the tenant that has the most of it. */
static struct entry *find_text(const struct core *c)
{
	const struct tenant *most = ledger_largest(c, LEDGER_AI_TEXT);

	LIST_EACH (it, &c->ailog->texts)
		if (is_of(CONTAINER(it, struct text, link)->entry, most))
			return CONTAINER(it, struct text, link)->entry;
	return CONTAINER(c->ailog->texts.next, struct text, link)->entry;
}

/* The oldest call of the tenant that has the most. */
static struct entry *find_call(const struct core *c)
{
	const struct tenant *most = ledger_largest(c, LEDGER_AI_CALLS);

	LIST_EACH (it, &c->ailog->all)
		if (is_of(CONTAINER(it, struct entry, all), most))
			return CONTAINER(it, struct entry, all);
	return CONTAINER(c->ailog->all.next, struct entry, all);
}

/* Instead of what it points to. Without memory there is none. */
static void take_text(struct core *c, struct entry *t)
{
	struct store_ai_bodies *b = &t->l.bodies;
	size_t n = b->request.n + b->response.n;
	struct text *x = b->kept ? malloc(sizeof(*x) + n) : NULL;

	if (!x) {
		*b = (struct store_ai_bodies){ 0 };
		return;
	}
	if (b->request.n)
		memcpy(x->bytes, b->request.p, b->request.n);
	if (b->response.n)
		memcpy(x->bytes + b->request.n, b->response.p, b->response.n);
	b->request.p = x->bytes;
	b->response.p = x->bytes + b->request.n;
	x->entry = t;
	x->n = n;
	t->of = x;
	list_append(&c->ailog->texts, &x->link);
	c->ailog->n_text += n;
	count(c, t, LEDGER_AI_TEXT, (int64_t)n);
	while (c->ailog->n_text > AILOG_TEXT) {
		struct entry *oldest = find_text(c);
		store_ai_bodies_delete(c->store, oldest->l.id, core_store_done, c);
		drop_text(c, oldest);
	}
}

static struct entry *entry_new(const struct store_ai_log *l)
{
	const size_t views[] = {
		offsetof(struct store_ai_log, tenant),   offsetof(struct store_ai_log, box),
		offsetof(struct store_ai_log, provider), offsetof(struct store_ai_log, endpoint),
		offsetof(struct store_ai_log, model),    offsetof(struct store_ai_log, finish)
	};
	size_t n = l->tenant.n + l->box.n + l->provider.n + l->endpoint.n + l->model.n + l->finish.n, at = 0;
	struct entry *t = calloc(1, sizeof(*t) + n);

	if (!t)
		return NULL;
	t->l = *l;
	for (size_t i = 0; i < ELEMS(views); i++) {
		struct view *v = (struct view *)((char *)&t->l + views[i]);
		if (v->n)
			memcpy(t->text + at, v->p, v->n);
		v->p = t->text + at;
		at += v->n;
	}
	return t;
}

/* A long call ends behind younger ones: the box's list is by id, so that pages are. */
static void put_in_order(struct place *p, struct entry *t)
{
	struct list *at = p->calls.prev;

	while (at != &p->calls && CONTAINER(at, struct entry, mine)->l.id > t->l.id)
		at = at->prev;
	list_append(at->next, &t->mine); /* before the next, that is: behind `at` */
	p->n++;
	t->place = p;
}

int ailog_load(struct core *c, const struct store_ai_log *row)
{
	struct entry *t = entry_new(row);
	struct place *p = t ? place_make(c, row->box) : NULL;

	if (!p) {
		free(t);
		return -ENOMEM;
	}
	put_in_order(p, t);
	list_append(&c->ailog->all, &t->all);
	c->ailog->n++;
	count(c, t, LEDGER_AI_CALLS, 1);
	take_text(c, t);
	if (p->n > AILOG_BOX)
		forget(c, CONTAINER(p->calls.next, struct entry, mine));
	if (c->ailog->n > AILOG_ALL)
		forget(c, find_call(c));
	return 0;
}

void ailog_add(struct core *c, const struct store_ai_log *l)
{
	store_ai_log_put(c->store, l, core_store_done, c);
	if (ailog_load(c, l) < 0)
		log_error("no memory for the log of calls to models");
}

void ailog_each(const struct core *c, struct view box, uint64_t before,
		bool (*each)(void *arg, const struct store_ai_log *l), void *arg)
{
	const struct place *p = place_of(c, box);

	for (const struct list *at = p ? p->calls.prev : NULL; p && at != &p->calls; at = at->prev) {
		const struct store_ai_log *l = &CONTAINER(at, struct entry, mine)->l;
		if ((!before || l->id < before) && !each(arg, l))
			return;
	}
}

const struct store_ai_log *ailog_find(const struct core *c, struct view box, uint64_t id)
{
	const struct place *p = place_of(c, box);

	for (const struct list *at = p ? p->calls.prev : NULL; p && at != &p->calls; at = at->prev) {
		const struct store_ai_log *l = &CONTAINER(at, struct entry, mine)->l;
		if (l->id == id)
			return l;
	}
	return NULL;
}

static void forget_box(struct box *b, const struct err *why)
{
	struct core *c = b->in->core;
	struct place *p = place_of(c, view_of(b->id));

	for (struct list *at = p ? p->calls.next : NULL; p && at != &p->calls; at = at->next)
		drop_text(c, CONTAINER(at, struct entry, mine));
}

const struct box_part ailog_part = { .forget = forget_box };

void ailog_init(struct core *c)
{
	list_init(&c->ailog->texts);
	map_init(&c->ailog->boxes);
	list_init(&c->ailog->all);
}

void ailog_done(struct core *c)
{
	while (!list_empty(&c->ailog->all))
		drop(c, CONTAINER(c->ailog->all.next, struct entry, all));
	map_done(&c->ailog->boxes);
}
