/*
 * paddock tx limits, spent, status, audit: what may be spent, what was, and what keeps count of it.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "text.h"
#include "u256.h"

#include "poison.h"

/* ---- limits ---- */

static int run_limits(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		      struct err *e)
{
	struct json *answer;

	if (call_once(ctx, &(struct cli_call){ "GET", "agents", operands[0], "/limits" }, &answer, e) < 0)
		return -1;
	return show_json(answer, e);
}

/* ---- spent ---- */

struct spent_flags {
	bool wallet;
};
static const struct opt SPENT_OPTS[] = {
	{ "wallet", 'w', OPT_FLAG, offsetof(struct spent_flags, wallet), NULL,
	  "of all agents together from the wallet with this id" },
};

static const char *const SPENT_TITLES[] = {
	"CHAIN", "ASSET", "24 H", "7 DAYS", "30 DAYS", "EVER", "RESERVED"
};

/* Base units as the asset's own; as they are where nobody knows its decimals. */
static void put_amount(struct buf *out, const struct json *v, uint64_t decimals)
{
	char text[U256_UNITS];
	struct u256 n;

	if (!v || v->type != JSON_STRING || u256_parse(v->text, &n) < 0) {
		buf_putc(out, '-');
		return;
	}
	u256_units(&n, (unsigned)decimals, text);
	buf_puts(out, text);
}

static struct view of_limit(struct show_table *t, const struct json *line, const char *window,
			    uint64_t decimals)
{
	const struct json *limit = json_get(json_get(line, "limit"), window);
	_cleanup_(buf_done) struct buf b = BUF_INIT(512);

	put_amount(&b, json_get(json_get(line, "spent"), window), decimals);
	if (limit && limit->type == JSON_STRING) {
		buf_puts(&b, " / ");
		put_amount(&b, limit, decimals);
	}
	return show_keep(t, buf_view(&b));
}

static void add_line(struct show_table *t, const struct json *line)
{
	const struct json *asset = json_get(line, "asset"), *known = json_get(asset, "decimals"),
			  *fee = json_get(line, "fee");
	_cleanup_(buf_done) struct buf reserved = BUF_INIT(256);
	struct view name = session_text(asset, "symbol");
	uint64_t decimals = 0;

	if (known && (json_to_u64(known, &decimals) < 0 || decimals > U256_UNITS_MAX))
		decimals = 0;
	if (!name.n)
		name = decimals == 18 && view_eq_nocase(session_text(asset, "address"),
							VIEW("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"))
			       ? VIEW("native")
			       : session_text(asset, "address");
	put_amount(&reserved, json_get(line, "reserved"), decimals);
	show_table_add(
		t, (struct view[]){ session_text(line, "chain"), fee && fee->boolean ? VIEW("fees") : name,
				    of_limit(t, line, "day", decimals), of_limit(t, line, "week", decimals),
				    of_limit(t, line, "month", decimals),
				    of_limit(t, line, "lifetime", decimals),
				    show_keep(t, buf_view(&reserved)) });
}

/* Beside what was spent on chains: what its models have cost. */
static int print_ai(const struct json *cost, struct err *e)
{
	static const char *const titles[] = { "MODELS, USD", "TODAY", "7 DAYS", "30 DAYS", "EVER" };
	static const char *const keys[] = { "day", "week", "month", "lifetime" };
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct view cells[ELEMS(titles)] = { VIEW("all") };

	if (!cost || cost->type != JSON_OBJECT)
		return 0;
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; i < ELEMS(keys); i++) {
		const struct json *v = json_get(cost, keys[i]);
		double usd = 0;
		char text[64];
		if (!v || json_to_double(v, &usd) < 0)
			usd = 0;
		snprintf(text, sizeof(text), "%.4f", usd);
		cells[i + 1] = show_keep(&t, view_of(text));
	}
	show_table_add(&t, cells);
	return show_table_print(&t, e);
}

static int run_spent(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	_cleanup_(show_table_done) struct show_table t = { 0 };
	const struct spent_flags *f = flags;
	const struct json *lines;
	struct json *answer;

	if (call_once(ctx,
		      &(struct cli_call){ "GET", f->wallet ? "wallets" : "agents", operands[0], "/spending" },
		      &answer, e) < 0)
		return -1;
	if (ctx->json)
		return show_json(answer, e);
	lines = answer ? json_get(answer, "lines") : NULL;
	show_table_init(&t, SPENT_TITLES, ELEMS(SPENT_TITLES));
	for (size_t i = 0; lines && i < lines->n; i++)
		add_line(&t, &lines->items[i]);
	if (show_table_print(&t, e) < 0)
		return -1;
	return print_ai(answer ? json_get(answer, "ai_cost_usd") : NULL, e);
}

/* ---- status ---- */

static void put_member(struct json_out *o, const char *key, const struct json *v)
{
	json_out_key(o, key);
	if (v)
		json_out_value(o, v);
	else
		json_out_null(o);
}

