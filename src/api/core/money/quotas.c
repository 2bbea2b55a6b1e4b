/*
 * Quotas and the machine's budget: see quotas.h.
 */
#include "quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "index.h"
#include "boxes.h"
#include "core_base.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "who.h"
#include "poison.h"

#define DISK_SHARES 8 /* of a tenant's quota, where the number of its boxes has none */
#define MINUTE_MS   60000.0

/* ---- counting ---- */

static void add(struct quota_use *to, const struct quota_use *v)
{
	for (size_t i = 0; i < LEDGER_ITEMS; i++)
		to->n[i] += v->n[i];
}

static void subtract(struct quota_use *from, const struct quota_use *v)
{
	for (size_t i = 0; i < LEDGER_ITEMS; i++)
		from->n[i] -= v->n[i];
}

static uint64_t counted_kb(const struct quota_mark *m)
{
	return m->runs ? MAX(m->measured_kb, (uint64_t)QUOTAS_RESERVE_MB << 10) : 0;
}

/* What it has in memory: a paused box, too, and one that is on its way. */
static bool occupies(const struct box *b)
{
	return b->in->indexed && b->state.status != BOX_STOPPED &&
	       !(b->state.status == BOX_DELETING && b->in->before == BOX_STOPPED);
}

static void count(struct core *c, const struct quota_mark *m,
		  void (*change)(struct quota_use *, const struct quota_use *))
{
	struct account *a = m->tenant ? ledger_account(c, m->tenant) : NULL;

	if (a)
		change(&a->counted, &m->use);
	if (m->runs)
		change(&c->quotas->host, &m->host);
}

/* A hidden box is its tenant's as a helper, not as a sandbox; for the machine it is as any other. */
static void weigh(const struct box *b, struct quota_mark *m)
{
	const struct box_limits *l = &b->spec.limits;

	if (!b->in->indexed)
		return;
	if (!b->in->hidden) {
		m->use.n[LEDGER_BOXES] = 1;
		m->use.n[LEDGER_DISK] = l->disk_mb;
	} else {
		m->use.n[LEDGER_HELPERS] = 1;
	}
	if (!m->runs)
		return;
	m->host = (struct quota_use){
		{ [LEDGER_BOXES] = 1, [LEDGER_CPU] = l->cpu_milli, [LEDGER_MEMORY] = l->memory_mb }
	};
	if (b->in->hidden)
		return;
	m->use.n[LEDGER_CPU] = l->cpu_milli;
	m->use.n[LEDGER_MEMORY] = l->memory_mb;
	m->use.n[LEDGER_PROCESSES] = l->pids;
}

static void account(struct box *b)
{
	struct core *c = b->in->core;
	struct quota_mark was = *b->in->quota, *m = b->in->quota;

	count(c, &was, subtract);
	c->quotas->host_kb -= counted_kb(&was);
	*m = (struct quota_mark){ .runs = occupies(b),
				  .tenant = b->in->indexed && !b->in->pooled && !b->in->for_pool ? b->tenant
												 : NULL };
	m->measured_kb = m->runs ? was.measured_kb : 0;
	weigh(b, m);
	count(c, m, add);
	c->quotas->host_kb += counted_kb(m);
}

const struct box_part quotas_part = {
	.slot = offsetof(struct box_inside, quota),
	.size = sizeof(struct quota_mark),
	.changed = account,
};

void quotas_measured(struct box *b, uint64_t memory_bytes)
{
	struct quotas *q = b->in->core->quotas;

	if (!b->in->quota->runs)
		return;
	q->host_kb -= counted_kb(b->in->quota);
	b->in->quota->measured_kb = memory_bytes >> 10;
	q->host_kb += counted_kb(b->in->quota);
}

/* ---- admission ---- */

