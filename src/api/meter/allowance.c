/*
 * Allowances: see allowance.h.
 */
#include "allowance.h"

#include <errno.h>

#include "ask.h"
#include "prices.h"
#include "poison.h"

#define ITEM_MAX 128
#define MILLION  1e6

enum unit { WHOLE, MONEY, FRACTION, CHOICE };

static const struct {
	const char *name;
	enum unit unit;
	uint64_t most; /* of WHOLE */
} parts[ALLOWANCE_PARTS] = {
	[ALLOWANCE_REQUESTS] = { "requests_per_minute", WHOLE, 1u << 30 },
	[ALLOWANCE_TOKENS] = { "tokens_per_minute", WHOLE, UINT64_C(1) << 40 },
	[ALLOWANCE_PARALLEL] = { "parallel", WHOLE, 100000 },
	[ALLOWANCE_DAY] = { "day", MONEY, 0 },
	[ALLOWANCE_WEEK] = { "week", MONEY, 0 },
	[ALLOWANCE_MONTH] = { "month", MONEY, 0 },
	[ALLOWANCE_WARN] = { "warn", FRACTION, 0 },
	[ALLOWANCE_BODIES] = { "log_bodies", CHOICE, 0 },
};

static const char *const lists[ALLOWANCE_LISTS] = { [ALLOWANCE_PROVIDERS] = "providers",
						    [ALLOWANCE_ENDPOINTS] = "endpoints",
						    [ALLOWANCE_MODELS] = "models" };

const char *allowance_part_name(enum allowance_part p)
{
	return parts[p].name;
}

const char *allowance_list_name(enum allowance_list l)
{
	return lists[l];
}

/* ---- reading ---- */

static int read_part(const struct json *j, enum allowance_part p, uint64_t *ret, struct err *e)
{
	double d = -1;

	if (parts[p].unit == WHOLE) {
		if (j->type == JSON_NUMBER && json_to_u64(j, ret) >= 0 && *ret <= parts[p].most)
			return 0;
		return err_set(e, ERR_INVALID, "%s must be a whole number of at most %llu", parts[p].name,
			       (unsigned long long)parts[p].most);
	}
	if (parts[p].unit == CHOICE) {
		if (j->type != JSON_BOOL)
			return err_set(e, ERR_INVALID, "%s must be true or false", parts[p].name);
		*ret = j->boolean ? ALLOWANCE_BODIES_KEPT : ALLOWANCE_BODIES_NOT;
		return 0;
	}
	if (j->type != JSON_NUMBER || json_to_double(j, &d) < 0)
		d = -1;
	if (parts[p].unit == FRACTION) {
		if (!(d >= 0 && d <= 1))
			return err_set(e, ERR_INVALID, "%s must be a number between 0 and 1", parts[p].name);
		*ret = (uint64_t)(d * MILLION + 0.5);
		return 0;
	}
	int64_t nano = prices_dollars(d);
	if (nano < 0 || (d > 0 && nano == 0))
		return err_set(e, ERR_INVALID, "%s must be an amount in dollars", parts[p].name);
	*ret = (uint64_t)nano;
	return 0;
}

static int read_list(struct arena *arena, const struct json *j, enum allowance_list l,
		     struct json_strlist *ret, struct err *e)
{
	if (j->type != JSON_ARRAY || j->n > ALLOWANCE_ITEMS)
		return err_set(e, ERR_INVALID, "%s must be a list of at most %d", lists[l], ALLOWANCE_ITEMS);
	*ret = (struct json_strlist){ arena_array(arena, MAX(j->n, 1u), sizeof(*ret->items)), j->n };
	if (!ret->items)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "%s", lists[l]);
	for (size_t i = 0; i < j->n; i++) {
		const struct json *one = &j->items[i];
		if (one->type != JSON_STRING || one->text.n < 1 || one->text.n > ITEM_MAX)
			return err_set(e, ERR_INVALID, "%s[%zu] must be a text of 1 to %d bytes", lists[l], i,
				       ITEM_MAX);
		if (l == ALLOWANCE_PROVIDERS && !ask_provider(one->text))
			return err_set(e, ERR_INVALID, "providers[%zu]: there is no provider %.*s", i,
				       VIEW_ARG(one->text));
		ret->items[i] = one->text;
	}
	return 0;
}

static int read_member(struct arena *arena, const struct json_member *m, struct allowance *a, struct err *e)
{
	for (int p = 0; p < ALLOWANCE_PARTS; p++) {
		if (!view_is(m->key, parts[p].name))
			continue;
		a->said[p] = m->value.type != JSON_NULL;
		a->parts[p] = 0;
		return a->said[p] ? read_part(&m->value, (enum allowance_part)p, &a->parts[p], e) : 0;
	}
	for (int l = 0; l < ALLOWANCE_LISTS; l++) {
		if (!view_is(m->key, lists[l]))
			continue;
		a->listed[l] = m->value.type != JSON_NULL;
		a->lists[l] = (struct json_strlist){ 0 };
		return a->listed[l] ? read_list(arena, &m->value, (enum allowance_list)l, &a->lists[l], e)
				    : 0;
	}
	return err_set(e, ERR_INVALID, "there is no member \"%.*s\"", (int)MIN(m->key.n, 40), m->key.p);
}

