/*
 * Rules from JSON. See rulejson.h.
 */
#include "rulejson.h"

#include <errno.h>

#include "config.h"
#include "num.h"
#include "rule_fields.h"
#include "u256.h"

#include "poison.h"

#define LIST_MOST 1024

/* ---- values ---- */

int rulejson_chain(struct view id, uint64_t *ret, struct err *e)
{
	const struct view number = config_chain_number(id);

	if (!number.p || num_u64(number, ret) < 0 || !*ret)
		return err_set(e, ERR_INVALID, "a chain is an id such as eip155:1");
	return 0;
}

static int rulejson_address(struct view text, uint8_t ret[ADDRESS_SIZE], struct err *e)
{
	const int r = address_parse(text, ret);

	if (r == -EBADMSG)
		return err_set(e, ERR_INVALID, "the checksum of an address is wrong (EIP-55)");
	return r < 0 ? err_set(e, ERR_INVALID, "an address is 0x and 40 hexadecimal digits") : 0;
}

int rulejson_asset(struct view text, uint8_t ret[ADDRESS_SIZE], struct err *e)
{
	if (!view_is(text, "native"))
		return rulejson_address(text, ret, e);
	memcpy(ret, address_native, ADDRESS_SIZE);
	return 0;
}

static int keep(struct arena *a, const void *p, size_t n, struct view *ret, struct err *e)
{
	*ret = arena_view(a, (struct view){ p, n });
	return ret->p ? 0 : err_set(e, ERR_TOO_LARGE, "the limits are too large");
}

/* An absent amount has no bytes. */
static int read_amount(struct arena *a, struct view text, struct view *ret, struct err *e)
{
	uint8_t raw[U256_BYTES];
	struct u256 v;

	*ret = VIEW_NONE;
	if (!text.p)
		return 0;
	if (u256_parse(text, &v) < 0)
		return err_set(e, ERR_INVALID, "an amount is a number of base units in decimal digits");
	u256_store(&v, raw);
	return keep(a, raw, sizeof(raw), ret, e);
}

/* ---- lists ---- */

struct limit_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view chain, asset, per_tx, day, week, month, lifetime, symbol;
	uint64_t decimals;
	bool unlimited;
};
#define AT(f) .offset = offsetof(struct limit_body, f)
#define TEXT  .min = 1, .max = 128
static const struct json_field limit_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), TEXT, .required = true },
	{ "asset", JSON_F_STRING, AT(asset), TEXT, .required = true },
	{ "per_transaction", JSON_F_STRING, AT(per_tx), TEXT, .required = true },
	{ "day", JSON_F_STRING, AT(day), TEXT, .nullable = true },
	{ "week", JSON_F_STRING, AT(week), TEXT, .nullable = true },
	{ "month", JSON_F_STRING, AT(month), TEXT, .nullable = true },
	{ "lifetime", JSON_F_STRING, AT(lifetime), TEXT, .nullable = true },
	{ "decimals", JSON_F_U64, AT(decimals), .max = U256_UNITS_MAX, .nullable = true },
	{ "symbol", JSON_F_STRING, AT(symbol), .max = 16, .nullable = true },
	{ "unlimited_approvals", JSON_F_BOOL, AT(unlimited), .nullable = true },
};
#undef AT
static const struct json_schema limit_schema = { limit_fields, ELEMS(limit_fields) };

static int read_limit(struct arena *a, const struct json *j, void *out, struct err *e)
{
	struct limit_body b = { 0 };
	struct sgn_limit *l = out;
	uint8_t asset[ADDRESS_SIZE];

	if (json_read(a, j, &limit_schema, &b, false, e) < 0 || rulejson_chain(b.chain, &l->chain, e) < 0 ||
	    rulejson_asset(b.asset, asset, e) < 0 || keep(a, asset, sizeof(asset), &l->asset, e) < 0 ||
	    read_amount(a, b.per_tx, &l->per_tx, e) < 0 || read_amount(a, b.day, &l->day, e) < 0 ||
	    read_amount(a, b.week, &l->week, e) < 0 || read_amount(a, b.month, &l->month, e) < 0 ||
	    read_amount(a, b.lifetime, &l->lifetime, e) < 0)
		return -1;
	l->decimals = rulejson_is_native(l->asset) ? 0 : (uint32_t)b.decimals; /* shown with its 18 */
	l->symbol = b.symbol;
	l->unlimited_approvals = b.unlimited;
	return 0;
}

struct address_body {
	bool unused;
	struct view chain, address, note;
	bool deny, call;
};
#define AT(f) .offset = offsetof(struct address_body, f)
static const struct json_field address_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), TEXT, .nullable = true },
	{ "address", JSON_F_STRING, AT(address), TEXT, .required = true },
	{ "deny", JSON_F_BOOL, AT(deny), .nullable = true },
	{ "call", JSON_F_BOOL, AT(call), .nullable = true },
	{ "note", JSON_F_STRING, AT(note), .max = 200, .nullable = true },
};
#undef AT
static const struct json_schema address_schema = { address_fields, ELEMS(address_fields) };

