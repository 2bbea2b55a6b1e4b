/*
 * paddock agent allow: what an agent may spend, said by the owner. Changes are shown in plain words before
 * they are put; what the options do not name stays.
 */
#include "cmd_allow.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "allow.h"
#include "amount.h"
#include "call.h"
#include "consent.h"
#include "rulejson.h"
#include "password.h"
#include "rules_diff.h"
#include "rules_show.h"

#include "poison.h"

#define TEXT_MAX  (1u << 20)
#define RULES_MAX (256u << 10)

#define AT(member) offsetof(struct allow_flags, member)

/* The options of the plain rules. */
#define OPTION_NUMBER(at) OPT_COUNT, AT(at), "N"
#define OPTION_TIME(at)   OPT_MS, AT(at), "TIME"
#define OPTION_RULE_FLAG(name, words)                                                                        \
	{                                                                                                    \
		name, 0, .help = words, OPTION_REST
#define OPTION_REST(at)                                                                                      \
	.kind = OPT_FLAG, .offset = AT(at)                                                                   \
	}                                                                                                    \
	,
#define OPTION_NO_FLAG(at)

static const struct opt ALLOW_OPTS[] = {
	{ "wallet", 'w', OPT_TEXT, AT(wallet), "WALLET", "what it spends from: an id or a label" },
	{ "rules", 0, OPT_TEXT, AT(rules), "FILE",
	  "take what `agent limits --json` writes, changed; -: standard input" },
	{ "chain", 0, OPT_LIST, AT(chain), "CHAIN",
	  "add this chain of its manifest; may be repeated (the first time: all of them)" },
	{ "limit", 0, OPT_LIST, AT(limit), "[CHAIN=]PER_TX[/DAY[/WEEK[/MONTH[/LIFETIME]]]]",
	  "of the native asset, instead of the manifest's (0.1, 50gwei, 1000wei)" },
	{ "token", 0, OPT_LIST, AT(token), "[CHAIN@]ADDRESS[:DECIMALS[:SYMBOL]]=PER_TX[/DAY…]",
	  "of a token, in base units or with these decimals; the symbol is for people" },
	{ "unlimited-approvals", 0, OPT_LIST, AT(unlimited), "[CHAIN@]ADDRESS",
	  "of a token that has a limit: approvals without an end, counted as one transaction" },
	{ "to", 0, OPT_LIST, AT(to), "[CHAIN@]ADDRESS[=NOTE]", "list a recipient; may be repeated" },
	{ "contract", 0, OPT_LIST, AT(contract), "[CHAIN@]ADDRESS[=NOTE]",
	  "list a contract beside those of its manifest; may be repeated" },
	{ "call", 0, OPT_LIST, AT(call), "[CHAIN@]ADDRESS[=NOTE]",
	  "list a contract that it may also call in ways that the signer cannot understand" },
	{ "deny", 0, OPT_LIST, AT(deny), "[CHAIN@]ADDRESS[=NOTE]", "forbid an address; may be repeated" },
	{ "typed", 0, OPT_LIST, AT(typed), "[CHAIN@]CONTRACT:TYPE",
	  "let it sign typed data that cannot be decoded, of this contract and type" },
	{ "auto-below", 0, OPT_TEXT, AT(auto_below), "AMOUNT",
	  "ask nobody up to this much of the native asset, to listed addresses" },
#define FLAG(...)
#define COUNT(name, json, min, max, usual, sense, scope, unit, kept, flag, help, ...)                        \
	{ flag, 0, OPTION_##unit(name), help },
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	{ "window", 0, OPT_LIST, AT(window), "DAYS@HH:MM-HH:MM",
	  "when it may spend, UTC (mon-fri@09:00-17:00); all that are given replace those before" },
#define FLAG(name, sense, scope, part, flag, ...) OPTION_##flag(name)
#define COUNT(...)
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	{ "remove", 0, OPT_LIST, AT(remove), "ADDRESS|CHAIN",
	  "take everything about an address or a chain out of the rules; may be repeated" },
	{ "reset", 0, OPT_LIST, AT(reset), "NAME",
	  "back to the default: limits, addresses, typed, windows, messages, approvers, …; all: begin anew "
	  "with the manifest" },
	{ "pause", 0, OPT_FLAG, AT(pause), NULL, "sign nothing for it any more; its rules stay" },
	{ "resume", 0, OPT_FLAG, AT(resume), NULL, "end its pause; its rules stay" },
	{ "yes", 'y', OPT_FLAG, AT(yes), NULL, "without a question" },
};

int cmd_allow_agent(struct cmd_ctx *ctx, const char *name, struct json **ret, char scope[96], struct err *e)
{
	if (call_once(ctx, &(struct cli_call){ "GET", "agents", name }, ret, e) < 0)
		return -1;
	struct view id = session_text(*ret, "id");
	if (!id.n || id.n > 64)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no id");
	snprintf(scope, 96, "agent:%.*s", VIEW_ARG(id));
	return 0;
}

int cmd_allow_print(struct cmd_ctx *ctx, const struct sgn_rules *r, struct err *e)
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

/* ---- --rules ---- */

/* Wallets may be named by their labels there, too. */
static int read_rules(struct allow *a, struct owner *o, struct err *e)
{
	struct buf text = BUF_INIT(RULES_MAX);
	struct json *doc = NULL;
	int r = password_slurp(a->f->rules, &text, e);

	struct view kept = r < 0 ? VIEW_NONE : arena_view(a->arena, buf_view(&text));
	buf_done(&text);
	if (r < 0)
		return -1;
	if (!kept.p || json_parse(a->arena, kept, &doc, e) < 0 ||
	    rulejson_whole(a->arena, doc, &a->rules, e) < 0)
		return err_wrap(e, "%.100s", a->f->rules);
	for (size_t i = 0; i < a->rules.wallets.n; i++) {
		struct sgn_wallet w;
		char name[80];
		if (view_to_str(a->rules.wallets.items[i].wallet, name, sizeof(name)) < 0)
			return err_set(e, ERR_INVALID, "%.100s: the name of a wallet is too long",
				       a->f->rules);
		if (owner_wallet(o, name, &w, e) < 0)
			return -1;
		a->rules.wallets.items[i].wallet = w.id;
	}
	return 0;
}

/* ---- what is shown, and asked ---- */

static void say_wallets(struct buf *out, const struct sgn_rules *r, const struct sgn_wallet_list_reply *list)
{
	for (size_t i = 0; i < list->wallets.n; i++) {
		const struct sgn_wallet *w = &list->wallets.items[i];
		bool used = false;
		char address[ADDRESS_TEXT] = "";
		for (size_t k = 0; k < r->wallets.n; k++)
			used |= view_eq(r->wallets.items[k].wallet, w->id);
		if (!used)
			continue;
		if (w->address.n == ADDRESS_SIZE)
			address_text((const uint8_t *)w->address.p, address);
		buf_puts(out, " with the wallet ");
		(void)!show_clean(out, w->label);
		buf_printf(out, " (%s)", address);
	}
}

/* 1: something changes. */
static int say(const struct allow *a, struct owner *o, const struct sgn_rules *was, struct view name,
	       struct err *e)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX), lines = BUF_INIT(TEXT_MAX);
	const struct rules_diff d = rules_diff(&lines, was, &a->rules);
	struct sgn_wallet_list_reply list;

	if (owner_call(o, SGN_SIGNER_TYPE_WALLET_LIST, &sgn_wallet_list_msg, &(struct sgn_wallet_list){ 0 },
		       &sgn_wallet_list_reply_msg, &list, e) < 0)
		return -1;
	buf_puts(&out, "Agent ");
	(void)!show_clean(&out, name);
	say_wallets(&out, &a->rules, &list);
	buf_puts(&out, ":\n");
	if (!d.n)
		buf_puts(&out, "Nothing changes.\n");
	else if (was->wallets.n)
		buf_printf(&out, "%s\n%.*sEverything else stays as it is.\n",
			   d.looser ? "What changes (! allows more than before):"
				    : "What changes, all of it stricter:",
			   VIEW_ARG(buf_view(&lines)));
	else
		rules_show_agent(&out, &a->rules);
	if (out.bad || lines.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return show_bytes(STDERR_FILENO, buf_view(&out), e) < 0 ? -1 : d.n > 0;
}

