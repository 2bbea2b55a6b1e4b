/*
 * The order of the checks: see policy.h. The first that fails ends the evaluation.
 */
#include "policy_impl.h"

#include <stdarg.h>
#include <stdio.h>

#include "text.h"
#include "poison.h"

#define DAY_MS (24 * 3600 * 1000ll)

bool policy_check(struct policy_run *p, uint8_t step, const char *name, bool passed, const char *fmt, ...)
{
	struct policy_decision *d = p->d;
	va_list ap;

	if (d->n_checks == POLICY_CHECKS) /* the last line says how it ended */
		d->n_checks--;
	struct policy_check *c = &d->checks[d->n_checks++];
	*c = (struct policy_check){ .step = step, .passed = passed, .name = name };
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
	if (!passed && !d->error[0])
		snprintf(d->error, sizeof(d->error), "%s", c->text);
	return passed;
}

bool policy_refuse(struct policy_run *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->d->error, sizeof(p->d->error), fmt, ap);
	va_end(ap);
	return false;
}

void policy_amount_text(const struct policy_rules *r, uint64_t chain, const uint8_t *asset,
			const struct u256 *amount, char out[static POLICY_AMOUNT])
{
	const struct policy_limit *l = policy_limit_of(r, chain, asset);
	char number[U256_UNITS], address[ADDRESS_TEXT];

	if (address_eq(asset, address_native) || address_eq(asset, policy_fee)) {
		u256_units(amount, 18, number);
		snprintf(out, POLICY_AMOUNT, "%s (native)", number);
		return;
	}
	address_text(asset, address);
	if (l && l->symbol.n) {
		u256_units(amount, l->decimals, number);
		snprintf(out, POLICY_AMOUNT, "%s %.*s of %s", number,
			 VIEW_ARG(view_head(l->symbol, POLICY_SYMBOL)), address);
	} else {
		u256_text(amount, number);
		snprintf(out, POLICY_AMOUNT, "%s of %s", number, address);
	}
}

/* ---- 0 to 5: may it ask at all? ---- */

static bool in_window(const struct policy_rules *r, int64_t wall_ms)
{
	const int64_t day = wall_ms / DAY_MS;
	const uint32_t minute = (uint32_t)(wall_ms % DAY_MS / 60000),
		       weekday = (uint32_t)((day + 3) % 7); /* 0: Monday */

	for (size_t i = 0; i < r->n_windows; i++)
		if (r->windows[i].days >> weekday & 1 && minute >= r->windows[i].from &&
		    minute < r->windows[i].to)
			return true;
	return r->n_windows == 0;
}

/* A call that does nothing but to approve nothing: that of a paused agent makes nobody poorer but by its fee.
 * Whoever asks for it is asked again, as no such call is automatic. */
static bool only_takes_back(const struct policy_input *in)
{
	struct call c;

	if (!in->revokes || in->kind != POLICY_TX || !in->account || !in->to || !u256_is_zero(&in->value))
		return false;
	call_read(&(struct call_input){ in->account, in->to, in->value, in->data }, &c);
	bool only = c.class == CALL_APPROVAL && c.n > 0;
	for (unsigned i = 0; i < c.n; i++)
		only &= c.effects[i].approval && u256_is_zero(&c.effects[i].amount);
	buf_done(&c.tree);
	return only;
}

static bool check_paused(struct policy_run *p)
{
	const bool agent = p->in->agent_rules->paused, wallet = p->in->wallet_rules->paused;

	if (agent && !wallet && only_takes_back(p->in))
		return policy_check(p, 0, "paused", true, "The agent is paused; an allowance is taken back");
	if (policy_check(p, 0, "paused", !agent && !wallet,
			 agent    ? "The agent is paused"
			 : wallet ? "The wallet is paused"
				  : "Neither agent nor wallet is paused"))
		return true;
	return policy_refuse(p, p->in->revokes && wallet
					? "The wallet is paused: nothing is signed for it, also no revocation"
					: "Agent is paused");
}

