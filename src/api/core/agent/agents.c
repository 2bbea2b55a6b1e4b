/*
 * The index of agents, their rows, and what an installation may ask for: see agent.h.
 */
#include "agents.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "egress.h"
#include "keys.h"
#include "log.h"
#include "rnd.h"
#include "store_agents.h"
#include "templates.h"
#include "workspaces.h"
#include "poison.h"

static const char *const status_names[AGENT_STATUSES] = {
	[AGENT_NONE] = "none",       [AGENT_WAITING] = "waiting",   [AGENT_BUILDING] = "building",
	[AGENT_FAILED] = "failed",   [AGENT_STOPPED] = "stopped",   [AGENT_STARTING] = "starting",
	[AGENT_RUNNING] = "running", [AGENT_STOPPING] = "stopping", [AGENT_CRASHED] = "crashed",
};

const char *agents_status_name(enum agent_status s)
{
	return status_names[s];
}

/* What the store knows: the rest is a matter of `wanted`. */
static const char *agents_row_status(const struct agent *a)
{
	return a->status == AGENT_WAITING || a->status == AGENT_BUILDING || a->status == AGENT_FAILED
		       ? status_names[a->status]
		       : "ready";
}

const char *agents_next_name(enum agent_next_step s)
{
	static const char *const names[] = { "none", "waiting", "building", "failed" };
	return names[s];
}

struct actor agents_actor(const struct agent *a)
{
	return (struct actor){ .tenant = a->tenant, .role = STORE_ROLE_USER };
}

void agents_template_name(const struct agent *a, char ret[32])
{
	memcpy(ret, "agent-", 6);
	memcpy(ret + 6, a->id, sizeof(a->id));
}

void agents_save(struct agent *a, store_done *done, void *arg)
{
	bool under_way = a->next && a->next->step != AGENT_NEXT_FAILED;
	const struct store_agent row = { .id = view_of(a->id),
					 .tenant = view_of(a->tenant->id),
					 .name = view_of(a->name),
					 .manifest = a->manifest_text,
					 .status = view_of(agents_row_status(a)),
					 .reason = view_of(a->reason),
					 .box = view_of(a->box),
					 .consented = view_of(a->consented),
					 .wanted = a->wanted,
					 .crashes = a->crashes,
					 .next_start_ms = a->next_start_ms,
					 .next = under_way ? a->next->text : VIEW(""),
					 .next_consented = view_of(under_way ? a->next->consented : ""),
					 .next_builds = under_way && a->next->step == AGENT_NEXT_BUILDING,
					 .created_ms = a->created_ms };

	if (!a->core->stopping)
		store_agent_put(a->core->store, &row, done ? done : core_store_done, done ? arg : a->core);
}

/* ---- into and out of memory ---- */

struct agent *agents_by_id(const struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->agents->by_id, id);
	return n ? CONTAINER(n, struct agent, by_id) : NULL;
}

static void agent_free(struct agent *a)
{
	agents_run_stop(a);
	a->core->agents->rpc_end(a);
	agents_build_forget(a);
	agents_upgrade_free(a);
	agents_log_done(a);
	map_del(&a->core->agents->by_id, &a->by_id);
	list_del(&a->order);
	arena_done(&a->arena);
	free(a);
}

static struct agent *agent_new(struct core *c, const struct tenant *t, struct err *e)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
		return NULL;
	}
	a->core = c;
	a->tenant = t;
	arena_init(&a->arena, AGENT_ARENA);
	list_init(&a->order);
	list_init(&a->waiters);
	list_init(&a->calls);
	agents_log_init(a);
	return a;
}

static void agent_drop(struct agent *a)
{
	if (!a)
		return;
	agents_upgrade_free(a);
	arena_done(&a->arena);
	free(a);
}

/* The text of a manifest that was judged is kept, and is what it means from then on. */
static int take_manifest(struct agent *a, struct view text, struct err *e)
{
	struct json *doc;

	a->manifest_text = arena_view(&a->arena, text);
	if (!a->manifest_text.p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
	if (json_parse(&a->arena, a->manifest_text, &doc, e) < 0)
		return -1;
	return manifest_read(&a->arena, doc, &a->manifest, e);
}

static int enter(struct agent *a, struct err *e)
{
	int r = map_put(&a->core->agents->by_id, &a->by_id, view_of(a->id));

	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "agent");
	list_append(&a->core->agents->all, &a->order);
	return 0;
}

