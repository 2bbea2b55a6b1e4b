/*
 * The policy for a request: gathers what it looks at, and puts what it says into words for the request's row.
 */
#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "judge.h"
#include "tx.h"

#include "poison.h"

#define MOVES_MAX 512

static struct view wallet_on(const struct sgn_rules *r, uint64_t chain)
{
	struct view found = VIEW("");

	for (size_t i = 0; i < r->wallets.n; i++)
		if (r->wallets.items[i].chain == chain)
			found = r->wallets.items[i].wallet;
	return found;
}

int judge_wallet(struct signer_call *c, struct view agent, uint64_t chain, struct view *ret, struct err *e)
{
	char scope[LEDGER_SCOPE];
	struct sgn_rules wire;
	struct policy_rules rules;

	snprintf(scope, sizeof(scope), "agent:%.*s", VIEW_ARG(agent));
	*ret = VIEW("");
	if (rules_load(c, view_of(arena_str(&c->arena, view_of(scope))), &wire, &rules, e) < 0)
		return -1;
	*ret = wallet_on(&wire, chain);
	return 0;
}

static int read_moves(struct signer_call *c, const struct sgn_facts *f, struct policy_facts *ret)
{
	struct policy_move *out = arena_array(&c->arena, f->moves.n, sizeof(*out));

	if (!out || f->moves.n > MOVES_MAX)
		return -1;
	for (size_t i = 0; i < f->moves.n; i++) {
		const struct sgn_move *m = &f->moves.items[i];
		if (m->asset.n != ADDRESS_SIZE || m->from.n != ADDRESS_SIZE || m->to.n != ADDRESS_SIZE ||
		    m->amount.n != U256_BYTES)
			return -1;
		memcpy(out[i].asset, m->asset.p, ADDRESS_SIZE);
		memcpy(out[i].from, m->from.p, ADDRESS_SIZE);
		memcpy(out[i].to, m->to.p, ADDRESS_SIZE);
		out[i].amount = u256_load(m->amount.p);
		out[i].approval = m->approval;
	}
	ret->moves = out;
	ret->n_moves = f->moves.n;
	return 0;
}

static int read_facts(struct signer_call *c, const struct sgn_facts *f, struct policy_facts *ret,
		      struct err *e)
{
	if (!f)
		return err_set(e, ERR_INVALID, "a request needs facts from the chain");
	*ret = (struct policy_facts){ .chain_id = f->chain_id,
				      .block = f->block,
				      .gas = f->gas,
				      .loopback = f->loopback,
				      .legacy = f->legacy,
				      .to_has_code = f->to_has_code,
				      .delegated = f->account_delegated,
				      .balance = { .set = f->balance.n != 0 },
				      .failure = f->failure,
				      .method = (enum policy_method)(
					      f->method >= SGN_SIM_METHOD_NONE &&
							      f->method <= SGN_SIM_METHOD_SIMULATE_V1
						      ? f->method
						      : SGN_SIM_METHOD_NONE) };
	if (u256_load_view(f->balance, &ret->balance.v) < 0 ||
	    u256_load_view(f->max_fee, &ret->max_fee) < 0 ||
	    u256_load_view(f->priority_fee, &ret->priority_fee) < 0 || read_moves(c, f, ret) < 0)
		return err_set(e, ERR_INVALID, "facts: an amount has at most 32 bytes, an address 20");
	return 0;
}

static int pending_of(struct signer *s, struct view agent, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_REQUEST_PENDING, "t", agent);
	int r = db_row(&s->db, row, e);
	const int n = r == 1 ? sqlite3_column_int(row, 0) : 0;

	db_end(row);
	return r < 0 ? -1 : n;
}

static int is_new(struct signer *s, const struct sgn_item *i, struct view to, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_CONTACT_GET, "tib", i->wallet, (int64_t)i->chain, to);
	int r = db_row(&s->db, row, e);

	db_end(row);
	return r < 0 ? -1 : r == 0;
}

/* One that this wallet knows, with the same ends: somebody may have made it to be taken for that one. */
static int find_alike(struct signer *s, const struct sgn_item *i, struct view to, struct judged *j,
		      struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_CONTACT_ALIKE, "tib", i->wallet, (int64_t)i->chain, to);
	int r = 0;

	while (j->in.n_alikes < POLICY_ALIKES && (r = db_row(&s->db, row, e)) == 1) {
		const struct view known = db_view(row, 0);
		if (known.n != ADDRESS_SIZE ||
		    !policy_looks_like((const uint8_t *)known.p, (const uint8_t *)to.p))
			continue;
		struct policy_alike *out = &j->alikes[j->in.n_alikes++];
		memcpy(out->address, to.p, ADDRESS_SIZE);
		memcpy(out->known, known.p, ADDRESS_SIZE);
	}
	db_end(row);
	return r < 0 ? -1 : 0;
}

/* Which of its addresses this wallet never sent anything to, and what those look like. */
static int look_for_new(struct signer *s, const struct sgn_item *i, struct judged *j, struct err *e)
{
	struct policy_input *in = &j->in;
	struct call call;
	int r = 0;

	if (!in->account || in->kind == POLICY_MESSAGE)
		return 0;
	if (in->kind == POLICY_TX)
		call_read(&(struct call_input){ in->account, in->to, in->value, in->data }, &call);
	else
		call_read_typed(in->typed, in->account, &call);
	static_assert(CALL_EFFECTS <= 64, "a bit for each");
	for (unsigned k = 0; r >= 0 && k < call.n; k++) {
		const struct view to = { (const char *)call.effects[k].to, ADDRESS_SIZE };
		if (!call_reaches(&call.effects[k]))
			continue;
		r = is_new(s, i, to, e);
		if (r == 1) {
			in->first |= 1ull << k;
			r = find_alike(s, i, to, j, e);
		}
	}
	in->new_recipient = in->first != 0;
	in->alikes = j->alikes;
	buf_done(&call.tree);
	return r < 0 ? -1 : 0;
}