static bool check_running(struct policy_run *p)
{
	const struct policy_input *in = p->in;

	if (!policy_check(p, 0, "kill_switch", !in->paused,
			  in->paused ? "All spending is stopped" : "Spending is not stopped"))
		return policy_refuse(p, in->revokes ? "All spending is stopped: nothing is signed, also no "
						      "revocation, until the owner ends it"
						    : "Agent is paused: all spending is stopped");
	if (!check_paused(p))
		return false;
	const bool open = in_window(in->agent_rules, in->wall_ms) && in_window(in->wallet_rules, in->wall_ms);
	return policy_check(p, 0, "hours", open, "Spending is %s at this hour",
			    open ? "allowed" : "not allowed");
}

static bool check_pending(struct policy_run *p)
{
	const uint32_t max =
		p->in->agent_rules->max_pending ? p->in->agent_rules->max_pending : POLICY_PENDING;

	if (policy_check(p, 2, "pending", p->in->pending < max, "%u of %u requests are pending",
			 p->in->pending, max))
		return true;
	return policy_refuse(p, "Rate limit exceeded: %u requests are pending", p->in->pending);
}

static bool check_chain(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	const bool dev = in->chain == 31337 || in->chain == 1337;

	if (!policy_check(p, 3, "chain", in->account != NULL, "Chain eip155:%llu is %s for this agent",
			  (unsigned long long)in->chain, in->account ? "allowed" : "not allowed"))
		return false;
	if (!policy_check(p, 3, "chain_id", in->facts->chain_id == in->chain,
			  "The node says that it is chain %llu", (unsigned long long)in->facts->chain_id))
		return policy_refuse(p, "RPC Error: the node serves another chain");
	return policy_check(p, 4, "wallet", !in->test_account || (dev && in->facts->loopback),
			    in->test_account
				    ? "A test account signs for chains 31337 and 1337 of this machine alone"
				    : "The wallet has a key of its own");
}

static bool check_fields(struct policy_run *p)
{
	const struct policy_input *in = p->in;

	if (!policy_check(p, 5, "delegated", !in->facts->delegated,
			  in->facts->delegated ? "The account's code is another contract's (EIP-7702)"
					       : "The account has no code"))
		return false;
	if (in->kind != POLICY_TYPED)
		return true;
	return policy_check(p, 5, "typed_chain", in->typed->has_chain && in->typed->chain == in->chain,
			    in->typed->has_chain ? "The data is for chain eip155:%llu"
						 : "The data names no chain (%llu)",
			    (unsigned long long)in->typed->chain);
}

/* ---- 6: to whom ---- */

/* The rule for an address, of the agent or the wallet: a denial before all else. */
static const struct policy_address *rule_for(const struct policy_rules *r, uint64_t chain,
					     const uint8_t *address)
{
	const struct policy_address *found = NULL;

	for (size_t i = 0; i < r->n_addresses; i++) {
		const struct policy_address *a = &r->addresses[i];
		if ((a->chain == 0 || a->chain == chain) && address_eq(a->address, address) &&
		    (!found || a->deny))
			found = a;
	}
	return found;
}

bool policy_denies(const struct policy_run *p, const uint8_t *address)
{
	const struct policy_address *agent = rule_for(p->in->agent_rules, p->in->chain, address),
				    *wallet = rule_for(p->in->wallet_rules, p->in->chain, address);

	return (agent && agent->deny) || (wallet && wallet->deny);
}

static bool check_address(struct policy_run *p, const uint8_t *address, const char *name)
{
	const struct policy_rules *rules[] = { p->in->agent_rules, p->in->wallet_rules };
	char text[ADDRESS_TEXT];

	address_text(address, text);
	for (size_t i = 0; i < ELEMS(rules); i++) {
		const struct policy_address *rule = rule_for(rules[i], p->in->chain, address);
		if (rule && rule->deny)
			return policy_check(p, 6, name, false, "Address %s is denied", text);
		if (!rule && rules[i]->only_listed)
			return policy_check(p, 6, name, false, "Address %s is not allowed for this %s", text,
					    i ? "wallet" : "agent");
	}
	return true;
}

static bool check_addresses(struct policy_run *p)
{
	const struct call *c = &p->d->call;

	if (p->in->kind == POLICY_TX && p->in->to && !check_address(p, p->in->to, "to"))
		return false;
	if (p->in->kind == POLICY_TYPED && p->in->typed->has_contract &&
	    !check_address(p, p->in->typed->contract, "contract"))
		return false;
	/* An allowance may be taken back from anybody. */
	for (unsigned i = 0; i < c->n; i++) {
		const struct call_effect *e = &c->effects[i];
		const char *name = e->approval ? "spender" : e->target ? "target" : "recipient";
		if (call_reaches(e) && !check_address(p, e->to, name))
			return false;
	}
	return policy_check(p, 6, "addresses", true, "Every address %sis allowed%s",
			    c->class == CALL_UNKNOWN ? "that can be read " : "",
			    p->in->new_recipient ? "; one is new" : "");
}

