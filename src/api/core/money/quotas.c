/*
 * Quotas and the machine's budget: see quotas.h.
 */
#include "quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core_state.h"
#include "log.h"
#include "who.h"
#include "poison.h"

#define MINUTE_MS 60000.0

struct account {
	struct map_node by_tenant;
	const struct tenant *tenant;
	struct quota quota;
	struct quota_use use;
	double tokens; /* creates that may be made at once */
	uint64_t refilled_ms;
};

static struct account *account_of(struct core *c, const struct tenant *t)
{
	struct map_node *n = map_get(&c->quotas.by_tenant, view_of(t->id));
	if (n)
		return CONTAINER(n, struct account, by_tenant);
	struct account *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->tenant = t;
	if (map_put(&c->quotas.by_tenant, &a->by_tenant, view_of(t->id)) < 0) {
		free(a);
		return NULL;
	}
	return a;
}

/* ---- counting ---- */

static void add(struct quota_use *to, const struct quota_use *v)
{
	to->boxes += v->boxes;
	to->cpu_milli += v->cpu_milli;
	to->memory_mb += v->memory_mb;
	to->disk_mb += v->disk_mb;
}

static void subtract(struct quota_use *from, const struct quota_use *v)
{
	from->boxes -= v->boxes;
	from->cpu_milli -= v->cpu_milli;
	from->memory_mb -= v->memory_mb;
	from->disk_mb -= v->disk_mb;
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
	struct account *a = m->tenant ? account_of(c, m->tenant) : NULL;

	if (a)
		change(&a->use, &m->use);
	if (m->runs)
		change(&c->quotas.host, &m->use);
}

void quotas_account(struct box *b)
{
	struct core *c = b->in->core;
	struct quota_mark was = b->in->quota, *m = &b->in->quota;

	if (b->in->hidden)
		return;
	count(c, &was, subtract);
	c->quotas.host_kb -= counted_kb(&was);
	*m = (struct quota_mark){ .runs = occupies(b),
				  .tenant = b->in->indexed && !b->in->pooled ? b->tenant : NULL };
	if (b->in->indexed)
		m->use = (struct quota_use){ .boxes = 1, .disk_mb = b->spec.limits.disk_mb };
	if (m->runs) {
		m->use.cpu_milli = b->spec.limits.cpu_milli;
		m->use.memory_mb = b->spec.limits.memory_mb;
		m->measured_kb = was.measured_kb;
	}
	count(c, m, add);
	c->quotas.host_kb += counted_kb(m);
}

void quotas_measured(struct box *b, uint64_t memory_bytes)
{
	struct quotas *q = &b->in->core->quotas;

	if (!b->in->quota.runs)
		return;
	q->host_kb -= counted_kb(&b->in->quota);
	b->in->quota.measured_kb = memory_bytes >> 10;
	q->host_kb += counted_kb(&b->in->quota);
}

/* ---- admission ---- */

static int over(struct err *e, const char *what, uint64_t used, uint64_t most, const char *unit)
{
	return err_set(e, ERR_QUOTA, "the tenant's quota of %s is used up: %llu of %llu%s", what,
		       (unsigned long long)used, (unsigned long long)most, unit);
}

static int admit_tenant(const struct account *a, const struct quota_use *more, struct err *e)
{
	const struct quota *q = &a->quota;
	const struct quota_use *u = &a->use;

	if (q->boxes && u->boxes + more->boxes > q->boxes)
		return over(e, "sandboxes", u->boxes, q->boxes, "");
	if (q->cpu_milli && u->cpu_milli + more->cpu_milli > q->cpu_milli)
		return err_set(e, ERR_QUOTA, "the tenant's quota of CPU is used up: %g of %g cores",
			       (double)u->cpu_milli / 1000, (double)q->cpu_milli / 1000);
	if (q->memory_mb && u->memory_mb + more->memory_mb > q->memory_mb)
		return over(e, "memory", u->memory_mb, q->memory_mb, " MiB");
	/* A box without a limit of its own could take all of it. */
	if (q->disk_mb && more->boxes && !more->disk_mb)
		return err_set(e, ERR_QUOTA, "the tenant has a quota of disk: limits.disk_mb must be set");
	if (q->disk_mb && u->disk_mb + more->disk_mb > q->disk_mb)
		return over(e, "disk", u->disk_mb, q->disk_mb, " MiB");
	return 0;
}

