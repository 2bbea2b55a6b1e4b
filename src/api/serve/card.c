/*
 * An agent's request as JSON: see card.h.
 */
#include "card.h"

#include <stdio.h>

#include "address.h"
#include "answer.h"
#include "card_impl.h"
#include "text.h"
#include "u256.h"
#include "poison.h"

#define DATA_MAX (1024u * 1024)

/* ---- values ---- */

bool card_is_native(struct view asset)
{
	static const uint8_t fee[ADDRESS_SIZE] = { [0 ... ADDRESS_SIZE - 1] = 0xff };

	return asset.n == ADDRESS_SIZE &&
	       (!memcmp(asset.p, address_native, ADDRESS_SIZE) || !memcmp(asset.p, fee, ADDRESS_SIZE));
}

void card_put_hex(struct json_out *o, const char *key, struct view bytes)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(2 * DATA_MAX + 3);
	char *p = bytes.n && bytes.n <= DATA_MAX ? buf_reserve(&text, 2 * bytes.n + 3) : NULL;

	if (p) {
		memcpy(p, "0x", 2);
		text_hex(bytes.p, bytes.n, p + 2);
		buf_commit(&text, 2 * bytes.n + 2);
	}
	json_out_kstr_any(o, key, buf_view(&text));
}

void card_put_address(struct json_out *o, const char *key, struct view address)
{
	char text[ADDRESS_TEXT];

	if (address.n == ADDRESS_SIZE)
		address_text((const uint8_t *)address.p, text);
	json_out_kz(o, key, address.n == ADDRESS_SIZE ? text : NULL);
}

void card_put_amount(struct json_out *o, const char *key, struct view amount)
{
	struct u256 v = U256_ZERO;
	char text[U256_TEXT];

	if (u256_load_view(amount, &v) < 0)
		v = U256_MAX; /* the signer sends none of this kind: nothing looks smaller than it is */
	u256_text(&v, text);
	json_out_kz(o, key, text);
}

void card_put_amount_any(struct json_out *o, const char *key, struct view amount)
{
	if (amount.n)
		card_put_amount(o, key, amount);
	else
		json_out_kz(o, key, NULL);
}

void card_put_chain(struct json_out *o, const char *key, uint64_t chain)
{
	char id[40];

	snprintf(id, sizeof(id), "eip155:%llu", (unsigned long long)chain);
	json_out_kz(o, key, id);
}

void card_put_asset(struct json_out *o, const char *key, struct view asset, uint32_t decimals,
		    struct view symbol)
{
	const bool native = card_is_native(asset);

	json_out_key(o, key);
	json_out_object(o);
	card_put_address(o, "address",
			 native ? (struct view){ (const char *)address_native, ADDRESS_SIZE } : asset);
	json_out_kstr_any(o, "symbol", symbol);
	json_out_ku64_any(o, "decimals", native ? 18 : decimals);
	json_out_end(o, '}');
}

struct view card_chain_name(const struct core *c, uint64_t chain)
{
	return spend_settings(c, chain).name;
}

struct view card_symbol(const struct core *c, uint64_t chain, struct view asset, struct view symbol)
{
	return !symbol.n && card_is_native(asset) ? spend_settings(c, chain).symbol : symbol;
}

void card_find_asset(const struct sgn_item *i, struct view asset, uint32_t *decimals, struct view *symbol)
{
	*decimals = 0;
	*symbol = VIEW_NONE;
	for (size_t k = 0; k < i->effects.n; k++)
		if (view_eq(i->effects.items[k].asset, asset)) {
			*decimals = i->effects.items[k].decimals;
			*symbol = i->effects.items[k].symbol;
			return;
		}
}

static void put_known_asset(struct json_out *o, const struct sgn_item *i, struct view asset)
{
	uint32_t decimals;
	struct view symbol;

	card_find_asset(i, asset, &decimals, &symbol);
	card_put_asset(o, "asset", asset, decimals, symbol);
}

