/*
 * An agent's request as plain text: see card.h. The order is that of a careful reader: what would happen,
 * what it costs, what speaks against it; then the evidence; then the words of the agent.
 */
#include <stdio.h>

#include "address.h"
#include "card.h"
#include "card_impl.h"
#include "clock.h"
#include "text.h"
#include "u256.h"
#include "poison.h"

#define DATA_SHOWN 256
#define QUOTE_MOST 1024
#define BAR        20

/* ---- words ---- */

static void add_address(struct buf *out, struct view a)
{
	char text[ADDRESS_TEXT];

	if (a.n != ADDRESS_SIZE) {
		buf_puts(out, "(no address)");
		return;
	}
	address_text((const uint8_t *)a.p, text);
	buf_puts(out, text);
}

/* The bytes of the character at the front that a terminal or a reader could be misled by; 0: none. */
static size_t misleads(struct view v)
{
	const uint8_t a = (uint8_t)v.p[0], b = v.n > 1 ? (uint8_t)v.p[1] : 0,
		      c = v.n > 2 ? (uint8_t)v.p[2] : 0;

	if (a < 0x20 || a == 0x7f)
		return 1;
	if (a == 0xc2 && ((b >= 0x80 && b < 0xa0) || b == 0xad)) /* C1, soft hyphen */
		return 2;
	if (a == 0xd8 && b == 0x9c) /* U+061C */
		return 2;
	if (a == 0xe2 && b == 0x80 && ((c >= 0x8b && c <= 0x8f) || (c >= 0xa8 && c <= 0xae)))
		return 3; /* zero width, directions, line and paragraph separators */
	if (a == 0xe2 && b == 0x81 && c >= 0xa0 && c <= 0xaf)
		return 3;
	if (a == 0xe1 && b == 0xa0 && c == 0x8e)
		return 3;
	if (a == 0xef && ((b == 0xbb && c == 0xbf) || (b == 0xbf && c >= 0xb9 && c <= 0xbb)))
		return 3;
	if (a == 0xf3 && b == 0xa0 && v.n > 3) /* tags, which nothing shows */
		return 4;
	return 0;
}

/* On one line, and nothing in it that a terminal or a reader is misled by. */
static void add_clean(struct buf *out, struct view text, bool quoted)
{
	for (struct view v = text; v.n;) {
		const size_t n = misleads(v);
		if (n)
			buf_puts(out, v.p[0] == '\n' || v.p[0] == '\t' ? " " : "\xef\xbf\xbd");
		else if (quoted && (v.p[0] == '"' || v.p[0] == '\\'))
			buf_printf(out, "\\%c", v.p[0]);
		else
			buf_putc(out, v.p[0]);
		v = view_skip(v, n ? n : 1);
	}
}

/* A name that an administrator or the owner gave. */
static void add_name(struct buf *out, struct view name)
{
	_cleanup_(buf_done) struct buf fixed = BUF_INIT(4 * QUOTE_MOST + 16);

	(void)!text_utf8_fix(&fixed, view_head(name, MIN(name.n, (size_t)QUOTE_MOST)));
	add_clean(out, buf_view(&fixed), false);
}

/* Text of others: in quotes, on one line, without control and direction characters, at most `most` bytes. */
static void card_quote(struct buf *out, struct view text, size_t most)
{
	_cleanup_(buf_done) struct buf fixed = BUF_INIT(4 * QUOTE_MOST + 16);
	const bool cut = text.n > MIN(most, (size_t)QUOTE_MOST);

	(void)!text_utf8_fix(&fixed, view_head(text, MIN(most, (size_t)QUOTE_MOST)));
	buf_putc(out, '"');
	add_clean(out, buf_view(&fixed), true);
	buf_puts(out, cut ? "…\"" : "\"");
}

void card_amount(struct buf *out, struct view asset, struct view amount, uint32_t decimals,
		 struct view symbol)
{
	const bool native = card_is_native(asset);
	char text[U256_UNITS];
	struct u256 v;

