/*
 * /v1/wallets, /v1/chains, /v1/signer and the limits and spending of agents: what may be spent, and what
 * was. Nothing here loosens a limit or adds a wallet: that is the owner's, on the machine itself.
 */
#include <stdio.h>

#include "agent.h"
#include "card.h"
#include "money.h"
#include "rulejson.h"
#include "num.h"
#include "rest_impl.h"
#include "rest_spend.h"
#include "poison.h"

#define AUDIT_MOST 500

/* ---- limits of an agent ---- */

struct change {
	const struct json *doc; /* NULL: it is only shown */
};

static void on_rules_put(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct sgn_rules_reply *reply = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	rulejson_put(o, reply->rules);
	answer_send(r, 200);
}

static void on_rules(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct change *c = r->own;
	const struct sgn_rules_reply *reply = result;
	struct sgn_rules rules;
	struct err bad = { 0 };

	if (!c->doc) {
		on_rules_put(arg, result, e);
		return;
	}
	if (!answer_ended(r, e))
		return;
	rules = *reply->rules;
	if (rulejson_change(&r->arena, c->doc, &rules, &bad) < 0)
		answer_fail(r, &bad);
	else
		answer_await(r,
			     spend_rules_put(r->core, &r->actor, SPEND_OF_AGENT, r->params[0], &rules,
					     on_rules_put, r, &bad),
			     &bad);
}

static void limits(struct request *r)
{
	struct err e = { 0 };

	if (!request_own(r, sizeof(struct change)))
		return;
	answer_await(r, spend_rules_get(r->core, &r->actor, SPEND_OF_AGENT, r->params[0], on_rules, r, &e),
		     &e);
}

static void limits_put(struct request *r)
{
	struct change *c = request_own(r, sizeof(*c));
	struct err e = { 0 };
	struct json *doc;

	if (!c)
		return;
	if (request_read_doc(r, &doc, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	c->doc = doc;
	answer_await(r, spend_rules_get(r->core, &r->actor, SPEND_OF_AGENT, r->params[0], on_rules, r, &e),
		     &e);
}

/* ---- spending ---- */

struct spending {
	enum spend_scope scope;
	struct view name;         /* "agent:ID" */
	struct sgn_limit *limits; /* in the arena */
	size_t n;
	struct sgn_limit fees; /* of a wallet: what it may cost to send */
};

static const struct sgn_limit *limit_of(const struct spending *s, uint64_t chain, struct view asset)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->limits[i].chain == chain && view_eq(s->limits[i].asset, asset))
			return &s->limits[i];
	return NULL;
}

static bool is_fee(struct view asset)
{
	return card_is_native(asset) && (uint8_t)asset.p[0] == 0xff;
}

static void put_line(struct json_out *o, const struct sgn_limit *l, const struct sgn_spent_line *s)
{
	static const struct sgn_limit none;
	static const struct sgn_spent_line nothing;
	const uint64_t chain = s ? s->chain : l->chain;
	const struct view asset = s ? s->asset : l->asset;

	l = l ? l : &none;
	s = s ? s : &nothing;
	json_out_object(o);
	card_put_chain(o, "chain", chain);
	json_out_kbool(o, "fee", is_fee(asset));
	card_put_asset(o, "asset", asset, l->decimals, l->symbol);
	card_put_amount_any(o, "per_transaction", l->per_tx);
	json_out_key(o, "spent");
	json_out_object(o);
	card_put_amount(o, "day", s->day);
	card_put_amount(o, "week", s->week);
	card_put_amount(o, "month", s->month);
	card_put_amount(o, "lifetime", s->lifetime);
	json_out_end(o, '}');
	json_out_key(o, "limit");
	json_out_object(o);
	card_put_amount_any(o, "day", l->day);
	card_put_amount_any(o, "week", l->week);
	card_put_amount_any(o, "month", l->month);
	card_put_amount_any(o, "lifetime", l->lifetime);
	json_out_end(o, '}');
	card_put_amount(o, "reserved", s->reserved);
	json_out_end(o, '}');
}

