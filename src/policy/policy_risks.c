/*
 * What a person should know before deciding: see policy_card.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy_impl.h"

#include "poison.h"

struct listing {
	const struct policy_input *in;
	const struct policy_decision *d;
	struct policy_risk *out;
	unsigned n;
};

/* NULL: there is none. What is worse is never crowded out. */
static struct policy_risk *place_for(struct listing *l, enum policy_level level)
{
	if (l->n < POLICY_RISKS)
		return &l->out[l->n++];
	for (unsigned i = POLICY_RISKS; i-- > 0;)
		if (l->out[i].level < level)
			return &l->out[i];
	return NULL;
}

static _printf_(4, 5) struct policy_risk *add(struct listing *l, enum policy_level level, const char *name,
					      const char *fmt, ...)
{
	struct policy_risk *r = place_for(l, level);
	va_list ap;

	if (!r)
		return NULL;
	*r = (struct policy_risk){ .level = level, .name = name };
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	return r;
}

bool policy_looks_like(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, 2) == 0 && memcmp(a + ADDRESS_SIZE - 2, b + ADDRESS_SIZE - 2, 2) == 0 &&
	       !address_eq(a, b);
}

/* ---- addresses ---- */

static void add_alike(struct listing *l, const uint8_t *address, const uint8_t *known)
{
	char a[ADDRESS_TEXT], b[ADDRESS_TEXT];

	address_text(address, a);
	address_text(known, b);
	struct policy_risk *r = add(l, POLICY_DANGER, "address.poisoned",
				    "%s begins and ends like %s, which is known, but is another", a, b);
	if (!r)
		return;
	r->alike = true;
	memcpy(r->address, address, ADDRESS_SIZE);
	memcpy(r->known, known, ADDRESS_SIZE);
}

static bool find_alike(struct listing *l, const struct policy_rules *r, const uint8_t *address)
{
	for (size_t i = 0; i < r->n_addresses; i++)
		if (!r->addresses[i].deny && policy_looks_like(r->addresses[i].address, address)) {
			add_alike(l, address, r->addresses[i].address);
			return true;
		}
	return false;
}

static bool is_listed(const struct policy_rules *r, const uint8_t *address)
{
	for (size_t i = 0; i < r->n_addresses; i++)
		if (!r->addresses[i].deny && address_eq(r->addresses[i].address, address))
			return true;
	return false;
}

static void look_at(struct listing *l, const uint8_t *address)
{
	const struct policy_input *in = l->in;

	if (is_listed(in->agent_rules, address) || is_listed(in->wallet_rules, address) ||
	    address_eq(address, in->account))
		return;
	if (policy_looks_like(in->account, address)) {
		add_alike(l, address, in->account);
		return;
	}
	for (unsigned i = 0; i < in->n_alikes; i++)
		if (address_eq(in->alikes[i].address, address)) {
			add_alike(l, address, in->alikes[i].known);
			return;
		}
	if (!find_alike(l, in->agent_rules, address))
		(void)find_alike(l, in->wallet_rules, address);
}

static void look_at_addresses(struct listing *l)
{
	const struct call *c = &l->d->call;
	char text[ADDRESS_TEXT];

	for (unsigned i = 0; i < c->n; i++) {
		bool seen = false;
		for (unsigned k = 0; k < i; k++)
			seen |= address_eq(c->effects[i].to, c->effects[k].to);
		if (seen)
			continue;
		look_at(l, c->effects[i].to);
		if (!in_first(l->in, i))
			continue;
		address_text(c->effects[i].to, text);
		add(l, POLICY_WARNING, "recipient.new", "This wallet never %s %s",
		    u256_is_zero(&c->effects[i].amount) ? "called" : "sent anything to", text);
	}
	if (c->n == 0 && l->in->to)
		look_at(l, l->in->to);
}

/* ---- what it is ---- */

static void look_at_class(struct listing *l)
{
	switch (l->d->call.class) {
	case CALL_DANGEROUS:
		if (l->in->kind == POLICY_MESSAGE) {
			add(l, POLICY_DANGER, "message.opaque",
			    "The message is %zu bytes that nobody can read: they can be the hash of an "
			    "order, of a Safe's transaction or of anything else",
			    l->in->data.n);
			break;
		}
		add(l, POLICY_DANGER, "class.dangerous",
		    "It hands over control: of tokens to an operator, of a contract to an owner or its code");
		break;
	case CALL_UNKNOWN:
		add(l, POLICY_DANGER, "class.unknown",
		    l->in->kind == POLICY_TX
			    ? "The call cannot be decoded: only the simulation says what it does"
			    : "The data cannot be decoded: nobody here knows what the signature allows");
		break;
	case CALL_CREATION:
		add(l, POLICY_WARNING, "class.creation", "It creates a contract, whose code runs at once");
		break;
	case CALL_MESSAGE:
		add(l, POLICY_WARNING, "class.message",
		    "A signed message can be a login or an order somewhere else");
		break;
	case CALL_NATIVE:
	case CALL_ERC20_TRANSFER:
	case CALL_APPROVAL:
	case CALL_NFT:
	case CALL_WRAPPED:
		break;
	}
	if (l->in->kind == POLICY_TYPED && l->d->call.class != CALL_UNKNOWN)
		add(l, POLICY_WARNING, "signature.spends",
		    "The signature alone lets somebody else spend, without a further transaction");
	if (l->in->facts->delegated)
		add(l, POLICY_DANGER, "account.delegated",
		    "The account's code is another contract's (EIP-7702)");
}