	if (u256_load_view(amount, &v) < 0)
		v = U256_MAX;
	if (native || decimals)
		u256_units(&v, native ? 18 : decimals, text);
	else
		u256_text(&v, text);
	buf_puts(out, text);
	if (native) {
		buf_putc(out, ' ');
		add_name(out, symbol.n ? symbol : VIEW("(native)"));
	} else if (symbol.n && decimals) {
		buf_putc(out, ' ');
		add_name(out, symbol);
		buf_puts(out, " (");
		add_address(out, asset);
		buf_putc(out, ')');
	} else {
		buf_puts(out, decimals ? " of " : " base units of ");
		add_address(out, asset);
	}
}

static void add_chain(struct buf *out, const struct core *c, uint64_t chain)
{
	const struct view name = card_chain_name(c, chain);

	add_name(out, name);
	buf_printf(out, name.n ? " (eip155:%llu)" : "eip155:%llu", (unsigned long long)chain);
}

static void add_effect(struct buf *out, const struct core *c, uint64_t chain, const struct sgn_effect *f)
{
	const struct view symbol = card_symbol(c, chain, f->asset, f->symbol);

	if (f->approval) {
		buf_puts(out, "let ");
		add_address(out, f->to);
		buf_puts(out, f->unlimited ? " take ANY AMOUNT of " : " take ");
		if (f->unlimited)
			add_address(out, f->asset);
		else
			card_amount(out, f->asset, f->amount, f->decimals, symbol);
	} else if (card_only_reaches(f)) {
		buf_puts(out, "reach ");
		add_address(out, f->to);
	} else {
		buf_puts(out, "send ");
		card_amount(out, f->asset, f->amount, f->decimals, symbol);
		buf_puts(out, " to ");
		add_address(out, f->to);
	}
}

/* Somebody else than the payee is called. */
static bool is_wrapper(const struct sgn_item *i)
{
	for (size_t k = 0; k < i->effects.n; k++)
		if (i->effects.items[k].target && i->to.n)
			return true;
	return false;
}

void card_sentence(struct buf *out, const struct core *c, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;

	buf_puts(out, "Agent ");
	add_name(out, v->agent_name && v->agent_name[0] ? view_of(v->agent_name) : i->agent);
	buf_puts(out, " wants to ");
	if (i->kind == SGN_REQUEST_KIND_MESSAGE)
		buf_puts(out, "sign a message");
	else if (view_is(i->call_class, "creation"))
		buf_puts(out, "create a contract");
	else if (i->effects.n)
		add_effect(out, c, i->chain, &i->effects.items[0]);
	else if (i->kind == SGN_REQUEST_KIND_TYPED)
		buf_puts(out, "sign typed data");
	else {
		buf_puts(out, "call ");
		add_address(out, i->to);
	}
	if (i->effects.n > 1)
		buf_printf(out, " and %zu more", i->effects.n - 1);
	if (is_wrapper(i)) {
		buf_puts(out, ", through ");
		add_address(out, i->to);
	}
	buf_puts(out, " on ");
	add_chain(out, c, i->chain);
	buf_putc(out, '.');
}

/* ---- lines ---- */

static void head(struct buf *out, const char *name)
{
	buf_printf(out, "  %-9s ", name);
}

static void line_time(struct buf *out, int64_t ms)
{
	char when[CLOCK_RFC3339_SIZE];

	clock_rfc3339(ms, when);
	buf_puts(out, when);
}

