/*
 * Amounts against limits: see policy.h. What a request spends is one amount for each asset; the agent needs a
 * limit for every one of them, the wallet's limits are compared where there are some.
 */
#include "policy_impl.h"

#include <stdio.h>

#include "poison.h"

/* 0xff…: no contract has this address, and it is not the native asset's. */
const uint8_t policy_fee[ADDRESS_SIZE] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

#define PLAIN_GAS 21000

const struct policy_limit *policy_limit_of(const struct policy_rules *r, uint64_t chain, const uint8_t *asset)
{
	for (size_t i = 0; i < r->n_limits; i++)
		if (r->limits[i].chain == chain && address_eq(r->limits[i].asset, asset))
			return &r->limits[i];
	return NULL;
}

static struct policy_spend *spend_of(struct policy_decision *d, const uint8_t *asset)
{
	for (unsigned i = 0; i < d->n_spends; i++)
		if (address_eq(d->spends[i].asset, asset))
			return &d->spends[i];
	if (d->n_spends == POLICY_SPENDS)
		return NULL;
	struct policy_spend *s = &d->spends[d->n_spends++];
	*s = (struct policy_spend){ 0 };
	memcpy(s->asset, asset, ADDRESS_SIZE);
	return s;
}

/* An approval without an end counts as the most that one request may spend, where the rule allows it. */
static bool amount_of(struct policy_run *p, const struct call_effect *e, struct u256 *ret)
{
	const struct policy_limit *l = policy_limit_of(p->in->agent_rules, p->in->chain, e->asset);

	*ret = e->amount;
	if (!e->unlimited)
		return true;
	if (l && l->unlimited_approvals)
		*ret = l->per_tx;
	return policy_check(p, 9, "unlimited", l && l->unlimited_approvals,
			    "An unlimited approval is %s for this token",
			    l && l->unlimited_approvals ? "allowed" : "not allowed");
}

/* An approval of nothing is one of the token 0 where the contract is one of ERC-721: the owner knows what it
 * is, or the simulation shows it. */
static bool takes_back(struct policy_run *p, const struct call_effect *e)
{
	return policy_check(p, 9, "approval.none",
			    policy_limit_of(p->in->agent_rules, p->in->chain, e->asset) ||
				    p->in->facts->method >= POLICY_SIM_TRACE,
			    "An approval of 0 needs an allowance for the token, or a simulation");
}

bool policy_count(struct policy_run *p)
{
	const struct call *c = &p->d->call;

	for (unsigned i = 0; i < c->n; i++) {
		struct u256 amount;
		if (u256_is_zero(&c->effects[i].amount)) {
			if (!c->effects[i].target && !takes_back(p, &c->effects[i]))
				return false;
			continue;
		}
		struct policy_spend *s = spend_of(p->d, c->effects[i].asset);
		if (!amount_of(p, &c->effects[i], &amount))
			return false;
		if (!s || u256_add(&s->amount, &amount, &s->amount) < 0)
			return policy_check(p, 9, "sum", false, "The amounts of the request are too large");
	}
	return true;
}

/* For people: what it counts against. Too many are left out. */
static void note_line(struct policy_run *p, enum policy_scope scope, enum policy_span span,
		      const uint8_t *asset, const struct u256 *before, const struct u256 *amount,
		      const struct u256 *limit)
{
	if (p->d->n_lines == POLICY_LINES)
		return;
	struct policy_line *l = &p->d->lines[p->d->n_lines++];
	*l = (struct policy_line){ .scope = scope,
				   .span = span,
				   .before = *before,
				   .after = u256_add_sat(before, amount),
				   .limit = *limit };
	memcpy(l->asset, asset, ADDRESS_SIZE);
}

static enum policy_scope scope_of(const struct policy_run *p, const struct policy_rules *r)
{
	return r == p->in->wallet_rules ? POLICY_WALLET : POLICY_AGENT;
}

/* ---- 9: allowances of one request ---- */

