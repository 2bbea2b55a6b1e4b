/*
 * See rules_edit.h.
 */
#include "rules_edit.h"

#include <errno.h>

#include "amount.h"
#include "rulejson.h"
#include "rule_fields.h"

#include "poison.h"

#define LISTS_MAX 512

struct view rules_edit_native(void)
{
	return (struct view){ (const char *)address_native, ADDRESS_SIZE };
}

/* A copy of a list with room for one more. */
static int grow(struct arena *a, void **items, size_t n, size_t size, struct err *e)
{
	void *more = n < LISTS_MAX ? arena_array(a, n + 1, size) : NULL;

	if (!more)
		return err_set(e, ERR_TOO_LARGE, "rules have at most %d of each", LISTS_MAX);
	if (n)
		memcpy(more, *items, n * size);
	*items = more;
	return 0;
}

#define ADD(list, item)                                                                                      \
	if (grow(a, (void **)&(list).items, (list).n, sizeof(*(list).items), e) < 0)                         \
		return -1;                                                                                   \
	(list).items[(list).n++] = (item)

int rules_edit_limit(struct arena *a, struct sgn_rules *r, const struct sgn_limit *l, struct err *e)
{
	for (size_t i = 0; i < r->limits.n; i++)
		if (r->limits.items[i].chain == l->chain && view_eq(r->limits.items[i].asset, l->asset)) {
			r->limits.items[i] = *l;
			return 0;
		}
	ADD(r->limits, *l);
	return 0;
}

/* A name that is not given stays. */
int rules_edit_address(struct arena *a, struct sgn_rules *r, const struct sgn_address_rule *rule,
		       struct err *e)
{
	for (size_t i = 0; i < r->addresses.n; i++) {
		struct sgn_address_rule *x = &r->addresses.items[i];
		if (x->chain != rule->chain || !view_eq(x->address, rule->address))
			continue;
		const struct view note = rule->note.p ? rule->note : x->note;
		*x = *rule;
		x->note = note;
		return 0;
	}
	ADD(r->addresses, *rule);
	return 0;
}

int rules_edit_wallet(struct arena *a, struct sgn_rules *r, uint64_t chain, struct view wallet, struct err *e)
{
	for (size_t i = 0; i < r->wallets.n; i++)
		if (r->wallets.items[i].chain == chain) {
			r->wallets.items[i].wallet = wallet;
			return 0;
		}
	ADD(r->wallets, ((struct sgn_agent_wallet){ chain, wallet }));
	return 0;
}

int rules_edit_typed(struct arena *a, struct sgn_rules *r, const struct sgn_typed_rule *t, struct err *e)
{
	for (size_t i = 0; i < r->typed.n; i++)
		if (r->typed.items[i].chain == t->chain && view_eq(r->typed.items[i].contract, t->contract) &&
		    view_eq(r->typed.items[i].primary_type, t->primary_type))
			return 0;
	ADD(r->typed, *t);
	return 0;
}

/* ---- times ---- */

static int read_day(struct view v)
{
	for (int d = 0; d < RULEJSON_DAYS; d++)
		if (view_is(v, rulejson_days[d]))
			return d;
	return -EINVAL;
}

static int read_days(struct view v, uint32_t *ret)
{
	*ret = 0x7f;
	if (view_is(v, "daily"))
		return 0;
	*ret = 0;
	while (v.p) {
		struct view last, first = view_split(view_split(v, ',', &v), '-', &last);
		int from = read_day(first), to = last.p ? read_day(last) : from;
		if (from < 0 || to < 0)
			return -EINVAL;
		for (int d = from;; d = (d + 1) % RULEJSON_DAYS) {
			*ret |= 1u << d;
			if (d == to)
				break;
		}
	}
	return 0;
}

int rules_edit_window(struct arena *a, struct sgn_rules *r, struct view text, struct err *e)
{
	struct view times, days = view_split(text, '@', &times), to, from = view_split(times, '-', &to);
	struct sgn_window w = { 0 };

	if (!times.p || !to.p || read_days(days, &w.days) < 0)
		return err_set(e, ERR_INVALID,
			       "--window wants DAYS@HH:MM-HH:MM (mon-fri@09:00-17:00, daily@08:00-20:00), "
			       "not \"%.*s\"",
			       VIEW_ARG(view_head(text, 60)));
	if (rulejson_minute(from, &w.from_minute, e) < 0 || rulejson_minute(to, &w.to_minute, e) < 0)
		return -1;
	if (w.from_minute >= w.to_minute)
		return err_set(e, ERR_INVALID,
			       "a window ends on the day on which it begins: write two for a night");
	ADD(r->windows, w);
	return 0;
}

/* ---- taking away ---- */

#define REMOVE(list, gone)                                                                                   \
	do {                                                                                                 \
		size_t n_kept = 0;                                                                           \
		for (size_t i = 0; i < (list).n; i++) {                                                      \
			const typeof(*(list).items) *x = &(list).items[i];                                   \
			if (gone)                                                                            \
				n_gone++;                                                                    \
			else                                                                                 \
				(list).items[n_kept++] = *x;                                                 \
		}                                                                                            \
		(list).n = n_kept;                                                                           \
	} while (0)

int rules_edit_remove(struct arena *a, struct sgn_rules *r, struct view what, struct err *e)
{
	struct view address = VIEW_NONE;
	uint64_t chain = 0;
	size_t n_gone = 0;

	if (view_starts(what, "0x") ? amount_address(a, what, &address, e) < 0
				    : amount_chain(what, &chain, e) < 0)
		return -1;
	REMOVE(r->limits, chain ? x->chain == chain : view_eq(x->asset, address));
	REMOVE(r->addresses, chain ? x->chain == chain : view_eq(x->address, address));
	REMOVE(r->typed, chain ? x->chain == chain : view_eq(x->contract, address));
	REMOVE(r->wallets, chain && x->chain == chain);
	return n_gone ? 0
		      : err_set(e, ERR_INVALID, "--remove %.*s: the rules do not name it",
				VIEW_ARG(view_head(what, 60)));
}

int rules_edit_reset(struct sgn_rules *r, struct view name, struct err *e)
{
	_cleanup_(buf_done) struct buf known = BUF_INIT(4096);
	static const struct {
		const char *name;
		size_t at, size;
	} parts[] = {
#define PART(name, field) { name, offsetof(struct sgn_rules, field), sizeof(((struct sgn_rules *)0)->field) }
		PART("limits", limits),   PART("addresses", addresses),   PART("typed", typed),
		PART("windows", windows), PART("auto-below", auto_below),
#undef PART
	};

	for (size_t i = 0; i < ELEMS(parts); i++)
		if (view_is(name, parts[i].name)) {
			memset((char *)r + parts[i].at, 0, parts[i].size);
			return 0;
		}
	for (unsigned i = 0; name.n && i < RULE_FIELDS; i++)
		if (view_is(name, rule_fields_rows[i].part)) {
			rule_fields_reset(r, i);
			return 0;
		}
	for (unsigned i = 0; i < RULE_FIELDS; i++)
		if (rule_fields_rows[i].part[0])
			buf_printf(&known, ", %s", rule_fields_rows[i].part);
	return err_set(e, ERR_INVALID,
		       "--reset wants all, limits, addresses, typed, windows, auto-below%.*s, not \"%.*s\"",
		       VIEW_ARG(buf_view(&known)), VIEW_ARG(view_head(name, 40)));
}
