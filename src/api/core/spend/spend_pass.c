/*
 * What is asked of the signer and handed on: wallets, rules, sums, the audit; and the chains. See spend.h.
 */
#include "spends.h"

#include <stdio.h>

#include "agents.h"
#include "clock.h"
#include "core_base.h"
#include "poison.h"

struct passing {
	struct spend_op op;
	struct rules_scope {
		char text[96];
	} scope;
};

static void on_reply(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct passing *p = CONTAINER(a, struct passing, op.ask);

	spend_op_end(&p->op, reply, e);
}

static struct job *pass(struct passing *p, uint16_t type, const struct pb_msg *pm, const void *msg,
			const struct pb_msg *reply, struct err *e)
{
	if (signer_call(p->op.core, &p->op.ask, type, pm, msg, reply, on_reply, e) >= 0)
		return &p->op.job;
	job_abandon(&p->op.job);
	spend_op_end(&p->op, NULL, e);
	return NULL;
}

static struct passing *begin(struct core *c, const struct actor *a, enum act act, job_done *done, void *arg,
			     struct err *e)
{
	return auth_permit(a, act, NULL, e) < 0 ? NULL
						: spend_op_new(c, sizeof(struct passing), a, done, arg, e);
}

/* Of an agent: for those who may see (or change) it. Of a wallet, which all tenants may share: for
 * administrators. */
static struct passing *begin_scope(struct core *c, const struct actor *a, bool change, enum spend_scope s,
				   struct view ref, job_done *done, void *arg, struct err *e)
{
	const struct agent *agent = NULL;
	struct passing *p;

	if (s == SPEND_OF_AGENT) {
		agent = agents_find(c, a, change ? ACT_AGENT_CHANGE : ACT_AGENT_READ, ref, e);
		if (!agent)
			return NULL;
	} else if (auth_permit(a, ACT_TENANTS, NULL, e) < 0) {
		return NULL;
	}
	if (ref.n == 0 || ref.n > 64) {
		err_set(e, ERR_NOT_FOUND, "no such wallet");
		return NULL;
	}
	p = spend_op_new(c, sizeof(*p), a, done, arg, e);
	if (p && agent)
		snprintf(p->scope.text, sizeof(p->scope.text), "agent:%s", agent->id);
	else if (p)
		snprintf(p->scope.text, sizeof(p->scope.text), "wallet:%.*s", VIEW_ARG(ref));
	return p;
}

struct job *spend_wallets(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	struct passing *p = begin(c, a, ACT_AGENT_LIST, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_WALLET_LIST, &sgn_wallet_list_msg, &(struct sgn_wallet_list){ 0 },
			&sgn_wallet_list_reply_msg, e)
		 : NULL;
}

struct job *spend_rules_get(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    job_done *done, void *arg, struct err *e)
{
	struct passing *p = begin_scope(c, a, false, s, ref, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_RULES_GET, &sgn_rules_get_msg,
			&(struct sgn_rules_get){ .scope = view_of(p->scope.text) }, &sgn_rules_reply_msg, e)
		 : NULL;
}

struct job *spend_rules_put(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    const struct sgn_rules *rules, job_done *done, void *arg, struct err *e)
{
	struct passing *p = begin_scope(c, a, true, s, ref, done, arg, e);
	struct sgn_rules own = *rules;

	if (!p)
		return NULL;
	own.scope = view_of(p->scope.text);
	return pass(p, SGN_SIGNER_TYPE_RULES_PUT, &sgn_rules_put_msg,
		    &(struct sgn_rules_put){ .rules = &own }, &sgn_rules_reply_msg, e);
}

struct job *spend_spent(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			job_done *done, void *arg, struct err *e)
{
	struct passing *p = begin_scope(c, a, false, s, ref, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_SPENT, &sgn_spent_msg,
			&(struct sgn_spent){ .scope = view_of(p->scope.text) }, &sgn_spent_reply_msg, e)
		 : NULL;
}