static int admit_host(const struct core *c, const struct quota_use *more, struct err *e)
{
	const struct quotas *q = &c->quotas;
	const struct config_budget *most = &c->config->max.budget;
	uint64_t kernel = (q->host.boxes + 1) * QUOTAS_KERNEL_MB;

	if (most->cpu > 0 && (double)(q->host.cpu_milli + more->cpu_milli) > most->cpu * 1000 + 0.5)
		return err_set(e, ERR_UNAVAILABLE, "the machine's budget of CPU is used up: %g of %g cores",
			       (double)q->host.cpu_milli / 1000, most->cpu);
	if (most->memory_mb && q->host.memory_mb + kernel + more->memory_mb > most->memory_mb)
		return err_set(e, ERR_UNAVAILABLE,
			       "the machine's budget of memory is used up: %llu of %llu MiB",
			       (unsigned long long)(q->host.memory_mb + kernel),
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

int quotas_admit(struct core *c, const struct tenant *t, const struct box_limits *l, bool made, struct err *e)
{
	struct account *a = account_of(c, t);
	struct quota_use more = {
		.boxes = 1, .cpu_milli = l->cpu_milli, .memory_mb = l->memory_mb, .disk_mb = l->disk_mb
	};
	unsigned n = c->n_boxes - c->pool.total;

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	if (n >= c->config->max.boxes)
		return err_set(e, ERR_QUOTA, "there are %u sandboxes already, the most that are allowed", n);
	if (admit_tenant(a, &more, e) < 0 || (!made && admit_host(c, &more, e) < 0))
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

int quotas_admit_pool(struct core *c, const struct box_limits *l, struct err *e)
{
	struct quota_use more = { .boxes = 1, .cpu_milli = l->cpu_milli, .memory_mb = l->memory_mb };

	if (c->n_boxes >= c->config->max.boxes)
		return err_set(e, ERR_QUOTA, "there is no place left for a sandbox of the pool");
	return admit_host(c, &more, e);
}

static uint64_t added(uint64_t now, uint64_t wished)
{
	return wished > now ? wished - now : 0;
}

int quotas_admit_change(struct core *c, const struct box *b, const struct box_limits *l, struct err *e)
{
	const struct box_limits *now = &b->spec.limits;
	struct account *a = account_of(c, b->tenant);
	struct quota_use more = { .disk_mb = added(now->disk_mb, l->disk_mb) };

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	if (b->in->quota.runs) { /* the others count while it runs */
		more.cpu_milli = added(now->cpu_milli, l->cpu_milli);
		more.memory_mb = added(now->memory_mb, l->memory_mb);
	}
	if (!more.disk_mb && !more.cpu_milli && !more.memory_mb)
		return 0;
	return admit_tenant(a, &more, e) < 0 || admit_host(c, &more, e) < 0 ? -1 : 0;
}

int quotas_admit_start(struct core *c, const struct box *b, struct err *e)
{
	struct account *a = account_of(c, b->tenant);
	struct quota_use more = { .cpu_milli = b->spec.limits.cpu_milli,
				  .memory_mb = b->spec.limits.memory_mb };

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	return admit_tenant(a, &more, e) < 0 || admit_host(c, &more, e) < 0 ? -1 : 0;
}

unsigned quotas_retry_after(struct core *c, const struct tenant *t)
{
	struct account *a = t ? account_of(c, t) : NULL;

	if (!a || !a->quota.creates_per_minute)
		return 1;
	refill(c, a);
	if (a->tokens >= 1)
		return 1;
	return 1 + (unsigned)((1 - a->tokens) * 60 / (double)a->quota.creates_per_minute);
}

/* ---- tenants ---- */

static struct tenant_state state_of(const struct account *a)
{
	return (struct tenant_state){ .tenant = a->tenant, .quota = a->quota, .use = a->use };
}

/* An account, for an admin. */
static struct account *reach(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	const struct tenant *t = keys_find_tenant(c, a, ref, e);
	if (!t)
		return NULL;
	struct account *account = account_of(c, t);
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
	*ret = state_of(account);
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
	const struct tenant **all = calloc(c->tenants_by_id.n + 1, sizeof(*all));
	size_t n = 0;
	if (!all)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "tenants");
	for (struct map_node *it = map_first(&c->tenants_by_id); it; it = map_next(&c->tenants_by_id, it))
		all[n++] = CONTAINER(it, struct tenant, by_id);
	qsort(all, n, sizeof(*all), by_age);
	for (size_t i = 0; i < n; i++) {
		const struct account *account = account_of(c, all[i]);
		struct tenant_state s =
			account ? state_of(account) : (struct tenant_state){ .tenant = all[i] };
		each(arg, &s);
	}
	free(all);
	return 0;
}

struct tenant_job {
	struct job job;
	struct core *core;
	struct account *account;
};

static void on_written(void *arg, const struct err *e)
{
	struct tenant_job *j = arg;
	struct tenant_state s = state_of(j->account);

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
	if (!j || !(j->account = account_of(c, t))) {
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
	store_quota_put(c->store,
			&(struct store_quota){ .tenant = view_of(account->tenant->id),
					       .boxes = q->boxes,
					       .cpu_milli = q->cpu_milli,
					       .memory_mb = q->memory_mb,
					       .disk_mb = q->disk_mb,
					       .creates_per_minute = q->creates_per_minute },
			on_written, j);
	return &j->job;
}

/* ---- life ---- */

void quotas_init(struct core *c)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	map_init(&c->quotas.by_tenant);
	c->quotas.machine_mb = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size >> 20 : 0;
}

int quotas_load(struct core *c, const struct store_quota *row)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct account *a = t ? account_of(c, t) : NULL;

	if (!a)
		return t ? -ENOMEM : -ENOENT;
	a->quota = (struct quota){ .boxes = row->boxes,
				   .cpu_milli = row->cpu_milli,
				   .memory_mb = row->memory_mb,
				   .disk_mb = row->disk_mb,
				   .creates_per_minute = row->creates_per_minute };
	/* As if it had made none lately; who restarts us at will has other ways. */
	a->tokens = (double)row->creates_per_minute;
	a->refilled_ms = loop_now(c->loop);
	return 0;
}

void quotas_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->quotas.by_tenant));) {
		map_del(&c->quotas.by_tenant, n);
		free(CONTAINER(n, struct account, by_tenant));
	}
	map_done(&c->quotas.by_tenant);
}