static int read_address(struct arena *a, const struct json *j, void *out, struct err *e)
{
	struct sgn_address_rule *x = out;
	struct address_body b = { 0 };
	uint8_t address[ADDRESS_SIZE];

	if (json_read(a, j, &address_schema, &b, false, e) < 0 ||
	    (b.chain.p && rulejson_chain(b.chain, &x->chain, e) < 0) ||
	    rulejson_address(b.address, address, e) < 0 ||
	    keep(a, address, sizeof(address), &x->address, e) < 0)
		return -1;
	x->deny = b.deny;
	x->call = b.call;
	x->note = b.note;
	return 0;
}

struct window_body {
	bool unused;
	struct json_strlist days;
	struct view from, to;
};
#define AT(f) .offset = offsetof(struct window_body, f)
static const struct json_field window_fields[] = {
	{ "days", JSON_F_STRLIST, AT(days), .min = 1, .max = 7, .required = true },
	{ "start", JSON_F_STRING, AT(from), .min = 5, .max = 5, .required = true },
	{ "end", JSON_F_STRING, AT(to), .min = 5, .max = 5, .required = true },
};
#undef AT
static const struct json_schema window_schema = { window_fields, ELEMS(window_fields) };

int rulejson_minute(struct view v, uint32_t *ret, struct err *e)
{
	uint64_t hour, minute;

	if (v.n != 5 || v.p[2] != ':' || num_u64(view_head(v, 2), &hour) < 0 ||
	    num_u64(view_skip(v, 3), &minute) < 0 || minute > 59 || hour * 60 + minute > 24 * 60)
		return err_set(e, ERR_INVALID, "a time of the day is HH:MM");
	*ret = (uint32_t)(hour * 60 + minute);
	return 0;
}

static int read_window(struct arena *a, const struct json *j, void *out, struct err *e)
{
	struct sgn_window *x = out;
	struct window_body b = { 0 };

	if (json_read(a, j, &window_schema, &b, false, e) < 0 ||
	    rulejson_minute(b.from, &x->from_minute, e) < 0 || rulejson_minute(b.to, &x->to_minute, e) < 0)
		return -1;
	for (size_t i = 0; i < b.days.n; i++) {
		size_t d = 0;
		while (d < RULEJSON_DAYS && !view_is(b.days.items[i], rulejson_days[d]))
			d++;
		if (d == RULEJSON_DAYS)
			return err_set(e, ERR_INVALID, "days are mon, tue, wed, thu, fri, sat and sun");
		x->days |= 1u << d;
	}
	return 0;
}

struct typed_body {
	bool unused;
	struct view chain, contract, primary_type;
};
#define AT(f) .offset = offsetof(struct typed_body, f)
static const struct json_field typed_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), TEXT, .required = true },
	{ "contract", JSON_F_STRING, AT(contract), TEXT, .required = true },
	{ "primary_type", JSON_F_STRING, AT(primary_type), .min = 1, .max = 64, .required = true },
};
#undef AT
static const struct json_schema typed_schema = { typed_fields, ELEMS(typed_fields) };

static int read_typed(struct arena *a, const struct json *j, void *out, struct err *e)
{
	struct sgn_typed_rule *x = out;
	struct typed_body b = { 0 };
	uint8_t address[ADDRESS_SIZE];

	if (json_read(a, j, &typed_schema, &b, false, e) < 0 || rulejson_chain(b.chain, &x->chain, e) < 0 ||
	    rulejson_address(b.contract, address, e) < 0)
		return -1;
	x->primary_type = b.primary_type;
	return keep(a, address, sizeof(address), &x->contract, e);
}

struct wallet_body {
	bool unused;
	struct view chain, wallet;
};
#define AT(f) .offset = offsetof(struct wallet_body, f)
static const struct json_field wallet_fields[] = {
	{ "chain", JSON_F_STRING, AT(chain), TEXT, .required = true },
	{ "wallet", JSON_F_STRING, AT(wallet), .min = 1, .max = 64, .required = true },
};
#undef AT
static const struct json_schema wallet_schema = { wallet_fields, ELEMS(wallet_fields) };

static int read_wallet(struct arena *a, const struct json *j, void *out, struct err *e)
{
	struct sgn_agent_wallet *x = out;
	struct wallet_body b = { 0 };

	if (json_read(a, j, &wallet_schema, &b, false, e) < 0)
		return -1;
	x->wallet = b.wallet;
	return rulejson_chain(b.chain, &x->chain, e);
}