static void add_facts(struct buf *out, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;

	head(out, "request");
	add_name(out, i->id);
	buf_printf(out, ", %s", sgn_state_name(i->state));
	if (i->state == SGN_STATE_PENDING) {
		buf_puts(out, " until ");
		line_time(out, i->expires_ms);
	}
	buf_putc(out, '\n');
	if (i->approvers > 1) {
		head(out, "approvers");
		buf_printf(out, "%u are needed%s", i->approvers, i->decided_by.n ? "; so far " : "");
		add_name(out, i->decided_by);
		buf_putc(out, '\n');
	} else if (i->decided_by.n) {
		head(out, "decided");
		add_name(out, i->decided_by);
		buf_putc(out, '\n');
	}
	if (i->wallet.n) {
		head(out, "wallet");
		add_name(out, i->wallet);
		buf_putc(out, ' ');
		add_address(out, i->from);
		buf_putc(out, '\n');
	}
	if (i->to.n) {
		head(out, "to");
		add_address(out, i->to);
		buf_puts(out, i->to_has_code ? ", a contract\n" : "\n");
	}
}

/* Text of the signer's. */
static void quote_named(struct buf *out, const struct core *c, const struct sgn_item *i, struct view text)
{
	_cleanup_(buf_done) struct buf named = BUF_INIT(16u * 1024);

	card_quote(out, spend_name_native(&named, c, i->chain, text), QUOTE_MOST);
}

static void add_effects(struct buf *out, const struct core *c, const struct sgn_item *i)
{
	for (size_t k = 0; k < i->effects.n; k++) {
		const struct sgn_effect *f = &i->effects.items[k];
		head(out, k ? "" : "effects");
		add_effect(out, c, i->chain, f);
		if (f->note.n) {
			buf_puts(out, " ");
			card_quote(out, f->note, 200);
		}
		if (f->approval && f->allowance.n) {
			buf_puts(out, ", until now ");
			card_amount(out, f->asset, f->allowance, f->decimals,
				    card_symbol(c, i->chain, f->asset, f->symbol));
		}
		buf_puts(out, f->first ? "  FIRST TIME\n" : "\n");
	}
	const struct view native = { (const char *)address_native, ADDRESS_SIZE };
	if (i->fee.n) {
		head(out, "fee");
		buf_puts(out, "at most ");
		card_amount(out, native, i->fee, 18, card_symbol(c, i->chain, native, VIEW_NONE));
		buf_printf(out, ", %llu gas\n", (unsigned long long)i->gas);
	}
	if (i->error.n) {
		head(out, "refused");
		quote_named(out, c, i, i->error);
		buf_putc(out, '\n');
	}
}

static bool is_danger(const struct sgn_risk *x)
{
	return x->level >= SGN_RISK_LEVEL_DANGER || x->level < 0;
}

/* Dangers stand at the top, before what one has to scroll to. */
static void add_risks(struct buf *out, const struct sgn_item *i, bool dangers)
{
	static const char *const levels[] = { "note", "note", "WARNING", "DANGER" };
	bool any = false;

	for (size_t k = 0; k < i->risks.n; k++) {
		const struct sgn_risk *x = &i->risks.items[k];
		if (is_danger(x) != dangers)
			continue;
		if (!any && !dangers)
			buf_puts(out, "\nRisks\n");
		any = true;
		head(out, x->level >= 0 && (size_t)x->level < ELEMS(levels) ? levels[x->level] : "DANGER");
		card_quote(out, x->text, QUOTE_MOST);
		buf_putc(out, '\n');
	}
	if (any && dangers)
		buf_putc(out, '\n');
}

