/*
 * People look and decide: see spend.h. Who may is judged by the agent's tenant, before anything is told.
 */
#include "spends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents.h"
#include "core_base.h"
#include "keys.h"
#include "poison.h"

#define MEMORY    (32u * 1024 * 1024)
#define PAGE      100
#define PAGE_MOST 1000

/* ---- operations ---- */

void *spend_op_new(struct core *c, size_t size, const struct actor *a, job_done *done, void *arg,
		   struct err *e)
{
	struct spend_op *op = c->stopping ? NULL : calloc(1, size);
	const struct key *k = a ? keys_by_id(c, view_of(a->key)) : NULL;

	if (!op) {
		err_set(e, c->stopping ? ERR_UNAVAILABLE : ERR_INTERNAL,
			c->stopping ? "the daemon is going down" : "out of memory");
		return NULL;
	}
	op->job = (struct job){ .done = done, .arg = arg };
	op->core = c;
	op->arena = ARENA_INIT(MEMORY);
	if (a)
		op->actor = *a;
	if (k && k->name[0]) {
		snprintf(op->by, sizeof(op->by), "%s (%s)", k->id, k->name);
		for (char *p = op->by; (p = strchr(p, ','));)
			*p = ';'; /* commas stand between those who approved */
	} else if (a)
		snprintf(op->by, sizeof(op->by), "%s", a->key);
	list_append(&c->spends->ops, &op->link);
	return op;
}

void spend_op_end(struct spend_op *op, const void *result, const struct err *e)
{
	struct err copy = e ? *e : (struct err){ 0 };

	list_del(&op->link);
	signer_cancel(&op->ask);
	job_abandon(op->inner);
	if (op->release)
		op->release(op);
	job_finish(&op->job, result, e ? &copy : NULL);
	spend_facts_done(&op->facts);
	arena_done(&op->arena);
	free(op);
}

static void *fail(struct spend_op *op, const struct err *e)
{
	struct err copy = *e;

	job_abandon(&op->job);
	spend_op_end(op, NULL, &copy);
	return NULL;
}

/* ---- who ---- */

static const struct tenant *tenant_of(struct core *c, struct view agent)
{
	const struct agent *a = spend_agent(c, agent);

	return a ? a->tenant : NULL;
}

static bool may_see(struct core *c, const struct actor *a, const struct sgn_item *i)
{
	const struct tenant *t = tenant_of(c, i->agent);

	return a->role == STORE_ROLE_ADMIN || (t && t == a->tenant);
}

static int permit(struct core *c, const struct actor *a, enum act act, const struct sgn_item *i,
		  struct err *e)
{
	if (!may_see(c, a, i))
		return err_set(e, ERR_NOT_FOUND, "no such transaction");
	const struct tenant *t = tenant_of(c, i->agent);
	return auth_permit_on(a, act, t ? t : a->tenant, "transaction", e);
}

/* Whoever decides about money has a key of their own. */
static int check_person(const struct actor *a, struct err *e)
{
	if (!a->tenant || !a->key[0] || strcmp(a->key, "anonymous") == 0)
		return err_set(e, ERR_FORBIDDEN, "transactions are decided with a key");
	return 0;
}

/* ---- lists ---- */

struct listing {
	struct spend_op op;
	char agent[AGENT_ID + 1], after[SPEND_ID + 1];
	int32_t state;
	uint64_t chain;
	uint32_t max;
	struct spend_view *items;
	size_t n;
};

static void list_page(struct listing *l);

/* The reply is gone when the callback returns, so that what is kept is copied. */
static bool copy_item(struct arena *a, const struct sgn_item *from, struct sgn_item *ret)
{
	struct buf b = BUF_INIT(2 * 1024 * 1024);
	bool good = pb_encode(&sgn_item_msg, from, &b) >= 0;

	if (good) {
		struct view kept = arena_view(a, buf_view(&b));
		good = kept.p && pb_decode(&sgn_item_msg, kept, 0, a, ret) >= 0;
	}
	buf_done(&b);
	return good;
}

