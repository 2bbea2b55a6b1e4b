/*
 * See amount.h.
 */
#include "amount.h"

#include <errno.h>

#include "num.h"

#include "poison.h"

#define SYMBOL_MAX 16

static const struct {
	const char *name;
	unsigned decimals;
} UNITS[] = { { "gwei", 9 }, { "wei", 0 }, { "ether", 18 }, { "eth", 18 } }; /* the longer before its end */

static struct view without_unit(struct view v, unsigned *decimals)
{
	for (size_t i = 0; i < ELEMS(UNITS); i++) {
		size_t n = strlen(UNITS[i].name);
		if (v.n <= n || !view_eq_nocase(view_skip(v, v.n - n), view_of(UNITS[i].name)))
			continue;
		*decimals = UNITS[i].decimals;
		return view_trim(view_head(v, v.n - n));
	}
	return v;
}

int amount_parse(struct view v, unsigned decimals, struct u256 *ret, struct err *e)
{
	unsigned own = decimals;
	struct view number = decimals == AMOUNT_NATIVE ? without_unit(v, &own) : v;
	int r = u256_parse_units(number, own, ret);

	if (r == -EOVERFLOW)
		return err_set(e, ERR_INVALID, "\"%.*s\" is too large", VIEW_ARG(view_head(v, 60)));
	if (r < 0)
		return err_set(e, ERR_INVALID,
			       "\"%.*s\" is no amount: write digits with at most %u decimals%s",
			       VIEW_ARG(view_head(v, 60)), own,
			       decimals == AMOUNT_NATIVE ? ", or a number of gwei or wei (0.1, 5gwei)" : "");
	return 0;
}

int amount_bytes(struct arena *a, struct view v, unsigned decimals, struct view *ret, struct err *e)
{
	struct u256 n;
	char *bytes = arena_alloc(a, U256_BYTES);

	if (amount_parse(v, decimals, &n, e) < 0)
		return -1;
	if (!bytes)
		return err_set(e, ERR_INTERNAL, "out of memory");
	u256_store(&n, bytes);
	*ret = (struct view){ bytes, U256_BYTES };
	return 0;
}

int amount_limit(struct arena *a, struct view v, unsigned decimals, struct sgn_limit *ret, struct err *e)
{
	struct view *const parts[] = { &ret->per_tx, &ret->day, &ret->week, &ret->month, &ret->lifetime };
	struct view rest = v;

	for (size_t i = 0; rest.p; i++) {
		struct view part = view_split(rest, '/', &rest);
		if (i == ELEMS(parts))
			return err_set(e, ERR_INVALID,
				       "a limit has at most five amounts: PER_TX/DAY/WEEK/"
				       "MONTH/LIFETIME");
		if (part.n && amount_bytes(a, part, decimals, parts[i], e) < 0)
			return -1;
	}
	if (!ret->per_tx.n)
		return err_set(e, ERR_INVALID, "a limit begins with the amount of one transaction");
	return 0;
}

int amount_chain(struct view v, uint64_t *ret, struct err *e)
{
	struct view number = view_starts(v, "eip155:") ? view_skip(v, 7) : v;

	if (num_u64(number, ret) < 0 || *ret == 0 || *ret > INT64_MAX)
		return err_set(e, ERR_INVALID, "\"%.*s\" is no chain: write eip155:1, or its number",
			       VIEW_ARG(view_head(v, 60)));
	return 0;
}

int amount_address(struct arena *a, struct view v, struct view *ret, struct err *e)
{
	uint8_t *bytes = arena_alloc(a, ADDRESS_SIZE);
	int r = bytes ? address_parse(v, bytes) : -ENOMEM;

	if (r == -EBADMSG)
		return err_set(e, ERR_INVALID,
			       "%.*s has a wrong checksum: a digit was changed, or the case of a letter",
			       VIEW_ARG(view_head(v, 60)));
	if (r < 0)
		return err_set(e, ERR_INVALID, "\"%.*s\" is no address: 0x and 40 hexadecimal digits",
			       VIEW_ARG(view_head(v, 60)));
	*ret = (struct view){ (const char *)bytes, ADDRESS_SIZE };
	return 0;
}

static bool is_word(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!(v.p[i] >= '0' && v.p[i] <= '9') && !((v.p[i] | 32) >= 'a' && (v.p[i] | 32) <= 'z'))
			return false;
	return true;
}

int amount_token(struct arena *a, const char *text, struct sgn_limit *ret, struct err *e)
{
	struct view amounts, after, decimals, symbol = VIEW_NONE,
					      head = view_split(view_of(text), '=', &amounts);
	struct view first = view_split(head, '@', &after);
	uint32_t places = 0;

	*ret = (struct sgn_limit){ 0 };
	if (!amounts.p)
		return err_set(
			e, ERR_INVALID,
			"--token wants [CHAIN@]ADDRESS[:DECIMALS[:SYMBOL]]=PER_TX[/DAY…], not \"%.60s\"",
			text);
	if (after.p && amount_chain(first, &ret->chain, e) < 0)
		return -1;
	struct view address = view_split(after.p ? after : head, ':', &decimals);
	if (decimals.p)
		decimals = view_split(decimals, ':', &symbol);
	if (symbol.n > SYMBOL_MAX || !is_word(symbol))
		return err_set(e, ERR_INVALID, "a token's symbol has at most %d letters and digits",
			       SYMBOL_MAX);
	if (decimals.p && (num_u32(decimals, &places) < 0 || places > U256_UNITS_MAX))
		return err_set(e, ERR_INVALID, "a token has 0 to %d decimals", U256_UNITS_MAX);
	if (amount_address(a, address, &ret->asset, e) < 0)
		return -1;
	if (amount_is_native(ret->asset))
		return err_set(e, ERR_INVALID, "the native asset is no token: use --limit");
	ret->decimals = places;
	ret->symbol = symbol;
	return amount_limit(a, amounts, places, ret, e);
}

void amount_text(struct view v, unsigned decimals, char out[U256_UNITS])
{
	struct u256 n;

	out[0] = '\0';
	if (v.n == U256_BYTES && u256_load_view(v, &n) == 0)
		u256_units(&n, decimals, out);
}

bool amount_is_native(struct view asset)
{
	return asset.n == ADDRESS_SIZE && memcmp(asset.p, address_native, ADDRESS_SIZE) == 0;
}

unsigned amount_decimals(const struct sgn_limit *l)
{
	return amount_is_native(l->asset) ? AMOUNT_NATIVE : l->decimals;
}