static int admit_host(const struct core *c, const struct quota_use *more, struct err *e)
{
	const struct quotas *q = c->quotas;
	const struct config_budget *most = &c->config->max.budget;
	uint64_t kernel = (q->host.n[LEDGER_BOXES] + 1) * QUOTAS_KERNEL_MB;

	if (most->cpu > 0 && (double)(q->host.n[LEDGER_CPU] + more->n[LEDGER_CPU]) > most->cpu * 1000 + 0.5)
		return err_set(e, ERR_UNAVAILABLE, "the machine's budget of CPU is used up: %g of %g cores",
			       (double)q->host.n[LEDGER_CPU] / 1000, most->cpu);
	if (most->memory_mb && q->host.n[LEDGER_MEMORY] + kernel + more->n[LEDGER_MEMORY] > most->memory_mb)
		return err_set(e, ERR_UNAVAILABLE,
			       "the machine's budget of memory is used up: %llu of %llu MiB",
			       (unsigned long long)(q->host.n[LEDGER_MEMORY] + kernel),
			       (unsigned long long)most->memory_mb);
	uint64_t used = (q->host_kb >> 10) + kernel;
	if (!most->memory_mb && used + QUOTAS_RESERVE_MB > q->machine_mb / 10 * 9)
		return err_set(e, ERR_UNAVAILABLE, "the machine's memory is used up: %llu of %llu MiB",
			       (unsigned long long)used, (unsigned long long)q->machine_mb);
	return 0;
}

static void refill(struct core *c, struct account *a)
{
	uint64_t now = loop_now(c->loop);
	double most = (double)a->quota.creates_per_minute;

	a->tokens = MIN(most, a->tokens + (double)(now - a->refilled_ms) * most / MINUTE_MS);
	a->refilled_ms = now;
}

unsigned quotas_boxes(const struct core *c)
{
	return c->boxes->n + c->boxes->n_hidden - c->boxes->n_pool;
}

static int admit_place(const struct core *c, struct err *e)
{
	unsigned n = quotas_boxes(c);

	return n < c->config->max.boxes
		       ? 0
		       : err_set(e, ERR_QUOTA, "there are %u sandboxes already, the most that are allowed",
				 n);
}

int quotas_admit(struct core *c, const struct tenant *t, const struct box_limits *l, bool made, struct err *e)
{
	struct account *a = ledger_account(c, t);
	struct quota_use more = { { [LEDGER_BOXES] = 1,
				    [LEDGER_CPU] = l->cpu_milli,
				    [LEDGER_MEMORY] = l->memory_mb,
				    [LEDGER_DISK] = l->disk_mb,
				    [LEDGER_PROCESSES] = l->pids } };

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	if (admit_place(c, e) < 0 || ledger_admit(c, t, &more, e) < 0 ||
	    (!made && admit_host(c, &more, e) < 0))
		return -1;
	if (!a->quota.creates_per_minute)
		return 0;
	refill(c, a);
	if (a->tokens < 1)
		return err_set(e, ERR_RATE, "the tenant may make %llu sandboxes a minute",
			       (unsigned long long)a->quota.creates_per_minute);
	a->tokens -= 1;
	return 0;
}

int quotas_admit_hidden(struct core *c, const struct tenant *t, const struct box_limits *l, struct err *e)
{
	const struct quota_use helper = { { [LEDGER_HELPERS] = 1 } },
			       more = { { [LEDGER_CPU] = l->cpu_milli, [LEDGER_MEMORY] = l->memory_mb } };

	return admit_place(c, e) < 0 || ledger_admit(c, t, &helper, e) < 0 || admit_host(c, &more, e) < 0 ? -1
													  : 0;
}

int quotas_admit_pool(struct core *c, const struct box_limits *l, struct err *e)
{
	struct quota_use more = { { [LEDGER_CPU] = l->cpu_milli, [LEDGER_MEMORY] = l->memory_mb } };

	if (c->boxes->n + c->boxes->n_hidden >= c->config->max.boxes)
		return err_set(e, ERR_QUOTA, "there is no place left for a sandbox of the pool");
	return admit_host(c, &more, e);
}

static bool has_disk_limits(const struct core *c)
{
	const struct backend *b = core_backend(c, VIEW(""), NULL);

	for (size_t i = 0; b && i < b->n; i++)
		if (view_is(b->parts[i].name, "limit.disk"))
			return b->parts[i].ok;
	return false;
}

uint64_t quotas_standard_disk(struct core *c, const struct tenant *t, uint64_t standard)
{
	const struct account *a = ledger_account(c, t);

	if (!a || !a->quota.most[LEDGER_DISK] || !has_disk_limits(c))
		return standard;
	if (standard && c->config->defaults.limits.has_disk_mb) /* the administrator knows the quotas */
		return MIN(standard, a->quota.most[LEDGER_DISK]);
	uint64_t boxes = a->quota.most[LEDGER_BOXES];
	uint64_t share = MAX(a->quota.most[LEDGER_DISK] / (boxes ? boxes : DISK_SHARES), 1);
	return standard ? MIN(standard, share) : share;
}

