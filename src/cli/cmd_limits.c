/*
 * paddock wallet limits, paddock agent allow, paddock agent limits: what may be spent, said by the owner.
 * Rules are shown in plain words before they are put.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "amount.h"
#include "call.h"
#include "consent.h"
#include "num.h"
#include "owner.h"
#include "rules_show.h"

#include "poison.h"

#define LISTS_MAX 512
#define TEXT_MAX  (1u << 20)

struct limits_flags {
	struct owner_flags owner; /* first */
	const char *wallet, *fee, *auto_below;
	struct opt_list limit, token, chain, contract, call, to;
	uint64_t approvers, max_pending, suspend_after, expiry_ms, cool_down_ms;
	bool yes, clear, only_listed, messages, creation, dangerous, simulation, pause, resume;
};

#define AT(member) offsetof(struct limits_flags, member)

static int print_rules(struct cmd_ctx *ctx, const struct sgn_rules *r, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
	struct json_out o;

	if (ctx->json) {
		json_out_init(&o, &out);
		rules_show_json(&o, r);
		buf_putc(&out, '\n');
	} else if (view_starts(r->scope, "agent:")) {
		rules_show_agent(&out, r);
	} else {
		rules_show_wallet(&out, r);
	}
	return out.bad ? err_set(e, ERR_INTERNAL, "out of memory")
		       : show_bytes(STDOUT_FILENO, buf_view(&out), e);
}

/* Takes the place of the one for the same asset. */
static int set_limit(struct arena *a, struct sgn_rules *r, const struct sgn_limit *l, struct err *e)
{
	struct sgn_limit *items = r->limits.items;

	for (size_t i = 0; i < r->limits.n; i++)
		if (items[i].chain == l->chain && view_eq(items[i].asset, l->asset)) {
			items[i] = *l;
			return 0;
		}
	items = r->limits.n < LISTS_MAX ? arena_array(a, r->limits.n + 1, sizeof(*items)) : NULL;
	if (!items)
		return err_set(e, ERR_TOO_LARGE, "too many limits");
	if (r->limits.n)
		memcpy(items, r->limits.items, r->limits.n * sizeof(*items));
	items[r->limits.n++] = *l;
	r->limits.items = items;
	return 0;
}

static struct view native(void)
{
	return (struct view){ (const char *)address_native, ADDRESS_SIZE };
}

/* ---- wallet limits ---- */

static const struct opt WALLET_OPTS[] = {
	{ "limit", 0, OPT_LIST, AT(limit), "CHAIN=PER_TX[/DAY[/WEEK[/MONTH[/LIFETIME]]]]",
	  "of the native asset on a chain (0.1, 50gwei, 1000wei); may be repeated" },
	{ "token", 0, OPT_LIST, AT(token), "CHAIN@ADDRESS[:DECIMALS[:SYMBOL]]=PER_TX[/DAY…]",
	  "of a token, in base units or with these decimals; the symbol is for people" },
	{ "fee", 0, OPT_TEXT, AT(fee), "PER_TX[/DAY]", "of fees (default of a new wallet: 0.01/0.1)" },
	{ "clear", 0, OPT_FLAG, AT(clear), NULL,
	  "remove the limits that there are, before those named here" },
};

