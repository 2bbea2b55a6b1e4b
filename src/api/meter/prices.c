/*
 * The price table: see prices.h.
 */
#include "prices.h"

#include <errno.h>

#include "poison.h"

#define PRICES_MAX 2000
#define MILLION    1000000.0

struct rates {
	double input, output, cache_read, cache_write;
	bool has_cache_read, has_cache_write;
};

struct row {
	struct view provider, model, source;
	struct rates usual;
	struct {
		uint64_t above;
		struct rates rates;
	} longer;
	double request;
	uint64_t max_output;
};

#define RATES(at, needed)                                                                                    \
	{ "input", JSON_F_DOUBLE, offsetof(struct row, at.input), .fmax = MILLION, .required = true },       \
		{ "output", JSON_F_DOUBLE, offsetof(struct row, at.output), .fmax = MILLION,                 \
		  .required = needed },                                                                      \
		{ "cache_read", JSON_F_DOUBLE, offsetof(struct row, at.cache_read),                          \
		  offsetof(struct row, at.has_cache_read), .fmax = MILLION },                                \
	{                                                                                                    \
		"cache_write", JSON_F_DOUBLE, offsetof(struct row, at.cache_write),                          \
			offsetof(struct row, at.has_cache_write), .fmax = MILLION                            \
	}

/* Its offsets are those of the row: the object is read into the row itself. */
static const struct json_field long_fields[] = {
	{ "above", JSON_F_U64, offsetof(struct row, longer.above), .min = 1, .max = UINT64_C(1) << 40,
	  .required = true },
	RATES(longer.rates, true),
};
static const struct json_schema long_schema = { long_fields, ELEMS(long_fields) };

static const struct json_field fields[] = {
	{ "provider", JSON_F_STRING, offsetof(struct row, provider), .min = 1, .max = 16, .required = true },
	{ "model", JSON_F_STRING, offsetof(struct row, model), .min = 1, .max = 128, .required = true },
	{ "source", JSON_F_STRING, offsetof(struct row, source), .max = 512 },
	RATES(usual, false),
	{ "long", JSON_F_OBJECT, 0, .sub = &long_schema },
	{ "request", JSON_F_DOUBLE, offsetof(struct row, request), .fmax = MILLION },
	{ "max_output", JSON_F_U64, offsetof(struct row, max_output), .max = 1u << 24 },
};
static const struct json_schema schema = { fields, ELEMS(fields) };

int64_t prices_dollars(double dollars)
{
	if (!(dollars >= 0 && dollars <= 1e9))
		return -1;
	return (int64_t)(dollars * (double)PRICES_DOLLAR + 0.5);
}

/* Dollars for a million tokens are thousands of nano for one. */
static int64_t each(double dollars)
{
	return (int64_t)(dollars * ((double)PRICES_DOLLAR / MILLION) + 0.5);
}

static struct price_rates rates_of(const struct rates *r)
{
	return (struct price_rates){ .input = each(r->input),
				     .output = each(r->output),
				     .cache_read = each(r->has_cache_read ? r->cache_read : r->input),
				     .cache_write = each(r->has_cache_write ? r->cache_write : r->input) };
}

int prices_read(struct arena *a, const struct json *j, struct prices *ret, struct err *e)
{
	if (!j)
		return 0;
	if (j->type == JSON_OBJECT && !(j = json_get(j, "prices")))
		return err_set(e, ERR_INVALID, "prices: the object has no list of prices");
	if (j->type != JSON_ARRAY || ret->n + j->n > PRICES_MAX)
		return err_set(e, ERR_INVALID, "prices must be a list of at most %d", PRICES_MAX);
	struct price *all = arena_array(a, ret->n + j->n, sizeof(*all));
	if (!all)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "prices");
	size_t n = ret->n;
	if (n)
		memcpy(all, ret->items, n * sizeof(*all));
	for (size_t i = 0; i < j->n; i++) {
		struct row r = { 0 };
		if (json_read(a, &j->items[i], &schema, &r, true, e) < 0)
			return err_wrap(e, "prices");
		enum ask_provider p = ask_provider(r.provider);
		if (!p)
			return err_set(e, ERR_INVALID, "prices: there is no provider %.*s",
				       VIEW_ARG(r.provider));
		all[n++] = (struct price){ .provider = p,
					   .model = r.model,
					   .usual = rates_of(&r.usual),
					   .longer = rates_of(&r.longer.rates),
					   .long_above = r.longer.above,
					   .request = prices_dollars(r.request),
					   .max_output = r.max_output };
	}
	*ret = (struct prices){ all, n };
	return 0;
}

const struct price *prices_find(const struct prices *p, enum ask_provider provider, struct view model)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->items[i].provider == provider && ask_fits(p->items[i].model, model))
			return &p->items[i];
	return NULL;
}

static int64_t times(int64_t price, uint64_t tokens)
{
	int64_t r;
	if (tokens > INT64_MAX || __builtin_mul_overflow(price, (int64_t)tokens, &r))
		return INT64_MAX / 8;
	return MIN(r, INT64_MAX / 8);
}

static const struct price_rates *rates_for(const struct price *p, uint64_t input)
{
	return p->long_above && input > p->long_above ? &p->longer : &p->usual;
}

int64_t prices_cost(const struct price *p, const struct meter_usage *u)
{
	const struct price_rates *r = rates_for(p, u->input + u->cache_read + u->cache_write);

	return p->request + times(r->input, u->input) + times(r->output, u->output) +
	       times(r->cache_read, u->cache_read) + times(r->cache_write, u->cache_write);
}

int64_t prices_most(const struct price *p, uint64_t input, uint64_t output)
{
	const struct price_rates *r = rates_for(p, input);

	return p->request + times(MAX(r->input, r->cache_write), input) + times(r->output, output);
}
