/*
 * Starts and stops the core: loads the store, then adopts the boxes that the keeper runs (adopt.c).
 * Also has small functions that all rooms use.
 */
#include "core.h"

#include <errno.h>
#include <stdlib.h>

#include "adopt.h"
#include "agents.h"
#include "ailog.h"
#include "allowances.h"
#include "audit_log.h"
#include "bridges.h"
#include "carrier.h"
#include "chains.h"
#include "contexts.h"
#include "core_base.h"
#include "create.h"
#include "events.h"
#include "history.h"
#include "images.h"
#include "keeper.h"
#include "life.h"
#include "log.h"
#include "mounts.h"
#include "outputs.h"
#include "policies.h"
#include "pool.h"
#include "quotas.h"
#include "remove.h"
#include "shells.h"
#include "sign.h"
#include "signer.h"
#include "snapshots.h"
#include "spend_node.h"
#include "spends.h"
#include "templates.h"
#include "templates_kept.h"
#include "trend_ring.h"
#include "trust.h"
#include "usage.h"
#include "vault.h"
#include "walletconnect_impl.h"
#include "watchers.h"
#include "webhooks.h"
#include "workspaces.h"
#include "poison.h"

static_assert(ELEMS(((struct core_stats *)0)->boxes) == BOX_STATUSES, "a figure for each status");

/* ---- small things ---- */

int core_say_ready(struct core *c)
{
	return keeper_say_ready(c);
}

const char *core_not_ready(const struct core *c)
{
	if (c->startup->adoption)
		return "the sandboxes are being adopted";
	if (c->store_failed)
		return "the store does not take writes";
	if (c->keeper->storage_wrong[0])
		return c->keeper->storage_wrong;
	if (!c->posture.known)
		return "the machine's posture is not known";
	if (!c->posture.n || !c->posture.backends[0].ok)
		return "this machine cannot isolate sandboxes (see /v1/posture)";
	return NULL;
}

void core_stats(const struct core *c, struct core_stats *ret)
{
	*ret = c->stats;
	ret->keeper_calls = c->keeper->calls;
	ret->storage_size = c->keeper->storage_size;
	ret->storage_free = c->keeper->storage_free;
	ret->storage_beneath = c->keeper->storage_beneath;
	ret->storage_wrong = c->keeper->storage_wrong[0];
	LIST_EACH (it, &c->boxes->all)
		if (!BOX_OF(it, order)->in->pooled)
			ret->boxes[BOX_OF(it, order)->state.status]++;
}

void core_on_caller(struct core *c, void (*on_caller)(void *arg, const struct box *b, int fd), void *arg)
{
	c->policies->on_caller = on_caller;
	c->policies->caller_arg = arg;
}

/* ---- loading ---- */

struct loading {
	struct core *core;
	struct err e;
};

static void load_tenant(void *arg, const struct store_tenant *t)
{
	struct loading *l = arg;
	int r = keys_load_tenant(l->core, t);
	if (r < 0 && !l->e.code)
		err_sys(&l->e, ERR_INTERNAL, r, "tenant %.*s", VIEW_ARG(t->id));
}

static void load_key(void *arg, const struct store_key *k)
{
	struct loading *l = arg;
	int r = keys_load_key(l->core, k);
	if (r < 0 && !l->e.code)
		err_sys(&l->e, ERR_INTERNAL, r, "key %.*s", VIEW_ARG(k->id));
}

static void load_box(void *arg, const struct store_box *row)
{
	struct loading *l = arg;
	struct err e = { 0 };
	if (boxes_load(l->core, row, &e) < 0 && !l->e.code)
		l->e = e;
}

static void note(struct loading *l, int r, const char *what)
{
	if (r < 0 && !l->e.code)
		err_sys(&l->e, ERR_INTERNAL, r, "%s", what);
}

static void load_setting(void *arg, const struct store_setting *s)
{
	struct loading *l = arg;

	sign_load(l->core, s);
	note(l, templates_kept_load(l->core, s), "a step of a build");
}

