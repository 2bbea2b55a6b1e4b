/*
 * See rules_diff.h. The signer judges by policy_stricter; test_wallets.py compares the two.
 */
#include "rules_diff.h"

#include "amount.h"
#include "rulejson.h"
#include "rules_show.h"
#include "show.h"
#include "rule_fields.h"

#include "poison.h"

struct diff {
	struct buf *out;
	struct rules_diff sum;
};

static struct buf *line(struct diff *d, bool looser)
{
	d->sum.n++;
	d->sum.looser += looser;
	buf_puts(d->out, looser ? "! " : "  ");
	return d->out;
}

static void end(struct diff *d)
{
	buf_putc(d->out, '\n');
}

/* ---- amounts: 32 bytes, the highest first ---- */

/* An absent one does not limit. */
static bool no_more(struct view now, struct view was)
{
	return was.n == 0 || (now.n == was.n && memcmp(now.p, was.p, now.n) <= 0);
}

static bool limit_looser(const struct sgn_limit *now, const struct sgn_limit *was)
{
	return !no_more(now->per_tx, was->per_tx) || !no_more(now->day, was->day) ||
	       !no_more(now->week, was->week) || !no_more(now->month, was->month) ||
	       !no_more(now->lifetime, was->lifetime) ||
	       (now->unlimited_approvals && !was->unlimited_approvals) || now->decimals != was->decimals ||
	       !view_eq(now->symbol, was->symbol);
}

static bool limit_eq(const struct sgn_limit *a, const struct sgn_limit *b)
{
	return !limit_looser(a, b) && !limit_looser(b, a);
}

static const struct sgn_limit *limit_of(const struct sgn_rules *r, const struct sgn_limit *l)
{
	for (size_t i = 0; i < r->limits.n; i++)
		if (r->limits.items[i].chain == l->chain && view_eq(r->limits.items[i].asset, l->asset))
			return &r->limits.items[i];
	return NULL;
}

static void diff_limits(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now)
{
	for (size_t i = 0; i < now->limits.n; i++) {
		const struct sgn_limit *n = &now->limits.items[i], *b = limit_of(was, n);
		if (b && limit_eq(n, b))
			continue;
		rules_show_limit(line(d, !b || limit_looser(n, b)), n);
		buf_puts(d->out, b ? "\n    before: " : " (new)");
		if (b)
			rules_show_limit(d->out, b);
		end(d);
	}
	for (size_t i = 0; i < was->limits.n; i++)
		if (!limit_of(now, &was->limits.items[i])) {
			buf_puts(line(d, false), "nothing any more; before: ");
			rules_show_limit(d->out, &was->limits.items[i]);
			end(d);
		}
}

/* ---- lists ---- */

static const struct sgn_agent_wallet *wallet_of(const struct sgn_rules *r, uint64_t chain)
{
	for (size_t i = 0; i < r->wallets.n; i++)
		if (r->wallets.items[i].chain == chain)
			return &r->wallets.items[i];
	return NULL;
}

static void diff_wallets(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now)
{
	for (size_t i = 0; i < now->wallets.n; i++) {
		const struct sgn_agent_wallet *n = &now->wallets.items[i], *b = wallet_of(was, n->chain);
		if (b && view_eq(n->wallet, b->wallet))
			continue;
		buf_printf(line(d, true), "on eip155:%llu it spends from the wallet %.*s",
			   (unsigned long long)n->chain, VIEW_ARG(n->wallet));
		if (b)
			buf_printf(d->out, " (before: %.*s)", VIEW_ARG(b->wallet));
		end(d);
	}
	for (size_t i = 0; i < was->wallets.n; i++)
		if (!wallet_of(now, was->wallets.items[i].chain)) {
			buf_printf(line(d, false), "nothing on eip155:%llu any more",
				   (unsigned long long)was->wallets.items[i].chain);
			end(d);
		}
}

enum how { SAME, COVERS, NAMED };

/* Whether rules have the same address rule, one that allows as much, or one with its name. */
static bool has_address(const struct sgn_rules *r, const struct sgn_address_rule *a, enum how how)
{
	for (size_t i = 0; i < r->addresses.n; i++) {
		const struct sgn_address_rule *b = &r->addresses.items[i];
		bool here = b->chain == a->chain && b->deny == a->deny;
		if (!view_eq(a->address, b->address))
			continue;
		if ((how == SAME && here && b->call == a->call && view_eq(b->note, a->note)) ||
		    (how == COVERS && here && (b->call || !a->call)) ||
		    (how == NAMED && view_eq(b->note, a->note)))
			return true;
	}
	return false;
}

static void diff_addresses(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now)
{
	for (size_t i = 0; i < now->addresses.n; i++) {
		const struct sgn_address_rule *a = &now->addresses.items[i];
		if (has_address(was, a, SAME))
			continue;
		buf_puts(line(d, (!a->deny && !has_address(was, a, COVERS)) ||
					 (a->note.n && !has_address(was, a, NAMED))),
			 "listed: ");
		rules_show_address(d->out, a);
		end(d);
	}
	for (size_t i = 0; i < was->addresses.n; i++) {
		const struct sgn_address_rule *a = &was->addresses.items[i];
		if (has_address(now, a, SAME))
			continue;
		buf_puts(line(d, a->deny && !has_address(now, a, COVERS)), "no longer listed: ");
		rules_show_address(d->out, a);
		end(d);
	}
}

