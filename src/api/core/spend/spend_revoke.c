/*
 * An agent goes: what the owner allowed it is taken back in the signer, and then what waits is cancelled. In
 * this order, so that nothing new comes in between. Rules are made stricter, which the api may do; what was
 * signed already goes its way and stays counted.
 */
#include "spends.h"

#include <stdio.h>

#include "core_base.h"
#include "poison.h"

#define ROUNDS 2000 /* an agent has at most some that wait */

struct revoking {
	struct spend_op op;
	char agent[AGENT_ID + 45], scope[96];
	int32_t state; /* of what is cancelled now */
	unsigned rounds;
};

static void look(struct revoking *v);

/* -1 of a call: nobody else tells. */
static void or_end(struct revoking *v, int r, const struct err *e)
{
	if (r < 0)
		spend_op_end(&v->op, NULL, e);
}

static void on_cancelled(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct revoking *v = CONTAINER(a, struct revoking, op.ask);
	const struct sgn_item_reply *m = reply;

	if (e && e->code != ERR_STATE) { /* that one went on meanwhile */
		spend_op_end(&v->op, NULL, e);
		return;
	}
	if (m && m->item)
		(void)spend_learn(v->op.core, m->item);
	look(v);
}

static void on_list(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct revoking *v = CONTAINER(a, struct revoking, op.ask);
	const struct sgn_list_reply *m = reply;
	struct err failed = { 0 };

	if (e || v->rounds++ == ROUNDS) {
		err_set(&failed, ERR_UNAVAILABLE, "its requests cannot be cancelled; try again");
		spend_op_end(&v->op, NULL, e ? e : &failed);
	} else if (m->items.n) {
		struct sgn_cancel c = { .id = m->items.items[0].id, .by = VIEW("removal of the agent") };
		or_end(v,
		       signer_call(v->op.core, &v->op.ask, SGN_SIGNER_TYPE_CANCEL, &sgn_cancel_msg, &c,
				   &sgn_item_reply_msg, on_cancelled, &failed),
		       &failed);
	} else if (v->state == SGN_STATE_PENDING) {
		v->state = SGN_STATE_APPROVED;
		look(v);
	} else {
		spend_op_end(&v->op, NULL, NULL);
	}
}

static void look(struct revoking *v)
{
	const struct sgn_list m = { .agent = view_of(v->agent), .state = v->state, .max = 1 };
	struct err e = { 0 };

	or_end(v,
	       signer_call(v->op.core, &v->op.ask, SGN_SIGNER_TYPE_LIST, &sgn_list_msg, &m,
			   &sgn_list_reply_msg, on_list, &e),
	       &e);
}

static void on_put(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct revoking *v = CONTAINER(a, struct revoking, op.ask);

	if (e)
		spend_op_end(&v->op, NULL, e);
	else
		look(v);
}

/* Whatever makes rules strict stays, or they would not be stricter than before. */
static void on_rules(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct revoking *v = CONTAINER(a, struct revoking, op.ask);
	const struct sgn_rules_reply *m = reply;
	struct err failed = { 0 };

	if (e) { /* there is no signer: nothing was ever allowed */
		spend_op_end(&v->op, NULL, e->code == ERR_NOT_FOUND ? NULL : e);
		return;
	}
	struct sgn_rules none = m->rules ? *m->rules : (struct sgn_rules){ 0 };
	if (!none.wallets.n && !none.limits.n) {
		look(v);
		return;
	}
	none.scope = view_of(v->scope);
	none.wallets.n = none.limits.n = none.typed.n = 0;
	none.auto_below = VIEW_NONE;
	none.allow_creation = none.allow_dangerous = none.allow_messages = false;
	none.paused = true;
	or_end(v,
	       signer_call(v->op.core, &v->op.ask, SGN_SIGNER_TYPE_RULES_PUT, &sgn_rules_put_msg,
			   &(struct sgn_rules_put){ .rules = &none }, &sgn_rules_reply_msg, on_put, &failed),
	       &failed);
}

struct job *spend_revoke(struct core *c, struct view agent, job_done *done, void *arg, struct err *e)
{
	struct revoking *v = spend_op_new(c, sizeof(*v), NULL, done, arg, e);

	if (!v)
		return NULL;
	snprintf(v->agent, sizeof(v->agent), "%.*s", VIEW_ARG(agent));
	snprintf(v->scope, sizeof(v->scope), "agent:%s", v->agent);
	v->state = SGN_STATE_PENDING;
	if (signer_call_known(c, &v->op.ask, SGN_SIGNER_TYPE_RULES_GET, &sgn_rules_get_msg,
			      &(struct sgn_rules_get){ .scope = view_of(v->scope) }, &sgn_rules_reply_msg,
			      on_rules, e) >= 0)
		return &v->op.job;
	job_abandon(&v->op.job);
	spend_op_end(&v->op, NULL, e);
	return NULL;
}