static void load_event(void *arg, const struct store_event *v)
{
	struct loading *l = arg;
	note(l, events_load(l->core, v), "an event");
}

static void load_audit(void *arg, const struct store_audit *a)
{
	struct loading *l = arg;
	note(l, audit_load(l->core, a), "an entry of the audit log");
}

static void load_webhook(void *arg, const struct store_webhook *w)
{
	struct loading *l = arg;
	note(l, webhooks_load(l->core, w), "a webhook");
}

static void load_delivery(void *arg, const struct store_delivery *d)
{
	struct loading *l = arg;
	note(l, webhooks_load_delivery(l->core, d), "a delivery");
}

static void load_quota(void *arg, const struct store_quota *q)
{
	struct loading *l = arg;
	note(l, quotas_load(l->core, q), "a quota");
}

static void load_egress(void *arg, const struct store_egress *v)
{
	struct loading *l = arg;
	note(l, policies_load(l->core, v), "an egress policy");
}

static void load_usage(void *arg, const struct store_usage *u)
{
	struct loading *l = arg;
	note(l, usage_load(l->core, u), "usage of a model");
}

static void load_ai_limits(void *arg, const struct store_ai_limits *row)
{
	struct loading *l = arg;
	note(l, allowances_load(l->core, row), "what a tenant may use of models");
}

static void load_ai_log(void *arg, const struct store_ai_log *row)
{
	struct loading *l = arg;
	note(l, usage_load_log(l->core, row), "a call to a model");
}

static void load_ai_call(void *arg, const struct store_ai_call *k)
{
	struct loading *l = arg;
	note(l, usage_load_call(l->core, k), "a call to a model");
}

static void load_snapshot(void *arg, const struct store_snapshot *row)
{
	struct loading *l = arg;
	struct err e = { 0 };
	if (snapshots_load(l->core, row, &e) < 0 && !l->e.code)
		l->e = e;
}

static void load_workspace(void *arg, const struct store_workspace *row)
{
	struct loading *l = arg;
	struct err e = { 0 };
	if (workspaces_load(l->core, row, &e) < 0 && !l->e.code)
		l->e = e;
}

static void load_template(void *arg, const struct store_template *row)
{
	struct loading *l = arg;
	struct err e = { 0 };
	if (templates_load(l->core, row, &e) < 0 && !l->e.code)
		l->e = e;
}

static void load_verdict(void *arg, const struct store_verdict *row)
{
	struct loading *l = arg;
	policies_log_load(l->core, row);
}

static void load_agent(void *arg, const struct store_agent *row)
{
	struct loading *l = arg;
	struct err e = { 0 };
	if (agents_load(l->core, row, &e) < 0 && !l->e.code)
		l->e = e;
}

static void load_agent_log(void *arg, const struct store_agent_log *row)
{
	struct loading *l = arg;
	agents_log_load(l->core, row);
}

static int load(struct core *c, const struct core_setup *s, struct err *e)
{
	static const struct store_visitor visitor = {
		.tenant = load_tenant,
		.key = load_key,
		.box = load_box,
		.setting = load_setting,
		.snapshot = load_snapshot,
		.workspace = load_workspace,
		.event = load_event,
		.webhook = load_webhook,
		.delivery = load_delivery,
		.quota = load_quota,
		.egress = load_egress,
		.template = load_template,
		.usage = load_usage,
		.ai_limits = load_ai_limits,
		.ai_log = load_ai_log,
		.ai_call = load_ai_call,
		.verdict = load_verdict,
		.audit = load_audit,
		.agent = load_agent,
		.agent_log = load_agent_log,
	};
	struct loading l = { .core = c };

	if (store_load(c->store, &visitor, &l, e) < 0)
		return -1;
	if (l.e.code) { /* better no service than one that has forgotten a box */
		*e = l.e;
		return err_wrap(e, "the store");
	}
	events_start(c);
	spend_events_start(c);
	trend_start(c);
	usage_start(c);
	if (sign_ensure(c, e) < 0)
		return -1;
	return keys_ensure_admin(c, s->has_admin ? s->admin_hash : NULL, e) < 0 ? -1 : keys_add_given(c, e);
}

