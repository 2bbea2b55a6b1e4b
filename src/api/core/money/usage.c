/*
 * Accounts of what boxes use of models: see usage.h.
 */
#include "usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ailog.h"
#include "index.h"
#include "clock.h"
#include "core_base.h"
#include "keys.h"
#include "who.h"
#include "poison.h"

#define KEY_MAX 320

struct account {
	struct map_node node;
	struct budget budget;
	int64_t lost; /* spent by calls that a crash cut off: nobody was warned of it */
	char key[64];
};

void usage_init(struct core *c)
{
	map_init(&c->usage->accounts);
	map_init(&c->usage->rows);
	list_init(&c->usage->order);
}

void usage_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->usage->accounts));) {
		map_del(&c->usage->accounts, n);
		free(CONTAINER(n, struct account, node));
	}
	for (struct map_node *n; (n = map_first(&c->usage->rows));) {
		map_del(&c->usage->rows, n);
		free(CONTAINER(n, struct usage_row, node));
	}
	map_done(&c->usage->accounts);
	map_done(&c->usage->rows);
}

static struct account *open_account(struct core *c, char kind, struct view id)
{
	char key[64];

	snprintf(key, sizeof(key), "%c:%.*s", kind, VIEW_ARG(view_head(id, sizeof(key) - 3)));
	struct map_node *n = map_get(&c->usage->accounts, view_of(key));
	if (n)
		return CONTAINER(n, struct account, node);
	struct account *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	memcpy(a->key, key, sizeof(key));
	if (map_put(&c->usage->accounts, &a->node, view_of(a->key)) < 0) {
		free(a);
		return NULL;
	}
	return a;
}

static struct budget *account(struct core *c, char kind, struct view id)
{
	struct account *a = open_account(c, kind, id);
	return a ? &a->budget : NULL;
}

/* ---- rows ---- */

static struct usage_row *row_of(struct core *c, const struct store_usage *u)
{
	char key[KEY_MAX];
	int n = snprintf(key, sizeof(key), "%lld %.*s %.*s %.*s %.*s", (long long)u->day, VIEW_ARG(u->tenant),
			 VIEW_ARG(u->box), VIEW_ARG(u->provider), VIEW_ARG(u->model));
	if (n < 0 || (size_t)n >= sizeof(key))
		return NULL;
	struct view k = { key, (size_t)n };
	struct map_node *found = map_get(&c->usage->rows, k);
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
	if (map_put(&c->usage->rows, &r->node, (struct view){ text, k.n }) < 0) {
		free(r);
		return NULL;
	}
	list_append(&c->usage->order, &r->order);
	return r;
}

/* Whose it is stays known when the box is gone. */
static void note_agent(struct usage_row *r, struct view agent)
{
	if (agent.n && !r->agent[0] && view_to_str(agent, r->agent, sizeof(r->agent)) >= 0)
		r->u.agent = view_of(r->agent);
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
	note_agent(r, u->agent);
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
	note_agent(r, u->agent);
	store_usage_put(c->store, &r->u, core_store_done, c);
}

/* A restart begins no new minute. */
static void load_minute(struct core *c, struct view tenant, struct view box, int64_t began_ms,
			int64_t ended_ms, uint64_t tokens)
{
	struct budget *b = account(c, 'b', box), *t = account(c, 't', tenant);
	int64_t now = clock_wall_ms();

	if (b)
		budget_load_minute(b, began_ms, ended_ms, tokens, now);
	if (t)
		budget_load_minute(t, began_ms, ended_ms, tokens, now);
}

int usage_load_log(struct core *c, const struct store_ai_log *l)
{
	load_minute(c, l->tenant, l->box, l->at_ms, l->at_ms + l->duration_ms,
		    l->input + l->cache_read + l->cache_write + l->output);
	return ailog_load(c, l);
}

