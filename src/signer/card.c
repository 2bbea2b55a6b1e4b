/*
 * What a person is shown of a request beside its decision: names that people gave, limits before and after,
 * what was simulated, and what is risky about it. Everything that the api or a token says is shown as such,
 * and decides nothing.
 */
#include <errno.h>

#include "judge.h"

#include "poison.h"

#define TREE_MAX 4096

static struct view bytes_of(struct signer_call *c, const void *p, size_t n)
{
	return arena_view(&c->arena, (struct view){ p, n });
}

struct view card_amount(struct signer_call *c, const struct u256 *v)
{
	char be[U256_BYTES];

	u256_store(v, be);
	return bytes_of(c, be, sizeof(be));
}

static void name_asset(const struct judged *j, uint64_t chain, const uint8_t *asset, uint32_t *ret_decimals,
		       struct view *ret_symbol)
{
	const struct policy_limit *l = policy_limit_of(&j->agent, chain, asset);

	*ret_decimals = address_eq(asset, address_native) || address_eq(asset, policy_fee) ? 18
			: l                                                                ? l->decimals
											   : 0;
	*ret_symbol = l ? l->symbol : VIEW("");
}

/* The agent's rules before the wallet's. */
static struct view note_for(const struct judged *j, uint64_t chain, const uint8_t *address)
{
	const struct sgn_rules *rules[] = { &j->agent_wire, &j->wallet_wire };

	for (size_t k = 0; k < ELEMS(rules); k++)
		for (size_t n = 0; n < rules[k]->addresses.n; n++) {
			const struct sgn_address_rule *a = &rules[k]->addresses.items[n];
			if ((a->chain == 0 || a->chain == chain) && a->note.n &&
			    memcmp(a->address.p, address, ADDRESS_SIZE) == 0)
				return a->note;
		}
	return VIEW("");
}

static struct view allowance_of(const struct judged *j, const struct call_effect *x)
{
	for (size_t k = 0; x->approval && k < j->facts->allowances.n; k++) {
		const struct sgn_move *m = &j->facts->allowances.items[k];
		if (m->amount.n == U256_BYTES &&
		    view_eq(m->asset, (struct view){ (const char *)x->asset, ADDRESS_SIZE }) &&
		    view_eq(m->to, (struct view){ (const char *)x->to, ADDRESS_SIZE }))
			return m->amount;
	}
	return VIEW("");
}

static int put_effects(struct signer_call *c, const struct judged *j, struct sgn_item *i)
{
	const struct call *call = &j->d.call;

	i->effects.items = arena_array(&c->arena, call->n, sizeof(*i->effects.items));
	if (!i->effects.items)
		return -ENOMEM;
	for (i->effects.n = 0; i->effects.n < call->n; i->effects.n++) {
		const struct call_effect *x = &call->effects[i->effects.n];
		struct sgn_effect *out = &i->effects.items[i->effects.n];
		*out = (struct sgn_effect){ .asset = { (const char *)x->asset, ADDRESS_SIZE },
					    .amount = card_amount(c, &x->amount),
					    .to = { (const char *)x->to, ADDRESS_SIZE },
					    .approval = x->approval,
					    .unlimited = x->unlimited,
					    .target = x->target,
					    .allowance = allowance_of(j, x),
					    .note = note_for(j, i->chain, x->to),
					    .first = j->in.first >> i->effects.n & 1 };
		name_asset(j, i->chain, x->asset, &out->decimals, &out->symbol);
		if (!out->amount.p)
			return -ENOMEM;
	}
	return 0;
}

static int put_limits(struct signer_call *c, const struct judged *j, struct sgn_item *i)
{
	static const char *const spans[] = { "per_tx", "day", "week", "month", "lifetime" };
	const struct policy_decision *d = &j->d;

	i->limits.items = arena_array(&c->arena, d->n_lines, sizeof(*i->limits.items));
	if (!i->limits.items)
		return -ENOMEM;
	for (i->limits.n = 0; i->limits.n < d->n_lines; i->limits.n++) {
		const struct policy_line *x = &d->lines[i->limits.n];
		struct sgn_limit_line *out = &i->limits.items[i->limits.n];
		*out = (struct sgn_limit_line){ .scope = x->scope == POLICY_AGENT ? j->in.agent_scope
										  : j->in.wallet_scope,
						.chain = i->chain,
						.asset = { (const char *)x->asset, ADDRESS_SIZE },
						.window = view_of(spans[x->span]),
						.before = card_amount(c, &x->before),
						.after = card_amount(c, &x->after),
						.limit = card_amount(c, &x->limit) };
		name_asset(j, i->chain, x->asset, &out->decimals, &out->symbol);
		if (!out->before.p || !out->after.p || !out->limit.p)
			return -ENOMEM;
	}
	return 0;
}

static int put_risks(struct signer_call *c, const struct judged *j, struct sgn_item *i)
{
	struct policy_risk *risks = arena_array(&c->arena, POLICY_RISKS, sizeof(*risks));

	i->risks.items = arena_array(&c->arena, POLICY_RISKS, sizeof(*i->risks.items));
	if (!risks || !i->risks.items)
		return -ENOMEM;
	const unsigned n = policy_risks(&j->in, &j->d, risks);
	for (i->risks.n = 0; i->risks.n < n; i->risks.n++) {
		const struct policy_risk *x = &risks[i->risks.n];
		const struct view address = { (const char *)x->address, ADDRESS_SIZE },
				  known = { (const char *)x->known, ADDRESS_SIZE };
		i->risks.items[i->risks.n] = (struct sgn_risk){ .level = (int32_t)x->level,
								.name = view_of(x->name),
								.text = view_of(x->text),
								.address = x->alike ? address : VIEW(""),
								.known = x->alike ? known : VIEW("") };
	}
	return 0;
}

int card_fill(struct signer_call *c, const struct judged *j, struct sgn_item *i)
{
	const struct policy_decision *d = &j->d;

	i->approvers = d->approvers;
	i->gas = d->gas;
	i->method = (int32_t)j->chain.method;
	i->sim_block = j->facts->block;
	i->to_has_code = j->facts->to_has_code;
	i->moves.items = j->facts->moves.items;
	i->moves.n = j->facts->moves.n;
	i->tree = arena_view(&c->arena, view_head(buf_view(&d->call.tree), TREE_MAX));
	i->fee = u256_is_zero(&d->fee) ? VIEW("") : card_amount(c, &d->fee);
	if (!i->tree.p || !i->fee.p || put_effects(c, j, i) < 0 || put_limits(c, j, i) < 0)
		return -ENOMEM;
	return put_risks(c, j, i);
}