/* ---- life ---- */

/* The core, and what each of its rooms owns. */
struct core_whole {
	struct core core;
	struct who who;
	struct audit_log audit;
	struct quotas quotas;
	struct keeper keeper;
	struct vault_channel vault;
	struct signer_channel signer;
	struct carrier carrier;
	struct events events;
	struct webhooks webhooks;
	struct boxes boxes;
	struct snapshots snapshots;
	struct workspaces workspaces;
	struct images images;
	struct policies policies;
	struct trust trust;
	struct rush rush;
	struct retire retire;
	struct pool pool;
	struct sampler sampler;
	struct outputs outputs;
	struct watchers watchers;
	struct templates templates;
	struct usage usage;
	struct allowances allowances;
	struct ailog ailog;
	struct chains chains;
	struct agents agents;
	struct spends spends;
	struct walletconnect walletconnect;
	struct trend trend;
	struct startup startup;
};

static struct core *allocate(const struct core_setup *s)
{
	struct core_whole *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->core = (struct core){
		.loop = s->loop,
		.store = s->store,
		.config = s->config,
		.who = &w->who,
		.audit = &w->audit,
		.quotas = &w->quotas,
		.keeper = &w->keeper,
		.vault = &w->vault,
		.signer = &w->signer,
		.carrier = &w->carrier,
		.events = &w->events,
		.webhooks = &w->webhooks,
		.boxes = &w->boxes,
		.snapshots = &w->snapshots,
		.workspaces = &w->workspaces,
		.images = &w->images,
		.policies = &w->policies,
		.trust = &w->trust,
		.rush = &w->rush,
		.retire = &w->retire,
		.pool = &w->pool,
		.sampler = &w->sampler,
		.outputs = &w->outputs,
		.watchers = &w->watchers,
		.templates = &w->templates,
		.usage = &w->usage,
		.allowances = &w->allowances,
		.ailog = &w->ailog,
		.chains = &w->chains,
		.agents = &w->agents,
		.spends = &w->spends,
		.walletconnect = &w->walletconnect,
		.trend = &w->trend,
		.startup = &w->startup,
	};
	w->keeper.core = w->vault.core = w->signer.core = w->carrier.core = &w->core;
	w->events.core = w->audit.core = w->trend.core = w->webhooks.core = &w->core;
	w->sampler.core = w->pool.core = w->policies.core = &w->core;
	w->chains.core = w->spends.core = w->walletconnect.core = &w->core;
	w->startup = (struct startup){ .on_ready = s->on_ready, .on_lost = s->on_lost, .arg = s->arg };
	return &w->core;
}

/* What the rooms keep of every box. This is the order in which they hear of it, also of its end. */
static const struct box_part *const box_parts[] = {
	&quotas_part,     &workspaces_part, &pool_part,     &history_part, &policies_part,
	&allowances_part, &ailog_part,      &life_part,     &mounts_part,  &trust_part,
	&guest_part,      &shells_part,     &contexts_part, &bridges_part, NULL,
};

/* What rooms have of a tenant's in lists of their own. */
static ledger_list *const ledger_lists[] = {
	workspaces_held, snapshots_held, templates_held, templates_kept_held, webhooks_held, NULL,
};

/* ---- what a room wants of one above it ---- */

static const struct egress_policy *policy_of(const struct box *b)
{
	return policies_of(b, NULL);
}

static void on_budget(struct core *c, bool exceeded, const struct box *b, const char *scope,
		      const struct budget_notice *n)
{
	events_emit_budget(c, exceeded ? EVENT_AI_EXCEEDED : EVENT_AI_WARNING, b,
			   &(struct event_budget){ .scope = scope,
						   .window = budget_window_name(n->window),
						   .limit = n->limit,
						   .spent = n->spent,
						   .reserved = n->reserved });
}