/* Nobody knows what became of it: what was reserved is spent. */
int usage_load_call(struct core *c, const struct store_ai_call *k)
{
	const struct store_usage u = { .day = k->day,
				       .tenant = k->tenant,
				       .box = k->box,
				       .provider = k->provider,
				       .model = k->model,
				       .requests = 1,
				       .estimated = 1,
				       .input = k->tokens,
				       .cost = k->cost };
	struct account *b = open_account(c, 'b', k->box), *t = open_account(c, 't', k->tenant);
	int64_t now = clock_wall_ms();

	if (b)
		b->lost += k->cost;
	if (t)
		t->lost += k->cost;
	load_accounts(c, &u, u.cost);
	load_minute(c, k->tenant, k->box, k->at_ms, k->at_ms, k->tokens);
	add(c, &u);
	if (k->at_ms)
		ailog_add(c, &(struct store_ai_log){ .id = k->id,
						     .at_ms = k->at_ms,
						     .duration_ms = MAX(now - k->at_ms, 0),
						     .tenant = k->tenant,
						     .box = k->box,
						     .provider = k->provider,
						     .endpoint = k->endpoint,
						     .model = k->model,
						     .finish = VIEW("lost"),
						     .estimated = 1,
						     .input = k->tokens,
						     .cost = k->cost });
	store_ai_call_delete(c->store, k->id, core_store_done, c);
	return 0;
}

/* What holds for them; false: the box is gone. */
static bool limits_of(struct core *c, struct view box, struct budget_limits *ret_box,
		      struct budget_limits *ret_tenant)
{
	const struct box *b = boxes_by_id(c, box);
	struct allowance_force f;

	if (!b)
		return false;
	allowances_of(b, &f);
	*ret_box = allowance_limits(&f);
	allowances_of_tenant(c, b->tenant, &f);
	*ret_tenant = allowance_limits(&f);
	return true;
}

/* Warnings of before are not given again. */
static void note_warned(struct core *c, struct account *a)
{
	struct view id = view_skip(view_of(a->key), 2);
	const struct tenant *t = a->key[0] == 't' ? keys_tenant(c, id) : NULL;
	struct budget_limits l = { 0 }, of_tenant;
	struct allowance_force f;

	if (t) {
		allowances_of_tenant(c, t, &f);
		l = allowance_limits(&f);
	} else if (a->key[0] != 'b' || !limits_of(c, id, &l, &of_tenant)) {
		return;
	}
	budget_warned(&a->budget, &l, clock_wall_ms(), a->lost);
	a->lost = 0;
}

/* Calls that a crash cut off are read before the agents. */
static void note_agents(struct core *c)
{
	const int64_t today = budget_day(clock_wall_ms());

	LIST_EACH (it, &c->usage->order) {
		struct usage_row *r = CONTAINER(it, struct usage_row, order);
		if (r->agent[0] || r->u.day < today - 1)
			continue;
		note_agent(r, c->usage->agent_of(c, r->u.box));
		if (r->agent[0])
			store_usage_put(c->store, &r->u, core_store_done, c);
	}
}

void usage_start(struct core *c)
{
	note_agents(c);
	c->usage->last_call = (uint64_t)clock_wall_ms() << 10; /* above those of before */
	store_usage_trim(c->store, budget_day(clock_wall_ms()) - USAGE_DAYS, core_store_done, c);
	for (struct map_node *n = map_first(&c->usage->accounts); n; n = map_next(&c->usage->accounts, n))
		note_warned(c, CONTAINER(n, struct account, node));
}

/* ---- calls ---- */

/* One of the two accounts. */
static int check(struct core *c, struct budget *b, const struct budget_limits *l, const struct usage_wish *w,
		 const char *scope, unsigned *ret_wait, struct err *e)
{
	int64_t now = clock_wall_ms();
	enum budget_refusal r = budget_check(b, l, &w->claim, now, ret_wait, e);
	struct budget_notice n;

	if (r == BUDGET_MONEY && budget_refuses(b, l, &w->claim, now, &n))
		c->usage->on_budget(c, true, w->box, scope, &n);
	return r == BUDGET_OK ? 0 : -1;
}

static bool has_budget(const struct budget_limits *l)
{
	return l->day || l->week || l->month;
}

int usage_reserve(struct core *c, const struct usage_wish *w, struct usage_call *ret, unsigned *ret_wait,
		  struct err *e)
{
	int64_t now = clock_wall_ms();
	struct budget *b = account(c, 'b', view_of(w->box->id)),
		      *t = account(c, 't', view_of(w->box->tenant->id));
	struct usage_call k = { .claim = w->claim,
				.id = c->usage->last_call = clock_stamp(c->usage->last_call),
				.began_ms = now,
				.endpoint = w->endpoint };
	struct budget_limits of_box = { 0 }, of_tenant = { 0 };