static uint64_t added(uint64_t now, uint64_t wished)
{
	return wished > now ? wished - now : 0;
}

int quotas_admit_change(struct core *c, const struct box *b, const struct box_limits *l, struct err *e)
{
	const struct box_limits *now = &b->spec.limits;
	struct quota_use more = { { [LEDGER_DISK] = added(now->disk_mb, l->disk_mb) } };

	if (b->in->quota->runs) { /* the others count while it runs */
		more.n[LEDGER_CPU] = added(now->cpu_milli, l->cpu_milli);
		more.n[LEDGER_MEMORY] = added(now->memory_mb, l->memory_mb);
		more.n[LEDGER_PROCESSES] = added(now->pids, l->pids);
	}
	if (ledger_admit(c, b->tenant, &more, e) < 0)
		return -1;
	return more.n[LEDGER_CPU] || more.n[LEDGER_MEMORY] ? admit_host(c, &more, e) : 0;
}

int quotas_admit_start(struct core *c, const struct box *b, struct err *e)
{
	struct quota_use more = { { [LEDGER_CPU] = b->spec.limits.cpu_milli,
				    [LEDGER_MEMORY] = b->spec.limits.memory_mb,
				    [LEDGER_PROCESSES] = b->spec.limits.pids } };

	return ledger_admit(c, b->tenant, &more, e) < 0 || admit_host(c, &more, e) < 0 ? -1 : 0;
}

unsigned quotas_retry_after(struct core *c, const struct tenant *t)
{
	struct account *a = t ? ledger_account(c, t) : NULL;

	if (!a || !a->quota.creates_per_minute)
		return 1;
	refill(c, a);
	if (a->tokens >= 1)
		return 1;
	return 1 + (unsigned)((1 - a->tokens) * 60 / (double)a->quota.creates_per_minute);
}

/* ---- tenants ---- */

static struct tenant_state state_of(const struct core *c, const struct account *a)
{
	struct tenant_state s = { .tenant = a->tenant, .quota = a->quota };

	for (enum ledger_item i = 0; i < LEDGER_ITEMS; i++) {
		s.use.n[i] = ledger_used(c, a, i);
		s.limit.n[i] = ledger_most(c, a, i);
	}
	return s;
}

/* An account, for an admin. */
static struct account *reach(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	const struct tenant *t = keys_find_tenant(c, a, ref, e);
	if (!t)
		return NULL;
	struct account *account = ledger_account(c, t);
	if (!account)
		err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	return account;
}

int quotas_tenant(struct core *c, const struct actor *a, struct view ref, struct tenant_state *ret,
		  struct err *e)
{
	struct account *account = reach(c, a, ref, e);
	if (!account)
		return -1;
	*ret = state_of(c, account);
	return 0;
}

static int by_age(const void *x, const void *y)
{
	const struct tenant *a = *(const struct tenant *const *)x, *b = *(const struct tenant *const *)y;
	return a->created_ms != b->created_ms ? (a->created_ms < b->created_ms ? -1 : 1)
					      : strcmp(a->id, b->id);
}

int quotas_each_tenant(struct core *c, const struct actor *a,
		       void (*each)(void *arg, const struct tenant_state *s), void *arg, struct err *e)
{
	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0)
		return -1;
	const struct tenant **all = calloc(c->who->tenants_by_id.n + 1, sizeof(*all));
	size_t n = 0;
	if (!all)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "tenants");
	for (struct map_node *it = map_first(&c->who->tenants_by_id); it;
	     it = map_next(&c->who->tenants_by_id, it))
		all[n++] = CONTAINER(it, struct tenant, by_id);
	qsort(all, n, sizeof(*all), by_age);
	for (size_t i = 0; i < n; i++) {
		const struct account *account = ledger_account(c, all[i]);
		struct tenant_state s =
			account ? state_of(c, account) : (struct tenant_state){ .tenant = all[i] };
		each(arg, &s);
	}
	free(all);
	return 0;
}