static int apply_wallet(struct arena *a, const struct limits_flags *f, struct sgn_rules *r, struct err *e)
{
	struct sgn_limit l;

	if (f->clear)
		r->limits.n = 0;
	for (size_t i = 0; i < f->limit.n; i++) {
		struct view amounts, chain = view_split(view_of(f->limit.items[i]), '=', &amounts);
		l = (struct sgn_limit){ .asset = native() };
		if (!amounts.p)
			return err_set(e, ERR_INVALID, "--limit wants CHAIN=PER_TX[/DAY…], not \"%.60s\"",
				       f->limit.items[i]);
		if (amount_chain(chain, &l.chain, e) < 0 ||
		    amount_limit(a, amounts, AMOUNT_NATIVE, &l, e) < 0 || set_limit(a, r, &l, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < f->token.n; i++) {
		if (amount_token(a, f->token.items[i], &l, e) < 0)
			return -1;
		if (!l.chain)
			return err_set(e, ERR_INVALID, "--token needs a chain: CHAIN@ADDRESS=…");
		if (set_limit(a, r, &l, e) < 0)
			return -1;
	}
	if (!f->fee)
		return 0;
	struct view day, per_tx = view_split(view_of(f->fee), '/', &day);
	if (amount_bytes(a, per_tx, AMOUNT_NATIVE, &r->fee_per_tx, e) < 0)
		return -1;
	return day.p ? amount_bytes(a, day, AMOUNT_NATIVE, &r->fee_day, e) : 0;
}

static int run_wallet(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	const struct limits_flags *f = flags;
	struct sgn_wallet w;
	struct sgn_rules r;
	char scope[96];

	if (owner_open(&o, &f->owner, &ctx->arena, e) < 0 || owner_wallet(&o, operands[0], &w, e) < 0)
		return -1;
	snprintf(scope, sizeof(scope), "wallet:%.*s", VIEW_ARG(w.id));
	if (owner_rules(&o, scope, &r, e) < 0 || apply_wallet(&ctx->arena, f, &r, e) < 0)
		return -1;
	if ((f->clear || f->limit.n || f->token.n || f->fee) && owner_put_rules(&o, &r, e) < 0)
		return -1;
	return print_rules(ctx, &r, e);
}

const struct cmd cmd_wallet_limits = {
	.name = "wallet limits",
	.operands = "WALLET",
	.summary = "show or set what all agents of a wallet may spend together",
	.opts = WALLET_OPTS,
	.n_opts = ELEMS(WALLET_OPTS),
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct limits_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.json = true,
	.run = run_wallet,
};

/* ---- agent allow ---- */

static const struct opt ALLOW_OPTS[] = {
	{ "wallet", 'w', OPT_TEXT, AT(wallet), "WALLET", "what it spends from: an id or a label" },
	{ "chain", 0, OPT_LIST, AT(chain), "CHAIN",
	  "only on this chain of its manifest; may be repeated (default: all of them)" },
	{ "limit", 0, OPT_LIST, AT(limit), "[CHAIN=]PER_TX[/DAY[/WEEK[/MONTH[/LIFETIME]]]]",
	  "of the native asset, instead of the manifest's (0.1, 50gwei, 1000wei)" },
	{ "token", 0, OPT_LIST, AT(token), "[CHAIN@]ADDRESS[:DECIMALS[:SYMBOL]]=PER_TX[/DAY…]",
	  "of a token, in base units or with these decimals; the symbol is for people" },
	{ "to", 0, OPT_LIST, AT(to), "ADDRESS", "list a recipient; may be repeated" },
	{ "contract", 0, OPT_LIST, AT(contract), "ADDRESS",
	  "list a contract beside those of its manifest; may be repeated" },
	{ "call", 0, OPT_LIST, AT(call), "ADDRESS",
	  "list a contract that it may also call in ways that the signer cannot understand" },
	{ "only-listed", 0, OPT_FLAG, AT(only_listed), NULL,
	  "nothing to other addresses (default: if the manifest names contracts)" },
	{ "auto-below", 0, OPT_TEXT, AT(auto_below), "AMOUNT",
	  "ask nobody up to this much of the native asset, to listed addresses" },
	{ "approvers", 0, OPT_COUNT, AT(approvers), "N",
	  "how many different people must approve (default: 1)" },
	{ "max-pending", 0, OPT_COUNT, AT(max_pending), "N", "requests that may wait at once (default: 5)" },
	{ "expiry", 0, OPT_MS, AT(expiry_ms), "TIME", "how long a request waits for people (default: 5m)" },
	{ "cool-down", 0, OPT_MS, AT(cool_down_ms), "TIME",
	  "how long the first transfer to a new recipient is held back" },
	{ "suspend-after", 0, OPT_COUNT, AT(suspend_after), "N", "pause it after N refusals within an hour" },
	{ "allow-messages", 0, OPT_FLAG, AT(messages), NULL, "let it ask for signatures of messages" },
	{ "allow-creation", 0, OPT_FLAG, AT(creation), NULL, "let it create contracts" },
	{ "allow-dangerous", 0, OPT_FLAG, AT(dangerous), NULL,
	  "let it ask for operators, ownership and upgrades, always with a person" },
	{ "require-simulation", 0, OPT_FLAG, AT(simulation), NULL, "refuse what cannot be simulated" },
	{ "pause", 0, OPT_FLAG, AT(pause), NULL, "sign nothing for it any more; its rules stay" },
	{ "resume", 0, OPT_FLAG, AT(resume), NULL, "end its pause; its rules stay" },
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};

struct allow {
	struct cmd_ctx *ctx;
	const struct limits_flags *f;
	const struct json *manifest;
	struct sgn_rules rules;
};

static int add_wallet(struct allow *a, uint64_t chain, struct view wallet, struct err *e)
{
	struct sgn_agent_wallet *items = a->rules.wallets.items;

	for (size_t i = 0; i < a->rules.wallets.n; i++)
		if (items[i].chain == chain)
			return 0;
	items = a->rules.wallets.n < LISTS_MAX
			? arena_array(&a->ctx->arena, a->rules.wallets.n + 1, sizeof(*items))
			: NULL;
	if (!items)
		return err_set(e, ERR_TOO_LARGE, "too many chains");
	if (a->rules.wallets.n)
		memcpy(items, a->rules.wallets.items, a->rules.wallets.n * sizeof(*items));
	items[a->rules.wallets.n++] = (struct sgn_agent_wallet){ chain, wallet };
	a->rules.wallets.items = items;
	return 0;
}

/* Those of --chain, which the manifest must ask for, or all that it asks for. */
static int take_chains(struct allow *a, struct view wallet, struct err *e)
{
	const struct json *asked = json_get(json_get(a->manifest, "permissions"), "chains");
	uint64_t chain, wished;

	for (size_t i = 0; i < a->f->chain.n; i++) {
		bool found = false;
		if (amount_chain(view_of(a->f->chain.items[i]), &wished, e) < 0)
			return -1;
		for (size_t k = 0; asked && k < asked->n && asked->type == JSON_ARRAY; k++)
			found |= amount_chain(asked->items[k].text, &chain, e) == 0 && chain == wished;
		if (!found)
			return err_set(e, ERR_INVALID, "its manifest does not ask for chain eip155:%llu",
				       (unsigned long long)wished);
		if (add_wallet(a, wished, wallet, e) < 0)
			return -1;
	}
	for (size_t i = 0; !a->f->chain.n && asked && asked->type == JSON_ARRAY && i < asked->n; i++)
		if (amount_chain(asked->items[i].text, &chain, e) < 0 || add_wallet(a, chain, wallet, e) < 0)
			return -1;
	if (!a->rules.wallets.n)
		return err_set(e, ERR_INVALID, "its manifest asks for no chain: it has nothing to spend on");
	return 0;
}

static bool has_chain(const struct allow *a, uint64_t chain)
{
	for (size_t i = 0; i < a->rules.wallets.n; i++)
		if (a->rules.wallets.items[i].chain == chain)
			return true;
	return false;
}

/* On one chain, or (0) on all of them. */
static int limit_chains(struct allow *a, struct sgn_limit l, struct err *e)
{
	uint64_t only = l.chain;

	if (only && !has_chain(a, only))
		return err_set(e, ERR_INVALID, "a limit is for chain eip155:%llu, which it may not use",
			       (unsigned long long)only);
	for (size_t i = 0; i < a->rules.wallets.n; i++) {
		l.chain = a->rules.wallets.items[i].chain;
		if ((!only || only == l.chain) && set_limit(&a->ctx->arena, &a->rules, &l, e) < 0)
			return -1;
	}
	return 0;
}

static int take_manifest_limits(struct allow *a, struct err *e)
{
	const struct json *asked = json_get(a->manifest, "spending_limits");
	struct sgn_limit l = { .asset = native() };
	struct {
		const char *name;
		struct view *to;
	} const parts[] = { { "per_transaction", &l.per_tx },
			    { "daily", &l.day },
			    { "weekly", &l.week },
			    { "monthly", &l.month } };

	for (size_t i = 0; i < ELEMS(parts); i++) {
		struct view v = session_text(asked, parts[i].name);
		if (v.n && amount_bytes(&a->ctx->arena, v, AMOUNT_NATIVE, parts[i].to, e) < 0)
			return err_wrap(e, "spending_limits.%s", parts[i].name);
	}
	if (!l.per_tx.n) /* the smallest of the others holds for one transaction too */
		l.per_tx = l.day.n ? l.day : l.week.n ? l.week : l.month;
	return l.per_tx.n ? limit_chains(a, l, e) : 0;
}

static int take_limits(struct allow *a, struct err *e)
{
	struct arena *m = &a->ctx->arena;
	struct sgn_limit l;

	for (size_t i = 0; i < a->f->limit.n; i++) {
		struct view amounts, chain = view_split(view_of(a->f->limit.items[i]), '=', &amounts);
		l = (struct sgn_limit){ .asset = native() };
		if (amounts.p && amount_chain(chain, &l.chain, e) < 0)
			return -1;
		if (amount_limit(m, amounts.p ? amounts : chain, AMOUNT_NATIVE, &l, e) < 0 ||
		    limit_chains(a, l, e) < 0)
			return -1;
	}
	if (!a->f->limit.n && take_manifest_limits(a, e) < 0)
		return -1;
	for (size_t i = 0; i < a->f->token.n; i++)
		if (amount_token(m, a->f->token.items[i], &l, e) < 0 || limit_chains(a, l, e) < 0)
			return -1;
	return 0;
}

static int add_address(struct allow *a, struct view text, bool call, struct err *e)
{
	struct sgn_address_rule *items =
		a->rules.addresses.n < LISTS_MAX
			? arena_array(&a->ctx->arena, a->rules.addresses.n + 1, sizeof(*items))
			: NULL;
	struct sgn_address_rule one = { .call = call };

	if (!items)
		return err_set(e, ERR_TOO_LARGE, "too many addresses");
	if (amount_address(&a->ctx->arena, text, &one.address, e) < 0)
		return -1;
	for (size_t i = 0; i < a->rules.addresses.n; i++) {
		struct sgn_address_rule *old = &a->rules.addresses.items[i];
		if (view_eq(old->address, one.address)) {
			old->call |= call;
			return 0;
		}
		items[i] = *old;
	}
	items[a->rules.addresses.n++] = one;
	a->rules.addresses.items = items;
	return 0;
}

static int take_addresses(struct allow *a, struct err *e)
{
	const struct json *asked = json_get(json_get(a->manifest, "permissions"), "contracts");
	const struct {
		const struct opt_list *list;
		bool call;
	} given[] = { { &a->f->contract, false }, { &a->f->to, false }, { &a->f->call, true } };

	a->rules.only_listed = a->f->only_listed || (asked && asked->n > 0);
	for (size_t i = 0; asked && asked->type == JSON_ARRAY && i < asked->n; i++)
		if (add_address(a, asked->items[i].text, false, e) < 0)
			return err_wrap(e, "permissions.contracts");
	for (size_t k = 0; k < ELEMS(given); k++)
		for (size_t i = 0; i < given[k].list->n; i++)
			if (add_address(a, view_of(given[k].list->items[i]), given[k].call, e) < 0)
				return -1;
	return 0;
}

static int take_rest(struct allow *a, struct err *e)
{
	const struct limits_flags *f = a->f;
	struct sgn_rules *r = &a->rules;

	if (f->approvers > 16 || f->max_pending > UINT32_MAX || f->suspend_after > UINT32_MAX)
		return err_set(e, ERR_INVALID, "a number is too large (--approvers: at most 16)");
	r->approvers = (uint32_t)f->approvers;
	r->max_pending = (uint32_t)f->max_pending;
	r->suspend_after = (uint32_t)f->suspend_after;
	r->expiry_s = (uint32_t)MIN((f->expiry_ms + 999) / 1000, (uint64_t)UINT32_MAX);
	r->cool_down_s = (uint32_t)MIN((f->cool_down_ms + 999) / 1000, (uint64_t)UINT32_MAX);
	r->allow_messages = f->messages;
	r->allow_creation = f->creation;
	r->allow_dangerous = f->dangerous;
	r->require_simulation = f->simulation;
	if (!f->auto_below)
		return 0;
	if (!r->addresses.n)
		return err_set(e, ERR_INVALID, "--auto-below needs listed addresses: name them with --to");
	return amount_bytes(&a->ctx->arena, view_of(f->auto_below), AMOUNT_NATIVE, &r->auto_below, e);
}

static int say_allow(const struct allow *a, const struct sgn_wallet *w, struct view name, struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
	char address[ADDRESS_TEXT] = "";

	if (w->address.n == ADDRESS_SIZE)
		address_text((const uint8_t *)w->address.p, address);
	buf_puts(&out, "Agent ");
	(void)!show_clean(&out, name);
	buf_puts(&out, " with the wallet ");
	(void)!show_clean(&out, w->label);
	buf_printf(&out, " (%s):\n", address);
	rules_show_agent(&out, &a->rules);
	return out.bad ? err_set(e, ERR_INTERNAL, "out of memory")
		       : show_bytes(STDERR_FILENO, buf_view(&out), e);
}

/* What was there stays, but for the pause. */
static int change_pause(struct allow *a, struct owner *o, const char *scope, struct err *e)
{
	if (owner_rules(o, scope, &a->rules, e) < 0)
		return -1;
	if (!a->rules.wallets.n)
		return err_set(e, ERR_STATE, "nothing was allowed to it yet: name a wallet with --wallet");
	a->rules.paused = a->f->pause;
	return owner_put_rules(o, &a->rules, e) < 0 ? -1 : print_rules(a->ctx, &a->rules, e);
}

static int allow_anew(struct allow *a, struct owner *o, const char *scope, const struct json *agent,
		      struct err *e)
{
	struct sgn_rules before;
	struct sgn_wallet w;

	if (owner_wallet(o, a->f->wallet, &w, e) < 0 || owner_rules(o, scope, &before, e) < 0)
		return -1;
	a->rules = (struct sgn_rules){ .scope = view_of(scope),
				       .paused = a->f->pause || (before.paused && !a->f->resume) };
	if (take_chains(a, w.id, e) < 0 || take_limits(a, e) < 0 || take_addresses(a, e) < 0 ||
	    take_rest(a, e) < 0)
		return -1;
	if (!a->rules.limits.n)
		return err_set(e, ERR_INVALID,
			       "its manifest names no spending_limits: say how much, with --limit "
			       "0.1/1 or --token");
	if (say_allow(a, &w, session_text(agent, "name"), e) < 0 ||
	    consent_ask(a->f->yes, "Allow this?", e) < 0 || owner_put_rules(o, &a->rules, e) < 0)
		return -1;
	return a->ctx->json ? print_rules(a->ctx, &a->rules, e) : 0;
}

static int find_agent(struct cmd_ctx *ctx, const char *name, struct json **ret, char scope[96], struct err *e)
{
	if (call_once(ctx, &(struct cli_call){ "GET", "agents", name }, ret, e) < 0)
		return -1;
	struct view id = session_text(*ret, "id");
	if (!id.n || id.n > 64)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no id");
	snprintf(scope, 96, "agent:%.*s", VIEW_ARG(id));
	return 0;
}

static int run_allow(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	struct allow a = { .ctx = ctx, .f = flags };
	struct json *agent;
	char scope[96];

	if (a.f->pause && a.f->resume)
		return err_set(e, ERR_INVALID, "--pause and --resume together mean nothing");
	if (!a.f->wallet && !a.f->pause && !a.f->resume)
		return err_set(e, ERR_INVALID, "which wallet does it spend from? Name it with --wallet");
	if (owner_open(&o, &a.f->owner, &ctx->arena, e) < 0 ||
	    find_agent(ctx, operands[0], &agent, scope, e) < 0)
		return -1;
	a.manifest = json_get(agent, "manifest");
	return a.f->wallet ? allow_anew(&a, &o, scope, agent, e) : change_pause(&a, &o, scope, e);
}

const struct cmd cmd_agent_allow = {
	.name = "agent allow",
	.operands = "AGENT",
	.summary = "say what an agent may spend, and from which wallet",
	.help = "Takes chains, contracts and limits from the manifest of an installed agent, and what the\n"
		"options say; shows it in plain words, asks, and puts it in the place of what was allowed\n"
		"before. It needs root on the daemon's machine: by the API rules can only be made stricter.",
	.opts = ALLOW_OPTS,
	.n_opts = ELEMS(ALLOW_OPTS),
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct limits_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_allow,
};

/* ---- agent limits ---- */

static int run_limits(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	const struct limits_flags *f = flags;
	struct json *agent;
	struct sgn_rules r;
	char scope[96];

	if (owner_open(&o, &f->owner, &ctx->arena, e) < 0 ||
	    find_agent(ctx, operands[0], &agent, scope, e) < 0 || owner_rules(&o, scope, &r, e) < 0)
		return -1;
	return print_rules(ctx, &r, e);
}

const struct cmd cmd_agent_limits = {
	.name = "agent limits",
	.operands = "AGENT",
	.summary = "show what an agent may spend",
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct limits_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_limits,
};