static bool within_allowance(struct policy_run *p, const struct policy_spend *s, const struct policy_rules *r,
			     const char *who)
{
	const struct policy_limit *l = policy_limit_of(r, p->in->chain, s->asset);
	char amount[POLICY_AMOUNT], most[POLICY_AMOUNT], asset[ADDRESS_TEXT];

	address_text(s->asset, asset);
	if (!l) {
		if (r == p->in->wallet_rules)
			return true;
		return policy_check(p, 9, "allowance", false,
				    "No allowance found for %s on chain eip155:%llu", asset,
				    (unsigned long long)p->in->chain);
	}
	note_line(p, scope_of(p, r), POLICY_PER_TX, s->asset, &U256_ZERO, &s->amount, &l->per_tx);
	policy_amount_text(p->in->agent_rules, p->in->chain, s->asset, &s->amount, amount);
	policy_amount_text(p->in->agent_rules, p->in->chain, s->asset, &l->per_tx, most);
	if (policy_check(p, 9, "per_tx", u256_cmp(&s->amount, &l->per_tx) <= 0,
			 "%s of at most %s per transaction (%s)", amount, most, who))
		return true;
	return policy_refuse(p, "Requested amount exceeds the configured allowance for this token");
}

bool policy_allowances(struct policy_run *p)
{
	p->d->n_lines = 0; /* it may be the second time */
	for (unsigned i = 0; i < p->d->n_spends; i++)
		if (!within_allowance(p, &p->d->spends[i], p->in->agent_rules, "agent") ||
		    !within_allowance(p, &p->d->spends[i], p->in->wallet_rules, "wallet"))
			return false;
	return true;
}

/* ---- 10 and 11: windows ---- */

/* What the request itself has reserved is not counted twice, as far as the window still counts it. */
static void without_own(const struct policy_input *in, const uint8_t *asset, struct ledger_sums *s)
{
	for (size_t i = 0; i < in->n_own; i++) {
		if (!address_eq(in->own[i].asset, asset))
			continue;
		for (int w = 0; w < LEDGER_WINDOWS; w++)
			if (in->now_ms - in->own_ms < ledger_length[w])
				(void)!u256_sub(&s->window[w], &in->own[i].amount, &s->window[w]);
		(void)!u256_sub(&s->lifetime, &in->own[i].amount, &s->lifetime);
	}
}

static bool fits(struct policy_run *p, const struct policy_spend *s, const struct u256 *spent,
		 const struct policy_amount *limit, const char *name, const char *who)
{
	const uint8_t step = address_eq(s->asset, address_native) ? 10 : 11;
	char now[POLICY_AMOUNT], then[POLICY_AMOUNT];
	struct u256 sum;

	if (!limit->set)
		return true;
	const bool fit = u256_add(spent, &s->amount, &sum) == 0 && u256_cmp(&sum, &limit->v) <= 0;
	policy_amount_text(p->in->agent_rules, p->in->chain, s->asset, spent, now);
	policy_amount_text(p->in->agent_rules, p->in->chain, s->asset, &limit->v, then);
	if (policy_check(p, step, name, fit, "%s so far, of %s (%s)", now, then, who))
		return true;
	return policy_refuse(p, "Total spending limit exceeded");
}

static bool within_windows(struct policy_run *p, const struct policy_spend *s, const struct policy_rules *r,
			   struct view scope, const char *who)
{
	static const char *const names[LEDGER_WINDOWS] = { "limit.day", "limit.week", "limit.month" };
	const struct policy_limit *l = policy_limit_of(r, p->in->chain, s->asset);
	struct ledger_sums sums;
	struct u256 all;

	ledger_sums(p->in->ledger, &(struct ledger_what){ scope, p->in->chain, s->asset }, p->in->now_ms,
		    &sums);
	without_own(p->in, s->asset, &sums);
	/* Also where nothing is limited: the ledger cannot hold more than a number of 256 bits. */
	if (u256_add(&sums.lifetime, &s->amount, &all) < 0)
		return policy_check(p, 10, "sum", false, "The amount is too large for the ledger");
	if (!l)
		return true;
	for (int w = 0; w < LEDGER_WINDOWS; w++)
		if (l->window[w].set)
			note_line(p, scope_of(p, r), POLICY_DAY + (enum policy_span)w, s->asset,
				  &sums.window[w], &s->amount, &l->window[w].v);
	if (l->lifetime.set)
		note_line(p, scope_of(p, r), POLICY_LIFETIME, s->asset, &sums.lifetime, &s->amount,
			  &l->lifetime.v);
	for (int w = 0; w < LEDGER_WINDOWS; w++)
		if (!fits(p, s, &sums.window[w], &l->window[w], names[w], who))
			return false;
	return fits(p, s, &sums.lifetime, &l->lifetime, "limit.lifetime", who);
}