struct job *spend_signer(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	struct passing *p = begin(c, a, ACT_AGENT_LIST, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_STATUS, &sgn_status_msg, &(struct sgn_status){ 0 },
			&sgn_status_reply_msg, e)
		 : NULL;
}

static void on_paused(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct passing *p = CONTAINER(a, struct passing, op.ask);
	struct core *c = p->op.core;

	spend_op_end(&p->op, reply, e);
	/* What was pending may be cancelled. */
	for (struct map_node *n = map_first(&c->spends->by_id), *next; !e && n; n = next) {
		struct spend_entry *x = CONTAINER(n, struct spend_entry, by_id);
		next = map_next(&c->spends->by_id, n);
		if (x->state != SGN_STATE_PENDING && x->state != SGN_STATE_APPROVED)
			continue;
		x->look = true;
		loop_timer_stop(&x->timer);
		spend_drive(x);
	}
}

struct job *spend_pause(struct core *c, const struct actor *a, bool cancel_pending, job_done *done, void *arg,
			struct err *e)
{
	struct passing *p = begin(c, a, ACT_TENANTS, done, arg, e);
	struct sgn_pause m = { .paused = true, .cancel_pending = cancel_pending };

	if (!p)
		return NULL;
	if (signer_call(c, &p->op.ask, SGN_SIGNER_TYPE_PAUSE, &sgn_pause_msg, &m, &sgn_paused_msg, on_paused,
			e) >= 0)
		return &p->op.job;
	job_abandon(&p->op.job);
	spend_op_end(&p->op, NULL, e);
	return NULL;
}

struct job *spend_audit(struct core *c, const struct actor *a, uint64_t after, uint32_t max, job_done *done,
			void *arg, struct err *e)
{
	struct passing *p = begin(c, a, ACT_TENANTS, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_AUDIT, &sgn_audit_msg,
			&(struct sgn_audit){ .after = after, .max = max }, &sgn_audit_reply_msg, e)
		 : NULL;
}

struct job *spend_audit_verify(struct core *c, const struct actor *a, job_done *done, void *arg,
			       struct err *e)
{
	struct passing *p = begin(c, a, ACT_TENANTS, done, arg, e);

	return p ? pass(p, SGN_SIGNER_TYPE_AUDIT_VERIFY, &sgn_audit_verify_msg,
			&(struct sgn_audit_verify){ 0 }, &sgn_audit_verified_msg, e)
		 : NULL;
}

static bool is_theirs(struct core *c, const struct actor *a, const struct spend_entry *x)
{
	const struct agent *of = a->role == STORE_ROLE_ADMIN ? NULL : spend_agent(c, view_of(x->agent));

	return a->role == STORE_ROLE_ADMIN || (of && of->tenant == a->tenant);
}

int spend_chains(struct core *c, const struct actor *a, void (*each)(void *arg, const struct spend_chain *x),
		 void *arg, struct err *e)
{
	if (auth_permit(a, ACT_AGENT_LIST, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < c->config->agents.n_chains; i++) {
		const struct config_chain *k = &c->config->agents.chain_list[i];
		struct spend_chain x = { .id = k->id,
					 .name = k->name,
					 .symbol = k->symbol,
					 .explorer = k->explorer,
					 .nodes = k->n_rpc,
					 .confirmations = k->confirmations };
		LIST_EACH (it, &c->chains->nodes) {
			const struct spend_node *n = CONTAINER(it, struct spend_node, link);
			if (!view_is(k->id, n->id))
				continue;
			LIST_EACH (f, &n->followed)
				x.under_way += is_theirs(c, a, CONTAINER(f, struct spend_entry, following));
			if (n->url) /* of a manifest: the chain's own health is that of its own nodes */
				continue;
			x.health = n->health;
			x.head = n->head;
			x.said_id = n->said_id;
			x.checked_ms = n->checked_ms;
		}
		each(arg, &x);
	}
	return 0;
}