/* What is signed, where it is not a transaction. */
static int read_content(struct signer_call *c, const struct sgn_item *i, struct judged *j, struct err *e)
{
	if (i->kind == SGN_REQUEST_KIND_MESSAGE)
		sig_message_hash(i->data, j->hash);
	if (i->kind != SGN_REQUEST_KIND_TYPED)
		return 0;
	if (typed_parse(&c->arena, i->data, &j->typed, e) < 0)
		return -1;
	memcpy(j->hash, j->typed.digest, sizeof(j->hash));
	return 0;
}

static int load_all(struct signer_call *c, const struct sgn_item *i, struct judged *j, struct view scopes[2],
		    struct err *e)
{
	char text[LEDGER_SCOPE];

	snprintf(text, sizeof(text), "agent:%.*s", VIEW_ARG(i->agent));
	scopes[0] = arena_view(&c->arena, view_of(text));
	snprintf(text, sizeof(text), "wallet:%.*s", VIEW_ARG(i->wallet));
	scopes[1] = arena_view(&c->arena, view_of(text));
	if (!scopes[0].p || !scopes[1].p)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (rules_load(c, scopes[0], &j->agent_wire, &j->agent, e) < 0)
		return -1;
	if (i->wallet.n == 0)
		return 0;
	return rules_load(c, scopes[1], &j->wallet_wire, &j->wallet_rules, e) < 0
		       ? -1
		       : wallets_get(c, i->wallet, &j->wallet, e);
}

static int gather(struct signer_call *c, const struct item *item, int when, struct judged *j, struct err *e)
{
	const struct sgn_item *i = &item->i;
	struct policy_input *in = &j->in;
	struct policy_spend *own;
	const int pending = pending_of(c->s, i->agent, e);

	if (pending < 0)
		return -1;
	in->pending = (uint32_t)(when == JUDGE_NEW ? pending : MAX(pending - 1, 0));
	in->signing = when == JUDGE_SIGN;
	if (when != JUDGE_NEW) {
		if (holds_read(c, i->id, &own, &in->n_own, &in->own_ms, e) < 0)
			return -1;
		in->own = own;
	}
	return look_for_new(c->s, i, j, e);
}

struct judged *judge_request(struct signer_call *c, const struct item *item, const struct sgn_facts *f,
			     int when, struct err *e)
{
	const struct sgn_item *i = &item->i;
	struct judged *j = arena_alloc(&c->arena, sizeof(*j));
	struct view scopes[2];

	if (!j) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	*j = (struct judged){ .facts = f };
	if (read_facts(c, f, &j->chain, e) < 0 || read_content(c, i, j, e) < 0 ||
	    load_all(c, i, j, scopes, e) < 0)
		return NULL;
	/* It may have been taken from the agent since it asked. */
	const bool has_wallet = i->from.n && view_eq(wallet_on(&j->agent_wire, i->chain), i->wallet);
	j->in = (struct policy_input){ .kind = (enum policy_kind)i->kind,
				       .agent = i->agent,
				       .agent_scope = scopes[0],
				       .wallet_scope = scopes[1],
				       .agent_rules = &j->agent,
				       .wallet_rules = &j->wallet_rules,
				       .paused = c->s->paused,
				       .revokes = i->revokes,
				       .chain = i->chain,
				       .account = has_wallet ? (const uint8_t *)i->from.p : NULL,
				       .test_account = j->wallet.info.kind == SGN_WALLET_KIND_TEST,
				       .to = i->to.n ? (const uint8_t *)i->to.p : NULL,
				       .data = i->data,
				       .typed = &j->typed,
				       .gas_hint = item->gas_hint,
				       .facts = &j->chain,
				       .ledger = &c->s->ledger,
				       .now_ms = moment_now(c->s),
				       .wall_ms = clock_wall_ms(),
				       .created_ms = i->created_ms };
	if (u256_load_view(i->value, &j->in.value) < 0 || gather(c, item, when, j, e) < 0)
		return NULL;
	policy_decide(&j->in, &j->d);
	return j;
}

void judge_done(struct judged *j)
{
	if (j)
		policy_done(&j->d);
}

int judge_describe(struct signer_call *c, const struct judged *j, struct sgn_item *i)
{
	const struct policy_decision *d = &j->d;

	i->call_class = view_of(call_class_name(d->call.class));
	i->summary = view_of(d->summary);
	i->error = view_of(d->error);
	i->trace.items = arena_array(&c->arena, d->n_checks, sizeof(*i->trace.items));
	if (!i->trace.items)
		return -ENOMEM;
	for (i->trace.n = 0; i->trace.n < d->n_checks; i->trace.n++) {
		const struct policy_check *x = &d->checks[i->trace.n];
		i->trace.items[i->trace.n] =
			(struct sgn_check){ x->step, view_of(x->name), x->passed, view_of(x->text) };
	}
	return card_fill(c, j, i);
}