	if (!b || !t)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "accounts");
	if (!limits_of(c, view_of(w->box->id), &of_box, &of_tenant))
		return err_set(e, ERR_UNAVAILABLE, "the sandbox is gone");
	if (view_to_str(view_of(w->box->id), k.box, sizeof(k.box)) < 0 ||
	    view_to_str(view_of(w->box->tenant->id), k.tenant, sizeof(k.tenant)) < 0 ||
	    view_to_str(c->usage->agent_of(c, view_of(w->box->id)), k.agent, sizeof(k.agent)) < 0 ||
	    view_to_str(view_of(w->provider), k.provider, sizeof(k.provider)) < 0 ||
	    view_to_str(w->model, k.model, sizeof(k.model)) < 0)
		return err_set(e, ERR_INVALID, "the model's name is too long");
	if (check(c, b, &of_box, w, "sandbox", ret_wait, e) < 0 ||
	    check(c, t, &of_tenant, w, "tenant", ret_wait, e) < 0) {
		c->stats.ai_refused++;
		return -1;
	}
	k.bounded = has_budget(&of_box) || has_budget(&of_tenant);
	budget_take(b, &w->claim, now);
	budget_take(t, &w->claim, now);
	store_ai_call_put(c->store,
			  &(struct store_ai_call){ .id = k.id,
						   .day = budget_day(now),
						   .tenant = view_of(k.tenant),
						   .box = view_of(k.box),
						   .provider = view_of(k.provider),
						   .model = view_of(k.model),
						   .tokens = w->claim.tokens,
						   .cost = w->claim.cost,
						   .at_ms = now,
						   .endpoint = view_of(w->endpoint) },
			  core_store_done, c);
	*ret = k;
	return 0;
}

static void warn(struct core *c, const struct usage_call *k, struct budget *b, struct budget *t)
{
	const struct box *box = boxes_by_id(c, view_of(k->box));
	struct budget_limits of_box, of_tenant;
	int64_t now = clock_wall_ms();
	struct budget_notice n;

	if (!limits_of(c, view_of(k->box), &of_box, &of_tenant))
		return; /* the next call of the tenant tells it */
	while (b && budget_warns(b, &of_box, now, &n))
		c->usage->on_budget(c, false, box, "sandbox", &n);
	while (t && budget_warns(t, &of_tenant, now, &n))
		c->usage->on_budget(c, false, box, "tenant", &n);
}

static void log_call(struct core *c, const struct usage_call *k, const struct usage_end *end, int64_t now)
{
	ailog_add(c, &(struct store_ai_log){ .id = k->id,
					     .at_ms = k->began_ms,
					     .duration_ms = MAX(now - k->began_ms, 0),
					     .tenant = view_of(k->tenant),
					     .box = view_of(k->box),
					     .provider = view_of(k->provider),
					     .endpoint = view_of(k->endpoint),
					     .model = view_of(k->model),
					     .finish = view_of(end->finish),
					     .status = (uint64_t)MAX(end->status, 0),
					     .estimated = end->estimated,
					     .input = end->used.input,
					     .cache_read = end->used.cache_read,
					     .cache_write = end->used.cache_write,
					     .output = end->used.output,
					     .cost = end->cost,
					     .bodies = end->bodies });
}

void usage_settle(struct core *c, const struct usage_call *k, const struct usage_end *end)
{
	int64_t now = clock_wall_ms();
	const struct meter_usage *m = &end->used;
	uint64_t tokens = m->input + m->cache_read + m->cache_write + m->output;
	struct budget *b = account(c, 'b', view_of(k->box)), *t = account(c, 't', view_of(k->tenant));

	if (b)
		budget_settle(b, &k->claim, tokens, end->cost, now);
	if (t)
		budget_settle(t, &k->claim, tokens, end->cost, now);
	c->stats.ai_calls++;
	c->stats.ai_input += tokens - m->output;
	c->stats.ai_output += m->output;
	c->stats.ai_nano += (uint64_t)end->cost;
	/* The daemon goes down: the next start finds what was reserved. */
	if (c->stopping)
		return;
	add(c, &(struct store_usage){ .day = budget_day(now),
				      .tenant = view_of(k->tenant),
				      .box = view_of(k->box),
				      .provider = view_of(k->provider),
				      .model = view_of(k->model),
				      .requests = 1,
				      .estimated = end->estimated,
				      .input = m->input,
				      .cache_read = m->cache_read,
				      .cache_write = m->cache_write,
				      .output = m->output,
				      .cost = end->cost,
				      .agent = view_of(k->agent) });
	store_ai_call_delete(c->store, k->id, core_store_done, c);
	log_call(c, k, end, now);
	warn(c, k, b, t);
}