/* What the agent's models have cost, beside it. A wallet uses none. */
static void put_ai(struct json_out *o, const int64_t *cost)
{
	static const char *const keys[USAGE_SPANS] = { [USAGE_TODAY] = "day",
						       [USAGE_7_DAYS] = "week",
						       [USAGE_30_DAYS] = "month",
						       [USAGE_KEPT] = "lifetime" };

	json_out_key(o, "ai_cost_usd");
	if (!cost) {
		json_out_null(o);
		return;
	}
	json_out_object(o);
	for (size_t i = 0; i < USAGE_SPANS; i++) {
		json_out_key(o, keys[i]);
		json_out_double(o, (double)cost[i] / 1e9);
	}
	json_out_end(o, '}');
}

static void on_spent(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct spending *w = r->own;
	const struct sgn_spent_reply *reply = result;
	const bool of_agent = w->scope == SPEND_OF_AGENT;
	int64_t ai[USAGE_SPANS];
	struct err bad = { 0 };

	if (!e && of_agent &&
	    usage_of_agent(r->core, &r->actor, view_skip(w->name, strlen("agent:")), ai, &bad) < 0)
		e = &bad;
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	json_out_object(o);
	json_out_kstr(o, "scope", w->name);
	put_ai(o, of_agent ? ai : NULL);
	json_out_key(o, "lines");
	json_out_array(o);
	for (size_t i = 0; i < w->n; i++) {
		const struct sgn_spent_line *found = NULL;
		for (size_t k = 0; k < reply->lines.n && !found; k++)
			if (reply->lines.items[k].chain == w->limits[i].chain &&
			    view_eq(reply->lines.items[k].asset, w->limits[i].asset))
				found = &reply->lines.items[k];
		put_line(o, &w->limits[i], found);
	}
	for (size_t k = 0; k < reply->lines.n; k++)
		if (!limit_of(w, reply->lines.items[k].chain, reply->lines.items[k].asset))
			put_line(o, is_fee(reply->lines.items[k].asset) ? &w->fees : NULL,
				 &reply->lines.items[k]);
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* The rules are gone when their job's callback returns. */
static int keep_rules(struct request *r, struct spending *w, const struct sgn_rules *rules, struct err *e)
{
	w->name = arena_view(&r->arena, rules->scope);
	w->limits = arena_array(&r->arena, MAX(rules->limits.n, (size_t)1), sizeof(*w->limits));
	w->fees.per_tx = arena_view(&r->arena, rules->fee_per_tx);
	w->fees.day = arena_view(&r->arena, rules->fee_day);
	if (!w->name.p || !w->limits || !w->fees.per_tx.p || !w->fees.day.p)
		return err_set(e, ERR_TOO_LARGE, "there are too many limits");
	w->n = rules->limits.n;
	for (size_t i = 0; i < w->n; i++) {
		struct sgn_limit *l = &w->limits[i];
		struct view *const texts[] = { &l->asset, &l->per_tx,   &l->day,   &l->week,
					       &l->month, &l->lifetime, &l->symbol };
		*l = rules->limits.items[i];
		for (size_t k = 0; k < ELEMS(texts); k++)
			if (!(*texts[k] = arena_view(&r->arena, *texts[k])).p)
				return err_set(e, ERR_TOO_LARGE, "there are too many limits");
	}
	return 0;
}

static void on_spending_rules(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct spending *w = r->own;
	struct err bad = { 0 };

	if (!answer_ended(r, e))
		return;
	if (keep_rules(r, w, ((const struct sgn_rules_reply *)result)->rules, &bad) < 0)
		answer_fail(r, &bad);
	else
		answer_await(r, spend_spent(r->core, &r->actor, w->scope, r->params[0], on_spent, r, &bad),
			     &bad);
}

static void spending(struct request *r, enum spend_scope scope)
{
	struct spending *w = request_own(r, sizeof(*w));
	struct err e = { 0 };

	if (!w)
		return;
	w->scope = scope;
	if (!r->arena.max)
		r->arena = (struct arena)ARENA_INIT(4u * 1024 * 1024);
	answer_await(r, spend_rules_get(r->core, &r->actor, scope, r->params[0], on_spending_rules, r, &e),
		     &e);
}

static void agent_spending(struct request *r)
{
	spending(r, SPEND_OF_AGENT);
}

static void wallet_spending(struct request *r)
{
	spending(r, SPEND_OF_WALLET);
}

/* ---- wallets and chains ---- */

/*
 * Those of the tenant's agents, for everybody but administrators: the rules of each agent name its wallets.
 * The list of wallets is gone when its job's callback returns, so the rules are asked for first.
 */
struct purse {
	struct view agents[AGENTS_MOST]; /* ids, in the arena */
	size_t n, at;
	struct view *wallets; /* ids, in the arena */
	size_t n_wallets, room;
	bool all;
	struct arena *arena;
};

static void note_agent(void *arg, const struct agent *a)
{
	struct purse *p = arg;
	struct agent_view v;

	agents_show(a, &v);
	if (p->n < AGENTS_MOST)
		p->agents[p->n++] = arena_view(p->arena, view_of(v.id));
}

static bool in_purse(const struct purse *p, struct view wallet)
{
	for (size_t i = 0; i < p->n_wallets; i++)
		if (view_eq(p->wallets[i], wallet))
			return true;
	return p->all;
}

static void on_wallets(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct sgn_wallet_list_reply *w = result;
	struct json_out *o = answer_result_list(r, e, "wallets");

	if (!o)
		return;
	for (size_t i = 0; i < w->wallets.n; i++) {
		const struct sgn_wallet *x = &w->wallets.items[i];
		if (!in_purse(r->own, x->id))
			continue;
		json_out_object(o);
		json_out_kstr(o, "id", x->id);
		json_out_kz(o, "kind", spend_wallet_kind_name(x->kind));
		json_out_kstr(o, "label", x->label);
		card_put_address(o, "address", x->address);
		answer_put_time(o, "created_at", x->created_ms);
		json_out_end(o, '}');
	}
	answer_send_list(r);
}

static void fill_purse(struct request *r);

static void on_purse_rules(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct purse *p = r->own;
	const struct sgn_rules_reply *reply = result;

	if (e && e->code == ERR_NOT_FOUND) { /* the agent was removed meanwhile */
		r->job = NULL;
		fill_purse(r);
		return;
	}
	if (!answer_ended(r, e))
		return;
	for (size_t i = 0; i < reply->rules->wallets.n && p->n_wallets < p->room; i++) {
		const struct view id = reply->rules->wallets.items[i].wallet;
		if (!in_purse(p, id))
			p->wallets[p->n_wallets++] = arena_view(p->arena, id);
	}
	fill_purse(r);
}

static void fill_purse(struct request *r)
{
	struct purse *p = r->own;
	struct err e = { 0 };

	if (p->at == p->n)
		answer_await(r, spend_wallets(r->core, &r->actor, on_wallets, r, &e), &e);
	else
		answer_await(r,
			     spend_rules_get(r->core, &r->actor, SPEND_OF_AGENT, p->agents[p->at++],
					     on_purse_rules, r, &e),
			     &e);
}

static void wallets(struct request *r)
{
	struct purse *p = request_own(r, sizeof(*p));
	struct err e = { 0 };

	if (!p)
		return;
	if (!r->arena.max)
		r->arena = (struct arena)ARENA_INIT(4u * 1024 * 1024);
	*p = (struct purse){ .arena = &r->arena, .room = 1024, .all = r->actor.role == STORE_ROLE_ADMIN };
	p->wallets = arena_array(&r->arena, p->room, sizeof(*p->wallets));
	if (!p->wallets)
		err_set(&e, ERR_INTERNAL, "out of memory");
	if (e.code || (!p->all && agents_each(r->core, &r->actor, note_agent, p, &e) < 0))
		answer_fail(r, &e);
	else
		fill_purse(r);
}

static void put_chain(void *arg, const struct spend_chain *x)
{
	static const char *const names[] = { [SPEND_UNKNOWN] = "unknown",
					     [SPEND_OK] = "ok",
					     [SPEND_DOWN] = "down",
					     [SPEND_WRONG_ID] = "wrong_chain" };
	struct json_out *o = arg;
	char why[96];

	snprintf(why, sizeof(why), "a node says that it is of chain %llu", (unsigned long long)x->said_id);
	json_out_object(o);
	json_out_kstr(o, "id", x->id);
	json_out_kstr_any(o, "name", x->name);
	json_out_kstr_any(o, "symbol", x->symbol);
	json_out_kstr_any(o, "explorer", x->explorer);
	json_out_kz(o, "status", names[x->health]);
	json_out_kz(o, "error",
		    x->health == SPEND_WRONG_ID ? why
		    : x->health == SPEND_DOWN   ? "no node answers"
						: NULL);
	json_out_ku64_any(o, "block", x->head);
	answer_put_time(o, "checked_at", x->checked_ms);
	json_out_ku64(o, "nodes", x->nodes);
	json_out_ku64(o, "confirmations", x->confirmations);
	json_out_ku64(o, "under_way", x->under_way);
	json_out_end(o, '}');
}

static void chains(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "chains");

	if (spend_chains(r->core, &r->actor, put_chain, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

/* ---- the signer ---- */

/* How much there is of all tenants is for administrators. */
static void put_status(struct json_out *o, const struct actor *a, const struct sgn_status_reply *s)
{
	json_out_object(o);
	json_out_kbool(o, "available", s != NULL);
	json_out_key(o, "paused");
	if (s)
		json_out_bool(o, s->paused);
	else
		json_out_null(o);
	if (s && a->role == STORE_ROLE_ADMIN) {
		json_out_ku64(o, "wallets", s->wallets);
		json_out_ku64(o, "pending", s->pending);
		json_out_ku64(o, "audit_seq", s->audit_seq);
		card_put_hex(o, "audit_hash", s->audit_hash);
	} else {
		static const char *const keys[] = { "wallets", "pending", "audit_seq", "audit_hash" };
		for (size_t i = 0; i < ELEMS(keys); i++)
			json_out_kz(o, keys[i], NULL);
	}
	json_out_end(o, '}');
}

static bool is_away(const struct err *e)
{
	return e->code == ERR_UNAVAILABLE || e->code == ERR_UNSUPPORTED;
}

static void on_status(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (e && is_away(e)) {
		e = NULL;
		result = NULL;
	}
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	put_status(o, &r->actor, result);
	answer_send(r, 200);
}

static void signer(struct request *r)
{
	struct err e = { 0 };
	struct job *j = spend_signer(r->core, &r->actor, on_status, r, &e);

	if (j || !is_away(&e)) {
		answer_await(r, j, &e);
		return;
	}
	put_status(answer_json(r), &r->actor, NULL);
	answer_send(r, 200);
}

static void on_paused(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct err bad = { 0 };

	if (answer_ended(r, e))
		answer_await(r, spend_signer(r->core, &r->actor, on_status, r, &bad), &bad);
}

struct pause_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool paused, cancel_pending;
};
static const struct json_field pause_fields[] = {
	{ "paused", JSON_F_BOOL, offsetof(struct pause_body, paused), .required = true },
	{ "cancel_pending", JSON_F_BOOL, offsetof(struct pause_body, cancel_pending), .nullable = true },
};
static const struct json_schema pause_schema = { pause_fields, ELEMS(pause_fields) };

static void pause_signer(struct request *r)
{
	struct pause_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &pause_schema, &body) < 0)
		return;
	if (!body.paused)
		err_set(&e, ERR_FORBIDDEN,
			"only the owner ends a pause, on the machine itself: paddock wallet resume");
	if (e.code)
		answer_fail(r, &e);
	else
		answer_await(r, spend_pause(r->core, &r->actor, body.cancel_pending, on_paused, r, &e), &e);
}