/* Four bytes in the middle: an address that was made to be taken for another shares only its ends. Where the
 * other is known, they are bytes in which the two differ. */
static size_t confirm_at(struct view address, struct view known)
{
	const size_t last = ADDRESS_SIZE - 6;

	for (size_t k = 2; known.n == ADDRESS_SIZE && k < ADDRESS_SIZE; k++)
		if (address.p[k] != known.p[k])
			return MIN(k, last);
	return 8;
}

bool card_confirm(const struct sgn_item *i, struct card_confirm *ret)
{
	struct view to = i->effects.n ? i->effects.items[0].to : i->to, known = VIEW_NONE;
	bool danger = view_is(i->call_class, "dangerous");

	for (size_t k = 0; k < i->risks.n; k++) {
		const struct sgn_risk *x = &i->risks.items[k];
		danger |= x->level == SGN_RISK_LEVEL_DANGER;
		if (known.n || x->address.n != ADDRESS_SIZE || x->known.n != ADDRESS_SIZE)
			continue;
		to = x->address;
		known = x->known;
	}
	const bool own = to.n != ADDRESS_SIZE;
	if (own)
		to = i->from;
	if (!danger || to.n != ADDRESS_SIZE)
		return false;
	const size_t at = confirm_at(to, known);
	text_hex(to.p + at, 4, ret->digits);
	snprintf(ret->hint, sizeof(ret->hint), "Type digits %zu to %zu (after 0x) of %s.", 2 * at + 1,
		 2 * at + 8,
		 own ? "the wallet's own address"
		     : "the address that you mean, from where you know it and not from this request");
	return true;
}

/* ---- the card ---- */

static void put_sentence(struct json_out *o, const char *key,
			 void (*say)(struct buf *out, const struct core *c, const struct spend_view *v),
			 const struct core *c, const struct spend_view *v)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(DATA_MAX);

	say(&text, c, v);
	json_out_kstr(o, key, buf_view(&text));
}

bool card_only_reaches(const struct sgn_effect *f)
{
	struct u256 v;

	return f->target && u256_load_view(f->amount, &v) == 0 && u256_is_zero(&v);
}

/* Who gets it; for calls of contracts the contract. */
static void put_recipient(struct json_out *o, const struct sgn_item *i)
{
	const struct sgn_effect *f = i->effects.n ? &i->effects.items[0] : NULL;
	const bool direct = f && f->to.n == ADDRESS_SIZE && !f->approval && !card_only_reaches(f);
	const struct view to = direct ? f->to : i->to;
	const bool called = view_eq(to, i->to);

	json_out_key(o, "recipient");
	if (to.n != ADDRESS_SIZE) {
		json_out_null(o);
		return;
	}
	json_out_object(o);
	card_put_address(o, "address", to);
	json_out_key(o, "first_time");
	if (f && view_eq(f->to, to))
		json_out_bool(o, f->first);
	else
		json_out_null(o);
	json_out_key(o, "contract");
	if (called && i->kind == SGN_REQUEST_KIND_TX)
		json_out_bool(o, i->to_has_code);
	else
		json_out_null(o);
	json_out_kstr_any(o, "note", f && view_eq(f->to, to) ? f->note : VIEW_NONE);
	json_out_end(o, '}');
}

/* What the spender may take from then on: the amount, or with increaseAllowance so much more. */
static struct u256 allowed_after(const struct sgn_item *i, const struct sgn_effect *f)
{
	static const char increase[] = { 0x39, 0x50, (char)0x93, 0x51 };
	struct u256 before, after = U256_ZERO;

	(void)!u256_load_view(f->amount, &after);
	if (i->kind == SGN_REQUEST_KIND_TX && i->data.n >= sizeof(increase) &&
	    memcmp(i->data.p, increase, sizeof(increase)) == 0 && f->allowance.n &&
	    u256_load_view(f->allowance, &before) == 0)
		after = u256_add_sat(&before, &after);
	return after;
}