bool policy_windows(struct policy_run *p)
{
	const struct policy_input *in = p->in;

	for (unsigned i = 0; i < p->d->n_spends; i++)
		if (!within_windows(p, &p->d->spends[i], in->agent_rules, in->agent_scope, "agent") ||
		    !within_windows(p, &p->d->spends[i], in->wallet_rules, in->wallet_scope, "wallet"))
			return false;
	return true;
}

/* ---- 12: fees ---- */

/* The estimate and a fifth, at most what the agent asked for; 21000 with data is what its SDK says always. */
static bool choose_gas(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	const bool hint = in->gas_hint && !(in->gas_hint == PLAIN_GAS && in->data.n);
	const uint64_t gas = in->facts->gas;

	if (!policy_check(p, 12, "gas",
			  gas >= PLAIN_GAS && gas < UINT32_MAX && (!hint || gas <= in->gas_hint),
			  "The transaction needs %llu gas", (unsigned long long)gas))
		return false;
	p->d->gas = gas == PLAIN_GAS ? gas : gas + gas / 5;
	if (hint)
		p->d->gas = MIN(p->d->gas, in->gas_hint);
	return true;
}

static bool fee_fits(struct policy_run *p, const struct policy_amount *limit, const struct u256 *sum,
		     const char *name)
{
	char now[POLICY_AMOUNT], most[POLICY_AMOUNT];

	policy_amount_text(p->in->agent_rules, p->in->chain, policy_fee, sum, now);
	policy_amount_text(p->in->agent_rules, p->in->chain, policy_fee, &limit->v, most);
	return policy_check(p, 12, name, limit->set && u256_cmp(sum, &limit->v) <= 0,
			    limit->set ? "Fees of at most %s, of %s"
				       : "The wallet has no limit for fees (%s)",
			    now, most);
}

static bool balance_fits(struct policy_run *p)
{
	const struct policy_amount *balance = &p->in->facts->balance;
	struct u256 all;

	if (!balance->set)
		return true;
	return policy_check(p, 12, "balance",
			    u256_add(&p->in->value, &p->d->fee, &all) == 0 &&
				    u256_cmp(&all, &balance->v) <= 0,
			    "The balance covers value and fee");
}

/* Of a wallet, which must have limits, or of an agent, which may. */
static bool fees_within(struct policy_run *p, const struct policy_rules *r, struct view scope)
{
	const struct policy_input *in = p->in;
	struct ledger_sums sums;

	if (r->fee_per_tx.set)
		note_line(p, scope_of(p, r), POLICY_PER_TX, policy_fee, &U256_ZERO, &p->d->fee,
			  &r->fee_per_tx.v);
	if ((r == in->wallet_rules || r->fee_per_tx.set) &&
	    !fee_fits(p, &r->fee_per_tx, &p->d->fee, "fee.per_tx"))
		return false;
	ledger_sums(in->ledger, &(struct ledger_what){ scope, in->chain, policy_fee }, in->now_ms, &sums);
	const struct u256 sum = u256_add_sat(&sums.window[LEDGER_DAY], &p->d->fee);
	if (r->fee_day.set)
		note_line(p, scope_of(p, r), POLICY_DAY, policy_fee, &sums.window[LEDGER_DAY], &p->d->fee,
			  &r->fee_day.v);
	return (r != in->wallet_rules && !r->fee_day.set) || fee_fits(p, &r->fee_day, &sum, "fee.day");
}

