/*
 * Accounts of what boxes use of models: see usage.h.
 */
#include "usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth.h"
#include "clock.h"
#include "core_state.h"
#include "poison.h"

#define KEY_MAX 320

struct account {
	struct map_node node;
	struct budget budget;
	char key[64];
};

void usage_init(struct core *c)
{
	map_init(&c->usage.accounts);
	map_init(&c->usage.rows);
	list_init(&c->usage.order);
}

void usage_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->usage.accounts));) {
		map_del(&c->usage.accounts, n);
		free(CONTAINER(n, struct account, node));
	}
	for (struct map_node *n; (n = map_first(&c->usage.rows));) {
		map_del(&c->usage.rows, n);
		free(CONTAINER(n, struct usage_row, node));
	}
	map_done(&c->usage.accounts);
	map_done(&c->usage.rows);
}

static struct budget *account(struct core *c, char kind, struct view id)
{
	char key[64];

	snprintf(key, sizeof(key), "%c:%.*s", kind, VIEW_ARG(view_head(id, sizeof(key) - 3)));
	struct map_node *n = map_get(&c->usage.accounts, view_of(key));
	if (n)
		return &CONTAINER(n, struct account, node)->budget;
	struct account *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	memcpy(a->key, key, sizeof(key));
	if (map_put(&c->usage.accounts, &a->node, view_of(a->key)) < 0) {
		free(a);
		return NULL;
	}
	return &a->budget;
}

/* ---- rows ---- */

static struct usage_row *row_of(struct core *c, const struct store_usage *u)
{
	char key[KEY_MAX];
	int n = snprintf(key, sizeof(key), "%lld %.*s %.*s %.*s %.*s", (long long)u->day, VIEW_ARG(u->tenant), VIEW_ARG(u->box),
			 VIEW_ARG(u->provider), VIEW_ARG(u->model));
	if (n < 0 || (size_t)n >= sizeof(key))
		return NULL;
	struct view k = { key, (size_t)n };
	struct map_node *found = map_get(&c->usage.rows, k);
	if (found)
		return CONTAINER(found, struct usage_row, node);
	struct usage_row *r = calloc(1, sizeof(*r) + k.n);
	if (!r)
		return NULL;
	/* The parts of the key are the views of the row. */
	char *text = (char *)(r + 1);
	memcpy(text, key, k.n);
	r->u = (struct store_usage){ .day = u->day };
	size_t at = k.n - u->model.n;
	r->u.model = (struct view){ text + at, u->model.n };
	at -= 1 + u->provider.n;
	r->u.provider = (struct view){ text + at, u->provider.n };
	at -= 1 + u->box.n;
	r->u.box = (struct view){ text + at, u->box.n };
	at -= 1 + u->tenant.n;
	r->u.tenant = (struct view){ text + at, u->tenant.n };
	if (map_put(&c->usage.rows, &r->node, (struct view){ text, k.n }) < 0) {
		free(r);
		return NULL;
	}
	list_append(&c->usage.order, &r->order);
	return r;
}

static void load_accounts(struct core *c, const struct store_usage *u, int64_t cost)
{
	int64_t now = clock_wall_ms();
	struct budget *b = account(c, 'b', u->box), *t = account(c, 't', u->tenant);

	if (b)
		budget_load(b, u->day, cost, now);
	if (t)
		budget_load(t, u->day, cost, now);
}

int usage_load(struct core *c, const struct store_usage *u)
{
	if (u->day < budget_day(clock_wall_ms()) - USAGE_DAYS)
		return 0;
	struct usage_row *r = row_of(c, u);
	if (!r)
		return -ENOMEM;
	r->u.requests = u->requests;
	r->u.estimated = u->estimated;
	r->u.input = u->input;
	r->u.cache_read = u->cache_read;
	r->u.cache_write = u->cache_write;
	r->u.output = u->output;
	r->u.cost = u->cost;
	load_accounts(c, u, u->cost);
	return 0;
}

/* Adds to the day's row and writes it. */
static void add(struct core *c, const struct store_usage *u)
{
	struct usage_row *r = row_of(c, u);

	if (!r)
		return;
	r->u.requests += u->requests;
	r->u.estimated += u->estimated;
	r->u.input += u->input;
	r->u.cache_read += u->cache_read;
	r->u.cache_write += u->cache_write;
	r->u.output += u->output;
	r->u.cost += u->cost;
	store_usage_put(c->store, &r->u, core_store_done, c);
}

/* Nobody knows what became of it: what was reserved is spent. */
int usage_load_call(struct core *c, const struct store_ai_call *k)
{
	const struct store_usage u = { .day = k->day, .tenant = k->tenant, .box = k->box, .provider = k->provider, .model = k->model,
				       .requests = 1, .estimated = 1, .input = k->tokens, .cost = k->cost };

	load_accounts(c, &u, u.cost);
	add(c, &u);
	store_ai_call_delete(c->store, k->id, core_store_done, c);
	return 0;
}