static void put_allowance(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "allowance");
	for (size_t k = 0; k < i->effects.n; k++) {
		const struct sgn_effect *f = &i->effects.items[k];
		char text[U256_TEXT];
		if (!f->approval)
			continue;
		const struct u256 after = allowed_after(i, f);
		u256_text(&after, text);
		json_out_object(o);
		card_put_asset(o, "asset", f->asset, f->decimals, f->symbol);
		card_put_address(o, "spender", f->to);
		card_put_amount_any(o, "before", f->allowance);
		json_out_kz(o, "after", text);
		json_out_kbool(o, "unlimited", f->unlimited);
		json_out_end(o, '}');
		return;
	}
	json_out_null(o);
}

static void put_limits(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "limits");
	json_out_array(o);
	for (size_t k = 0; k < i->limits.n; k++) {
		const struct sgn_limit_line *l = &i->limits.items[k];
		json_out_object(o);
		json_out_kstr(o, "scope", l->scope);
		json_out_kbool(o, "fee",
			       l->asset.n && (uint8_t)l->asset.p[0] == 0xff && card_is_native(l->asset));
		card_put_asset(o, "asset", l->asset, l->decimals, l->symbol);
		json_out_kstr(o, "window", view_is(l->window, "per_tx") ? VIEW("transaction") : l->window);
		card_put_amount(o, "limit", l->limit);
		card_put_amount(o, "before", l->before);
		card_put_amount(o, "after", l->after);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_fee(struct json_out *o, const struct sgn_item *i)
{
	const struct view native = { (const char *)address_native, ADDRESS_SIZE };

	json_out_key(o, "fee");
	if (!i->fee.n) {
		json_out_null(o);
		return;
	}
	json_out_object(o);
	put_known_asset(o, i, native);
	json_out_ku64(o, "gas", i->gas);
	card_put_amount(o, "worst_case", i->fee);
	json_out_end(o, '}');
}

static void put_risks(struct json_out *o, const struct sgn_item *i)
{
	static const char *const levels[] = { "note", "note", "warning", "danger" };

	json_out_key(o, "risks");
	json_out_array(o);
	for (size_t k = 0; k < i->risks.n; k++) {
		const struct sgn_risk *x = &i->risks.items[k];
		const bool known = x->level >= 0 && (size_t)x->level < ELEMS(levels);
		json_out_object(o);
		json_out_kz(o, "level", known ? levels[x->level] : "danger");
		json_out_kstr(o, "name", x->name);
		json_out_kstr(o, "text", x->text);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

/* ---- the simulation ---- */

static bool delta(const struct sgn_item *i, struct view asset, bool *ret_less, struct u256 *ret)
{
	struct u256 in = U256_ZERO, out = U256_ZERO, x;

	for (size_t k = 0; k < i->moves.n; k++) {
		const struct sgn_move *m = &i->moves.items[k];
		if (m->approval || !view_eq(m->asset, asset) || u256_load_view(m->amount, &x) < 0)
			continue;
		if (view_eq(m->from, i->from))
			out = u256_add_sat(&out, &x);
		if (view_eq(m->to, i->from))
			in = u256_add_sat(&in, &x);
	}
	*ret_less = u256_cmp(&out, &in) > 0;
	return (*ret_less ? u256_sub(&out, &in, ret) : u256_sub(&in, &out, ret)) == 0 && !u256_is_zero(ret);
}

bool card_delta(const struct sgn_item *i, size_t move, bool *ret_less, uint8_t ret[32])
{
	const struct view asset = i->moves.items[move].asset;
	struct u256 v;

	for (size_t k = 0; k < move; k++)
		if (view_eq(i->moves.items[k].asset, asset))
			return false; /* it was told already */
	if (!delta(i, asset, ret_less, &v))
		return false;
	u256_store(&v, ret);
	return true;
}

static void put_deltas(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "deltas");
	json_out_array(o);
	for (size_t k = 0; k < i->moves.n; k++) {
		char text[U256_TEXT + 1] = "-";
		uint8_t raw[U256_BYTES];
		bool less;
		if (!card_delta(i, k, &less, raw))
			continue;
		const struct u256 v = u256_load(raw);
		u256_text(&v, text + 1);
		json_out_object(o);
		put_known_asset(o, i, i->moves.items[k].asset);
		json_out_kz(o, "amount", less ? text : text + 1);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_simulation(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "simulation");
	json_out_object(o);
	json_out_kz(o, "method", spend_method_name(i->method));
	json_out_ku64_any(o, "block", i->sim_block);
	json_out_key(o, "moves");
	json_out_array(o);
	for (size_t k = 0; k < i->moves.n; k++) {
		const struct sgn_move *m = &i->moves.items[k];
		json_out_object(o);
		put_known_asset(o, i, m->asset);
		card_put_address(o, "from", m->from);
		card_put_address(o, "to", m->to);
		card_put_amount(o, "amount", m->amount);
		json_out_kbool(o, "approval", m->approval);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	put_deltas(o, i);
	json_out_end(o, '}');
}

static void put_trace(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "trace");
	json_out_array(o);
	for (size_t k = 0; k < i->trace.n; k++) {
		json_out_object(o);
		json_out_ku64(o, "step", i->trace.items[k].step);
		json_out_kstr(o, "name", i->trace.items[k].name);
		json_out_kbool(o, "passed", i->trace.items[k].passed);
		json_out_kstr(o, "text", i->trace.items[k].text);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_call(struct json_out *o, const struct sgn_item *i)
{
	struct view rest = i->tree;

	json_out_key(o, "call");
	json_out_object(o);
	json_out_kstr(o, "class", i->call_class);
	json_out_key(o, "tree");
	json_out_array(o);
	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		if (line.n)
			json_out_str(o, line);
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
}

static void put_attempts(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "attempts");
	json_out_array(o);
	for (size_t k = i->attempts.n; i->kind == SGN_REQUEST_KIND_TX && k-- > 0;) {
		const struct sgn_attempt *t = &i->attempts.items[k];
		json_out_object(o);
		json_out_ku64(o, "generation", t->generation);
		card_put_hex(o, "hash", t->hash);
		json_out_ku64(o, "nonce", t->nonce);
		answer_put_time(o, "signed_at", t->signed_ms);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

/* decided_by has those who approved, between commas. */
static unsigned count_names(struct view by)
{
	unsigned n = by.n > 0;

	for (size_t i = 0; i < by.n; i++)
		n += by.p[i] == ',';
	return n;
}

static void put_rest(struct json_out *o, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;
	const bool signature = i->kind != SGN_REQUEST_KIND_TX;

	card_put_hex(o, "signature", signature ? i->raw : VIEW_NONE);
	json_out_key(o, "approvers");
	json_out_object(o);
	json_out_ku64(o, "needed", MAX(i->approvers, 1u));
	json_out_ku64(o, "have",
		      i->state == SGN_STATE_REJECTED || i->automatic ? 0 : count_names(i->decided_by));
	json_out_end(o, '}');
	put_attempts(o, i);
	json_out_ku64_any(o, "block", i->block);
	card_put_hex(o, "block_hash", i->block_hash);
	json_out_ku64_any(o, "confirmations", v->confirmations);
	json_out_ku64_any(o, "confirmations_needed", v->needed);
	json_out_kbool(o, "stuck", v->stuck);
	json_out_kz(o, "note", v->note && v->note[0] ? v->note : NULL);
	json_out_kstr_any(o, "deviation", i->deviation);
}

static void put_card(struct json_out *o, const struct core *c, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;
	struct card_confirm confirm;

	json_out_key(o, "card");
	json_out_object(o);
	put_sentence(o, "sentence", card_sentence, c, v);
	put_sentence(o, "text", card_text, c, v);
	const bool danger = card_confirm(i, &confirm);
	json_out_kz(o, "confirm", danger ? confirm.digits : NULL);
	json_out_kz(o, "confirm_hint", danger ? confirm.hint : NULL);
	put_recipient(o, i);
	put_allowance(o, i);
	put_limits(o, i);
	put_fee(o, i);
	put_risks(o, i);
	put_simulation(o, i);
	put_trace(o, i);
	put_call(o, i);
	if (i->data.n)
		card_put_hex(o, "data", i->data);
	else
		json_out_kz(o, "data", "0x");
	put_rest(o, v);
	json_out_end(o, '}');
}

/* ---- the request ---- */

static void put_effects(struct json_out *o, const struct sgn_item *i)
{
	json_out_key(o, "effects");
	json_out_array(o);
	for (size_t k = 0; k < i->effects.n; k++) {
		const struct sgn_effect *f = &i->effects.items[k];
		json_out_object(o);
		card_put_asset(o, "asset", f->asset, f->decimals, f->symbol);
		card_put_amount(o, "amount", f->amount);
		card_put_address(o, "to", f->to);
		json_out_kbool(o, "approval", f->approval);
		json_out_kbool(o, "unlimited", f->unlimited);
		json_out_kbool(o, "target", f->target);
		json_out_kbool(o, "first_time", f->first);
		json_out_kstr_any(o, "note", f->note);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

void card_put(struct json_out *o, const struct core *c, const struct spend_view *v, bool whole)
{
	const struct sgn_item *i = v->item;
	_cleanup_(buf_done) struct buf summary = BUF_INIT(16u * 1024);

	json_out_object(o);
	json_out_kstr(o, "id", i->id);
	json_out_kz(o, "kind", spend_kind_name(i->kind));
	json_out_kstr(o, "agent", i->agent);
	json_out_kz(o, "agent_name", v->agent_name && v->agent_name[0] ? v->agent_name : NULL);
	json_out_kz(o, "tenant", v->tenant ? v->tenant->name : NULL);
	card_put_chain(o, "chain", i->chain);
	json_out_kstr_any(o, "chain_name", card_chain_name(c, i->chain));
	json_out_kstr_any(o, "wallet", i->wallet);
	card_put_address(o, "from", i->from);
	card_put_address(o, "to", i->to);
	card_put_amount(o, "value", i->value);
	json_out_kstr(o, "class", i->call_class.n ? i->call_class : VIEW("unknown"));
	json_out_kz(o, "state", sgn_state_name(i->state));
	json_out_kstr(o, "summary", spend_name_native(&summary, c, i->chain, i->summary));
	card_put_hex(o, "digest", i->digest);
	json_out_kstr_any(o, "reason", i->reason);
	json_out_kstr_any(o, "error", i->error);
	put_effects(o, i);
	json_out_kbool(o, "automatic", i->automatic);
	answer_put_time(o, "created_at", i->created_ms);
	answer_put_time(o, "expires_at", i->state == SGN_STATE_PENDING ? i->expires_ms : 0);
	answer_put_time(o, "decided_at", i->decided_ms);
	json_out_kstr_any(o, "decided_by", i->decided_by);
	answer_put_time(o, "changed_at", i->changed_ms ? i->changed_ms : i->created_ms);
	card_put_hex(o, "hash", i->kind == SGN_REQUEST_KIND_TX ? i->hash : VIEW_NONE);
	json_out_key(o, "nonce");
	if (i->kind == SGN_REQUEST_KIND_TX && i->generation)
		json_out_u64(o, i->nonce);
	else
		json_out_null(o);
	json_out_ku64(o, "generation", i->generation);
	json_out_key(o, "waits_for_nonce");
	if (v->waits)
		json_out_u64(o, v->waits_for);
	else
		json_out_null(o);
	if (whole)
		put_card(o, c, v);
	json_out_end(o, '}');
}
