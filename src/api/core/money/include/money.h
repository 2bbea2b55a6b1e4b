/*
 * Quotas of tenants, limits for models, and usage.
 */
#pragma once

#include "allowance.h"
#include "budget.h"
#include "job.h"
#include "meter.h"
#include "store_usage.h"

struct actor;
struct box;
struct core;
struct tenant;

/*
 * ---- quotas.c ----
 * Who may have how much. A tenant's quota bounds what it holds of everything (enum ledger_item; ledger.c
 * counts and compares) and how fast boxes are made; the machine's budget bounds all of them.
 */

/* What a tenant can hold. boxes, disk: of all that exist; cpu, memory, processes: the limits of those that
 * run. disk: limits of boxes and workspaces, and the files of snapshots. */
enum ledger_item {
	LEDGER_BOXES,
	LEDGER_CPU, /* thousandths */
	LEDGER_MEMORY,
	LEDGER_DISK,
	LEDGER_PROCESSES,
	LEDGER_HELPERS, /* boxes that nobody sees */
	LEDGER_WORKSPACES,
	LEDGER_SNAPSHOTS,
	LEDGER_TEMPLATES,
	LEDGER_WEBHOOKS,
	LEDGER_SECRETS,
	LEDGER_SECRETS_KB, /* of all versions, as they lie on disk */
	LEDGER_EVENTS,
	LEDGER_LOGS, /* bytes */
	LEDGER_VERDICTS,
	LEDGER_AI_CALLS,
	LEDGER_AI_TEXT, /* bytes */
	LEDGER_ITEMS,
};
struct ledger_kind {
	const char *name, *noun, *unit;
	bool milli, kib; /* how it is counted: thousandths; bytes, which are shown as KiB */
	bool shown_only; /* it is bounded in another way */
};
extern const struct ledger_kind ledger_kinds[LEDGER_ITEMS];

/* 0: the default of the configuration (max.tenant), or no limit. */
struct quota {
	uint64_t most[LEDGER_ITEMS], creates_per_minute;
};

struct quota_use {
	uint64_t n[LEDGER_ITEMS];
};

struct tenant_state {
	const struct tenant *tenant;
	struct quota quota;
	struct quota_use limit; /* that applies: the quota or the default */
	struct quota_use use;
};
/* Seconds until this tenant may make a box again, as far as the rate is concerned; at least 1. */
unsigned quotas_retry_after(struct core *c, const struct tenant *t);

/* ---- tenants; a reference is an id or a name ---- */

int quotas_tenant(struct core *c, const struct actor *a, struct view ref, struct tenant_state *ret,
		  struct err *e) _must_check_;
int quotas_each_tenant(struct core *c, const struct actor *a,
		       void (*each)(void *arg, const struct tenant_state *s), void *arg,
		       struct err *e) _must_check_;
/* The result of both is a const struct tenant_state *. */
struct job *quotas_tenant_create(struct core *c, const struct actor *a, struct view name, job_done *done,
				 void *arg, struct err *e) _must_check_;
struct job *quotas_put(struct core *c, const struct actor *a, struct view ref, const struct quota *q,
		       job_done *done, void *arg, struct err *e) _must_check_;

/*
 * ---- allowances.c ----
 * What boxes and tenants may use of models. A box has what was said for it, or else the
 * default of the configuration (ai.box), but never more than ai.max and its tenant say; a tenant has what an
 * admin said, or else the default (ai.tenant). Of the lists (providers, endpoints, models) each that there is
 * must allow a call. A change holds for the next call.
 */

#define ALLOWANCES_TOKEN_TTL_MAX (366 * 24 * 3600)

/* ---- wishes ---- */

/* What somebody asks for a box of this tenant, checked: its one form in JSON, in the arena. ERR_INVALID. */
int allowances_wish(struct core *c, const struct tenant *t, const struct json *doc, struct arena *arena,
		    struct view *ret, struct err *e) _must_check_;

/* ---- boxes ---- */

/* What holds now, for the box and for its tenant. */
void allowances_of(const struct box *b, struct allowance_force *ret);
void allowances_of_tenant(const struct core *c, const struct tenant *t, struct allowance_force *ret);
/* What was said, or NULL. */
const struct allowance *allowances_said(const struct box *b);
const struct allowance *allowances_said_tenant(const struct core *c, const struct tenant *t);
/* Whether the box's list and its tenant's allow it. */
bool allowances_allow(const struct box *b, enum allowance_list l, struct view text);