/* The order of the columns is the store's; that of the items may change. */
static const enum ledger_item columns[STORE_QUOTA_NUMBERS] = {
	LEDGER_BOXES,     LEDGER_CPU,      LEDGER_MEMORY,     LEDGER_DISK,
	LEDGER_PROCESSES, LEDGER_HELPERS,  LEDGER_WORKSPACES, LEDGER_SNAPSHOTS,
	LEDGER_TEMPLATES, LEDGER_WEBHOOKS, LEDGER_SECRETS,    LEDGER_SECRETS_KB,
};

static void to_row(const struct quota *q, struct store_quota *ret)
{
	for (size_t i = 0; i < ELEMS(columns); i++)
		ret->numbers[i] = q->most[columns[i]];
}

static void from_row(const struct store_quota *row, struct quota *ret)
{
	for (size_t i = 0; i < ELEMS(columns); i++)
		ret->most[columns[i]] = row->numbers[i];
}

struct tenant_job {
	struct job job;
	struct core *core;
	struct account *account;
};

static void on_written(void *arg, const struct err *e)
{
	struct tenant_job *j = arg;
	struct tenant_state s = state_of(j->core, j->account);

	core_store_result(j->core, e);
	job_finish(&j->job, &s, e);
	free(j);
}

static struct tenant_job *new_job(struct core *c, struct account *a, job_done *done, void *arg, struct err *e)
{
	struct tenant_job *j = calloc(1, sizeof(*j));
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "tenant");
		return NULL;
	}
	*j = (struct tenant_job){ { .done = done, .arg = arg }, c, a };
	return j;
}

struct job *quotas_tenant_create(struct core *c, const struct actor *a, struct view name, job_done *done,
				 void *arg, struct err *e)
{
	if (auth_permit(a, ACT_TENANTS, NULL, e) < 0)
		return NULL;
	if (!spec_is_name(name)) {
		err_set(e, ERR_INVALID,
			"name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			SPEC_NAME_MAX);
		return NULL;
	}
	if (keys_tenant_by_ref(c, name)) {
		err_set(e, ERR_CONFLICT, "there is a tenant named \"%.*s\" already", VIEW_ARG(name));
		return NULL;
	}
	struct tenant_job *j = new_job(c, NULL, done, arg, e);
	const struct tenant *t = j ? keys_add_tenant(c, name, on_written, j) : NULL;
	j = t ? j : (free(j), NULL);
	if (!j || !(j->account = ledger_account(c, t))) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "tenant");
		return NULL;
	}
	log_info("tenant %s made by %s", log_quoted(name), a->key);
	return &j->job;
}

struct job *quotas_put(struct core *c, const struct actor *a, struct view ref, const struct quota *q,
		       job_done *done, void *arg, struct err *e)
{
	struct account *account = reach(c, a, ref, e);
	struct tenant_job *j = account ? new_job(c, account, done, arg, e) : NULL;

	if (!j)
		return NULL;
	account->quota = *q;
	account->tokens = (double)q->creates_per_minute;
	account->refilled_ms = loop_now(c->loop);
	log_info("the quota of tenant %s was changed by %s", log_quoted(view_of(account->tenant->name)),
		 a->key);
	struct store_quota row = { .tenant = view_of(account->tenant->id),
				   .creates_per_minute = q->creates_per_minute };
	to_row(q, &row);
	store_quota_put(c->store, &row, on_written, j);
	return &j->job;
}

/* ---- life ---- */

void quotas_init(struct core *c)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	map_init(&c->quotas->by_tenant);
	c->quotas->machine_mb = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size >> 20 : 0;
}

int quotas_load(struct core *c, const struct store_quota *row)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct account *a = t ? ledger_account(c, t) : NULL;

	if (!a)
		return t ? -ENOMEM : -ENOENT;
	a->quota = (struct quota){ .creates_per_minute = row->creates_per_minute };
	from_row(row, &a->quota);
	/* As if it had made none lately; who restarts us at will has other ways. */
	a->tokens = (double)row->creates_per_minute;
	a->refilled_ms = loop_now(c->loop);
	return 0;
}

void quotas_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->quotas->by_tenant));) {
		map_del(&c->quotas->by_tenant, n);
		free(CONTAINER(n, struct account, by_tenant));
	}
	map_done(&c->quotas->by_tenant);
}