static int fill(struct agent *a, const struct store_agent *row, struct err *e)
{
	if (!a->tenant || view_to_str(row->id, a->id, sizeof(a->id)) < 0 ||
	    view_to_str(row->name, a->name, sizeof(a->name)) < 0 ||
	    view_to_str(row->box, a->box, sizeof(a->box)) < 0 ||
	    view_to_str(row->reason, a->reason, sizeof(a->reason)) < 0 ||
	    view_to_str(row->consented, a->consented, sizeof(a->consented)) < 0)
		return err_set(e, ERR_INTERNAL, "the row of an agent is damaged");
	a->wanted = row->wanted;
	a->crashes = row->crashes;
	a->next_start_ms = row->next_start_ms;
	a->created_ms = row->created_ms;
	a->status = view_is(row->status, "waiting")    ? AGENT_WAITING
		    : view_is(row->status, "building") ? AGENT_BUILDING
		    : view_is(row->status, "ready")    ? AGENT_STOPPED
						       : AGENT_FAILED;
	if (take_manifest(a, row->manifest, e) < 0)
		return -1;
	return row->next.n ? agents_upgrade_load(a, row->next, row->next_consented, row->next_builds, e) : 0;
}

int agents_load(struct core *c, const struct store_agent *row, struct err *e)
{
	struct agent *a = agent_new(c, keys_tenant(c, row->tenant), e);

	if (!a)
		return -1;
	if (fill(a, row, e) < 0 || enter(a, e) < 0) {
		agent_drop(a);
		return err_wrap(e, "agent %.*s", (int)MIN(row->id.n, (size_t)AGENT_ID), row->id.p);
	}
	return 0;
}

/* ---- what an installation may ask for ---- */

static bool is_listed(const struct config *cfg, struct view chain, struct view url)
{
	const struct json *l = cfg->agents.rpcs;

	for (size_t i = 0; l && i < l->n; i++)
		if (view_eq(l->items[i].text, url))
			return true;
	for (size_t i = 0; i < cfg->agents.n_chains; i++) {
		const struct config_chain *one = &cfg->agents.chain_list[i];
		for (size_t k = 0; view_eq(one->id, chain) && k < one->n_rpc; k++)
			if (view_eq(one->rpc[k].text, url))
				return true;
	}
	return false;
}

/* A manifest's URL is a wish: whoever runs the daemon says where it connects to. */
static int check_rpcs(const struct core *c, const struct manifest *m, struct err *e)
{
	const struct json_strmap *r = &m->permissions.rpcs;

	for (size_t i = 0; i < r->n; i++)
		if (!is_listed(c->config, r->keys[i], r->values[i]))
			return err_set(
				e, ERR_FORBIDDEN,
				"permissions.rpcs.%.*s: agents.rpcs of the configuration does not list "
				"this URL",
				VIEW_ARG(r->keys[i]));
	return 0;
}

static int check_resources(const struct core *c, const struct manifest *m, struct err *e)
{
	const struct box_limits_wish *max = &c->config->max.limits;

	if (m->resources.memory_mb > max->memory_mb)
		return err_set(e, ERR_INVALID, "resources.memory: a sandbox has at most %llu MB here",
			       (unsigned long long)max->memory_mb);
	if (m->resources.cpu_milli > (uint64_t)(max->cpu * 1000 + 0.5))
		return err_set(e, ERR_INVALID, "resources.cpu: a sandbox has at most %g cores here",
			       max->cpu);
	return 0;
}

int agents_preview(struct core *c, const struct actor *a, const struct json *manifest, struct arena *arena,
		   struct manifest *ret, struct err *e)
{
	struct agent probe = { .core = c, .tenant = a->tenant };
	struct egress_policy egress;

	if (auth_permit(a, ACT_AGENT_CREATE, NULL, e) < 0)
		return -1;
	if (!manifest)
		return err_set(e, ERR_INVALID, "manifest is needed");
	if (manifest_read(arena, manifest, &probe.manifest, e) < 0 || check_rpcs(c, &probe.manifest, e) < 0 ||
	    check_resources(c, &probe.manifest, e) < 0)
		return err_wrap(e, "manifest");
	if (agents_egress(&probe, false, arena, &egress, e) < 0)
		return err_wrap(e, "manifest: permissions.hosts");
	*ret = probe.manifest;
	return 0;
}

