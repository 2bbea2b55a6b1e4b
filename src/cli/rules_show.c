/*
 * See rules_show.h.
 */
#include "rules_show.h"

#include "amount.h"
#include "show.h"

#include "poison.h"

/* ---- JSON ---- */

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
	json_out_kz(o, key, amount_is_native(v) ? "native" : text);
}

/* In base units. */
static void put_amount(struct json_out *o, const char *key, struct view v)
{
	char text[U256_UNITS];

	amount_text(v, 0, text);
	json_out_kz(o, key, text[0] ? text : NULL);
}

static void put_limits(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "limits");
	json_out_array(o);
	for (size_t i = 0; i < r->limits.n; i++) {
		const struct sgn_limit *l = &r->limits.items[i];
		json_out_object(o);
		put_chain(o, l->chain);
		put_address(o, "asset", l->asset);
		put_amount(o, "per_transaction", l->per_tx);
		put_amount(o, "day", l->day);
		put_amount(o, "week", l->week);
		put_amount(o, "month", l->month);
		put_amount(o, "lifetime", l->lifetime);
		json_out_ku64(o, "decimals", amount_decimals(l));
		if (l->symbol.n)
			json_out_kstr(o, "symbol", l->symbol);
		json_out_kbool(o, "unlimited_approvals", l->unlimited_approvals);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_lists(struct json_out *o, const struct sgn_rules *r)
{
	json_out_key(o, "wallets");
	json_out_array(o);
	for (size_t i = 0; i < r->wallets.n; i++) {
		json_out_object(o);
		put_chain(o, r->wallets.items[i].chain);
		json_out_kstr(o, "wallet", r->wallets.items[i].wallet);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_key(o, "addresses");
	json_out_array(o);
	for (size_t i = 0; i < r->addresses.n; i++) {
		const struct sgn_address_rule *a = &r->addresses.items[i];
		json_out_object(o);
		put_chain(o, a->chain);
		put_address(o, "address", a->address);
		json_out_kbool(o, "deny", a->deny);
		json_out_kbool(o, "call", a->call);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

void rules_show_json(struct json_out *o, const struct sgn_rules *r)
{
	bool agent = view_starts(r->scope, "agent:");

	json_out_object(o);
	json_out_kstr(o, agent ? "agent" : "wallet", view_skip(r->scope, agent ? 6 : 7));
	put_limits(o, r);
	put_lists(o, r);
	if (!agent) {
		put_amount(o, "fee_per_transaction", r->fee_per_tx);
		put_amount(o, "fee_day", r->fee_day);
	}
	json_out_kbool(o, "only_listed", r->only_listed);
	json_out_kbool(o, "allow_creation", r->allow_creation);
	json_out_kbool(o, "allow_dangerous", r->allow_dangerous);
	json_out_kbool(o, "allow_messages", r->allow_messages);
	json_out_kbool(o, "require_simulation", r->require_simulation);
	json_out_kbool(o, "paused", r->paused);
	json_out_ku64(o, "approvers", r->approvers ? r->approvers : 1);
	put_amount(o, "auto_below", r->auto_below);
	json_out_ku64(o, "max_pending", r->max_pending ? r->max_pending : 5);
	json_out_ku64(o, "expiry_seconds", r->expiry_s ? r->expiry_s : 300);
	json_out_ku64(o, "cool_down_seconds", r->cool_down_s);
	json_out_ku64(o, "suspend_after", r->suspend_after);
	json_out_end(o, '}');
}

/* ---- sentences ---- */

static void say_window(struct buf *out, struct view v, unsigned decimals, const char *text)
{
	char amount[U256_UNITS];

	amount_text(v, decimals, amount);
	if (amount[0])
		buf_printf(out, ", %s %s", amount, text);
}

static void say_limit(struct buf *out, const struct sgn_limit *l)
{
	unsigned decimals = amount_decimals(l);
	char amount[U256_UNITS], address[ADDRESS_TEXT] = "";

	if (l->asset.n == ADDRESS_SIZE)
		address_text((const uint8_t *)l->asset.p, address);
	amount_text(l->per_tx, decimals, amount);
	buf_printf(out, "  on eip155:%llu ", (unsigned long long)l->chain);
	if (amount_is_native(l->asset))
		buf_puts(out, "the native asset");
	else if (l->symbol.n)
		buf_printf(out, "%.*s (the token %s)", VIEW_ARG(l->symbol), address);
	else
		buf_printf(out, "the token %s", address);
	buf_printf(out, ": at most %s in one transaction", amount);
	say_window(out, l->day, decimals, "in 24 hours");
	say_window(out, l->week, decimals, "in 7 days");
	say_window(out, l->month, decimals, "in 30 days");
	say_window(out, l->lifetime, decimals, "in all");
	if (!amount_is_native(l->asset) && !decimals)
		buf_puts(out, " (base units)");
	buf_puts(out, l->unlimited_approvals ? "; unlimited approvals are allowed\n" : "\n");
}

static void say_addresses(struct buf *out, const struct sgn_rules *r)
{
	char address[ADDRESS_TEXT];

	if (r->only_listed)
		buf_puts(out, r->addresses.n ? "It may send to and call only:\n"
					     : "It may send to nobody: no address is listed.\n");
	else if (r->addresses.n)
		buf_puts(out, "It may send to any address. These are listed:\n");
	else
		buf_puts(out, "It may send to any address.\n");
	for (size_t i = 0; i < r->addresses.n; i++) {
		const struct sgn_address_rule *a = &r->addresses.items[i];
		if (a->address.n != ADDRESS_SIZE)
			continue;
		address_text((const uint8_t *)a->address.p, address);
		buf_printf(out, "  %s%s%s", address, a->deny ? " (forbidden)" : "",
			   a->call ? " (also calls that cannot be understood)" : "");
		if (a->chain)
			buf_printf(out, " on eip155:%llu", (unsigned long long)a->chain);
		buf_putc(out, '\n');
	}
}

static void say_decisions(struct buf *out, const struct sgn_rules *r)
{
	char amount[U256_UNITS];

	amount_text(r->auto_below, AMOUNT_NATIVE, amount);
	if (r->approvers > 1)
		buf_printf(out, "%u different people must approve each request.\n", r->approvers);
	else
		buf_puts(out, "A person must approve each request.\n");
	if (amount[0])
		buf_printf(out, "Up to %s of the native asset to a listed address nobody is asked.\n",
			   amount);
	if (r->allow_messages)
		buf_puts(out, "It may ask for signatures of messages.\n");
	if (r->allow_creation)
		buf_puts(out, "It may create contracts.\n");
	if (r->allow_dangerous)
		buf_puts(out, "It may ask for dangerous calls: operators, ownership, upgrades.\n");
	if (r->require_simulation)
		buf_puts(out, "A request that cannot be simulated is refused.\n");
	if (r->paused)
		buf_puts(out,
			 "It is paused: nothing is signed for it until `paddock agent allow --resume`.\n");
}

void rules_show_agent(struct buf *out, const struct sgn_rules *r)
{
	if (!r->wallets.n || !r->limits.n) {
		buf_puts(out, "It may spend nothing.\n");
		return;
	}
	buf_puts(out, "It may spend:\n");
	for (size_t i = 0; i < r->limits.n; i++)
		say_limit(out, &r->limits.items[i]);
	say_addresses(out, r);
	say_decisions(out, r);
}

void rules_show_wallet(struct buf *out, const struct sgn_rules *r)
{
	char amount[U256_UNITS];

	if (!r->limits.n)
		buf_puts(out, "The limits of its agents hold, and no limit for all of them together.\n");
	else
		buf_puts(out, "All its agents together may spend:\n");
	for (size_t i = 0; i < r->limits.n; i++)
		say_limit(out, &r->limits.items[i]);
	amount_text(r->fee_per_tx, AMOUNT_NATIVE, amount);
	buf_printf(out, "Fees: at most %s in one transaction", amount[0] ? amount : "nothing");
	say_window(out, r->fee_day, AMOUNT_NATIVE, "in 24 hours");
	buf_puts(out, ".\n");
}