static bool begins_anew(const struct allow_flags *f, const struct sgn_rules *was)
{
	for (size_t i = 0; i < f->reset.n; i++)
		if (strcmp(f->reset.items[i], "all") == 0)
			return true;
	return !was->wallets.n;
}

static int change(struct allow *a, struct cmd_ctx *ctx, struct owner *o, const char *scope, struct view name,
		  struct err *e)
{
	struct sgn_rules was;
	struct sgn_wallet w = { 0 };

	/* Twice: one of them is changed. */
	if (owner_rules(o, scope, &was, e) < 0 || owner_rules(o, scope, &a->rules, e) < 0 ||
	    (a->f->wallet && owner_wallet(o, a->f->wallet, &w, e) < 0))
		return -1;
	a->wallet = w.id;
	a->first = begins_anew(a->f, &was);
	if (a->first)
		a->rules = (struct sgn_rules){ .scope = view_of(scope), .paused = was.paused };
	if ((a->f->rules && read_rules(a, o, e) < 0) || allow_take(a, e) < 0)
		return -1;
	if (a->first && !a->f->rules && !a->rules.limits.n)
		return err_set(e, ERR_INVALID,
			       "its manifest names no spending_limits: say how much, with --limit "
			       "0.1/1 or --token");
	int changes = say(a, o, &was, name, e);
	if (changes < 0 || (changes && (consent_ask(a->f->yes, "Allow this?", e) < 0 ||
					owner_put_rules(o, &a->rules, e) < 0)))
		return -1;
	return ctx->json ? cmd_allow_print(ctx, &a->rules, e) : 0;
}