int allowance_read(struct arena *arena, const struct json *doc, struct allowance *a, struct err *e)
{
	if (doc->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "this must be an object, not %s", json_type_name(doc->type));
	for (size_t i = 0; i < doc->n; i++)
		if (read_member(arena, &doc->members[i], a, e) < 0)
			return -1;
	return 0;
}

/* ---- writing ---- */

void allowance_put_part(struct json_out *o, enum allowance_part p, uint64_t v)
{
	if (parts[p].unit == WHOLE)
		json_out_u64(o, v);
	else if (parts[p].unit == CHOICE)
		json_out_bool(o, v == ALLOWANCE_BODIES_KEPT);
	else
		json_out_double(o, (double)v / (parts[p].unit == MONEY ? (double)PRICES_DOLLAR : MILLION));
}

void allowance_put(struct json_out *o, const struct allowance *a)
{
	json_out_object(o);
	for (int p = 0; p < ALLOWANCE_PARTS; p++)
		if (a->said[p]) {
			json_out_key(o, parts[p].name);
			allowance_put_part(o, (enum allowance_part)p, a->parts[p]);
		}
	for (int l = 0; l < ALLOWANCE_LISTS; l++) {
		if (!a->listed[l])
			continue;
		json_out_key(o, lists[l]);
		json_out_array(o);
		for (size_t i = 0; i < a->lists[l].n; i++)
			json_out_str(o, a->lists[l].items[i]);
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

bool allowance_allows(const struct allowance *a, enum allowance_list l, struct view text)
{
	for (size_t i = 0; i < a->lists[l].n; i++)
		if (ask_fits(a->lists[l].items[i], text))
			return true;
	return !a->listed[l];
}

/* ---- what holds ---- */

/* A warning is no limit: it has no ceiling. Who has forbidden that text is kept has forbidden it to all
 * below. */
static bool is_above(enum allowance_part p, uint64_t v, const struct allowance_ceiling *c)
{
	if (parts[p].unit == CHOICE)
		return v != ALLOWANCE_BODIES_NOT && c->parts[p] == ALLOWANCE_BODIES_NOT;
	return p != ALLOWANCE_WARN && c->parts[p] && (!v || v > c->parts[p]);
}

void allowance_in_force(const char *name, const struct allowance *own, const uint64_t *standard,
			const struct allowance_ceiling *ceilings, size_t n, struct allowance_force *ret)
{
	*ret = (struct allowance_force){ 0 };
	for (int p = 0; p < ALLOWANCE_PARTS; p++) {
		bool said = own && own->said[p];
		ret->parts[p] = said ? own->parts[p] : standard[p];
		ret->from[p] = said ? name : ret->parts[p] ? "default" : NULL;
		for (size_t i = 0; i < n; i++)
			if (is_above((enum allowance_part)p, ret->parts[p], &ceilings[i]) ||
			    (parts[p].unit == CHOICE && !ret->parts[p] &&
			     ceilings[i].parts[p])) { /* what is said above holds */
				ret->parts[p] = ceilings[i].parts[p];
				ret->from[p] = ceilings[i].name;
			}
	}
}

static int too_much(enum allowance_part p, const struct allowance_ceiling *c, struct err *e)
{
	if (parts[p].unit == CHOICE)
		return err_set(e, ERR_INVALID, "%s is forbidden, as the %s says", parts[p].name, c->name);
	return err_set(e, ERR_INVALID, "%s must be above 0 and at most %.12g, as the %s says", parts[p].name,
		       (double)c->parts[p] / (parts[p].unit == MONEY ? (double)PRICES_DOLLAR : 1), c->name);
}

int allowance_within(const struct allowance *a, const struct allowance_ceiling *ceilings, size_t n,
		     struct err *e)
{
	for (int p = 0; p < ALLOWANCE_PARTS; p++)
		for (size_t i = 0; a->said[p] && i < n; i++)
			if (is_above((enum allowance_part)p, a->parts[p], &ceilings[i]))
				return too_much((enum allowance_part)p, &ceilings[i], e);
	return 0;
}

struct budget_limits allowance_limits(const struct allowance_force *f)
{
	return (struct budget_limits){ .requests_per_minute = f->parts[ALLOWANCE_REQUESTS],
				       .tokens_per_minute = f->parts[ALLOWANCE_TOKENS],
				       .parallel = f->parts[ALLOWANCE_PARALLEL],
				       .day = (int64_t)f->parts[ALLOWANCE_DAY],
				       .week = (int64_t)f->parts[ALLOWANCE_WEEK],
				       .month = (int64_t)f->parts[ALLOWANCE_MONTH],
				       .warn = f->parts[ALLOWANCE_WARN] };
}
