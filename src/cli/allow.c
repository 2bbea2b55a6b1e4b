/*
 * See allow.h.
 */
#include "allow.h"

#include <errno.h>
#include <stdio.h>

#include "amount.h"
#include "rules_edit.h"
#include "rule_fields.h"
#include "session.h"

#include "poison.h"

/* ---- chains and wallets ---- */

static const struct json *asked_chains(const struct allow *a)
{
	const struct json *asked = json_get(json_get(a->manifest, "permissions"), "chains");

	return asked && asked->type == JSON_ARRAY ? asked : NULL;
}

static bool is_asked(const struct allow *a, uint64_t chain)
{
	const struct json *asked = asked_chains(a);
	struct err ignored = { 0 };
	uint64_t one;

	for (size_t i = 0; asked && i < asked->n; i++)
		if (amount_chain(asked->items[i].text, &one, &ignored) == 0 && one == chain)
			return true;
	return false;
}

static bool has_chain(const struct allow *a, uint64_t chain)
{
	for (size_t i = 0; i < a->rules.wallets.n; i++)
		if (a->rules.wallets.items[i].chain == chain)
			return true;
	return false;
}

/* The one that it spends from already, where it is but one. */
static int only_wallet(const struct allow *a, struct view *ret, struct err *e)
{
	*ret = a->wallet;
	for (size_t i = 0; !a->wallet.n && i < a->rules.wallets.n; i++) {
		struct view one = a->rules.wallets.items[i].wallet;
		if (ret->n && !view_eq(*ret, one))
			return err_set(e, ERR_INVALID, "it has several wallets: name one with --wallet");
		*ret = one;
	}
	return ret->n ? 0 : err_set(e, ERR_INVALID, "which wallet does it spend from? Name it with --wallet");
}

static int native_limit(struct allow *a, struct sgn_limit *l, struct err *e)
{
	const struct json *asked = json_get(a->manifest, "spending_limits");
	struct {
		const char *name;
		struct view *to;
	} const parts[] = { { "per_transaction", &l->per_tx },
			    { "daily", &l->day },
			    { "weekly", &l->week },
			    { "monthly", &l->month } };

	*l = (struct sgn_limit){ .asset = rules_edit_native() };
	for (size_t i = 0; i < ELEMS(parts); i++) {
		struct view v = session_text(asked, parts[i].name);
		if (v.n && amount_bytes(a->arena, v, AMOUNT_NATIVE, parts[i].to, e) < 0)
			return err_wrap(e, "spending_limits.%s", parts[i].name);
	}
	if (!l->per_tx.n) /* the smallest of the others holds for one transaction too */
		l->per_tx = l->day.n ? l->day : l->week.n ? l->week : l->month;
	return 0;
}

/* A chain that is new gets the limits of the manifest, unless --limit says others. */
static int add_chain(struct allow *a, uint64_t chain, struct view wallet, struct err *e)
{
	bool known = has_chain(a, chain);
	struct sgn_limit l;

	if (rules_edit_wallet(a->arena, &a->rules, chain, wallet, e) < 0)
		return -1;
	if (known || a->f->limit.n)
		return 0;
	if (native_limit(a, &l, e) < 0)
		return -1;
	l.chain = chain;
	return l.per_tx.n ? rules_edit_limit(a->arena, &a->rules, &l, e) : 0;
}

/* Those of --chain, which the manifest must ask for; the first time, all that it asks for. */
static int take_chains(struct allow *a, struct err *e)
{
	const struct json *asked = asked_chains(a);
	struct view wallet = VIEW_NONE;
	uint64_t chain;

	if ((a->f->chain.n || (a->first && !a->f->rules)) && only_wallet(a, &wallet, e) < 0)
		return -1;
	for (size_t i = 0; i < a->f->chain.n; i++) {
		if (amount_chain(view_of(a->f->chain.items[i]), &chain, e) < 0)
			return -1;
		if (!is_asked(a, chain))
			return err_set(e, ERR_INVALID, "its manifest does not ask for chain eip155:%llu",
				       (unsigned long long)chain);
		if (add_chain(a, chain, wallet, e) < 0)
			return -1;
	}
	if (a->f->chain.n || a->f->rules)
		return 0;
	for (size_t i = 0; a->first && asked && i < asked->n; i++)
		if (amount_chain(asked->items[i].text, &chain, e) < 0 || add_chain(a, chain, wallet, e) < 0)
			return -1;
	for (size_t i = 0; a->wallet.n && i < a->rules.wallets.n; i++)
		a->rules.wallets.items[i].wallet = a->wallet;
	return a->rules.wallets.n ? 0
				  : err_set(e, ERR_INVALID,
					    "its manifest asks for no chain: it has nothing to spend on");
}

