/*
 * What tokens cost: a table, the configuration's before that of etc/prices.json. Money
 * is counted in billionths of a dollar ("nano"), whole numbers throughout.
 */
#pragma once

#include "arena.h"
#include "ask.h"
#include "json.h"

#define PRICES_DOLLAR 1000000000ll

/* Nano for a token. */
struct price_rates {
	int64_t input, output, cache_read, cache_write;
};

struct price {
	enum ask_provider provider;
	struct view model; /* a pattern of ask_fits */
	struct price_rates usual, longer;
	uint64_t long_above; /* tokens of input, cached or not, above which `longer` holds; 0: never */
	int64_t request;     /* nano for a call */
	uint64_t max_output; /* tokens that the model writes at most */
};

struct prices {
	struct price *items;
	size_t n;
};

/* [{provider, model, input, output, cache_read, cache_write, request, max_output, source, long: {above,
 * input, …}}], in dollars for a million tokens; or an object that has them as "prices". What is not said of
 * caches costs what input costs. Adds them behind what is there. Views point into `j`. ERR_INVALID. */
int prices_read(struct arena *a, const struct json *j, struct prices *ret, struct err *e) _must_check_;
/* The first that fits; NULL: unknown. */
const struct price *prices_find(const struct prices *p, enum ask_provider provider, struct view model);
int64_t prices_cost(const struct price *p, const struct meter_usage *u);
/* At most: all of the input is written to the cache. */
int64_t prices_most(const struct price *p, uint64_t input, uint64_t output);
/* Dollars in JSON; -1: not an amount. */
int64_t prices_dollars(double dollars);