static bool take(struct listing *l, const struct sgn_item *i)
{
	struct sgn_item *kept;

	if (!may_see(l->op.core, &l->op.actor, i) || (l->chain && i->chain != l->chain))
		return true;
	kept = arena_alloc(&l->op.arena, sizeof(*kept));
	if (!kept || !copy_item(&l->op.arena, i, kept))
		return false;
	spend_view_of(l->op.core, kept, &l->items[l->n++]);
	return true;
}

static void on_page(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct listing *l = CONTAINER(a, struct listing, op.ask);
	const struct sgn_list_reply *m = reply;
	struct err failed = { 0 };
	size_t i = 0;

	if (e) {
		spend_op_end(&l->op, NULL, e);
		return;
	}
	for (; i < m->items.n && l->n < l->max && l->op.arena.used < MEMORY / 2; i++)
		if (!take(l, &m->items.items[i]) ||
		    view_to_str(m->items.items[i].id, l->after, sizeof(l->after)) < 0) {
			err_sys(&failed, ERR_INTERNAL, ENOMEM, "list");
			spend_op_end(&l->op, NULL, &failed);
			return;
		}
	if (l->n < l->max && i == m->items.n && i && m->more) {
		list_page(l);
		return;
	}
	struct spend_page page = { .items = l->items, .n = l->n, .more = i < m->items.n || m->more };
	spend_op_end(&l->op, &page, NULL);
}

/* Of a tenant's agents alone, so that nobody reads through what others asked for; of all for an
 * administrator.
 */
static int list_agents(struct listing *l, struct sgn_list *m)
{
	const struct core *c = l->op.core;

	if (l->agent[0] || l->op.actor.role == STORE_ROLE_ADMIN)
		return 0;
	m->agents.items = arena_array(&l->op.arena, c->agents->by_id.n + 1, sizeof(*m->agents.items));
	if (!m->agents.items)
		return -ENOMEM;
	m->agents.items[m->agents.n++] = VIEW(""); /* nobody's name: none at all would mean all of them */
	for (struct map_node *it = map_first(&c->agents->by_id); it; it = map_next(&c->agents->by_id, it)) {
		const struct agent *a = CONTAINER(it, struct agent, by_id);
		if (a->tenant == l->op.actor.tenant)
			m->agents.items[m->agents.n++] = view_of(a->id);
	}
	return 0;
}

static int list_ask(struct listing *l, struct err *e)
{
	struct sgn_list m = {
		.agent = view_of(l->agent), .state = l->state, .after = view_of(l->after), .max = PAGE_MOST
	};

	if (list_agents(l, &m) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "list");
	return signer_call(l->op.core, &l->op.ask, SGN_SIGNER_TYPE_LIST, &sgn_list_msg, &m,
			   &sgn_list_reply_msg, on_page, e);
}

static void list_page(struct listing *l)
{
	struct err e = { 0 };

	if (list_ask(l, &e) < 0)
		spend_op_end(&l->op, NULL, &e);
}

struct job *spend_list(struct core *c, const struct actor *a, const struct spend_filter *f, job_done *done,
		       void *arg, struct err *e)
{
	const struct agent *of = NULL;

	if (auth_permit(a, ACT_AGENT_LIST, NULL, e) < 0)
		return NULL;
	if (f->agent.n && !(of = agents_find(c, a, ACT_AGENT_READ, f->agent, e)) &&
	    (a->role != STORE_ROLE_ADMIN || f->agent.n > AGENT_ID))
		return NULL;
	struct listing *l = spend_op_new(c, sizeof(*l), a, done, arg, e);
	if (!l)
		return NULL;
	l->max = f->max ? MIN(f->max, (uint32_t)PAGE_MOST) : PAGE;
	l->state = f->state;
	l->chain = f->chain;
	l->items = arena_array(&l->op.arena, l->max, sizeof(*l->items));
	/* An administrator asks by its id for what an agent did that is gone. */
	if (!l->items || view_to_str(of ? view_of(of->id) : f->agent, l->agent, sizeof(l->agent)) < 0 ||
	    view_to_str(f->after, l->after, sizeof(l->after)) < 0) {
		err_set(e, ERR_INVALID, "after is no id of a transaction");
		return fail(&l->op, e);
	}
	if (list_ask(l, e) < 0)
		return fail(&l->op, e);
	return &l->op.job;
}