static void put_notices(struct budget *b, const struct budget_limits *l, const char *scope, int64_t now,
			char *out, size_t *n)
{
	struct budget_notice v;

	while (b && budget_tells(b, l, now, &v))
		if (*n < USAGE_NOTICE)
			*n += (size_t)snprintf(out + *n, USAGE_NOTICE - *n, "%s%s %s; spent=%.6f; limit=%.6f",
					       *n ? ", " : "", scope, budget_window_name(v.window),
					       (double)v.spent / 1e9, (double)v.limit / 1e9);
}

bool usage_notice(struct core *c, const struct usage_call *k, char ret[USAGE_NOTICE])
{
	struct budget_limits of_box, of_tenant;
	int64_t now = clock_wall_ms();
	size_t n = 0;

	if (!limits_of(c, view_of(k->box), &of_box, &of_tenant))
		return false;
	put_notices(account(c, 'b', view_of(k->box)), &of_box, "sandbox", now, ret, &n);
	put_notices(account(c, 't', view_of(k->tenant)), &of_tenant, "tenant", now, ret, &n);
	return n > 0;
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

static void spent(struct budget *b, struct usage_spent *ret)
{
	*ret = (struct usage_spent){ 0 };
	if (!b)
		return;
	for (int w = 0; w < BUDGET_WINDOWS; w++)
		ret->windows[w] = budget_spent(b, (enum budget_window)w, clock_wall_ms());
	ret->reserved = b->reserved;
	ret->parallel = b->parallel;
}

void usage_spent(struct core *c, const struct box *box, struct usage_spent *ret)
{
	spent(account(c, 'b', view_of(box->id)), ret);
}

void usage_spent_tenant(struct core *c, const struct tenant *t, struct usage_spent *ret)
{
	spent(account(c, 't', view_of(t->id)), ret);
}

int usage_each(struct core *c, const struct actor *a, const struct usage_filter *f,
	       void (*each)(void *arg, const struct store_usage *u), void *arg, struct err *e)
{
	if (auth_permit(a, ACT_BOX_LIST, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->usage->order) {
		const struct store_usage *u = &CONTAINER(it, struct usage_row, order)->u;
		if (a->role != STORE_ROLE_ADMIN && !view_is(u->tenant, a->tenant->id))
			continue;
		if (u->day < f->from || u->day > f->to || (f->box.p && !view_eq(u->box, f->box)) ||
		    (f->agent.p && !view_eq(u->agent, f->agent)) ||
		    (f->model.p && !view_eq(u->model, f->model)) ||
		    (f->provider.p && !view_eq(u->provider, f->provider)))
			continue;
		each(arg, u);
	}
	return 0;
}

struct spans {
	int64_t today, *sums;
};

static void add_to_spans(void *arg, const struct store_usage *u)
{
	static const int64_t days[USAGE_SPANS] = {
		[USAGE_TODAY] = 1, [USAGE_7_DAYS] = 7, [USAGE_30_DAYS] = 30, [USAGE_KEPT] = INT64_MAX
	};
	const struct spans *s = arg;

	for (size_t i = 0; i < USAGE_SPANS; i++)
		if (s->today - u->day < days[i])
			s->sums[i] += u->cost;
}

int usage_of_agent(struct core *c, const struct actor *a, struct view agent, int64_t ret[USAGE_SPANS],
		   struct err *e)
{
	const struct usage_filter f = { .from = 0, .to = INT64_MAX, .agent = agent };
	struct spans s = { .today = budget_day(clock_wall_ms()), .sums = ret };

	memset(ret, 0, USAGE_SPANS * sizeof(*ret));
	return usage_each(c, a, &f, add_to_spans, &s, e);
}