bool policy_fees(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	struct u256 gas;

	if (in->kind != POLICY_TX)
		return true;
	if (!choose_gas(p))
		return false;
	gas = u256_of(p->d->gas);
	if (u256_mul(&gas, &in->facts->max_fee, &p->d->fee) < 0 ||
	    u256_cmp(&in->facts->priority_fee, &in->facts->max_fee) > 0)
		return policy_check(p, 12, "fee", false, "The fees make no sense");
	return fees_within(p, in->wallet_rules, in->wallet_scope) &&
	       fees_within(p, in->agent_rules, in->agent_scope) && balance_fits(p);
}

/* ---- 13: the simulation ---- */

static const char *method_name(enum policy_method m)
{
	static const char *const names[] = { "not simulated", "estimated only", "traced",
					     "simulated by eth_simulateV1" };

	return (size_t)m < ELEMS(names) ? names[m] : names[0];
}

static bool declared(const struct call *c, const struct policy_move *m)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->effects[i].approval && address_eq(c->effects[i].asset, m->asset) &&
		    address_eq(c->effects[i].to, m->to) && u256_cmp(&m->amount, &c->effects[i].amount) <= 0)
			return true;
	return u256_is_zero(&m->amount);
}

/* What leaves the account of one asset, less what comes back. */
static struct u256 outflow(const struct policy_facts *f, const uint8_t *account, const uint8_t *asset)
{
	struct u256 out = U256_ZERO, in = U256_ZERO;

	for (size_t i = 0; i < f->n_moves; i++) {
		const struct policy_move *m = &f->moves[i];
		if (m->approval || !address_eq(m->asset, asset))
			continue;
		if (address_eq(m->from, account))
			out = u256_add_sat(&out, &m->amount);
		if (address_eq(m->to, account))
			in = u256_add_sat(&in, &m->amount);
	}
	return u256_sub(&out, &in, &out) < 0 ? U256_ZERO : out;
}

static bool may_get(struct policy_run *p, const struct policy_move *m)
{
	char text[ADDRESS_TEXT];

	if (u256_is_zero(&m->amount) || !policy_denies(p, m->to))
		return true;
	address_text(m->to, text);
	return policy_check(p, 13, "sim.recipient", false,
			    "In the simulation something goes to %s, which is denied", text);
}

static bool count_moves(struct policy_run *p, bool *ret_more)
{
	const struct policy_facts *f = p->in->facts;

	for (size_t i = 0; i < f->n_moves; i++) {
		const struct policy_move *m = &f->moves[i];
		if (!address_eq(m->from, p->in->account))
			continue;
		if (m->approval) {
			if (!policy_check(p, 13, "sim.approval", declared(&p->d->call, m),
					  "Every approval in the simulation is one that the call declares"))
				return false;
			continue;
		}
		if (!may_get(p, m))
			return false;
		const struct u256 out = outflow(f, p->in->account, m->asset);
		if (u256_is_zero(&out))
			continue;
		struct policy_spend *s = spend_of(p->d, m->asset);
		if (!s)
			return policy_check(p, 13, "sim.assets", false, "Too many assets leave the account");
		if (u256_cmp(&out, &s->amount) > 0) {
			s->amount = out;
			*ret_more = true;
		}
	}
	return true;
}

bool policy_simulation(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	const struct policy_facts *f = in->facts;
	bool more = false;

	if (in->kind != POLICY_TX)
		return true;
	if (!policy_check(p, 13, "sim.revert", f->failure.n == 0,
			  f->failure.n ? "The transaction would fail: %.*s" : "It would not fail%.*s",
			  VIEW_ARG(view_head(f->failure, 120))))
		return false;
	if (!policy_check(p, 13, "sim.method",
			  f->method >= POLICY_SIM_TRACE || !(in->agent_rules->require_simulation ||
							     in->wallet_rules->require_simulation),
			  "The transaction was %s at block %llu", method_name(f->method),
			  (unsigned long long)f->block))
		return false;
	if (!count_moves(p, &more))
		return false;
	p->d->sim_more = more;
	return !more || (policy_allowances(p) && policy_windows(p) && policy_fees(p));
}
