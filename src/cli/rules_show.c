/*
 * See rules_show.h.
 */
#include "rules_show.h"

#include <stdio.h>

#include "amount.h"
#include "rulejson.h"
#include "show.h"

#include "poison.h"

void rules_show_json(struct json_out *o, const struct sgn_rules *r)
{
	if (view_starts(r->scope, "agent:")) {
		rulejson_put(o, r);
		return;
	}
	json_out_object(o);
	json_out_kstr(o, "wallet", view_skip(r->scope, 7));
	rulejson_put_list(o, r);
	rulejson_put_amount(o, "fee_per_transaction", r->fee_per_tx);
	rulejson_put_amount(o, "fee_day", r->fee_day);
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

void rules_show_limit(struct buf *out, const struct sgn_limit *l)
{
	unsigned decimals = amount_decimals(l);
	char amount[U256_UNITS], address[ADDRESS_TEXT] = "";

	if (l->asset.n == ADDRESS_SIZE)
		address_text((const uint8_t *)l->asset.p, address);
	amount_text(l->per_tx, decimals, amount);
	buf_printf(out, "on eip155:%llu ", (unsigned long long)l->chain);
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
	if (l->unlimited_approvals)
		buf_puts(out, "; unlimited approvals are allowed");
}

static void say_limits(struct buf *out, const struct sgn_rules *r)
{
	for (size_t i = 0; i < r->limits.n; i++) {
		buf_puts(out, "  ");
		rules_show_limit(out, &r->limits.items[i]);
		buf_putc(out, '\n');
	}
}

void rules_show_address(struct buf *out, const struct sgn_address_rule *a)
{
	char address[ADDRESS_TEXT] = "";

	if (a->address.n == ADDRESS_SIZE)
		address_text((const uint8_t *)a->address.p, address);
	buf_printf(out, "%s%s%s", address, a->deny ? " (forbidden)" : "",
		   a->call ? " (also calls that cannot be understood)" : "");
	if (a->chain)
		buf_printf(out, " on eip155:%llu", (unsigned long long)a->chain);
	if (a->note.n) {
		buf_puts(out, ": ");
		(void)!show_clean(out, a->note);
	}
}

void rules_show_typed(struct buf *out, const struct sgn_typed_rule *t)
{
	char address[ADDRESS_TEXT] = "";

	if (t->contract.n == ADDRESS_SIZE)
		address_text((const uint8_t *)t->contract.p, address);
	(void)!show_clean(out, t->primary_type);
	buf_printf(out, " of %s on eip155:%llu", address, (unsigned long long)t->chain);
}

void rules_show_window(struct buf *out, const struct sgn_window *w)
{
	const char *before = "";

	for (int i = 0; i < RULEJSON_DAYS; i++)
		if (w->days >> i & 1) {
			buf_printf(out, "%s%s", before, rulejson_days[i]);
			before = ", ";
		}
	buf_printf(out, " from %02u:%02u to %02u:%02u UTC", w->from_minute / 60, w->from_minute % 60,
		   w->to_minute / 60, w->to_minute % 60);
}

void rules_show_seconds(struct buf *out, uint32_t s)
{
	if (s && s % 3600 == 0)
		buf_printf(out, "%u h", s / 3600);
	else if (s && s % 60 == 0)
		buf_printf(out, "%u min", s / 60);
	else
		buf_printf(out, "%u s", s);
}

static void say_addresses(struct buf *out, const struct sgn_rules *r)
{
	size_t listed = 0;

	for (size_t i = 0; i < r->addresses.n; i++)
		listed += !r->addresses.items[i].deny;
	if (r->only_listed)
		buf_puts(out, listed ? "It may send to and call only:\n"
				     : "It may send to nobody: no address is listed.\n");
	else
		buf_puts(out, r->addresses.n ? "It may send to any address. These are listed:\n"
					     : "It may send to any address.\n");
	for (size_t i = 0; i < r->addresses.n; i++) {
		buf_puts(out, "  ");
		rules_show_address(out, &r->addresses.items[i]);
		buf_putc(out, '\n');
	}
}

static void say_times(struct buf *out, const struct sgn_rules *r)
{
	if (r->windows.n)
		buf_puts(out, "It may spend only at these times:\n");
	for (size_t i = 0; i < r->windows.n; i++) {
		buf_puts(out, "  ");
		rules_show_window(out, &r->windows.items[i]);
		buf_putc(out, '\n');
	}
	buf_printf(out, "At most %u requests wait at once, each for ", r->max_pending ? r->max_pending : 5);
	rules_show_seconds(out, r->expiry_s ? r->expiry_s : 300);
	buf_puts(out, ".\n");
	if (r->cool_down_s) {
		buf_puts(out, "The first transfer to a new recipient is held back for ");
		rules_show_seconds(out, r->cool_down_s);
		buf_puts(out, ".\n");
	}
	if (r->suspend_after)
		buf_printf(out, "It is paused after %u refusals within an hour.\n", r->suspend_after);
	if (r->paused)
		buf_puts(out,
			 "It is paused: nothing is signed for it until `paddock agent allow --resume`.\n");
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
	if (r->typed.n)
		buf_puts(out, "It may ask for signatures of typed data that cannot be decoded:\n");
	for (size_t i = 0; i < r->typed.n; i++) {
		buf_puts(out, "  ");
		rules_show_typed(out, &r->typed.items[i]);
		buf_putc(out, '\n');
	}
	if (r->allow_creation)
		buf_puts(out, "It may create contracts.\n");
	if (r->allow_dangerous)
		buf_puts(out, "It may ask for dangerous calls: operators, ownership, upgrades.\n");
	if (r->require_simulation)
		buf_puts(out, "A request that cannot be simulated is refused.\n");
}

void rules_show_agent(struct buf *out, const struct sgn_rules *r)
{
	if (!r->wallets.n || !r->limits.n) {
		buf_puts(out, "It may spend nothing.\n");
		return;
	}
	buf_puts(out, "It may spend:\n");
	say_limits(out, r);
	say_addresses(out, r);
	say_decisions(out, r);
	say_times(out, r);
}

void rules_show_wallet(struct buf *out, const struct sgn_rules *r)
{
	char amount[U256_UNITS];

	if (!r->limits.n)
		buf_puts(out, "The limits of its agents hold, and no limit for all of them together.\n");
	else
		buf_puts(out, "All its agents together may spend:\n");
	say_limits(out, r);
	amount_text(r->fee_per_tx, AMOUNT_NATIVE, amount);
	buf_printf(out, "Fees: at most %s in one transaction", amount[0] ? amount : "nothing");
	say_window(out, r->fee_day, AMOUNT_NATIVE, "in 24 hours");
	buf_puts(out, ".\n");
}