static void add_simulation(struct buf *out, const struct core *c, const struct sgn_item *i)
{
	if (i->kind != SGN_REQUEST_KIND_TX)
		return;
	if (i->method == SGN_SIM_METHOD_NONE || i->method == SGN_SIM_METHOD_ESTIMATE) {
		buf_printf(
			out, "\nNot simulated: %s\n",
			i->method == SGN_SIM_METHOD_NONE
				? "no node could be asked"
				: "this node has no eth_simulateV1 and no debug_traceCall, only estimates");
		return;
	}
	buf_printf(out, "\nThe wallet's balances, by %s at block %llu\n",
		   i->method == SGN_SIM_METHOD_SIMULATE_V1 ? "eth_simulateV1" : "a trace",
		   (unsigned long long)i->sim_block);
	bool any = false;
	for (size_t k = 0; k < i->moves.n; k++) {
		uint8_t amount[U256_BYTES];
		struct view symbol;
		uint32_t decimals;
		bool less;
		if (!card_delta(i, k, &less, amount))
			continue;
		card_find_asset(i, i->moves.items[k].asset, &decimals, &symbol);
		buf_puts(out, less ? "  - " : "  + ");
		card_amount(out, i->moves.items[k].asset, (struct view){ (const char *)amount, U256_BYTES },
			    decimals, card_symbol(c, i->chain, i->moves.items[k].asset, symbol));
		buf_putc(out, '\n');
		any = true;
	}
	if (!any)
		buf_puts(out, "  no change, except for the fee\n");
}

/* How much of the limit is used with this request. */
static void add_bar(struct buf *out, const struct sgn_limit_line *l)
{
	struct u256 after, limit;
	struct u256 factor = u256_of(BAR);
	unsigned full;

	if (u256_load_view(l->after, &after) < 0 || u256_load_view(l->limit, &limit) < 0)
		return;
	for (full = 0; full < BAR; full++) {
		const struct u256 step = u256_of(full + 1);
		struct u256 a, b;
		if (u256_mul(&after, &factor, &a) < 0 || u256_mul(&limit, &step, &b) < 0 ||
		    u256_cmp(&a, &b) < 0)
			break;
	}
	buf_puts(out, " [");
	for (unsigned k = 0; k < BAR; k++)
		buf_putc(out, k < full ? '#' : '.');
	buf_putc(out, ']');
}

static void add_limits(struct buf *out, const struct core *c, const struct sgn_item *i)
{
	if (i->limits.n)
		buf_puts(out, "\nLimits, before and with this request\n");
	for (size_t k = 0; k < i->limits.n; k++) {
		const struct sgn_limit_line *l = &i->limits.items[k];
		const struct view who = view_split(l->scope, ':', &(struct view){ 0 });
		const struct view symbol =
			card_symbol(c, l->chain ? l->chain : i->chain, l->asset, l->symbol);
		const bool fee = l->asset.n && (uint8_t)l->asset.p[0] == 0xff;
		buf_puts(out, "  ");
		add_name(out, who);
		buf_puts(out, fee ? " fees, " : ", ");
		add_name(out, l->window);
		buf_puts(out, ": ");
		card_amount(out, l->asset, l->before, l->decimals, symbol);
		buf_puts(out, " -> ");
		card_amount(out, l->asset, l->after, l->decimals, symbol);
		buf_puts(out, " of ");
		card_amount(out, l->asset, l->limit, l->decimals, symbol);
		add_bar(out, l);
		buf_putc(out, '\n');
	}
}

static void add_checks(struct buf *out, const struct core *c, const struct sgn_item *i)
{
	if (i->trace.n)
		buf_puts(out, "\nChecks\n");
	for (size_t k = 0; k < i->trace.n; k++) {
		const struct sgn_check *x = &i->trace.items[k];
		buf_puts(out, x->passed ? "  ok   " : "  FAIL ");
		add_name(out, x->name);
		buf_puts(out, ": ");
		quote_named(out, c, i, x->text);
		buf_putc(out, '\n');
	}
}

/* As much as is quoted at once, up to the beginning of a character. */
static size_t part_of(struct view v)
{
	size_t n = MIN(v.n, (size_t)QUOTE_MOST);

	for (unsigned back = 0; n < v.n && back < 3 && ((uint8_t)v.p[n] & 0xc0) == 0x80; back++)
		n--;
	return n;
}