/* ---- 7 and 8: what it is ---- */

static void read_call(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	struct call *c = &p->d->call;

	if (in->kind == POLICY_TX) {
		call_read(&(struct call_input){ in->account, in->to, in->value, in->data }, c);
	} else if (in->kind == POLICY_TYPED) {
		call_read_typed(in->typed, in->account, c);
	} else {
		const bool text = text_is_plain(in->data);
		*c = (struct call){ .class = text ? CALL_MESSAGE : CALL_DANGEROUS, .tree = BUF_INIT(256) };
		buf_printf(&c->tree, "message of %zu bytes%s\n", in->data.n,
			   text ? "" : ", which are no text");
	}
}

static bool may_be_called(const struct policy_input *in, const uint8_t *to)
{
	const struct policy_address *rule = to ? rule_for(in->agent_rules, in->chain, to) : NULL;

	return rule && rule->call;
}

/* Unknown calls to a contract that the agent may call, also within a wrapper, and typed data that is listed.
 */
static bool unknown_allowed(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	const struct policy_rules *r = in->agent_rules;

	if (in->kind == POLICY_TX) {
		bool all = may_be_called(in, in->to) && in->facts->method >= POLICY_SIM_TRACE;
		for (unsigned i = 0; i < p->d->call.n; i++)
			all &= !p->d->call.effects[i].opaque || may_be_called(in, p->d->call.effects[i].to);
		return all;
	}
	for (size_t i = 0; i < r->n_typed; i++)
		if (r->typed[i].chain == in->chain && in->typed->has_contract &&
		    address_eq(r->typed[i].contract, in->typed->contract) &&
		    view_eq(r->typed[i].primary, in->typed->primary))
			return true;
	return false;
}

static bool check_class(struct policy_run *p)
{
	const struct policy_rules *r = p->in->agent_rules;
	const struct call *c = &p->d->call;
	const char *name = call_class_name(c->class);

	policy_check(p, 7, "class", true, "The request is of class %s", name);
	if (c->has_data && !policy_check(p, 7, "code", p->in->facts->to_has_code,
					 p->in->facts->to_has_code ? "The target is a contract"
								   : "The target of the call has no code"))
		return false;
	if (p->in->kind == POLICY_MESSAGE &&
	    !policy_check(p, 8, "class.message", r->allow_messages, "Signing messages is %s",
			  r->allow_messages ? "allowed" : "not allowed"))
		return false;
	switch (c->class) {
	case CALL_DANGEROUS:
		return policy_check(p, 8, "class.dangerous", r->allow_dangerous, "%s %s",
				    p->in->kind == POLICY_MESSAGE ? "Signing messages that nobody can read is"
								  : "Calls that hand over control are",
				    r->allow_dangerous ? "allowed" : "not allowed");
	case CALL_CREATION:
		return policy_check(p, 8, "class.creation", r->allow_creation, "Contract creation is %s",
				    r->allow_creation ? "allowed" : "not allowed");
	case CALL_UNKNOWN:
		return policy_check(
			p, 8, "class.unknown", unknown_allowed(p),
			p->in->kind == POLICY_TX
				? "A call that cannot be decoded needs a listed contract and a simulation"
				: "Typed data that cannot be decoded needs a listed contract and type");
	case CALL_NATIVE:
	case CALL_ERC20_TRANSFER:
	case CALL_APPROVAL:
	case CALL_NFT:
	case CALL_WRAPPED:
	case CALL_MESSAGE:
		break;
	}
	return policy_check(p, 8, "class.known", true, "The class needs no rule of its own");
}

static bool check_no_value(struct policy_run *p)
{
	if (!p->d->call.erc20 || policy_check(p, 9, "token_value", u256_is_zero(&p->in->value),
					      "A call of a token sends no value"))
		return true;
	return policy_refuse(p, "ERC20 transfers must have a transaction value of 0");
}

/* One that was left out may be denied. */
static bool check_crowd(struct policy_run *p)
{
	return !p->d->call.crowded ||
	       policy_check(p, 13, "parts", false, "The call reaches more addresses than are judged");
}

