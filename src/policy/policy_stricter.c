/*
 * Whether rules allow less than others: what the api may set by itself. See policy.h.
 */
#include "policy.h"

#include "poison.h"

static bool no_more(const struct policy_amount *now, const struct policy_amount *before)
{
	return !before->set || (now->set && u256_cmp(&now->v, &before->v) <= 0);
}

/* Where an absent amount forbids, and not where it does not limit. */
static bool no_more_allowed(const struct policy_amount *now, const struct policy_amount *before)
{
	return !now->set || (before->set && u256_cmp(&now->v, &before->v) <= 0);
}

static bool limits_stricter(const struct policy_rules *now, const struct policy_rules *before,
			    enum policy_scope scope)
{
	for (size_t i = 0; scope == POLICY_WALLET && i < before->n_limits; i++)
		if (!policy_limit_of(now, before->limits[i].chain, before->limits[i].asset))
			return false;
	for (size_t i = 0; i < now->n_limits; i++) {
		const struct policy_limit *n = &now->limits[i],
					  *b = policy_limit_of(before, n->chain, n->asset);
		if (!b && scope == POLICY_WALLET)
			continue;
		if (!b || u256_cmp(&n->per_tx, &b->per_tx) > 0 || !no_more(&n->lifetime, &b->lifetime) ||
		    (n->unlimited_approvals && !b->unlimited_approvals))
			return false;
		for (int w = 0; w < LEDGER_WINDOWS; w++)
			if (!no_more(&n->window[w], &b->window[w]))
				return false;
	}
	return true;
}

static bool has_address(const struct policy_rules *r, const struct policy_address *a)
{
	for (size_t i = 0; i < r->n_addresses; i++) {
		const struct policy_address *b = &r->addresses[i];
		if (a->chain == b->chain && address_eq(a->address, b->address) && a->deny == b->deny &&
		    (b->call || !a->call))
			return true;
	}
	return false;
}

static bool addresses_stricter(const struct policy_rules *now, const struct policy_rules *before)
{
	/* No permission that was not there, and every denial still is. */
	for (size_t i = 0; i < now->n_addresses; i++)
		if (!now->addresses[i].deny && !has_address(before, &now->addresses[i]))
			return false;
	for (size_t i = 0; i < before->n_addresses; i++)
		if (before->addresses[i].deny && !has_address(now, &before->addresses[i]))
			return false;
	return true;
}

static bool typed_stricter(const struct policy_rules *now, const struct policy_rules *before)
{
	for (size_t i = 0; i < now->n_typed; i++) {
		bool found = false;
		for (size_t k = 0; k < before->n_typed; k++)
			found |= now->typed[i].chain == before->typed[k].chain &&
				 address_eq(now->typed[i].contract, before->typed[k].contract) &&
				 view_eq(now->typed[i].primary, before->typed[k].primary);
		if (!found)
			return false;
	}
	return true;
}

/* Each window lies within one that was there. */
static bool windows_stricter(const struct policy_rules *now, const struct policy_rules *before)
{
	if (before->n_windows == 0)
		return true;
	for (size_t i = 0; i < now->n_windows; i++) {
		bool found = false;
		for (size_t k = 0; k < before->n_windows; k++)
			found |= (now->windows[i].days & ~before->windows[k].days) == 0 &&
				 now->windows[i].from >= before->windows[k].from &&
				 now->windows[i].to <= before->windows[k].to;
		if (!found)
			return false;
	}
	return now->n_windows > 0;
}

/* Of the values in force. */
#define OR_USUAL(v, usual)  ((v) ? (v) : (uint32_t)(usual))
#define STRICT_LESS(n, b)   ((n) >= (b))
#define STRICT_MORE(n, b)   ((n) <= (b))
#define STRICT_MORE_0(n, b) ((b) == 0 || ((n) && (n) <= (b)))

static bool flags_stricter(const struct policy_rules *now, const struct policy_rules *before)
{
	bool ok = true;

#define FLAG(name, sense, ...) ok = ok && STRICT_##sense(now->name, before->name);
#define COUNT(...)
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	return ok;
}

static bool counts_stricter(const struct policy_rules *now, const struct policy_rules *before)
{
	bool ok = true;

#define FLAG(...)
#define COUNT(name, json, min, max, usual, sense, ...)                                                       \
	ok = ok && STRICT_##sense(OR_USUAL(now->name, usual), OR_USUAL(before->name, usual));
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	return ok;
}

static bool fee_stricter(const struct policy_amount *now, const struct policy_amount *before,
			 enum policy_scope scope)
{
	return scope == POLICY_WALLET ? no_more_allowed(now, before) : no_more(now, before);
}

bool policy_stricter(const struct policy_rules *now, const struct policy_rules *before,
		     enum policy_scope scope, const char **ret_why)
{
	const struct {
		const char *name;
		bool ok;
	} parts[] = {
		{ "limits", limits_stricter(now, before, scope) },
		{ "addresses", addresses_stricter(now, before) },
		{ "typed", typed_stricter(now, before) },
		{ "windows", windows_stricter(now, before) },
		{ "flags", flags_stricter(now, before) },
		{ "counts", counts_stricter(now, before) },
		{ "fee_per_tx", fee_stricter(&now->fee_per_tx, &before->fee_per_tx, scope) },
		{ "fee_day", fee_stricter(&now->fee_day, &before->fee_day, scope) },
		{ "auto_below", no_more_allowed(&now->auto_below, &before->auto_below) },
	};

	for (size_t i = 0; i < ELEMS(parts); i++)
		if (!parts[i].ok) {
			*ret_why = parts[i].name;
			return false;
		}
	return true;
}
