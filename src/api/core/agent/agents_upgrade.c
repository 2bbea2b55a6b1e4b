/*
 * A new version of an agent that is installed: see agent.h.
 *
 * The old version goes on while the image of the new one is built. When it is ready the manifest changes, and
 * an agent that should run is started anew, in the same workspace. A build that fails changes nothing. Who
 * asked has seen what the new manifest asks for beyond the old one.
 */
#include "agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "log.h"
#include "templates.h"
#include "poison.h"

/* ---- what it asks for beyond ---- */

struct more {
	struct json_out *o;
	size_t n;
};

static void ask(struct more *m, const char *field, struct view value)
{
	struct buf text = BUF_INIT(1024);

	m->n++;
	if (m->o) {
		buf_printf(&text, "%s: %.*s", field, VIEW_ARG(view_head(value, 600)));
		json_out_str(m->o, buf_view(&text));
	}
	buf_done(&text);
}

static bool has(const struct json_strlist *l, struct view v)
{
	for (size_t i = 0; i < l->n; i++)
		if (view_eq_nocase(l->items[i], v))
			return true;
	return false;
}

static void ask_list(struct more *m, const char *field, const struct json_strlist *now,
		     const struct json_strlist *next)
{
	for (size_t i = 0; i < next->n; i++)
		if (!has(now, next->items[i]))
			ask(m, field, next->items[i]);
}

/* Decimal numbers without a sign, compared without a double; one that is not there is below all others. */
static int compare_amounts(struct view a, struct view b)
{
	struct view frac_a, frac_b, whole_a = view_split(a, '.', &frac_a),
				    whole_b = view_split(b, '.', &frac_b);

	if (!a.p || !b.p)
		return (a.p != NULL) - (b.p != NULL);
	while (whole_a.n > 1 && whole_a.p[0] == '0')
		whole_a = view_skip(whole_a, 1);
	while (whole_b.n > 1 && whole_b.p[0] == '0')
		whole_b = view_skip(whole_b, 1);
	if (whole_a.n != whole_b.n)
		return whole_a.n < whole_b.n ? -1 : 1;
	int r = memcmp(whole_a.p, whole_b.p, whole_a.n);
	for (size_t i = 0; r == 0 && i < MAX(frac_a.n, frac_b.n); i++)
		r = (i < frac_a.n ? frac_a.p[i] : '0') - (i < frac_b.n ? frac_b.p[i] : '0');
	return r;
}

size_t agents_upgrade_asks(const struct manifest *now, const struct manifest *next, struct json_out *o)
{
	const struct {
		const char *field;
		struct view now, next;
	} limits[] = {
		{ "spending_limits.per_transaction", now->limits.per_transaction,
		  next->limits.per_transaction },
		{ "spending_limits.daily", now->limits.daily, next->limits.daily },
		{ "spending_limits.weekly", now->limits.weekly, next->limits.weekly },
		{ "spending_limits.monthly", now->limits.monthly, next->limits.monthly },
	};
	const struct json_strmap *rpcs = &next->permissions.rpcs;
	struct more m = { .o = o };

	ask_list(&m, "permissions.chains", &now->permissions.chains, &next->permissions.chains);
	ask_list(&m, "permissions.apis", &now->permissions.apis, &next->permissions.apis);
	ask_list(&m, "permissions.hosts", &now->permissions.hosts, &next->permissions.hosts);
	/* No list means any contract. */
	if (now->permissions.contracts.n && !next->permissions.contracts.n)
		ask(&m, "permissions.contracts", VIEW("any"));
	else if (now->permissions.contracts.n)
		ask_list(&m, "permissions.contracts", &now->permissions.contracts,
			 &next->permissions.contracts);
	for (size_t i = 0; i < rpcs->n; i++)
		if (!view_eq(spec_map_get(&now->permissions.rpcs, rpcs->keys[i]), rpcs->values[i]))
			ask(&m, "permissions.rpcs", rpcs->values[i]);
	/* None named means the defaults, which are somebody else's to set. */
	if (next->resources.memory_mb > now->resources.memory_mb)
		ask(&m, "resources.memory", next->resources.memory);
	if (next->resources.cpu_milli > now->resources.cpu_milli)
		ask(&m, "resources.cpu", next->resources.cpu);
	for (size_t i = 0; i < ELEMS(limits); i++)
		if (limits[i].next.p && compare_amounts(limits[i].next, limits[i].now) > 0)
			ask(&m, limits[i].field, limits[i].next);
	return m.n;
}

/* ---- the beginning ---- */

void agents_upgrade_free(struct agent *a)
{
	if (!a->next)
		return;
	arena_done(&a->next->arena);
	free(a->next);
	a->next = NULL;
}

/* The text has been judged. */
static int set_next(struct agent *a, struct view text, struct view consented, struct err *e)
{
	struct agent_next *n = calloc(1, sizeof(*n));
	struct json *doc;

	if (!n)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "upgrade");
	arena_init(&n->arena, AGENT_ARENA);
	n->text = arena_view(&n->arena, text);
	if (!n->text.p || json_parse(&n->arena, n->text, &doc, e) < 0 ||
	    manifest_read(&n->arena, doc, &n->manifest, e) < 0 ||
	    view_to_str(consented, n->consented, sizeof(n->consented)) < 0) {
		arena_done(&n->arena);
		free(n);
		return e->code ? -1 : err_sys(e, ERR_INTERNAL, ENOMEM, "upgrade");
	}
	n->step = AGENT_NEXT_WAITING;
	agents_upgrade_free(a);
	a->next = n;
	return 0;
}