/* What was there stays, but for the pause. */
static int change_pause(struct allow *a, struct cmd_ctx *ctx, struct owner *o, const char *scope,
			struct err *e)
{
	if (owner_rules(o, scope, &a->rules, e) < 0)
		return -1;
	if (!a->rules.wallets.n)
		return err_set(e, ERR_STATE, "nothing was allowed to it yet: name a wallet with --wallet");
	a->rules.paused = a->f->pause;
	return owner_put_rules(o, &a->rules, e) < 0 ? -1 : cmd_allow_print(ctx, &a->rules, e);
}

/* Whether nothing but --pause or --resume was given, and what does not change rules. */
static bool only_pause(const struct allow_flags *f)
{
	struct allow_flags rest;
	static const struct allow_flags none;

	memcpy(&rest, f, sizeof(rest)); /* with what lies between the members: it was zeroed */
	rest.owner = none.owner;
	rest.pause = rest.resume = rest.yes = false;
	return (f->pause || f->resume) && memcmp(&rest, &none, sizeof(rest)) == 0;
}

static int run_allow(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	_cleanup_(owner_done) struct owner o = OWNER_INIT;
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct allow a = { .arena = &ctx->arena, .f = flags };
	struct owner_flags to = a.f->owner;
	struct json *agent;
	char scope[96];

	to.session = &ctx->session;
	if (a.f->pause && a.f->resume)
		return err_set(e, ERR_INVALID, "--pause and --resume together mean nothing");
	if (a.f->rules && strcmp(a.f->rules, "-") == 0 && !a.f->yes)
		return err_set(e, ERR_INVALID,
			       "rules from standard input need --yes: it cannot be asked there");
	if (owner_open(&o, &to, &ctx->arena, e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    owner_same(&o, &s, e) < 0 || cmd_allow_agent(ctx, operands[0], &agent, scope, e) < 0)
		return -1;
	a.manifest = json_get(agent, "manifest");
	return only_pause(a.f) ? change_pause(&a, ctx, &o, scope, e)
			       : change(&a, ctx, &o, scope, session_text(agent, "name"), e);
}

const struct cmd cmd_agent_allow = {
	.name = "agent allow",
	.operands = "AGENT",
	.summary = "say what an agent may spend, and from which wallet",
	.help = "The first time it takes chains, contracts and limits from the manifest of an installed "
		"agent\n"
		"and what the options say. Later it changes what the options name, and everything else "
		"stays.\n"
		"It shows in plain words what changes, with ! before what allows more than before, and "
		"asks.\n"
		"It needs root on the daemon's machine: by the API rules can only be made stricter.",
	.opts = ALLOW_OPTS,
	.n_opts = ELEMS(ALLOW_OPTS),
	.more = owner_opts,
	.n_more = OWNER_OPTS,
	.flags_size = sizeof(struct allow_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_allow,
};
