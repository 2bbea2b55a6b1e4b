/*
 * paddock wallet limits, paddock agent limits: what may be spent. `paddock agent allow` is in cmd_allow.c.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "amount.h"
#include "cmd_allow.h"
#include "owner.h"
#include "rules_edit.h"

#include "poison.h"

struct limits_flags {
	struct owner_flags owner; /* first */
	const char *fee;
	struct opt_list limit, token;
	bool clear;
};

#define AT(member) offsetof(struct limits_flags, member)

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
		l = (struct sgn_limit){ .asset = rules_edit_native() };
		if (!amounts.p)
			return err_set(e, ERR_INVALID, "--limit wants CHAIN=PER_TX[/DAY…], not \"%.60s\"",
				       f->limit.items[i]);
		if (amount_chain(chain, &l.chain, e) < 0 ||
		    amount_limit(a, amounts, AMOUNT_NATIVE, &l, e) < 0 || rules_edit_limit(a, r, &l, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < f->token.n; i++) {
		if (amount_token(a, f->token.items[i], &l, e) < 0)
			return -1;
		if (!l.chain)
			return err_set(e, ERR_INVALID, "--token needs a chain: CHAIN@ADDRESS=…");
		if (rules_edit_limit(a, r, &l, e) < 0)
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
	return cmd_allow_print(ctx, &r, e);
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
	    cmd_allow_agent(ctx, operands[0], &agent, scope, e) < 0 || owner_rules(&o, scope, &r, e) < 0)
		return -1;
	return cmd_allow_print(ctx, &r, e);
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