void usage_start(struct core *c)
{
	c->usage.last_call = (uint64_t)clock_wall_ms() << 10; /* above those of before */
	store_usage_trim(c->store, budget_day(clock_wall_ms()) - USAGE_DAYS, core_store_done, c);
}

/* ---- calls ---- */

int usage_reserve(struct core *c, const struct usage_wish *w, struct usage_call *ret, unsigned *ret_wait, struct err *e)
{
	int64_t now = clock_wall_ms();
	struct budget *b = account(c, 'b', view_of(w->box->id)), *t = account(c, 't', view_of(w->box->tenant->id));
	struct usage_call k = { .claim = w->claim, .id = ++c->usage.last_call };

	if (!b || !t)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "accounts");
	if (view_to_str(view_of(w->box->id), k.box, sizeof(k.box)) < 0 ||
	    view_to_str(view_of(w->box->tenant->id), k.tenant, sizeof(k.tenant)) < 0 ||
	    view_to_str(view_of(w->provider), k.provider, sizeof(k.provider)) < 0 || view_to_str(w->model, k.model, sizeof(k.model)) < 0)
		return err_set(e, ERR_INVALID, "the model's name is too long");
	if (budget_check(b, &w->of_box, &w->claim, now, ret_wait, e) != BUDGET_OK ||
	    budget_check(t, &w->of_tenant, &w->claim, now, ret_wait, e) != BUDGET_OK) {
		c->stats.ai_refused++;
		return -1;
	}
	budget_take(b, &w->claim, now);
	budget_take(t, &w->claim, now);
	store_ai_call_put(c->store,
			  &(struct store_ai_call){ .id = k.id, .day = budget_day(now), .tenant = view_of(k.tenant), .box = view_of(k.box),
						   .provider = view_of(k.provider), .model = view_of(k.model),
						   .tokens = w->claim.tokens, .cost = w->claim.cost },
			  core_store_done, c);
	*ret = k;
	return 0;
}

void usage_settle(struct core *c, const struct usage_call *k, const struct meter_usage *m, int64_t cost, bool estimated)
{
	int64_t now = clock_wall_ms();
	uint64_t tokens = m->input + m->cache_read + m->cache_write + m->output;
	struct budget *b = account(c, 'b', view_of(k->box)), *t = account(c, 't', view_of(k->tenant));

	if (b)
		budget_settle(b, &k->claim, tokens, cost, now);
	if (t)
		budget_settle(t, &k->claim, tokens, cost, now);
	c->stats.ai_calls++;
	c->stats.ai_input += tokens - m->output;
	c->stats.ai_output += m->output;
	c->stats.ai_nano += (uint64_t)cost;
	/* The daemon goes down: the next start finds what was reserved. */
	if (c->stopping)
		return;
	add(c, &(struct store_usage){ .day = budget_day(now), .tenant = view_of(k->tenant), .box = view_of(k->box),
				      .provider = view_of(k->provider), .model = view_of(k->model), .requests = 1,
				      .estimated = estimated, .input = m->input, .cache_read = m->cache_read,
				      .cache_write = m->cache_write, .output = m->output, .cost = cost });
	store_ai_call_delete(c->store, k->id, core_store_done, c);
}

void usage_give_back(struct core *c, const struct usage_call *k)
{
	struct budget *b = account(c, 'b', view_of(k->box)), *t = account(c, 't', view_of(k->tenant));

	if (b)
		budget_give_back(b, &k->claim);
	if (t)
		budget_give_back(t, &k->claim);
	if (!c->stopping)
		store_ai_call_delete(c->store, k->id, core_store_done, c);
}

/* ---- looking ---- */

void usage_spent(struct core *c, const struct box *box, struct usage_spent *ret)
{
	struct budget *b = account(c, 'b', view_of(box->id));

	*ret = (struct usage_spent){ 0 };
	if (!b)
		return;
	for (int w = 0; w < BUDGET_WINDOWS; w++)
		ret->windows[w] = budget_spent(b, (enum budget_window)w, clock_wall_ms());
	ret->reserved = b->reserved;
	ret->parallel = b->parallel;
}

int usage_each(struct core *c, const struct actor *a, const struct usage_filter *f,
	       void (*each)(void *arg, const struct store_usage *u), void *arg, struct err *e)
{
	if (auth_permit(a, ACT_BOX_LIST, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->usage.order) {
		const struct store_usage *u = &CONTAINER(it, struct usage_row, order)->u;
		if (a->role != STORE_ROLE_ADMIN && !view_is(u->tenant, a->tenant->id))
			continue;
		if (u->day < f->from || u->day > f->to || (f->box.p && !view_eq(u->box, f->box)) ||
		    (f->model.p && !view_eq(u->model, f->model)) || (f->provider.p && !view_eq(u->provider, f->provider)))
			continue;
		each(arg, u);
	}
	return 0;
}