static void lost(struct core *c)
{
	c->startup->on_lost(c->startup->arg);
}

static void init(struct core *c)
{
	c->keeper->on_lost = lost;
	c->keeper->on_exited = life_exited;
	c->vault->on_open = trust_refresh;
	c->vault->policy_of = policy_of;
	c->quotas->lists = ledger_lists;
	c->quotas->shrink = templates_kept_shrink;
	c->usage->on_budget = on_budget;
	c->usage->agent_of = agents_id_of_box;
	c->images->on_gone = templates_kept_forget_image;
	c->workspaces->remove_helper = remove_unwanted_then;
	c->policies->sets_of = templates_sets_of;
	c->outputs->by_shell = &shells_way;
	c->templates->on_built = agents_built;
	map_init(&c->who->tenants_by_id);
	map_init(&c->who->tenants_by_name);
	map_init(&c->who->keys_by_id);
	map_init(&c->who->keys_by_hash);
	boxes_init(c, box_parts);
	list_init(&c->who->keys);
	list_init(&c->who->logins);
	map_init(&c->snapshots->by_id);
	map_init(&c->workspaces->by_id);
	list_init(&c->snapshots->all);
	list_init(&c->workspaces->all);
	list_init(&c->templates->kept_steps);
	list_init(&c->templates->all);
	list_init(&c->templates->starts);
	list_init(&c->templates->layers);
	list_init(&c->watchers->all);
	agents_init(c);
	chains_init(c);
	spend_init(c);
	outputs_init(c->outputs);
	quotas_init(c);
	vault_init(c);
	signer_init(c);
	walletconnect_init(c);
	carrier_init(c);
	usage_init(c);
	allowances_init(c);
	ailog_init(c);
	history_init(c);
}

struct core *core_new(const struct core_setup *s, struct err *e)
{
	struct core *c = allocate(s);
	if (!c) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "core");
		return NULL;
	}
	init(c);
	int r = events_init(c);
	if (r >= 0)
		r = pool_init(c);
	if (r >= 0)
		r = webhooks_init(c);
	if (r < 0) {
		err_sys(e, ERR_INTERNAL, r, "core");
		core_free(c);
		return NULL;
	}
	if (policies_init(c, e) < 0) {
		core_free(c);
		return NULL;
	}
	if (keeper_start(c, s->keeper_fd, e) < 0 || load(c, s, e) < 0 || adopt_begin(c, e) < 0) {
		core_stop(c);
		core_free(c);
		return NULL;
	}
	return c;
}

void core_stop(struct core *c)
{
	if (!c)
		return;
	audit_stop(c);
	c->stopping = true;
	trend_stop(c);
	adopt_stop(c);
	agents_stop_all(c);
	spend_stop(c);
	walletconnect_stop(c);
	chains_stop(c);
	pool_stop(c);
	history_stop(c);
	webhooks_stop(c);
	policies_gate_stop(c);
	policies_log_stop(c);
	trust_stop(c);
	vault_stop(c);
	signer_stop(c);
	carrier_stop(c);
	keeper_stop(c);
	life_stop_all(c);
}

void core_free(struct core *c)
{
	if (!c)
		return;
	watchers_done(c);
	spend_done(c);
	spend_node_free_all(c);
	agents_done(c);
	walletconnect_done(c);
	templates_done(c);
	boxes_done(c);
	snapshots_done(c);
	workspaces_done(c);
	pool_done(c);
	webhooks_done(c);
	events_done(c);
	audit_done(c);
	usage_done(c);
	allowances_done(c);
	ailog_done(c);
	policies_done(c);
	images_done(c);
	quotas_done(c); /* behind everything that is counted there */
	arena_done(&c->posture.arena);
	logins_done(c);
	keys_done(c);
	free(CONTAINER(c, struct core_whole, core));
}
