/*
 * Rules: checked when they are set, stored as they came, and turned into what the policy reads. A peer other
 * than the owner may only make them stricter.
 */
#include <errno.h>

#include "hexjson.h"
#include "signer.h"
#include "text.h"

#include "poison.h"

#define BODY_MAX (256u * 1024)
#define LIST_MAX 1024
#define ID_MAX   64
#define NOTE_MAX 200

static int invalid(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "rules: %s", what);
}

/* 0 bytes: absent. */
static int read_amount(struct view v, struct policy_amount *ret)
{
	if (v.n != 0 && v.n != U256_BYTES)
		return -EINVAL;
	*ret = (struct policy_amount){ .set = v.n != 0 };
	return u256_load_view(v, &ret->v);
}

/* What people read as the name of an asset. ASCII: no letter looks like another's. */
static bool is_symbol(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= ' ' || v.p[i] > '~')
			return false;
	return v.n <= POLICY_SYMBOL;
}

static int read_limits(struct arena *a, const struct sgn_rules *w, struct policy_rules *r, struct err *e)
{
	struct policy_limit *out = arena_array(a, w->limits.n, sizeof(*out));

	for (size_t i = 0; out && i < w->limits.n; i++) {
		const struct sgn_limit *l = &w->limits.items[i];
		struct policy_amount per_tx;
		if (l->chain == 0 || l->chain > INT64_MAX || l->asset.n != ADDRESS_SIZE ||
		    read_amount(l->per_tx, &per_tx) < 0 || u256_is_zero(&per_tx.v) ||
		    read_amount(l->day, &out[i].window[LEDGER_DAY]) < 0 ||
		    read_amount(l->week, &out[i].window[LEDGER_WEEK]) < 0 ||
		    read_amount(l->month, &out[i].window[LEDGER_MONTH]) < 0 ||
		    read_amount(l->lifetime, &out[i].lifetime) < 0)
			return invalid(e,
				       "a limit has a chain, an asset of 20 bytes and amounts of 32 bytes");
		out[i].chain = l->chain;
		out[i].per_tx = per_tx.v;
		out[i].unlimited_approvals = l->unlimited_approvals;
		out[i].decimals = l->decimals;
		out[i].symbol = l->symbol;
		if (l->decimals > U256_UNITS_MAX || !is_symbol(l->symbol))
			return invalid(
				e,
				"an asset has at most 36 decimals and a name of 16 visible ASCII characters");
		memcpy(out[i].asset, l->asset.p, ADDRESS_SIZE);
		for (size_t k = 0; k < i; k++)
			if (out[k].chain == out[i].chain && address_eq(out[k].asset, out[i].asset))
				return invalid(e, "two limits for one asset");
	}
	r->limits = out;
	r->n_limits = w->limits.n;
	return out ? 0 : invalid(e, "too many limits");
}

static int read_addresses(struct arena *a, const struct sgn_rules *w, struct policy_rules *r, struct err *e)
{
	struct policy_address *out = arena_array(a, w->addresses.n, sizeof(*out));

	for (size_t i = 0; out && i < w->addresses.n; i++) {
		const struct sgn_address_rule *x = &w->addresses.items[i];
		if (x->address.n != ADDRESS_SIZE || x->note.n > NOTE_MAX || !text_is_utf8(x->note) ||
		    (x->deny && x->call))
			return invalid(e, "an address has 20 bytes and a note of at most 200");
		out[i] = (struct policy_address){ .chain = x->chain, .deny = x->deny, .call = x->call };
		memcpy(out[i].address, x->address.p, ADDRESS_SIZE);
	}
	r->addresses = out;
	r->n_addresses = w->addresses.n;
	return out ? 0 : invalid(e, "too many addresses");
}