static void add_data(struct buf *out, const struct sgn_item *i)
{
	char hex[2 * DATA_SHOWN + 1];
	struct view tree = i->tree;

	if (tree.n)
		buf_puts(out, "\nCall, as far as it is known\n");
	while (tree.p && tree.n) {
		struct view line = view_split(tree, '\n', &tree);
		size_t indent = 0;
		while (indent < line.n && line.p[indent] == ' ')
			indent++;
		buf_printf(out, "  %*s", (int)MIN(indent, 32u), "");
		card_quote(out, view_skip(line, indent), QUOTE_MOST);
		buf_putc(out, '\n');
	}
	if (!i->data.n)
		return;
	if (i->kind == SGN_REQUEST_KIND_TX) {
		text_hex(i->data.p, MIN(i->data.n, (size_t)DATA_SHOWN), hex);
		buf_printf(out, "\nData, %zu bytes\n  0x%s%s\n", i->data.n, hex,
			   i->data.n > DATA_SHOWN ? "…" : "");
	} else if (!text_is_plain(i->data)) {
		buf_printf(out, "\nThe bytes to be signed, %zu, which are no text\n", i->data.n);
		for (struct view rest = i->data; rest.n; rest = view_skip(rest, MIN(rest.n, (size_t)32))) {
			text_hex(rest.p, MIN(rest.n, (size_t)32), hex);
			buf_printf(out, "  0x%s\n", hex);
		}
	} else {
		/* All of it: what it means may be decided by its end. */
		buf_printf(out, "\nThe text to be signed, %zu bytes\n", i->data.n);
		for (struct view rest = i->data; rest.n;) {
			const struct view part = view_head(rest, part_of(rest));
			buf_puts(out, "  ");
			card_quote(out, part, QUOTE_MOST);
			buf_putc(out, '\n');
			rest = view_skip(rest, part.n);
		}
	}
}

static void add_fate(struct buf *out, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;
	char hex[65];

	if (i->hash.n == 32 && i->kind == SGN_REQUEST_KIND_TX) {
		text_hex(i->hash.p, 32, hex);
		head(out, "sent as");
		buf_printf(out, "0x%s, nonce %llu%s\n", hex, (unsigned long long)i->nonce,
			   i->generation > 1 ? ", replaced once or more" : "");
	}
	if (i->block) {
		head(out, "block");
		buf_printf(out, "%llu, %llu of %u confirmations\n", (unsigned long long)i->block,
			   (unsigned long long)v->confirmations, v->needed);
	}
	if (v->stuck)
		buf_puts(out, "  It was sent long ago and is in no block: speed it up or cancel it.\n");
	if (v->waits)
		buf_printf(
			out,
			"  It waits for the transaction %llu of its account, which is not known here. If "
			"nobody "
			"sends that, the owner gives this one up (paddock wallet abandon) and sets the nonce "
			"(paddock wallet nonce).\n",
			(unsigned long long)v->waits_for);
	if (v->note && v->note[0]) {
		head(out, "note"); /* a node may have written it */
		card_quote(out, view_of(v->note), QUOTE_MOST);
		buf_putc(out, '\n');
	}
	if (i->deviation.n) {
		head(out, "DEVIATION");
		card_quote(out, i->deviation, QUOTE_MOST);
		buf_putc(out, '\n');
	}
}

void card_text(struct buf *out, const struct core *c, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;
	char hex[65];

	card_sentence(out, c, v);
	buf_puts(out, "\n\n");
	add_risks(out, i, true);
	add_facts(out, v);
	add_effects(out, c, i);
	add_fate(out, v);
	add_risks(out, i, false);
	add_simulation(out, c, i);
	add_limits(out, c, i);
	add_checks(out, c, i);
	add_data(out, i);
	if (i->reason.n) {
		buf_puts(out, "\nThe agent says, in its own words\n  ");
		card_quote(out, i->reason, QUOTE_MOST);
		buf_putc(out, '\n');
	}
	if (i->digest.n == 32) {
		text_hex(i->digest.p, 32, hex);
		buf_printf(out, "\nDigest 0x%s\n", hex);
	}
}