/* ---- limits ---- */

/* On one chain, or (0) on all of them. */
static int limit_chains(struct allow *a, struct sgn_limit l, struct err *e)
{
	uint64_t only = l.chain;

	if (only && !has_chain(a, only))
		return err_set(e, ERR_INVALID, "a limit is for chain eip155:%llu, which it may not use",
			       (unsigned long long)only);
	for (size_t i = 0; i < a->rules.wallets.n; i++) {
		l.chain = a->rules.wallets.items[i].chain;
		if ((!only || only == l.chain) && rules_edit_limit(a->arena, &a->rules, &l, e) < 0)
			return -1;
	}
	return 0;
}

static struct sgn_limit *find_limit(const struct allow *a, uint64_t chain, struct view asset)
{
	for (size_t i = 0; i < a->rules.limits.n; i++)
		if ((!chain || a->rules.limits.items[i].chain == chain) &&
		    view_eq(a->rules.limits.items[i].asset, asset))
			return &a->rules.limits.items[i];
	return NULL;
}

/* A token that has decimals and a name keeps them where the option says none: "5" is five of it then, as
 * it was before, and not five base units. */
static int take_token(struct allow *a, const char *text, struct err *e)
{
	struct view amounts, head = view_split(view_of(text), '=', &amounts), after;
	struct view first = view_split(head, '@', &after);
	struct sgn_limit l;

	if (amount_token(a->arena, text, &l, e) < 0)
		return -1;
	const struct sgn_limit *old = find_limit(a, l.chain, l.asset);
	if (old && !memchr(after.p ? after.p : first.p, ':', after.p ? after.n : first.n)) {
		l = (struct sgn_limit){ .chain = l.chain, .asset = l.asset };
		if (amount_limit(a->arena, amounts, old->decimals, &l, e) < 0)
			return -1;
		l.decimals = old->decimals;
		l.symbol = old->symbol;
		l.unlimited_approvals = old->unlimited_approvals;
	}
	return limit_chains(a, l, e);
}

static int take_unlimited(struct allow *a, const char *text, struct err *e)
{
	struct view after, first = view_split(view_of(text), '@', &after), asset;
	struct sgn_limit *l;
	uint64_t chain = 0;

	if ((after.p && amount_chain(first, &chain, e) < 0) ||
	    amount_address(a->arena, after.p ? after : first, &asset, e) < 0)
		return -1;
	if (!(l = find_limit(a, chain, asset)))
		return err_set(e, ERR_INVALID, "--unlimited-approvals %.60s: set a limit with --token first",
			       text);
	for (size_t i = 0; i < a->rules.limits.n; i++) {
		l = &a->rules.limits.items[i];
		l->unlimited_approvals |= view_eq(l->asset, asset) && (!chain || l->chain == chain);
	}
	return 0;
}