static int read_rest(struct arena *a, const struct sgn_rules *w, struct policy_rules *r, struct err *e)
{
	struct policy_typed *typed = arena_array(a, w->typed.n, sizeof(*typed));
	struct policy_window *windows = arena_array(a, w->windows.n, sizeof(*windows));

	for (size_t i = 0; typed && i < w->typed.n; i++) {
		const struct sgn_typed_rule *t = &w->typed.items[i];
		if (t->contract.n != ADDRESS_SIZE || t->chain == 0 || t->primary_type.n < 1 ||
		    t->primary_type.n > ID_MAX)
			return invalid(e, "typed data is allowed by chain, contract and type");
		typed[i] = (struct policy_typed){ .chain = t->chain, .primary = t->primary_type };
		memcpy(typed[i].contract, t->contract.p, ADDRESS_SIZE);
	}
	for (size_t i = 0; windows && i < w->windows.n; i++) {
		const struct sgn_window *x = &w->windows.items[i];
		if (x->days == 0 || x->days > 0x7f || x->from_minute >= x->to_minute || x->to_minute > 1440)
			return invalid(e, "a window has days and minutes of one day");
		windows[i] = (struct policy_window){ x->days, x->from_minute, x->to_minute };
	}
	r->typed = typed;
	r->n_typed = w->typed.n;
	r->windows = windows;
	r->n_windows = w->windows.n;
	return typed && windows ? 0 : invalid(e, "too many");
}

static bool is_id(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		const char c = v.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (i && (c == '-' || c == '_' || c == '.'))))
			return false;
	}
	return v.n >= 1 && v.n <= ID_MAX;
}

static bool is_scope(struct view v)
{
	return (view_starts(v, "agent:") && is_id(view_skip(v, 6))) ||
	       (view_starts(v, "wallet:") && is_id(view_skip(v, 7)));
}

static bool counts_fit(const struct sgn_rules *w)
{
	for (unsigned i = 0; i < RULE_FIELDS; i++)
		if (rule_fields_get(w, i) > rule_fields_rows[i].max)
			return false;
	return true;
}

static int convert(struct arena *a, const struct sgn_rules *w, struct policy_rules *ret, struct err *e)
{
	struct policy_rules r = {
#define FLAG(name, ...)  .name = w->name,
#define COUNT(name, ...) .name = w->name,
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	};

	if (!is_scope(w->scope))
		return invalid(e, "the scope must be agent:ID or wallet:ID");
	if (w->limits.n > LIST_MAX || w->addresses.n > LIST_MAX || w->typed.n > LIST_MAX ||
	    w->windows.n > LIST_MAX || w->wallets.n > LIST_MAX || !counts_fit(w))
		return invalid(e, "too many, or too long");
	if (read_amount(w->fee_per_tx, &r.fee_per_tx) < 0 || read_amount(w->fee_day, &r.fee_day) < 0 ||
	    read_amount(w->auto_below, &r.auto_below) < 0)
		return invalid(e, "an amount has 32 bytes");
	for (size_t i = 0; i < w->wallets.n; i++)
		if (w->wallets.items[i].chain == 0 || w->wallets.items[i].chain > INT64_MAX ||
		    !is_id(w->wallets.items[i].wallet))
			return invalid(e, "a wallet has a chain and an id");
	if (read_limits(a, w, &r, e) < 0 || read_addresses(a, w, &r, e) < 0 || read_rest(a, w, &r, e) < 0)
		return -1;
	*ret = r;
	return 0;
}

int rules_load(struct signer_call *c, struct view scope, struct sgn_rules *ret_wire, struct policy_rules *ret,
	       struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_RULES_GET, "t", scope);
	int r = db_row(&c->s->db, row, e);
	const struct view body = r == 1 ? arena_view(&c->arena, db_view(row, 0)) : VIEW("");

	db_end(row);
	*ret_wire = (struct sgn_rules){ .scope = scope };
	if (r < 0)
		return -1;
	if (r == 1 && (!body.p || pb_decode(&sgn_rules_msg, body, 0, &c->arena, ret_wire) < 0))
		return err_set(e, ERR_INTERNAL, "the rules of %.*s are damaged",
			       VIEW_ARG(view_head(scope, 80)));
	return convert(&c->arena, ret_wire, ret, e);
}

int rules_store(struct signer_call *c, const struct sgn_rules *r, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);

	if (pb_encode(&sgn_rules_msg, r, &body) < 0)
		return err_set(e, ERR_TOO_LARGE, "rules: more than %u bytes", BODY_MAX);
	return db_do(&c->s->db, DB_RULES_PUT, e, "tb", r->scope, buf_view(&body));
}

/* ---- for the audit ---- */