/* ---- decisions ---- */

enum deed { LOOK, APPROVE, REJECT, CANCEL, SPEED_UP, ANSWER, REVOKE };
struct deciding {
	struct spend_op op;
	enum deed deed;
	uint8_t digest[32];
	char note[SPEND_NOTE_MAX + 1];
	struct spend_answer answer;
	struct buf signature;
	struct spend_proof *proof;
	bool late; /* the wallet has sent or signed what was given up */
};

static void end_item(struct deciding *d, const struct sgn_item *i)
{
	struct spend_view v;

	spend_view_of(d->op.core, i, &v);
	spend_op_end(&d->op, &v, NULL);
}

static void on_decided(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct deciding *d = CONTAINER(a, struct deciding, op.ask);
	struct core *c = d->op.core;
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };

	if (!i) {
		struct spend_entry *x = spend_find(c, view_of(d->op.id));
		if (x) { /* it may have been decided elsewhere, or be over */
			x->look = true;
			if (!x->busy)
				loop_timer_stop(&x->timer);
		}
		err_set(&failed, ERR_INTERNAL, "the signer's answer makes no sense");
		spend_op_end(&d->op, NULL, e ? e : &failed);
		if (x)
			spend_drive(x);
		return;
	}
	struct spend_entry *x = spend_learn(c, i);
	end_item(d, i);
	if (x)
		spend_drive(x);
}

static void ask(struct deciding *d, uint16_t type, const struct pb_msg *pm, const void *msg)
{
	struct err e = { 0 };

	if (signer_call(d->op.core, &d->op.ask, type, pm, msg, &sgn_item_reply_msg, on_decided, &e) < 0)
		spend_op_end(&d->op, NULL, &e);
}

static void on_approve_facts(struct spend_facts *f, const struct err *e)
{
	struct deciding *d = CONTAINER(f, struct deciding, op.facts);
	struct sgn_approve m = { .id = view_of(d->op.id),
				 .digest = { (const char *)d->digest, sizeof(d->digest) },
				 .by = view_of(d->op.by),
				 .facts = &f->facts };

	if (e) {
		struct err why = *e;
		spend_op_end(&d->op, NULL, &why);
	} else {
		ask(d, SGN_SIGNER_TYPE_APPROVE, &sgn_approve_msg, &m);
	}
}

