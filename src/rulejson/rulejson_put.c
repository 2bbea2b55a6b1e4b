/*
 * Rules as JSON. See rulejson.h.
 */
#include "rulejson.h"
#include "rule_fields.h"

#include <stdio.h>

#include "u256.h"

#include "poison.h"

const char *const rulejson_days[RULEJSON_DAYS] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };

bool rulejson_is_native(struct view asset)
{
	return asset.n == ADDRESS_SIZE && memcmp(asset.p, address_native, ADDRESS_SIZE) == 0;
}

/* 0, every chain: null */
static void put_chain(struct json_out *o, uint64_t chain)
{
	char text[40];

	snprintf(text, sizeof(text), "eip155:%llu", (unsigned long long)chain);
	json_out_kz(o, "chain", chain ? text : NULL);
}

static void put_address(struct json_out *o, const char *key, struct view v)
{
	char text[ADDRESS_TEXT] = "";

	if (v.n == ADDRESS_SIZE)
		address_text((const uint8_t *)v.p, text);
	json_out_kz(o, key, rulejson_is_native(v) ? "native" : text);
}

/* In base units; null where it is absent. */
void rulejson_put_amount(struct json_out *o, const char *key, struct view v)
{
	struct u256 n;
	char text[U256_TEXT] = "";

	if (v.n == U256_BYTES && u256_load_view(v, &n) == 0)
		u256_text(&n, text);
	json_out_kz(o, key, text[0] ? text : NULL);
}

void rulejson_put_list(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "limits");
	json_out_array(o);
	for (size_t i = 0; i < r->limits.n; i++) {
		const struct sgn_limit *l = &r->limits.items[i];
		json_out_object(o);
		put_chain(o, l->chain);
		put_address(o, "asset", l->asset);
		rulejson_put_amount(o, "per_transaction", l->per_tx);
		rulejson_put_amount(o, "day", l->day);
		rulejson_put_amount(o, "week", l->week);
		rulejson_put_amount(o, "month", l->month);
		rulejson_put_amount(o, "lifetime", l->lifetime);
		json_out_ku64_any(o, "decimals", rulejson_is_native(l->asset) ? 18 : l->decimals);
		json_out_kstr_any(o, "symbol", l->symbol);
		json_out_kbool(o, "unlimited_approvals", l->unlimited_approvals);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_addresses(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "addresses");
	json_out_array(o);
	for (size_t i = 0; i < r->addresses.n; i++) {
		const struct sgn_address_rule *x = &r->addresses.items[i];
		json_out_object(o);
		put_chain(o, x->chain);
		put_address(o, "address", x->address);
		json_out_kbool(o, "deny", x->deny);
		json_out_kbool(o, "call", x->call);
		json_out_kstr_any(o, "note", x->note);
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
		put_chain(o, r->typed.items[i].chain);
		put_address(o, "contract", r->typed.items[i].contract);
		json_out_kstr(o, "primary_type", r->typed.items[i].primary_type);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_key(o, "windows");
	json_out_array(o);
	for (size_t i = 0; i < r->windows.n; i++) {
		const struct sgn_window *x = &r->windows.items[i];
		char from[16], to[16];
		snprintf(from, sizeof(from), "%02u:%02u", x->from_minute / 60, x->from_minute % 60);
		snprintf(to, sizeof(to), "%02u:%02u", x->to_minute / 60, x->to_minute % 60);
		json_out_object(o);
		json_out_key(o, "days");
		json_out_array(o);
		for (size_t d = 0; d < RULEJSON_DAYS; d++)
			if (x->days >> d & 1)
				json_out_str(o, view_of(rulejson_days[d]));
		json_out_end(o, ']');
		json_out_kz(o, "start", from);
		json_out_kz(o, "end", to);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

void rulejson_put(struct json_out *o, const struct sgn_rules *r)
{
	json_out_object(o);
	json_out_kstr(o, "agent", view_starts(r->scope, "agent:") ? view_skip(r->scope, 6) : r->scope);
	json_out_key(o, "wallets");
	json_out_array(o);
	for (size_t i = 0; i < r->wallets.n; i++) {
		json_out_object(o);
		put_chain(o, r->wallets.items[i].chain);
		json_out_kstr(o, "wallet", r->wallets.items[i].wallet);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	rulejson_put_list(o, r);
	put_addresses(o, r);
	put_more_lists(o, r);
	for (unsigned i = 0; i < RULE_FIELDS; i++) {
		rule_fields_put_in_force(o, r, i);
		if (i == RULE_FIELD_approvers)
			rulejson_put_amount(o, "auto_below", r->auto_below);
	}
	json_out_end(o, '}');
}