static int print_all(const struct json *signer, const struct json *wallets, const struct json *chains,
		     struct cmd_ctx *ctx, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4u << 20);
	struct json_out o;
	struct json *all;

	json_out_init(&o, &b);
	json_out_object(&o);
	put_member(&o, "signer", signer);
	put_member(&o, "wallets", json_get(wallets, "wallets"));
	put_member(&o, "chains", json_get(chains, "chains"));
	json_out_end(&o, '}');
	if (b.bad || json_parse(&ctx->arena, buf_view(&b), &all, e) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return show_json(all, e);
}

static const char *const WALLET_TITLES[] = { "WALLET", "KIND", "LABEL", "ADDRESS" };
static const char *const WALLET_FIELDS[] = { "id", "kind", "label", "address" };
static const char *const CHAIN_TITLES[] = { "CHAIN", "NAME", "STATUS", "BLOCK", "UNDER WAY", "ERROR" };
static const char *const CHAIN_FIELDS[] = { "id", "name", "status", "block", "under_way", "error" };

static int run_status(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		      char **operands _unused_, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *signer, *wallets = NULL, *chains;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    call_with(&s, &(struct cli_call){ "GET", "signer" }, &signer, e) < 0 ||
	    call_with(&s, &(struct cli_call){ "GET", "chains" }, &chains, e) < 0)
		return -1;
	const struct json *up = json_get(signer, "available"), *paused = json_get(signer, "paused");
	if (up && up->boolean && call_with(&s, &(struct cli_call){ "GET", "wallets" }, &wallets, e) < 0)
		return -1;
	if (ctx->json)
		return print_all(signer, wallets, chains, ctx, e);
	printf("The signer %s.\n\n", !up || !up->boolean         ? "is not there"
				     : paused && paused->boolean ? "is PAUSED: nothing is signed"
								 : "runs");
	fflush(stdout);
	if (wallets &&
	    show_list(wallets, "wallets", WALLET_TITLES, WALLET_FIELDS, ELEMS(WALLET_FIELDS), e) < 0)
		return -1;
	if (wallets && show_bytes(STDOUT_FILENO, VIEW("\n"), e) < 0)
		return -1;
	return show_list(chains, "chains", CHAIN_TITLES, CHAIN_FIELDS, ELEMS(CHAIN_FIELDS), e);
}

/* ---- audit ---- */

struct audit_flags {
	bool verify;
	uint64_t after;
};
static const struct opt AUDIT_OPTS[] = {
	{ "verify", 0, OPT_FLAG, offsetof(struct audit_flags, verify), NULL,
	  "check the whole chain first; the exit code is 1 if it is broken" },
	{ "after", 0, OPT_COUNT, offsetof(struct audit_flags, after), "N",
	  "only what came behind this entry" },
};
static const char *const AUDIT_TITLES[] = { "N", "AT", "ACTOR", "ACTION", "OBJECT" };
static const char *const AUDIT_FIELDS[] = { "seq", "at", "actor", "action", "object" };

static int run_audit(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	const struct audit_flags *f = flags;
	struct json *answer;
	char where[128];

	snprintf(where, sizeof(where), "signer/audit?limit=500&after=%llu%s", (unsigned long long)f->after,
		 f->verify ? "&verify=true" : "");
	if (call_once(ctx, &(struct cli_call){ "GET", where }, &answer, e) < 0)
		return -1;
	const struct json *checked = json_get(answer, "verified"), *broken = json_get(checked, "broken_at");
	const bool whole = !f->verify || (broken && broken->type == JSON_NULL);
	if (!whole)
		fprintf(stderr, "paddock: the chain of the audit log is broken at entry %.*s\n",
			VIEW_ARG(broken ? broken->text : VIEW("?")));
	if (ctx->json ? show_json(answer, e) < 0
		      : show_list(answer, "entries", AUDIT_TITLES, AUDIT_FIELDS, ELEMS(AUDIT_FIELDS), e) < 0)
		return -1;
	return whole ? 0 : CMD_FAILED;
}

/* ---- the commands ---- */

const struct cmd cmd_tx_limits = {
	.name = "tx limits",
	.operands = "AGENT",
	.summary = "show what an agent may spend, as JSON",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_limits,
};

const struct cmd cmd_tx_spent = {
	.name = "tx spent",
	.operands = "AGENT",
	.summary = "show what an agent has spent, beside its limits",
	.opts = SPENT_OPTS,
	.n_opts = ELEMS(SPENT_OPTS),
	.flags_size = sizeof(struct spent_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_spent,
};

const struct cmd cmd_tx_status = {
	.name = "tx status",
	.operands = "",
	.summary = "show the signer, the wallets and the chains",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_status,
};

const struct cmd cmd_tx_audit = {
	.name = "tx audit",
	.operands = "",
	.summary = "show the signer's audit log, and check it",
	.opts = AUDIT_OPTS,
	.n_opts = ELEMS(AUDIT_OPTS),
	.flags_size = sizeof(struct audit_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_audit,
};