/* ---- its audit log ---- */

struct auditing {
	uint64_t after;
	uint32_t most;
	bool verify;
	struct sgn_audit_verified verified;
};

static void put_entry(struct json_out *o, const struct sgn_audit_entry *n)
{
	json_out_object(o);
	json_out_ku64(o, "seq", n->seq);
	answer_put_time(o, "at", n->ts_ms);
	json_out_kstr(o, "actor", n->actor);
	json_out_kstr(o, "action", n->action);
	json_out_kstr(o, "object", n->object);
	json_out_kstr(o, "detail", n->detail);
	card_put_hex(o, "prev", n->prev);
	card_put_hex(o, "hash", n->hash);
	json_out_end(o, '}');
}

static void on_audit(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct auditing *a = r->own;
	const struct sgn_audit_reply *reply = result;
	struct json_out *o = answer_result_list(r, e, "entries");
	uint64_t next = a->after;

	if (!o)
		return;
	for (size_t i = 0; i < reply->entries.n; i++) {
		put_entry(o, &reply->entries.items[i]);
		next = reply->entries.items[i].seq;
	}
	json_out_end(o, ']');
	json_out_ku64(o, "next", next);
	if (a->verify) {
		json_out_key(o, "verified");
		json_out_object(o);
		json_out_ku64(o, "entries", a->verified.entries);
		json_out_ku64_any(o, "broken_at", a->verified.broken_at);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void ask_audit(struct request *r)
{
	const struct auditing *a = r->own;
	struct err e = { 0 };

	answer_await(r, spend_audit(r->core, &r->actor, a->after, a->most, on_audit, r, &e), &e);
}

static void on_verified(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct auditing *a = r->own;

	if (!answer_ended(r, e))
		return;
	a->verified = *(const struct sgn_audit_verified *)result;
	ask_audit(r);
}

static void audit(struct request *r)
{
	struct auditing *a = request_own(r, sizeof(*a));
	const struct view after = request_query(r, "after");
	struct err e = { 0 };

	if (!a)
		return;
	a->most = 100;
	if (request_query_flag(r, "verify", &a->verify) < 0)
		return;
	if (after.p && num_u64(after, &a->after) < 0)
		err_set(&e, ERR_INVALID, "after must be the number of an entry");
	if (e.code || request_query_limit(r, AUDIT_MOST, &a->most, &e) < 0)
		answer_fail(r, &e);
	else if (a->verify)
		answer_await(r, spend_audit_verify(r->core, &r->actor, on_verified, r, &e), &e);
	else
		ask_audit(r);
}

const struct route rest_spending_routes[] = {
	{ "GET", "/v1/wallets", wallets },
	{ "GET", "/v1/wallets/{id}/spending", wallet_spending },
	{ "GET", "/v1/chains", chains },
	{ "GET", "/v1/agents/{id}/limits", limits },
	{ "PUT", "/v1/agents/{id}/limits", limits_put, .body = ROUTE_JSON, .audit = "agent.limits",
	  .audit_body = true },
	{ "GET", "/v1/agents/{id}/spending", agent_spending },
	{ "GET", "/v1/signer", signer },
	{ "PUT", "/v1/signer", pause_signer, .body = ROUTE_JSON, .audit = "signer.pause",
	  .audit_body = true },
	{ "GET", "/v1/signer/audit", audit, .query = "after limit verify" },
	{ 0 },
};
