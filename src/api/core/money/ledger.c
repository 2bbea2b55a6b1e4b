/*
 * What tenants hold and may hold: see ledger.h.
 */
#include "ledger.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "quotas.h"
#include "who.h"
#include "poison.h"

const struct ledger_kind ledger_kinds[LEDGER_ITEMS] = {
	[LEDGER_BOXES] = { "boxes", "sandboxes", "" },
	[LEDGER_CPU] = { "cpu", "CPU", " cores", .milli = true },
	[LEDGER_MEMORY] = { "memory_mb", "memory", " MiB" },
	[LEDGER_DISK] = { "disk_mb", "disk", " MiB" },
	[LEDGER_PROCESSES] = { "processes", "processes", "" },
	[LEDGER_HELPERS] = { "helpers", "hidden sandboxes for files of workspaces and imports", "" },
	[LEDGER_WORKSPACES] = { "workspaces", "workspaces", "" },
	[LEDGER_SNAPSHOTS] = { "snapshots", "snapshots", "" },
	[LEDGER_TEMPLATES] = { "templates", "templates", "" },
	[LEDGER_WEBHOOKS] = { "webhooks", "webhooks", "" },
	[LEDGER_SECRETS] = { "secrets", "secrets", "" },
	[LEDGER_SECRETS_KB] = { "secrets_kb", "secrets' files", " KiB" },
	[LEDGER_EVENTS] = { "events", "events", "", .shown_only = true },
	[LEDGER_LOGS] = { "logs_kb", "logs of builds", " KiB", .kib = true, .shown_only = true },
	[LEDGER_VERDICTS] = { "verdicts", "entries of the egress log", "", .shown_only = true },
	[LEDGER_AI_CALLS] = { "ai_calls", "calls in the log of models", "", .shown_only = true },
	[LEDGER_AI_TEXT] = { "ai_text_kb", "text of calls", " KiB", .kib = true, .shown_only = true },
};

struct account *ledger_account(struct core *c, const struct tenant *t)
{
	struct map_node *n = map_get(&c->quotas->by_tenant, view_of(t->id));
	if (n)
		return CONTAINER(n, struct account, by_tenant);
	struct account *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->tenant = t;
	if (map_put(&c->quotas->by_tenant, &a->by_tenant, view_of(t->id)) < 0) {
		free(a);
		return NULL;
	}
	return a;
}

/* ---- what it has ---- */

uint64_t ledger_used(const struct core *c, const struct account *a, enum ledger_item i)
{
	uint64_t n = i < LEDGER_ITEMS ? a->counted.n[i] : 0;

	if (i < LEDGER_ITEMS && ledger_kinds[i].kib)
		n >>= 10;
	for (ledger_list *const *held = c->quotas->lists; *held; held++)
		n += (*held)(c, a->tenant, i);
	return n;
}

/* ---- what it may have ---- */

uint64_t ledger_most(const struct core *c, const struct account *a, enum ledger_item i)
{
	const struct config_tenant *std = &c->config->max.tenant;
	const uint64_t defaults[LEDGER_ITEMS] = {
		[LEDGER_PROCESSES] = std->processes,   [LEDGER_HELPERS] = std->helpers,
		[LEDGER_WORKSPACES] = std->workspaces, [LEDGER_SNAPSHOTS] = std->snapshots,
		[LEDGER_TEMPLATES] = std->templates,   [LEDGER_WEBHOOKS] = std->webhooks,
		[LEDGER_SECRETS] = std->secrets,       [LEDGER_SECRETS_KB] = std->secrets_kb,
	};

	return a->quota.most[i] ? a->quota.most[i] : defaults[i];
}

static int over(struct err *e, enum ledger_item i, uint64_t used, uint64_t most)
{
	const struct ledger_kind *k = &ledger_kinds[i];

	if (k->milli)
		return err_set(e, ERR_QUOTA, "the tenant's quota of %s is used up: %g of %g%s", k->noun,
			       (double)used / 1000, (double)most / 1000, k->unit);
	return err_set(e, ERR_QUOTA, "the tenant's quota of %s is used up: %llu of %llu%s", k->noun,
		       (unsigned long long)used, (unsigned long long)most, k->unit);
}

/* What is kept to save time gives way to what is asked for. */
static uint64_t used_within(struct core *c, const struct account *a, enum ledger_item i, uint64_t most,
			    uint64_t more)
{
	uint64_t used = ledger_used(c, a, i);

	if (i != LEDGER_DISK || used + more <= most)
		return used;
	c->quotas->shrink(c, a->tenant, used + more - most);
	return ledger_used(c, a, i);
}

int ledger_admit(struct core *c, const struct tenant *t, const struct quota_use *more, struct err *e)
{
	struct account *a = ledger_account(c, t);

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	/* What has no limit of its own could take all of the disk. */
	if (a->quota.most[LEDGER_DISK] && !more->n[LEDGER_DISK] &&
	    (more->n[LEDGER_BOXES] || more->n[LEDGER_WORKSPACES]))
		return err_set(
			e, ERR_QUOTA,
			"the tenant has a quota of disk, but this storage has no disk limits that could "
			"keep it (data.backend)");
	for (enum ledger_item i = 0; i < LEDGER_ITEMS; i++) {
		uint64_t most = more->n[i] ? ledger_most(c, a, i) : 0;
		uint64_t used = most ? used_within(c, a, i, most, more->n[i]) : 0;
		if (most && used + more->n[i] > most)
			return over(e, i, used, most);
	}
	return 0;
}

int ledger_check(struct core *c, const struct tenant *t, enum ledger_item i, struct err *e)
{
	struct account *a = ledger_account(c, t);

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "quota");
	uint64_t most = ledger_most(c, a, i), used = most ? used_within(c, a, i, most, 0) : 0;
	return most && used > most ? over(e, i, used, most) : 0;
}

/* ---- counting ---- */

void ledger_count(struct core *c, const struct tenant *t, enum ledger_item i, int64_t change)
{
	struct account *a = ledger_account(c, t);

	if (a)
		a->counted.n[i] += (uint64_t)change;
}

const struct tenant *ledger_largest(const struct core *c, enum ledger_item i)
{
	const struct account *most = NULL;

	for (struct map_node *n = map_first(&c->quotas->by_tenant); n;
	     n = map_next(&c->quotas->by_tenant, n)) {
		const struct account *a = CONTAINER(n, struct account, by_tenant);
		if (!most || a->counted.n[i] > most->counted.n[i])
			most = a;
	}
	return most && most->counted.n[i] ? most->tenant : NULL;
}

void ledger_set(struct core *c, const struct tenant *t, enum ledger_item i, uint64_t n)
{
	struct account *a = ledger_account(c, t);

	if (a)
		a->counted.n[i] = n;
}