/* "My Agent" is my-agent. */
static int make_name(const struct agent_wish *w, const struct manifest *m, char ret[64], struct err *e)
{
	struct view from = w->name.n ? w->name : m->name;
	size_t n = 0;

	if (w->name.n)
		return spec_is_name(w->name) && view_to_str(w->name, ret, 64) >= 0
			       ? 0
			       : err_set(e, ERR_INVALID,
					 "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or "
					 "digit",
					 SPEC_NAME_MAX);
	for (size_t i = 0; i < from.n && n < SPEC_NAME_MAX; i++) {
		char ch = from.p[i];
		bool upper = ch >= 'A' && ch <= 'Z';
		if (upper || (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9'))
			ret[n++] = upper ? (char)(ch + 32) : ch;
		else if (n && ret[n - 1] != '-')
			ret[n++] = '-';
	}
	while (n && ret[n - 1] == '-')
		n--;
	ret[n] = 0;
	return n ? 0 : err_set(e, ERR_INVALID, "name is needed: the manifest's has no letters of a-z in it");
}

static int check_place(const struct core *c, const struct tenant *t, const char *name, struct err *e)
{
	size_t n = 0;

	LIST_EACH (it, &c->agents->all) {
		const struct agent *o = CONTAINER(it, struct agent, order);
		if (o->tenant != t)
			continue;
		n++;
		if (strcmp(o->name, name) == 0)
			return err_set(e, ERR_CONFLICT, "there is an agent named %s already", name);
	}
	return n < AGENTS_MOST ? 0 : err_set(e, ERR_QUOTA, "a tenant has at most %d agents", AGENTS_MOST);
}

/* ---- creating ---- */

struct creation {
	struct job job;
	struct core *core;
	char id[AGENT_ID + 1];
};

static void end_creation(struct creation *j, const struct err *e)
{
	struct agent *a = agents_by_id(j->core, view_of(j->id));
	struct err gone = { 0 };

	err_set(&gone, ERR_STATE, "the agent was removed");
	if (e && a && !j->core->stopping) {
		agent_free(a);
		a = NULL;
	}
	job_finish(&j->job, a, e ? e : a ? NULL : &gone);
	free(j);
}

static void on_stored(void *arg, const struct err *e)
{
	struct creation *j = arg;

	core_store_result(j->core, e);
	end_creation(j, e);
}

static void on_prepared(void *arg, const void *result, const struct err *e)
{
	struct creation *j = arg;
	struct agent *a = agents_by_id(j->core, view_of(j->id));

	if (e || !a || j->core->stopping)
		end_creation(j, e);
	else
		agents_save(a, on_stored, j);
}

static struct agent *make(struct core *c, const struct actor *actor, const struct agent_wish *w,
			  struct err *e)
{
	struct agent *a = agent_new(c, actor->tenant, e);
	struct buf text = BUF_INIT(MANIFEST_BYTES);
	struct arena tmp = ARENA_INIT(AGENT_ARENA);
	struct manifest m;
	struct json_out o;
	int r = a ? agents_preview(c, actor, w->manifest, &tmp, &m, e) : -1;

	if (r >= 0)
		r = make_name(w, &m, a->name, e);
	if (r >= 0)
		r = check_place(c, actor->tenant, a->name, e);
	if (r >= 0) {
		json_out_init(&o, &text);
		manifest_put(&o, &m);
		r = text.bad
			    ? err_set(e, ERR_TOO_LARGE, "the manifest has more than %u bytes", MANIFEST_BYTES)
			    : take_manifest(a, buf_view(&text), e);
	}
	buf_done(&text);
	arena_done(&tmp);
	if (r < 0) {
		agent_drop(a);
		return NULL;
	}
	rnd_name(a->id, AGENT_ID);
	memcpy(a->consented, actor->key, sizeof(a->consented));
	a->created_ms = clock_wall_ms();
	a->status = AGENT_WAITING;
	return a;
}

struct job *agents_create(struct core *c, const struct actor *actor, const struct agent_wish *w,
			  job_done *done, void *arg, struct err *e)
{
	struct creation *j = calloc(1, sizeof(*j));
	struct agent *a = j ? make(c, actor, w, e) : NULL;

	if (!j)
		err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
	if (!a || enter(a, e) < 0) {
		agent_drop(a);
		free(j);
		return NULL;
	}
	*j = (struct creation){ .job = { .done = done, .arg = arg }, .core = c };
	memcpy(j->id, a->id, sizeof(j->id));
	if (agents_build_prepare(a, on_prepared, j, e) < 0) {
		agent_free(a);
		free(j);
		return NULL;
	}
	log_info("agent %s installed by %s", a->id, actor->key);
	return &j->job;
}

/* ---- finding ---- */

struct agent *agents_find(struct core *c, const struct actor *actor, int act, struct view ref, struct err *e)
{
	struct agent *a = agents_by_id(c, ref);

	for (struct list *it = c->agents->all.next; !a && it != &c->agents->all; it = it->next) {
		struct agent *o = CONTAINER(it, struct agent, order);
		if (o->tenant == actor->tenant && view_is(ref, o->name))
			a = o;
	}
	if (!a || a->removing) {
		err_set(e, ERR_NOT_FOUND, "no such agent");
		return NULL;
	}
	return auth_permit_on(actor, (enum act)act, a->tenant, "agent", e) < 0 ? NULL : a;
}

int agents_each(struct core *c, const struct actor *actor, void (*each)(void *arg, const struct agent *a),
		void *arg, struct err *e)
{
	if (auth_permit(actor, ACT_AGENT_LIST, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->agents->all) {
		const struct agent *a = CONTAINER(it, struct agent, order);
		if (!a->removing && (actor->role == STORE_ROLE_ADMIN || a->tenant == actor->tenant))
			each(arg, a);
	}
	return 0;
}

void agents_show(const struct agent *a, struct agent_view *ret)
{
	*ret = (struct agent_view){ .id = a->id,
				    .name = a->name,
				    .box = a->box,
				    .reason = a->reason,
				    .consented = a->consented,
				    .tenant = a->tenant,
				    .manifest = &a->manifest,
				    .status = a->status,
				    .created_ms = a->created_ms,
				    .started_ms = a->started_ms,
				    .next_start_ms = a->next_start_ms,
				    .crashes = a->crashes };
	if (a->next) {
		ret->next_step = a->next->step;
		ret->next = &a->next->manifest;
		ret->next_reason = a->next->reason;
	}
}

/* ---- removing: its program, what it was allowed, its image, its workspace, its row ---- */

struct removal {
	struct job job;
	struct core *core;
	char id[AGENT_ID + 1];
};

static void end_removal(struct removal *j, const struct err *e)
{
	struct agent *a = agents_by_id(j->core, view_of(j->id));

	if (a && e)
		a->removing = false;
	else if (a && !j->core->stopping)
		agent_free(a);
	job_finish(&j->job, NULL, e);
	free(j);
}

static void on_row_gone(void *arg, const struct err *e)
{
	struct removal *j = arg;

	core_store_result(j->core, e);
	end_removal(j, e);
}

static void on_space_gone(void *arg, const void *result, const struct err *e)
{
	struct removal *j = arg;

	if (e && e->code != ERR_NOT_FOUND)
		end_removal(j, e);
	else
		store_agent_delete(j->core->store, view_of(j->id), on_row_gone, j);
}

static void on_image_gone(void *arg, const void *result, const struct err *e)
{
	struct removal *j = arg;
	struct agent *a = agents_by_id(j->core, view_of(j->id));
	struct err failed = { 0 };
	char name[32];

	if (!a || (e && e->code != ERR_NOT_FOUND)) {
		end_removal(j, e);
		return;
	}
	agents_template_name(a, name);
	struct actor us = agents_actor(a);
	if (!workspaces_remove(j->core, &us, view_of(name), on_space_gone, j, &failed))
		on_space_gone(j, NULL, &failed);
}

static void on_revoked(void *arg, const void *result, const struct err *e)
{
	struct removal *j = arg;
	struct agent *a = agents_by_id(j->core, view_of(j->id));
	struct err failed = { 0 };
	char name[32];

	if (!a || e || j->core->stopping) {
		end_removal(j, e);
		return;
	}
	agents_template_name(a, name);
	struct actor us = agents_actor(a);
	if (!templates_remove(j->core, &us, view_of(name), on_image_gone, j, &failed))
		on_image_gone(j, NULL, &failed);
}

static void on_ended(void *arg, const void *result, const struct err *e)
{
	struct removal *j = arg;
	struct err failed = { 0 };

	if (e || j->core->stopping)
		end_removal(j, e);
	else if (!j->core->agents->revoke(j->core, view_of(j->id), on_revoked, j, &failed))
		on_revoked(j, NULL, &failed);
}

struct job *agents_remove(struct core *c, const struct actor *actor, struct view ref, job_done *done,
			  void *arg, struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);
	struct removal *j = a ? calloc(1, sizeof(*j)) : NULL;

	if (!j) {
		if (a)
			err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
		return NULL;
	}
	*j = (struct removal){ .job = { .done = done, .arg = arg }, .core = c };
	memcpy(j->id, a->id, sizeof(j->id));
	if (!agents_run_end(a, on_ended, j, e)) {
		free(j);
		return NULL;
	}
	a->removing = true;
	log_info("agent %s removed by %s", a->id, actor->key);
	return &j->job;
}

/* ---- life ---- */

void agents_init(struct core *c)
{
	map_init(&c->agents->by_id);
	list_init(&c->agents->all);
}

void agents_stop_all(struct core *c)
{
	LIST_EACH (it, &c->agents->all) {
		struct agent *a = CONTAINER(it, struct agent, order);
		agents_run_stop(a);
		a->core->agents->rpc_end(a);
	}
}

void agents_done(struct core *c)
{
	LIST_EACH (it, &c->agents->all)
		agent_free(CONTAINER(it, struct agent, order));
	map_done(&c->agents->by_id);
}