/* The result is a const struct box *. `whole`: the document replaces what was said, else it changes it. */
struct job *allowances_put(struct core *c, const struct actor *a, struct view ref, const struct json *doc,
			   bool whole, job_done *done, void *arg, struct err *e) _must_check_;
/* Another token for models; the old one stops working. ttl_seconds 0: it ends with the box. */
struct job *allowances_rotate(struct core *c, const struct actor *a, struct view ref, uint64_t ttl_seconds,
			      job_done *done, void *arg, struct err *e) _must_check_;

/* ---- tenants; a reference is an id or a name. For admins ---- */

/* The result is a const struct tenant *. */
struct job *allowances_tenant_put(struct core *c, const struct actor *a, struct view ref,
				  const struct json *doc, bool whole, job_done *done, void *arg,
				  struct err *e) _must_check_;

/*
 * ---- usage.c ----
 * What boxes use of models: accounts of boxes and tenants (budget.h), and a row for each day, box, provider
 * and model. A call is reserved before it is sent and settled after it, in memory and in the store; what a
 * crash leaves reserved is taken for spent.
 */

/* A call that is under way. */
struct usage_call {
	uint64_t id;
	struct budget_claim claim;
	int64_t began_ms;
	bool bounded; /* there is a budget */
	const char *endpoint;
	char tenant[48], box[24], agent[24], provider[16], model[132];
};

struct usage_wish {
	const struct box *box;
	const char *provider, *endpoint; /* the endpoint: a constant */
	struct view model;
	struct budget_claim claim;
};
/* Checked and counted in one step, against what holds for the box and its tenant at this moment
 * (allowances.h). ERR_RATE (*ret_wait: seconds) or ERR_FORBIDDEN: the budget. */
int usage_reserve(struct core *c, const struct usage_wish *w, struct usage_call *ret, unsigned *ret_wait,
		  struct err *e) _must_check_;
/* How it ended. */
struct usage_end {
	struct meter_usage used;
	int64_t cost;
	bool estimated;
	int status;
	struct store_ai_bodies bodies;
	const char *finish; /* "complete", "error", "client", "broken", "timeout", "budget" */
};
void usage_settle(struct core *c, const struct usage_call *k, const struct usage_end *end);
/* What the client of this call should hear of its budgets; false: nothing. */
#define USAGE_NOTICE 256
bool usage_notice(struct core *c, const struct usage_call *k, char ret[USAGE_NOTICE]);
void usage_give_back(struct core *c, const struct usage_call *k);

/* Nano-dollars of the window that is now; reserved: for calls that are under way. */
struct usage_spent {
	int64_t windows[BUDGET_WINDOWS], reserved;
	uint64_t parallel;
};
void usage_spent(struct core *c, const struct box *b, struct usage_spent *ret);
void usage_spent_tenant(struct core *c, const struct tenant *t, struct usage_spent *ret);

/* Rows that the actor may see, from a day on; of one box or agent where it is given. */
struct usage_filter {
	int64_t from, to;
	struct view box, agent, model, provider;
};
int usage_each(struct core *c, const struct actor *a, const struct usage_filter *f,
	       void (*each)(void *arg, const struct store_usage *u), void *arg, struct err *e) _must_check_;
/* What the boxes of an agent have cost, those that are gone too: nano-dollars of today, of the last 7 and 30
 * days, and of all that are kept. Days are those of UTC. */
enum usage_span { USAGE_TODAY, USAGE_7_DAYS, USAGE_30_DAYS, USAGE_KEPT, USAGE_SPANS };
int usage_of_agent(struct core *c, const struct actor *a, struct view agent, int64_t ret[USAGE_SPANS],
		   struct err *e) _must_check_;

/*
 * ---- ailog.c ----
 * Calls to models that are over, one by one: the newest AILOG_BOX of each box and AILOG_ALL
 * together, in memory and in the store. What was refused before it was sent is none. Where
 * somebody asked for it their text is kept, too, as long as its box is there; the oldest
 * goes first when there are more than AILOG_TEXT bytes of it.
 */

/* The newest of the box that are older than `before` (0: all), the newest first; false ends it. */
void ailog_each(const struct core *c, struct view box, uint64_t before,
		bool (*each)(void *arg, const struct store_ai_log *l), void *arg);

/* One of the box's, or NULL. */
const struct store_ai_log *ailog_find(const struct core *c, struct view box, uint64_t id);
