/*
 * /v1/usage: sums of the usage of models.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "money.h"
#include "rest_impl.h"
#include "poison.h"

#define USAGE_MAX    (16u * 1024 * 1024)
#define DAY_MS       86400000ll
#define DEFAULT_DAYS 30
#define GROUPS_MAX   10000

struct sums {
	bool by_day, by_tenant, by_box, by_provider, by_model;
	struct store_usage *rows, total;
	size_t n, cap;
	bool full;
};

static void add_to(struct store_usage *to, const struct store_usage *u)
{
	to->requests += u->requests;
	to->estimated += u->estimated;
	to->input += u->input;
	to->cache_read += u->cache_read;
	to->cache_write += u->cache_write;
	to->output += u->output;
	to->cost += u->cost;
}

static bool same(const struct sums *s, const struct store_usage *a, const struct store_usage *b)
{
	return (!s->by_day || a->day == b->day) && (!s->by_tenant || view_eq(a->tenant, b->tenant)) &&
	       (!s->by_box || view_eq(a->box, b->box)) &&
	       (!s->by_provider || view_eq(a->provider, b->provider)) &&
	       (!s->by_model || view_eq(a->model, b->model));
}

static void sum(void *arg, const struct store_usage *u)
{
	struct sums *s = arg;

	add_to(&s->total, u);
	for (size_t i = 0; i < s->n; i++)
		if (same(s, &s->rows[i], u)) {
			add_to(&s->rows[i], u);
			return;
		}
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		void *more = cap <= GROUPS_MAX * 2 ? reallocarray(s->rows, cap, sizeof(*s->rows)) : NULL;
		if (!more) {
			s->full = true;
			return;
		}
		s->rows = more;
		s->cap = cap;
	}
	s->rows[s->n++] = *u;
}

static void put_numbers(struct json_out *o, const struct store_usage *u)
{
	json_out_ku64(o, "requests", u->requests);
	json_out_ku64(o, "estimated", u->estimated);
	json_out_ku64(o, "input_tokens", u->input);
	json_out_ku64(o, "cache_read_tokens", u->cache_read);
	json_out_ku64(o, "cache_write_tokens", u->cache_write);
	json_out_ku64(o, "output_tokens", u->output);
	json_out_key(o, "cost_usd");
	json_out_double(o, (double)u->cost / 1e9);
}

static void put_day(struct json_out *o, int64_t day)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_rfc3339(day * DAY_MS, text);
	json_out_kstr(o, "day", view_head(view_of(text), 10));
}

/* A day as "2026-11-15". */
static int read_day(struct request *r, const char *name, int64_t otherwise, int64_t *ret, struct err *e)
{
	struct view v = request_query(r, name);
	char text[32];
	int64_t ms;

	*ret = otherwise;
	if (!v.p)
		return 0;
	snprintf(text, sizeof(text), "%.*sT00:00:00Z", VIEW_ARG(view_head(v, 10)));
	if (v.n != 10 || clock_from_rfc3339(view_of(text), &ms) < 0)
		return err_set(e, ERR_INVALID, "%s must be a day like 2026-11-15", name);
	*ret = ms / DAY_MS;
	return 0;
}

static int read_by(struct request *r, struct sums *s, struct err *e)
{
	struct view by = request_query(r, "by");

	by = by.p ? by : VIEW("box,provider,model");
	while (by.p) {
		struct view one = view_split(by, ',', &by);
		bool *flag = view_is(one, "day")        ? &s->by_day
			     : view_is(one, "tenant")   ? &s->by_tenant
			     : view_is(one, "box")      ? &s->by_box
			     : view_is(one, "provider") ? &s->by_provider
			     : view_is(one, "model")    ? &s->by_model
							: NULL;
		if (!flag)
			return err_set(e, ERR_INVALID,
				       "by must be some of day, tenant, box, provider, model");
		*flag = true;
	}
	return 0;
}

static void put_group(struct json_out *o, const struct sums *s, const struct store_usage *u)
{
	json_out_object(o);
	if (s->by_day)
		put_day(o, u->day);
	if (s->by_tenant)
		json_out_kstr(o, "tenant", u->tenant);
	if (s->by_box)
		json_out_kstr(o, "box", u->box);
	if (s->by_provider)
		json_out_kstr(o, "provider", u->provider);
	if (s->by_model)
		json_out_kstr(o, "model", u->model);
	put_numbers(o, u);
	json_out_end(o, '}');
}

static void get_usage(struct request *r)
{
	int64_t today = clock_wall_ms() / DAY_MS;
	struct usage_filter f = { .box = request_query(r, "box"),
				  .model = request_query(r, "model"),
				  .provider = request_query(r, "provider") };
	struct sums s = { 0 };
	struct err e = { 0 };
	struct buf out = BUF_INIT(USAGE_MAX);
	struct json_out o;
	int ok = read_by(r, &s, &e) < 0 || read_day(r, "from", today - DEFAULT_DAYS, &f.from, &e) < 0 ||
				 read_day(r, "to", today, &f.to, &e) < 0 ||
				 usage_each(r->core, &r->actor, &f, sum, &s, &e) < 0
			 ? -1
			 : 0;

	if (ok == 0 && s.full)
		ok = err_set(&e, ERR_TOO_LARGE, "that is too much: ask for fewer days or groups");
	if (ok < 0) {
		free(s.rows);
		answer_fail(r, &e);
		return;
	}
	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_key(&o, "usage");
	json_out_array(&o);
	for (size_t i = 0; i < s.n; i++)
		put_group(&o, &s, &s.rows[i]);
	json_out_end(&o, ']');
	json_out_key(&o, "total");
	json_out_object(&o);
	put_numbers(&o, &s.total);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	free(s.rows);
	answer_reply(r, 200, &out);
}

const struct route rest_usage_routes[] = {
	{ "GET", "/v1/usage", get_usage, .query = "from to by box model provider" },
	{ 0 },
};