static int take_limits(struct allow *a, struct err *e)
{
	struct sgn_limit l;

	for (size_t i = 0; i < a->f->limit.n; i++) {
		struct view amounts, chain = view_split(view_of(a->f->limit.items[i]), '=', &amounts);
		l = (struct sgn_limit){ .asset = rules_edit_native() };
		if (amounts.p && amount_chain(chain, &l.chain, e) < 0)
			return -1;
		if (amount_limit(a->arena, amounts.p ? amounts : chain, AMOUNT_NATIVE, &l, e) < 0 ||
		    limit_chains(a, l, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < a->f->token.n; i++)
		if (take_token(a, a->f->token.items[i], e) < 0)
			return -1;
	for (size_t i = 0; i < a->f->unlimited.n; i++)
		if (take_unlimited(a, a->f->unlimited.items[i], e) < 0)
			return -1;
	return 0;
}

/* ---- addresses ---- */

/* "[CHAIN@]ADDRESS[=NOTE]" */
static int add_address(struct allow *a, struct view text, struct sgn_address_rule one, struct err *e)
{
	struct view note, head = view_split(text, '=', &note), after, first = view_split(head, '@', &after);

	if ((after.p && amount_chain(first, &one.chain, e) < 0) ||
	    amount_address(a->arena, after.p ? after : first, &one.address, e) < 0)
		return -1;
	one.note = note;
	return rules_edit_address(a->arena, &a->rules, &one, e);
}

static int take_addresses(struct allow *a, struct err *e)
{
	const struct json *asked = json_get(json_get(a->manifest, "permissions"), "contracts");
	const struct {
		const struct opt_list *list;
		struct sgn_address_rule rule;
	} given[] = { { &a->f->contract, { 0 } },
		      { &a->f->to, { 0 } },
		      { &a->f->call, { .call = true } },
		      { &a->f->deny, { .deny = true } } };

	if (a->first && !a->f->rules && asked && asked->type == JSON_ARRAY && asked->n) {
		a->rules.only_listed = true;
		for (size_t i = 0; i < asked->n; i++)
			if (add_address(a, asked->items[i].text, (struct sgn_address_rule){ 0 }, e) < 0)
				return err_wrap(e, "permissions.contracts");
	}
	for (size_t k = 0; k < ELEMS(given); k++)
		for (size_t i = 0; i < given[k].list->n; i++)
			if (add_address(a, view_of(given[k].list->items[i]), given[k].rule, e) < 0)
				return -1;
	return 0;
}

/* "[CHAIN@]CONTRACT:TYPE" */
static int take_typed(struct allow *a, const char *text, struct err *e)
{
	struct view after, head = view_split(view_of(text), '@', &after), type;
	struct view contract = view_split(after.p ? after : head, ':', &type);
	struct sgn_typed_rule t = { .primary_type = type };
	uint64_t only = 0;

	if (!type.n)
		return err_set(e, ERR_INVALID, "--typed wants [CHAIN@]CONTRACT:TYPE, not \"%.80s\"", text);
	if ((after.p && amount_chain(head, &only, e) < 0) ||
	    amount_address(a->arena, contract, &t.contract, e) < 0)
		return -1;
	if (only && !has_chain(a, only))
		return err_set(e, ERR_INVALID, "--typed is for chain eip155:%llu, which it may not use",
			       (unsigned long long)only);
	for (size_t i = 0; i < a->rules.wallets.n; i++) {
		t.chain = a->rules.wallets.items[i].chain;
		if ((!only || only == t.chain) && rules_edit_typed(a->arena, &a->rules, &t, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- the rest ---- */

static int take_count(enum rule_field i, uint64_t given, uint32_t *to, struct err *e)
{
	const struct rule_field_row *row = &rule_fields_rows[i];

	if (given > row->max && row->max < UINT32_MAX)
		return err_set(e, ERR_INVALID, "--%s is at most %u%s", row->part, row->max,
			       row->unit == RULE_TIME ? " seconds" : "");
	if (given)
		*to = (uint32_t)MIN(given, (uint64_t)UINT32_MAX);
	return 0;
}

static int take_decisions(struct allow *a, struct err *e)
{
	const struct allow_flags *f = a->f;
	struct sgn_rules *r = &a->rules;
	size_t listed = 0;

#define IN_NUMBER(v)    (v)
#define IN_TIME(v)      (((v) + 999) / 1000)
#define FLAG(name, ...) r->name |= f->name;
#define COUNT(name, json, min, max, usual, sense, scope, unit, ...)                                          \
	if (take_count(RULE_FIELD_##name, IN_##unit(f->name), &r->name, e) < 0)                              \
		return -1;
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	r->paused = f->pause || (r->paused && !f->resume);
	for (size_t i = 0; i < r->addresses.n; i++)
		listed += !r->addresses.items[i].deny;
	if (!f->auto_below)
		return 0;
	if (!listed)
		return err_set(e, ERR_INVALID, "--auto-below needs listed addresses: name them with --to");
	return amount_bytes(a->arena, view_of(f->auto_below), AMOUNT_NATIVE, &r->auto_below, e);
}

int allow_take(struct allow *a, struct err *e)
{
	const struct allow_flags *f = a->f;

	for (size_t i = 0; i < f->reset.n; i++)
		if (strcmp(f->reset.items[i], "all") != 0 &&
		    rules_edit_reset(&a->rules, view_of(f->reset.items[i]), e) < 0)
			return -1;
	for (size_t i = 0; i < f->remove.n; i++)
		if (rules_edit_remove(a->arena, &a->rules, view_of(f->remove.items[i]), e) < 0)
			return -1;
	if (take_chains(a, e) < 0 || take_limits(a, e) < 0 || take_addresses(a, e) < 0)
		return -1;
	for (size_t i = 0; i < f->typed.n; i++)
		if (take_typed(a, f->typed.items[i], e) < 0)
			return -1;
	if (f->window.n)
		a->rules.windows.n = 0;
	for (size_t i = 0; i < f->window.n; i++)
		if (rules_edit_window(a->arena, &a->rules, view_of(f->window.items[i]), e) < 0)
			return -1;
	return take_decisions(a, e);
}
