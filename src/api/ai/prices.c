/*
 * The price table: see prices.h.
 */
#include "prices.h"

#include <errno.h>

#include "poison.h"

#define PRICES_MAX 2000
#define MILLION    1000000.0

struct row {
	struct view provider, model;
	double input, output, cache_read, cache_write, request;
	bool has_cache_read, has_cache_write;
	uint64_t max_output;
};

static const struct json_field fields[] = {
	{ "provider", JSON_F_STRING, offsetof(struct row, provider), .min = 1, .max = 16, .required = true },
	{ "model", JSON_F_STRING, offsetof(struct row, model), .min = 1, .max = 128, .required = true },
	{ "input", JSON_F_DOUBLE, offsetof(struct row, input), .fmax = MILLION, .required = true },
	{ "output", JSON_F_DOUBLE, offsetof(struct row, output), .fmax = MILLION },
	{ "cache_read", JSON_F_DOUBLE, offsetof(struct row, cache_read), offsetof(struct row, has_cache_read), .fmax = MILLION },
	{ "cache_write", JSON_F_DOUBLE, offsetof(struct row, cache_write), offsetof(struct row, has_cache_write), .fmax = MILLION },
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

int prices_read(struct arena *a, const struct json *j, struct prices *ret, struct err *e)
{
	if (!j)
		return 0;
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
			return err_set(e, ERR_INVALID, "prices: there is no provider %.*s", VIEW_ARG(r.provider));
		all[n++] = (struct price){ .provider = p, .model = r.model, .input = each(r.input), .output = each(r.output),
					   .cache_read = each(r.has_cache_read ? r.cache_read : r.input),
					   .cache_write = each(r.has_cache_write ? r.cache_write : r.input),
					   .request = prices_dollars(r.request), .max_output = r.max_output };
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

int64_t prices_cost(const struct price *p, const struct meter_usage *u)
{
	return p->request + times(p->input, u->input) + times(p->output, u->output) + times(p->cache_read, u->cache_read) +
	       times(p->cache_write, u->cache_write);
}