static int read_list(struct arena *a, const struct json *list, const char *name, size_t size,
		     int (*read)(struct arena *a, const struct json *j, void *out, struct err *e), void **ret,
		     size_t *ret_n, struct err *e)
{
	if (list->type != JSON_ARRAY || list->n > LIST_MOST)
		return err_set(e, ERR_INVALID, "%s must be a list of at most %d", name, LIST_MOST);
	char *items = arena_array(a, MAX(list->n, (size_t)1), size);
	if (!items)
		return err_set(e, ERR_TOO_LARGE, "the limits are too large");
	memset(items, 0, MAX(list->n, (size_t)1) * size);
	for (size_t i = 0; i < list->n; i++)
		if (read(a, &list->items[i], items + i * size, e) < 0)
			return err_wrap(e, "%s[%zu]", name, i);
	*ret = items;
	*ret_n = list->n;
	return 0;
}

/* What the owner calls things stays: the signer takes new names from nobody else. */
static void keep_names(const struct sgn_rules *was, struct sgn_rules *now)
{
	for (size_t i = 0; i < now->limits.n; i++)
		for (size_t k = 0; k < was->limits.n; k++) {
			struct sgn_limit *l = &now->limits.items[i];
			const struct sgn_limit *b = &was->limits.items[k];
			if (l->chain != b->chain || !view_eq(l->asset, b->asset))
				continue;
			l->symbol = l->symbol.n ? l->symbol : b->symbol;
			l->decimals = l->decimals ? l->decimals : b->decimals;
		}
	for (size_t i = 0; i < now->addresses.n; i++)
		for (size_t k = 0; k < was->addresses.n; k++)
			if (now->addresses.items[i].chain == was->addresses.items[k].chain &&
			    !now->addresses.items[i].note.n &&
			    view_eq(now->addresses.items[i].address, was->addresses.items[k].address))
				now->addresses.items[i].note = was->addresses.items[k].note;
}

/* ---- a change ---- */

struct change_body {
	bool unused;
	const struct json *limits, *addresses, *windows, *typed, *wallets;
	struct view auto_below, agent;
	struct sgn_rules rules; /* of which the plain ones are read */
};
#define AT(f) .offset = offsetof(struct change_body, f)
static const struct json_field change_fields[] = {
	{ "limits", JSON_F_ANY, AT(limits), .nullable = true },
	{ "addresses", JSON_F_ANY, AT(addresses), .nullable = true },
	{ "windows", JSON_F_ANY, AT(windows), .nullable = true },
	{ "auto_below", JSON_F_STRING, AT(auto_below), TEXT, .nullable = true },
#define FLAG(name, ...) { #name, JSON_F_BOOL, AT(rules.name), .nullable = true },
#define COUNT(name, json, least, most, ...)                                                                  \
	{ #json, JSON_F_U32, AT(rules.name), .min = (least), .max = (most), .nullable = true },
#include "rule_fields.def"
#undef FLAG
#undef COUNT
	/* of whole rules alone */
	{ "agent", JSON_F_STRING, AT(agent), .max = 64, .nullable = true },
	{ "wallets", JSON_F_ANY, AT(wallets), .nullable = true },
	{ "typed", JSON_F_ANY, AT(typed), .nullable = true },
};
enum { OF_WHOLE = 3 };
#undef AT
#undef TEXT

static int read_lists(struct arena *a, const struct change_body *b, struct sgn_rules *r, struct err *e)
{
#define LIST(name, fn)                                                                                       \
	if (b->name && read_list(a, b->name, #name, sizeof(*r->name.items), fn, (void **)&r->name.items,     \
				 &r->name.n, e) < 0)                                                         \
	return -1
	LIST(limits, read_limit);
	LIST(addresses, read_address);
	LIST(windows, read_window);
	LIST(typed, read_typed);
	LIST(wallets, read_wallet);
#undef LIST
	return 0;
}

static int read(struct arena *a, const struct json *doc, bool whole, struct sgn_rules *r, struct err *e)
{
	const struct json_schema schema = { change_fields, ELEMS(change_fields) - (whole ? 0 : OF_WHOLE) };
	struct change_body b = { .rules = *r };
	const struct json *below = json_get(doc, "auto_below");

	if (doc->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "the body must be an object");
	if (json_read(a, doc, &schema, &b, false, e) < 0)
		return -1;
	*r = b.rules;
	if (read_lists(a, &b, r, e) < 0)
		return -1;
	if (view_is(b.auto_below, "0") || (whole && below && below->type == JSON_NULL))
		r->auto_below = VIEW_NONE;
	else if (b.auto_below.p && read_amount(a, b.auto_below, &r->auto_below, e) < 0)
		return -1;
	return 0;
}

int rulejson_change(struct arena *a, const struct json *doc, struct sgn_rules *r, struct err *e)
{
	const struct sgn_rules was = *r;

	if (read(a, doc, false, r, e) < 0)
		return -1;
	keep_names(&was, r);
	return 0;
}

int rulejson_whole(struct arena *a, const struct json *doc, struct sgn_rules *r, struct err *e)
{
	return read(a, doc, true, r, e);
}