static bool has_typed(const struct sgn_rules *r, const struct sgn_typed_rule *t)
{
	for (size_t i = 0; i < r->typed.n; i++) {
		const struct sgn_typed_rule *b = &r->typed.items[i];
		if (b->chain == t->chain && view_eq(b->contract, t->contract) &&
		    view_eq(b->primary_type, t->primary_type))
			return true;
	}
	return false;
}

static void diff_typed(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now)
{
	for (size_t i = 0; i < now->typed.n; i++)
		if (!has_typed(was, &now->typed.items[i])) {
			buf_puts(line(d, true), "it may ask for signatures of ");
			rules_show_typed(d->out, &now->typed.items[i]);
			end(d);
		}
	for (size_t i = 0; i < was->typed.n; i++)
		if (!has_typed(now, &was->typed.items[i])) {
			buf_puts(line(d, false), "no more signatures of ");
			rules_show_typed(d->out, &was->typed.items[i]);
			end(d);
		}
}

/* Whether one of the windows has all of this one, or_usual(`same`) is this one. */
static bool has_window(const struct sgn_rules *r, const struct sgn_window *w, bool same)
{
	for (size_t i = 0; i < r->windows.n; i++) {
		const struct sgn_window *b = &r->windows.items[i];
		if (same ? b->days == w->days && b->from_minute == w->from_minute &&
				    b->to_minute == w->to_minute
			 : (w->days & ~b->days) == 0 && b->from_minute <= w->from_minute &&
				    b->to_minute >= w->to_minute)
			return true;
	}
	return false;
}

static void diff_windows(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now)
{
	for (size_t i = 0; i < now->windows.n; i++) {
		const struct sgn_window *w = &now->windows.items[i];
		if (has_window(was, w, true))
			continue;
		buf_puts(line(d, was->windows.n && !has_window(was, w, false)),
			 was->windows.n ? "it may spend also " : "it may spend only ");
		rules_show_window(d->out, w);
		end(d);
	}
	for (size_t i = 0; i < was->windows.n; i++) {
		if (has_window(now, &was->windows.items[i], true))
			continue;
		buf_puts(line(d, !now->windows.n), now->windows.n
							   ? "no longer allowed: "
							   : "it may spend at all times, no longer only ");
		rules_show_window(d->out, &was->windows.items[i]);
		end(d);
	}
}

/* ---- the rest ---- */

static void diff_count(struct diff *d, enum rule_field i, uint32_t was, uint32_t now)
{
	const struct rule_field_row *row = &rule_fields_rows[i];

	buf_printf(d->out, "%s: ", row->on);
	if (row->unit == RULE_TIME)
		rules_show_seconds(d->out, now);
	else
		buf_printf(d->out, "%u", now);
	buf_puts(d->out, " (before: ");
	if (row->unit == RULE_TIME)
		rules_show_seconds(d->out, was);
	else
		buf_printf(d->out, "%u", was);
	buf_puts(d->out, ")");
}

/* The plain rules: flags, or what is counted. */
static void diff_plain(struct diff *d, const struct sgn_rules *was, const struct sgn_rules *now, bool counts)
{
	for (unsigned i = 0; i < RULE_FIELDS; i++) {
		const struct rule_field_row *row = &rule_fields_rows[i];
		uint32_t b = rule_fields_in_force(was, i), n = rule_fields_in_force(now, i);
		if (row->counts != counts || n == b)
			continue;
		line(d, rule_fields_looser(i, b, n));
		if (counts)
			diff_count(d, i, b, n);
		else
			buf_puts(d->out, n ? row->on : row->off);
		end(d);
	}
}

static void diff_fee(struct diff *d, const char *what, struct view was, struct view now)
{
	char amount[U256_UNITS];

	if (view_eq(was, now))
		return;
	struct buf *out = line(d, !no_more(now, was));
	amount_text(now, AMOUNT_NATIVE, amount);
	buf_printf(out, "fees %s: %s", what, now.n ? amount : "not limited");
	amount_text(was, AMOUNT_NATIVE, amount);
	buf_printf(out, " (before: %s)", was.n ? amount : "not limited");
	end(d);
}

/* Here an absent amount allows nothing. */
static void diff_auto(struct diff *d, struct view was, struct view now)
{
	char amount[U256_UNITS];

	if (view_eq(was, now))
		return;
	amount_text(now, AMOUNT_NATIVE, amount);
	struct buf *out = line(d, now.n && (!was.n || !no_more(now, was)));
	if (now.n)
		buf_printf(out, "up to %s of the native asset to a listed address nobody is asked", amount);
	else
		buf_puts(out, "a person is always asked");
	amount_text(was, AMOUNT_NATIVE, amount);
	if (was.n)
		buf_printf(out, " (before: up to %s nobody was)", amount);
	end(d);
}

struct rules_diff rules_diff(struct buf *out, const struct sgn_rules *was, const struct sgn_rules *now)
{
	struct diff d = { .out = out };

	diff_wallets(&d, was, now);
	diff_limits(&d, was, now);
	diff_addresses(&d, was, now);
	diff_plain(&d, was, now, false);
	diff_fee(&d, "of one transaction", was->fee_per_tx, now->fee_per_tx);
	diff_fee(&d, "in 24 hours", was->fee_day, now->fee_day);
	diff_auto(&d, was->auto_below, now->auto_below);
	diff_plain(&d, was, now, true);
	diff_typed(&d, was, now);
	diff_windows(&d, was, now);
	return d.sum;
}