static void look_at_approvals(struct listing *l)
{
	const struct call *c = &l->d->call;
	char to[ADDRESS_TEXT], what[POLICY_AMOUNT];

	for (unsigned i = 0; i < c->n; i++) {
		if (!c->effects[i].approval || u256_is_zero(&c->effects[i].amount))
			continue;
		address_text(c->effects[i].to, to);
		policy_amount_text(l->in->agent_rules, l->in->chain, c->effects[i].asset,
				   &c->effects[i].amount, what);
		if (c->effects[i].unlimited)
			add(l, POLICY_DANGER, "approval.unlimited",
			    "%s may take all of the token, at any time", to);
		else
			add(l, POLICY_WARNING, "approval.given", "%s may take %s, at any time", to, what);
	}
}

/* ---- the chain, and the limits ---- */

static void look_at_simulation(struct listing *l)
{
	const struct policy_facts *f = l->in->facts;

	if (l->in->kind != POLICY_TX)
		return;
	if (f->failure.n)
		add(l, POLICY_DANGER, "simulation.fails", "The transaction would fail: %.*s",
		    VIEW_ARG(view_head(f->failure, 120)));
	if (f->method < POLICY_SIM_TRACE)
		add(l, POLICY_WARNING, "simulation.missing",
		    f->method == POLICY_SIM_NONE
			    ? "It was not simulated: what it does on the chain is not known"
			    : "It was not simulated: this node has no eth_simulateV1 and no debug_traceCall");
	if (l->d->sim_more)
		add(l, POLICY_WARNING, "simulation.more",
		    "More leaves the account in the simulation than the call says; that is what is counted");
}

/* 9 of 10, without a multiplication that could overflow. */
static bool nearly(const struct u256 *after, const struct u256 *limit)
{
	struct u256 tenth = *limit, left;

	(void)u256_divmod(&tenth, 10);
	return u256_cmp(after, limit) <= 0 && u256_sub(limit, after, &left) == 0 &&
	       u256_cmp(&left, &tenth) < 0;
}

static void look_at_limits(struct listing *l)
{
	static const char *const spans[] = { "one transaction", "24 hours", "7 days", "30 days", "all time" };

	for (unsigned i = 0; i < l->d->n_lines; i++) {
		const struct policy_line *x = &l->d->lines[i];
		if (x->span == POLICY_PER_TX || !nearly(&x->after, &x->limit))
			continue;
		add(l, POLICY_NOTE, "limit.near",
		    "Hardly anything of the %s's limit for %s is left afterwards",
		    x->scope == POLICY_AGENT ? "agent" : "wallet", spans[x->span]);
		return;
	}
}

static void look_at_tokens(struct listing *l)
{
	for (unsigned i = 0; i < l->d->n_spends; i++) {
		const struct policy_spend *s = &l->d->spends[i];
		const struct policy_limit *x = policy_limit_of(l->in->agent_rules, l->in->chain, s->asset);
		char text[ADDRESS_TEXT];
		if (address_eq(s->asset, address_native) || (x && x->symbol.n))
			continue;
		address_text(s->asset, text);
		add(l, POLICY_NOTE, "token.unnamed",
		    "The owner has no name for token %s: amounts are in base units", text);
	}
}

static int by_level(const void *a, const void *b)
{
	const struct policy_risk *x = a, *y = b;

	return (int)y->level - (int)x->level;
}

unsigned policy_risks(const struct policy_input *in, const struct policy_decision *d,
		      struct policy_risk ret[static POLICY_RISKS])
{
	struct listing l = { in, d, ret, 0 };

	if (!in->account)
		return 0;
	look_at_class(&l);
	look_at_addresses(&l);
	look_at_approvals(&l);
	look_at_simulation(&l);
	look_at_tokens(&l);
	look_at_limits(&l);
	qsort(ret, l.n, sizeof(*ret), by_level);
	return l.n;
}