static void approve(struct deciding *d, const struct sgn_item *i)
{
	struct err e = { 0 };
	struct spend_node *n = NULL;

	if (i->digest.n != sizeof(d->digest) || memcmp(i->digest.p, d->digest, sizeof(d->digest)) != 0)
		err_set(&e, ERR_CONFLICT, "this is not the request that was shown");
	else if (i->state != SGN_STATE_PENDING || i->from.n != ADDRESS_SIZE)
		err_set(&e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	else
		n = spend_node_get(d->op.core, i->agent, i->chain, &e);
	if (!n) {
		spend_op_end(&d->op, NULL, &e);
		return;
	}
	spend_facts_get(
		&d->op.facts, n,
		&(struct spend_meaning){ (const uint8_t *)i->from.p, i->kind, i->to, i->value, i->data },
		on_approve_facts);
}

static void on_again(void *arg, const void *result, const struct err *e)
{
	struct deciding *d = arg;

	d->op.inner = NULL;
	spend_op_end(&d->op, result, e);
}

static void again(struct deciding *d, const struct sgn_item *i, int32_t mode)
{
	struct spend_entry *x = spend_find(d->op.core, i->id);
	struct err e = { 0 };

	if (!x || x->external || (i->state != SGN_STATE_SIGNED && i->state != SGN_STATE_BROADCAST) ||
	    i->kind != SGN_REQUEST_KIND_TX)
		err_set(&e, ERR_STATE,
			x && x->external ? "the transaction is the wallet's: use the wallet"
					 : "the request is %s",
			sgn_state_name(i->state));
	else if ((d->op.inner = spend_again(d->op.core, x, mode, on_again, d, &e)))
		return;
	spend_op_end(&d->op, NULL, &e);
}

static void revoke(struct deciding *d, const struct sgn_item *i)
{
	struct err e = { 0 };

	d->op.inner = spend_allowance(d->op.core, &d->op.actor, i->id, on_again, d, &e);
	if (!d->op.inner)
		spend_op_end(&d->op, NULL, &e);
}

/* What the wallet in the page said is good: the signer gets it, and what waits is told when that has it. */
static void report_answer(struct deciding *d)
{
	struct spend_entry *x = spend_find(d->op.core, view_of(d->op.id));
	struct err e = { 0 };
	struct sgn_report r = { .id = view_of(d->op.id),
				.state = d->answer.kind == SPEND_SENT     ? SGN_STATE_BROADCAST
					 : d->answer.kind == SPEND_SIGNED ? SGN_STATE_BROADCAST
									  : SGN_STATE_WALLET_REJECTED,
				.note = VIEW("by a wallet in a page") };

	if (!(d->late && !x) && (!x || x->state != SGN_STATE_AWAITING_WALLET)) {
		err_set(&e, ERR_STATE, "the request does not wait for a wallet any more");
		spend_op_end(&d->op, NULL, &e);
		return;
	}
	if (x)
		spend_elsewhere_end(x);
	if (d->answer.kind == SPEND_SENT)
		r.hash = (struct view){ (const char *)d->answer.hash, SPEND_HASH };
	if (d->answer.kind == SPEND_SIGNED)
		r.signature = buf_view(&d->signature);
	ask(d, SGN_SIGNER_TYPE_REPORT, &sgn_report_msg, &r);
}

static void on_proof(void *arg, const struct err *e)
{
	struct deciding *d = arg;

	d->proof = NULL;
	if (e)
		spend_op_end(&d->op, NULL, e);
	else
		report_answer(d);
}

static void answer(struct deciding *d, const struct sgn_item *i)
{
	struct spend_entry *x = spend_find(d->op.core, i->id);
	const bool tx = i->kind == SGN_REQUEST_KIND_TX;
	struct err e = { 0 };
	uint8_t digest[SPEND_HASH];

	d->late = i->state == SGN_STATE_WALLET_TIMEOUT && d->answer.kind != SPEND_REFUSED;
	if (!d->late && (!x || i->state != SGN_STATE_AWAITING_WALLET))
		err_set(&e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	else if (d->answer.kind != SPEND_REFUSED && tx != (d->answer.kind == SPEND_SENT))
		err_set(&e, ERR_INVALID, "the request is a %s: its answer is a %s", spend_kind_name(i->kind),
			tx ? "hash" : "signature");
	else if (d->answer.kind == SPEND_SIGNED &&
		 (i->from.n != ADDRESS_SIZE || spend_proof_digest(i, digest) < 0))
		err_set(&e, ERR_INVALID, "what is to be signed cannot be read");
	if (e.code) {
		spend_op_end(&d->op, NULL, &e);
		return;
	}
	if (d->answer.kind != SPEND_SIGNED) {
		report_answer(d);
		return;
	}
	struct spend_proof *p = spend_proof_start(
		&(struct spend_prover){ d->op.core, i->agent, i->chain, (const uint8_t *)i->from.p }, digest,
		buf_view(&d->signature), on_proof, d);
	if (p) /* else it is over, and may be gone */
		d->proof = p;
}

static void on_item(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct deciding *d = CONTAINER(a, struct deciding, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };
	const bool before = i && (i->state == SGN_STATE_PENDING || i->state == SGN_STATE_APPROVED);

	if (e && e->code != ERR_NOT_FOUND)
		failed = *e;
	else if (!i)
		err_set(&failed, ERR_NOT_FOUND, "no such transaction");
	else
		(void)!permit(d->op.core, &d->op.actor, d->deed == LOOK ? ACT_AGENT_READ : ACT_AGENT_CHANGE,
			      i, &failed);
	if (failed.code) {
		spend_op_end(&d->op, NULL, &failed);
		return;
	}
	switch (d->deed) {
	case LOOK:
		end_item(d, i);
		break;
	case APPROVE:
		approve(d, i);
		break;
	case REJECT:
		ask(d, SGN_SIGNER_TYPE_REJECT, &sgn_reject_msg,
		    &(struct sgn_reject){ i->id, view_of(d->op.by), view_of(d->note) });
		break;
	case CANCEL:
		if (before)
			ask(d, SGN_SIGNER_TYPE_CANCEL, &sgn_cancel_msg,
			    &(struct sgn_cancel){ .id = i->id, .by = view_of(d->op.by) });
		else
			again(d, i, SGN_SIGN_MODE_CANCEL);
		break;
	case SPEED_UP:
		again(d, i, SGN_SIGN_MODE_SPEED_UP);
		break;
	case ANSWER:
		answer(d, i);
		break;
	case REVOKE:
		revoke(d, i);
		break;
	}
}

static struct deciding *begin(struct core *c, const struct actor *a, enum deed deed, struct view id,
			      job_done *done, void *arg, struct err *e)
{
	struct deciding *d;

	if (deed != LOOK && check_person(a, e) < 0)
		return NULL;
	if (!a->tenant) {
		err_set(e, ERR_UNAUTHORIZED, "a valid key is needed");
		return NULL;
	}
	if (id.n == 0 || id.n > SPEND_ID) {
		err_set(e, ERR_NOT_FOUND, "no such transaction");
		return NULL;
	}
	d = spend_op_new(c, sizeof(*d), a, done, arg, e);
	if (d) {
		d->deed = deed;
		(void)!view_to_str(id, d->op.id, sizeof(d->op.id));
	}
	return d;
}

static struct job *start(struct deciding *d, struct err *e)
{
	if (!d)
		return NULL;
	if (signer_call(d->op.core, &d->op.ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(d->op.id) }, &sgn_item_reply_msg, on_item, e) < 0)
		return fail(&d->op, e);
	return &d->op.job;
}

struct job *spend_get(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
		      struct err *e)
{
	return start(begin(c, a, LOOK, id, done, arg, e), e);
}

struct job *spend_approve(struct core *c, const struct actor *a, struct view id, const uint8_t digest[32],
			  job_done *done, void *arg, struct err *e)
{
	struct deciding *d = begin(c, a, APPROVE, id, done, arg, e);

	if (d)
		memcpy(d->digest, digest, sizeof(d->digest));
	return start(d, e);
}

struct job *spend_reject(struct core *c, const struct actor *a, struct view id, struct view note,
			 job_done *done, void *arg, struct err *e)
{
	struct deciding *d = begin(c, a, REJECT, id, done, arg, e);

	if (d && view_to_str(note, d->note, sizeof(d->note)) < 0) {
		err_set(e, ERR_INVALID, "a note has at most %d bytes", SPEND_NOTE_MAX);
		return fail(&d->op, e);
	}
	return start(d, e);
}

struct job *spend_cancel(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			 struct err *e)
{
	return start(begin(c, a, CANCEL, id, done, arg, e), e);
}

struct job *spend_speed_up(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e)
{
	return start(begin(c, a, SPEED_UP, id, done, arg, e), e);
}

struct job *spend_allowance_revoke(struct core *c, const struct actor *a, struct view id, job_done *done,
				   void *arg, struct err *e)
{
	return start(begin(c, a, REVOKE, id, done, arg, e), e);
}

static void release_answer(struct spend_op *op)
{
	struct deciding *d = CONTAINER(op, struct deciding, op);

	spend_proof_cancel(TAKE_PTR(d->proof));
	buf_done(&d->signature);
}

struct job *spend_wallet_answer(struct core *c, const struct actor *a, struct view id,
				const struct spend_answer *w, job_done *done, void *arg, struct err *e)
{
	struct deciding *d = begin(c, a, ANSWER, id, done, arg, e);

	if (!d)
		return NULL;
	d->op.release = release_answer;
	d->signature = BUF_INIT(SPEND_SIGNATURE_MAX);
	d->answer = *w;
	d->answer.note = NULL;
	if (w->kind == SPEND_SIGNED && (w->signature.n == 0 || w->signature.n > SPEND_SIGNATURE_MAX ||
					buf_add(&d->signature, w->signature) < 0)) {
		err_set(e, ERR_INVALID, "a signature has 1 to %d bytes", SPEND_SIGNATURE_MAX);
		return fail(&d->op, e);
	}
	return start(d, e);
}