int agents_upgrade_load(struct agent *a, struct view text, struct view consented, bool building,
			struct err *e)
{
	if (set_next(a, text, consented, e) < 0)
		return -1;
	if (building)
		a->next->step = AGENT_NEXT_BUILDING;
	return 0;
}

struct upgrade {
	struct job job;
	struct core *core;
	char id[AGENT_ID + 1];
};

static void end_upgrade(struct upgrade *j, const struct err *e)
{
	struct agent *a = agents_by_id(j->core, view_of(j->id));
	struct err gone = { 0 };

	err_set(&gone, ERR_NOT_FOUND, "the agent was removed");
	if (e && a)
		agents_upgrade_free(a);
	job_finish(&j->job, a, e ? e : a ? NULL : &gone);
	free(j);
}

static void on_stored(void *arg, const struct err *e)
{
	struct upgrade *j = arg;

	core_store_result(j->core, e);
	end_upgrade(j, e);
}

static void on_prepared(void *arg, const void *result, const struct err *e)
{
	struct upgrade *j = arg;
	struct agent *a = agents_by_id(j->core, view_of(j->id));

	if (e || !a || j->core->stopping)
		end_upgrade(j, e);
	else
		agents_save(a, on_stored, j);
}

static int check_state(const struct agent *a, struct err *e)
{
	if (a->next && a->next->step == AGENT_NEXT_BUILDING)
		return err_set(e, ERR_STATE, "an upgrade of the agent is being built");
	if (a->upload)
		return err_set(e, ERR_STATE, "the agent's files are being uploaded");
	if (a->status == AGENT_WAITING || a->status == AGENT_BUILDING)
		return err_set(e, ERR_STATE, "the agent is not installed yet");
	return 0;
}

struct job *agents_upgrade(struct core *c, const struct actor *actor, struct view ref,
			   const struct json *manifest, job_done *done, void *arg, struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);
	struct upgrade *j = a ? calloc(1, sizeof(*j)) : NULL;
	struct arena tmp = ARENA_INIT(AGENT_ARENA);
	struct buf text = BUF_INIT(MANIFEST_BYTES);
	struct json_out o;
	struct manifest m;
	int r = -1;

	if (a && !j)
		err_sys(e, ERR_INTERNAL, ENOMEM, "upgrade");
	if (j && check_state(a, e) >= 0 && agents_preview(c, actor, manifest, &tmp, &m, e) >= 0) {
		bool waits = a->next && a->next->step == AGENT_NEXT_WAITING;

		json_out_init(&o, &text);
		manifest_put(&o, &m);
		r = text.bad
			    ? err_set(e, ERR_TOO_LARGE, "the manifest has more than %u bytes", MANIFEST_BYTES)
			    : set_next(a, buf_view(&text), view_of(actor->key), e);
		*j = (struct upgrade){ .job = { .done = done, .arg = arg }, .core = c };
		memcpy(j->id, a->id, sizeof(j->id));
		if (r >= 0 && waits) /* the build that waits for files will do */
			agents_save(a, on_stored, j);
		else if (r >= 0 && agents_build_prepare(a, on_prepared, j, e) < 0) {
			agents_upgrade_free(a);
			r = -1;
		}
	}
	buf_done(&text);
	arena_done(&tmp);
	if (r < 0) {
		free(j);
		return NULL;
	}
	log_info("agent %s: an upgrade asked for by %s", a->id, actor->key);
	return &j->job;
}

/* ---- the end ---- */

/* The image is there: from now on the agent is the new one. */
static void switch_over(struct agent *a)
{
	struct agent_next *n = TAKE_PTR(a->next);
	char from[65] = "", to[65] = "";

	(void)!view_to_str(a->manifest.version, from, sizeof(from));
	(void)!view_to_str(n->manifest.version, to, sizeof(to));
	a->core->agents->rpc_end(a); /* requests under way point into the old manifest */
	if (agents_upgrade_asks(&a->manifest, &n->manifest, NULL))
		memcpy(a->consented, n->consented, sizeof(a->consented));
	arena_done(&a->arena);
	a->arena = n->arena;
	a->manifest = n->manifest;
	a->manifest_text = n->text;
	free(n);
	if (a->status == AGENT_FAILED) {
		a->status = AGENT_STOPPED;
		a->reason[0] = 0;
	}
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_SUCCESS, "upgraded from version %s to %s", from, to);
	agents_run_renew(a);
	agents_save(a, NULL, NULL);
}

static void give_up(struct agent *a, const char *why)
{
	a->next->step = AGENT_NEXT_FAILED;
	snprintf(a->next->reason, sizeof(a->next->reason), "%.180s", why);
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_ERROR, "the upgrade failed: %s", a->next->reason);
	agents_save(a, NULL, NULL);
}

void agents_upgrade_built(struct agent *a, bool ready, const char *why)
{
	if (ready)
		switch_over(a);
	else
		give_up(a, why);
}

void agents_upgrade_recover(struct agent *a, bool ready, bool waiting)
{
	if (!a->next || (a->next->step == AGENT_NEXT_WAITING && waiting))
		return;
	agents_upgrade_built(a, ready && a->next->step == AGENT_NEXT_BUILDING,
			     "the daemon was restarted during the build");
}