static void put_amount(struct json_out *o, const char *key, struct view v)
{
	struct u256 n;
	char text[U256_TEXT] = "";

	if (v.n == U256_BYTES && u256_load_view(v, &n) == 0)
		u256_text(&n, text);
	json_out_kz(o, key, text[0] ? text : NULL);
}

static void put_limits(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "limits");
	json_out_array(o);
	for (size_t i = 0; i < r->limits.n; i++) {
		const struct sgn_limit *l = &r->limits.items[i];
		json_out_object(o);
		json_out_ku64(o, "chain", l->chain);
		hexjson_put(o, "asset", l->asset);
		put_amount(o, "per_tx", l->per_tx);
		put_amount(o, "day", l->day);
		put_amount(o, "week", l->week);
		put_amount(o, "month", l->month);
		put_amount(o, "lifetime", l->lifetime);
		json_out_kbool(o, "unlimited_approvals", l->unlimited_approvals);
		json_out_ku64(o, "decimals", l->decimals);
		json_out_kstr(o, "symbol", l->symbol);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_addresses(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "addresses");
	json_out_array(o);
	for (size_t i = 0; i < r->addresses.n; i++) {
		const struct sgn_address_rule *a = &r->addresses.items[i];
		json_out_object(o);
		json_out_ku64(o, "chain", a->chain);
		hexjson_put(o, "address", a->address);
		json_out_kz(o, "action", a->deny ? "deny" : a->call ? "call" : "allow");
		json_out_kstr(o, "note", a->note);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_more_lists(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "typed");
	json_out_array(o);
	for (size_t i = 0; i < r->typed.n; i++) {
		json_out_object(o);
		json_out_ku64(o, "chain", r->typed.items[i].chain);
		hexjson_put(o, "contract", r->typed.items[i].contract);
		json_out_kstr(o, "primary_type", r->typed.items[i].primary_type);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_key(o, "wallets");
	json_out_array(o);
	for (size_t i = 0; i < r->wallets.n; i++) {
		json_out_object(o);
		json_out_ku64(o, "chain", r->wallets.items[i].chain);
		json_out_kstr(o, "wallet", r->wallets.items[i].wallet);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_key(o, "windows");
	json_out_array(o);
	for (size_t i = 0; i < r->windows.n; i++) {
		json_out_object(o);
		json_out_ku64(o, "days", r->windows.items[i].days);
		json_out_ku64(o, "from_minute", r->windows.items[i].from_minute);
		json_out_ku64(o, "to_minute", r->windows.items[i].to_minute);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_rules(struct json_out *o, const char *key, const struct sgn_rules *r)
{
	json_out_key(o, key);
	json_out_object(o);
	put_limits(o, r);
	put_addresses(o, r);
	put_more_lists(o, r);
	put_amount(o, "fee_per_tx", r->fee_per_tx);
	put_amount(o, "fee_day", r->fee_day);
	put_amount(o, "auto_below", r->auto_below);
	for (unsigned i = 0; i < RULE_FIELDS; i++)
		rule_fields_put(o, r, i);
	json_out_end(o, '}');
}

/* What they were, and what they are. */
static int audit(struct signer_call *c, const struct sgn_rules *before, const struct sgn_rules *now,
		 struct err *e)
{
	_cleanup_(buf_done) struct buf detail = BUF_INIT(4 * BODY_MAX);
	struct json_out o;

	json_out_init(&o, &detail);
	json_out_object(&o);
	put_rules(&o, "before", before);
	put_rules(&o, "now", now);
	json_out_end(&o, '}');
	if (detail.bad)
		return err_set(e, ERR_TOO_LARGE, "rules: too large for the audit log");
	return audit_add(c->s, calls_actor(c), "rules.put", now->scope, buf_view(&detail), e);
}

int rules_call_get(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_rules_get *m = msg;
	struct sgn_rules wire;
	struct policy_rules rules;

	if (!is_scope(m->scope))
		return invalid(e, "the scope must be agent:ID or wallet:ID");
	if (rules_load(c, m->scope, &wire, &rules, e) < 0)
		return -1;
	return calls_reply(c, &sgn_rules_reply_msg, &(struct sgn_rules_reply){ .rules = &wire });
}

/* No wallet on a chain that it was not on before. */
static bool wallets_stricter(const struct sgn_rules *now, const struct sgn_rules *before)
{
	for (size_t i = 0; i < now->wallets.n; i++) {
		bool found = false;
		for (size_t k = 0; k < before->wallets.n; k++)
			found |= now->wallets.items[i].chain == before->wallets.items[k].chain &&
				 view_eq(now->wallets.items[i].wallet, before->wallets.items[k].wallet);
		if (!found)
			return false;
	}
	return true;
}

/* The names that people read stay the owner's: an amount with other decimals looks like another amount, and
 * an address with another's note like another address. */
static bool names_kept(const struct sgn_rules *now, const struct sgn_rules *before)
{
	for (size_t i = 0; i < now->limits.n; i++)
		for (size_t k = 0; k < before->limits.n; k++) {
			const struct sgn_limit *n = &now->limits.items[i], *b = &before->limits.items[k];
			if (n->chain == b->chain && view_eq(n->asset, b->asset) &&
			    (n->decimals != b->decimals || !view_eq(n->symbol, b->symbol)))
				return false;
		}
	for (size_t i = 0; i < now->addresses.n; i++) {
		const struct sgn_address_rule *n = &now->addresses.items[i];
		bool known = n->note.n == 0;
		for (size_t k = 0; k < before->addresses.n; k++)
			known |= view_eq(n->address, before->addresses.items[k].address) &&
				 view_eq(n->note, before->addresses.items[k].note);
		if (!known)
			return false;
	}
	return true;
}

static int check_right(struct signer_call *c, const struct sgn_rules *now, const struct policy_rules *rules,
		       const struct sgn_rules *before, const struct policy_rules *old, struct err *e)
{
	const enum policy_scope scope = view_starts(now->scope, "wallet:") ? POLICY_WALLET : POLICY_AGENT;
	const char *why = "wallets";

	if (c->role == SGN_SIGNER_ROLE_OWNER)
		return 0;
	if (wallets_stricter(now, before) && policy_stricter(rules, old, scope, &why)) {
		if (names_kept(now, before))
			return 0;
		why = "names";
	}
	return err_set(e, ERR_FORBIDDEN, "only the owner may loosen rules (%s)", why);
}

static bool has_call(const struct sgn_rules *r)
{
	for (size_t i = 0; i < r->addresses.n; i++)
		if (r->addresses.items[i].call)
			return true;
	return false;
}

static int for_agents(const char *name, struct err *e)
{
	return err_set(e, ERR_INVALID, "rules: %s is for agents: nothing would come of it for a wallet",
		       name);
}

/* What nobody looks at in the rules of a wallet must not look as if it held. */
static int check_wallet(const struct sgn_rules *r, struct err *e)
{
	const struct {
		const char *name;
		bool given;
	} fields[] = {
		{ "wallets", r->wallets.n },
		{ "typed", r->typed.n },
		{ "call", has_call(r) },
		{ "auto_below", r->auto_below.n },
	};

	if (!view_starts(r->scope, "wallet:"))
		return 0;
	for (size_t i = 0; i < ELEMS(fields); i++)
		if (fields[i].given)
			return for_agents(fields[i].name, e);
	for (unsigned i = 0; i < RULE_FIELDS; i++)
		if (rule_fields_rows[i].of_agent && rule_fields_get(r, i))
			return for_agents(rule_fields_rows[i].name, e);
	return 0;
}

int rules_call_put(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_rules_put *m = msg;
	struct policy_rules rules, old;
	struct sgn_rules before;

	if (!m->rules)
		return invalid(e, "there are none");
	if (convert(&c->arena, m->rules, &rules, e) < 0 || check_wallet(m->rules, e) < 0 ||
	    rules_load(c, m->rules->scope, &before, &old, e) < 0 ||
	    check_right(c, m->rules, &rules, &before, &old, e) < 0)
		return -1;
	if (db_begin(&c->s->db, e) < 0 || rules_store(c, m->rules, e) < 0 ||
	    audit(c, &before, m->rules, e) < 0 || db_commit(&c->s->db, e) < 0) {
		db_rollback(&c->s->db);
		return -1;
	}
	return calls_reply(c, &sgn_rules_reply_msg, &(struct sgn_rules_reply){ .rules = m->rules });
}