/* ---- 14: who decides ---- */

static bool all_native(const struct policy_decision *d)
{
	for (unsigned i = 0; i < d->n_spends; i++)
		if (!address_eq(d->spends[i].asset, address_native))
			return false;
	return d->call.class == CALL_NATIVE;
}

static bool is_automatic(struct policy_run *p)
{
	const struct policy_rules *r = p->in->agent_rules;
	const struct policy_address *rule = p->in->to ? rule_for(r, p->in->chain, p->in->to) : NULL;

	return r->auto_below.set && r->approvers <= 1 && p->in->wallet_rules->approvers <= 1 &&
	       p->in->kind == POLICY_TX && all_native(p->d) && rule && !rule->deny && p->d->n_spends <= 1 &&
	       (p->d->n_spends == 0 || u256_cmp(&p->d->spends[0].amount, &r->auto_below.v) <= 0);
}

uint32_t policy_cool_down(const struct policy_rules *agent, const struct policy_rules *wallet)
{
	return MAX(agent->cool_down_s, wallet->cool_down_s);
}

static void decide(struct policy_run *p)
{
	const struct policy_rules *r = p->in->agent_rules;
	const uint32_t cool_down = policy_cool_down(r, p->in->wallet_rules);
	const int64_t ready = p->in->created_ms + 1000ll * cool_down;

	p->d->verdict = is_automatic(p) ? POLICY_AUTO : POLICY_HUMAN;
	p->d->approvers = MAX(MAX(r->approvers, p->in->wallet_rules->approvers), 1u);
	if (cool_down && p->in->new_recipient) {
		if (!p->in->signing)
			p->d->verdict = POLICY_HUMAN;
		else if (p->in->now_ms < ready)
			p->d->verdict = POLICY_WAIT;
		policy_check(p, 14, "cool_down", p->d->verdict != POLICY_WAIT,
			     "A first transfer to an address waits for %u s", cool_down);
	}
	policy_check(p, 14, "approval", true,
		     p->d->verdict == POLICY_AUTO ? "Small enough to need nobody (%u)"
						  : "Approvals needed: %u",
		     p->d->approvers);
}

static void summarize(struct policy_run *p)
{
	const struct policy_input *in = p->in;
	const struct call *c = &p->d->call;
	char what[POLICY_AMOUNT], to[ADDRESS_TEXT];

	if (c->n == 0) {
		snprintf(p->d->summary, sizeof(p->d->summary),
			 "Agent %.*s wants to sign a request of class %s", VIEW_ARG(view_head(in->agent, 64)),
			 call_class_name(c->class));
		return;
	}
	policy_amount_text(in->agent_rules, in->chain, c->effects[0].asset, &c->effects[0].amount, what);
	address_text(c->effects[0].to, to);
	if (c->effects[0].target && u256_is_zero(&c->effects[0].amount)) {
		snprintf(p->d->summary, sizeof(p->d->summary), "Agent %.*s wants to reach %s%s",
			 VIEW_ARG(view_head(in->agent, 48)), to, c->n > 1 ? ", and more" : "");
		return;
	}
	snprintf(p->d->summary, sizeof(p->d->summary), "Agent %.*s wants to %s %s%s %s%s",
		 VIEW_ARG(view_head(in->agent, 48)), c->effects[0].approval ? "let" : "send",
		 c->effects[0].approval ? to : what, c->effects[0].approval ? " take" : " to",
		 c->effects[0].approval ? what : to, c->n > 1 ? ", and more" : "");
}

void policy_decide(const struct policy_input *in, struct policy_decision *ret)
{
	struct policy_run p = { in, ret };

	*ret = (struct policy_decision){ .verdict = POLICY_DENY };
	if (!check_running(&p) || !check_pending(&p) || !check_chain(&p) || !check_fields(&p))
		return;
	read_call(&p);
	summarize(&p);
	if (check_addresses(&p) && check_class(&p) && check_no_value(&p) && policy_count(&p) &&
	    policy_allowances(&p) && policy_windows(&p) && policy_fees(&p) && policy_simulation(&p) &&
	    check_crowd(&p))
		decide(&p);
}

void policy_done(struct policy_decision *d)
{
	if (d)
		buf_done(&d->call.tree);
}
