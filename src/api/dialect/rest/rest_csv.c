/*
 * Transactions as a table for spreadsheets (RFC 4180).
 */
#include "address.h"
#include "card.h"
#include "clock.h"
#include "rest_spend.h"
#include "text.h"
#include "u256.h"
#include "poison.h"

void rest_csv_head(struct buf *out)
{
	buf_puts(out,
		 "id,created_at,state,decided_at,decided_by,kind,class,agent,agent_name,tenant,chain,wallet,"
		 "from,to,value,effects,hash,nonce,block,fee_at_most,summary,error,reason\r\n");
}

/* OWASP's list of beginnings that spreadsheets take for formulas. */
static bool is_formula(struct view v)
{
	return v.n && memchr("=+-@\t\r\n", v.p[0], 7);
}

/* A cell and what follows it. What a spreadsheet would take for a formula gets an apostrophe. */
static void rest_csv_cell(struct buf *out, struct view text, char then)
{
	bool quoted = is_formula(text);

	for (size_t i = 0; i < text.n && !quoted; i++)
		quoted = memchr(",\"\r\n", text.p[i], 4) != NULL;
	if (quoted)
		buf_putc(out, '"');
	if (is_formula(text))
		buf_putc(out, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_putc(out, '"');
		buf_putc(out, text.p[i]);
	}
	if (quoted)
		buf_putc(out, '"');
	if (then == '\n')
		buf_putc(out, '\r');
	buf_putc(out, then);
}

static void cell(struct buf *out, const char *text)
{
	rest_csv_cell(out, text ? view_of(text) : VIEW_NONE, ',');
}

static void cell_time(struct buf *out, int64_t ms)
{
	char when[CLOCK_RFC3339_SIZE];

	if (ms)
		clock_rfc3339(ms, when);
	cell(out, ms ? when : NULL);
}

static void cell_address(struct buf *out, struct view a)
{
	char text[ADDRESS_TEXT];

	if (a.n == ADDRESS_SIZE)
		address_text((const uint8_t *)a.p, text);
	cell(out, a.n == ADDRESS_SIZE ? text : NULL);
}

static void cell_amount(struct buf *out, struct view amount)
{
	char text[U256_TEXT];
	struct u256 v;

	if (u256_load_view(amount, &v) < 0)
		v = U256_MAX;
	u256_text(&v, text);
	cell(out, text);
}

static void cell_number(struct buf *out, bool known, uint64_t n)
{
	if (known)
		buf_printf(out, "%llu", (unsigned long long)n);
	buf_putc(out, ',');
}

static void cell_effects(struct buf *out, const struct sgn_item *i)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(64u * 1024);

	for (size_t k = 0; k < i->effects.n; k++) {
		const struct sgn_effect *f = &i->effects.items[k];
		char to[ADDRESS_TEXT] = "";
		if (f->to.n == ADDRESS_SIZE)
			address_text((const uint8_t *)f->to.p, to);
		buf_puts(&text, k ? "; " : "");
		if (card_only_reaches(f)) {
			buf_printf(&text, "reach %s", to);
			continue;
		}
		buf_puts(&text, f->approval ? "approve " : "");
		card_amount(&text, f->asset, f->amount, f->decimals, f->symbol);
		buf_printf(&text, " to %s", to);
	}
	rest_csv_cell(out, buf_view(&text), ',');
}

void rest_csv_put(struct buf *out, const struct spend_view *v)
{
	const struct sgn_item *i = v->item;
	const bool sent = i->kind == SGN_REQUEST_KIND_TX && i->hash.n == 32;
	char hash[67] = "0x";
	_cleanup_(buf_done) struct buf id = BUF_INIT(64);

	buf_printf(&id, "eip155:%llu", (unsigned long long)i->chain);
	if (sent)
		text_hex(i->hash.p, 32, hash + 2);
	rest_csv_cell(out, i->id, ',');
	cell_time(out, i->created_ms);
	cell(out, sgn_state_name(i->state));
	cell_time(out, i->decided_ms);
	rest_csv_cell(out, i->decided_by, ',');
	cell(out, spend_kind_name(i->kind));
	rest_csv_cell(out, i->call_class, ',');
	rest_csv_cell(out, i->agent, ',');
	cell(out, v->agent_name);
	cell(out, v->tenant ? v->tenant->name : NULL);
	rest_csv_cell(out, buf_view(&id), ',');
	rest_csv_cell(out, i->wallet, ',');
	cell_address(out, i->from);
	cell_address(out, i->to);
	cell_amount(out, i->value);
	cell_effects(out, i);
	cell(out, sent ? hash : NULL);
	cell_number(out, sent, i->nonce);
	cell_number(out, i->block, i->block);
	cell_amount(out, i->fee);
	rest_csv_cell(out, i->summary, ',');
	rest_csv_cell(out, i->error, ',');
	rest_csv_cell(out, i->reason, '\n');
}
