/*
 * What is going on: limits, status, telemetry, events, logs, the pool and the configuration.
 */
#include <stdio.h>

#include "as_impl.h"
#include "clock.h"
#include "event.h"
#include "image.h"
#include "money.h"
#include "num.h"
#include "poison.h"

#define TAIL_DEFAULT   200
#define TAIL_MAX       2000
#define EVENTS_DEFAULT 100
#define EVENTS_MAX     500

static int read_count(struct request *r, const char *name, uint32_t usual, uint32_t most, uint32_t *ret)
{
	struct view v = request_query(r, name);
	struct err e = { 0 };

	*ret = usual;
	if (!v.p || (num_u32(v, ret) >= 0 && *ret >= 1 && *ret <= most))
		return 0;
	err_set(&e, ERR_INVALID, "%s must be between 1 and %u", name, most);
	answer_fail(r, &e);
	return -1;
}

/* ---- status, limits ---- */

static void status(struct request *r)
{
	struct json_out *o = as_data(r);
	const char *why = core_not_ready(r->core);

	json_out_object(o);
	json_out_kz(o, "status", why ? "starting" : "ok");
	json_out_kz(o, "version", PADDOCK_VERSION);
	json_out_end(o, '}');
	as_send(r);
}

static void ratelimit(struct request *r)
{
	struct tenant_state s = { 0 };
	struct err e = { 0 };

	/* What a tenant may have is its own business, too: asked in its name. */
	if (quotas_tenant(r->core, &r->actor, view_of(r->actor.tenant->id), &s, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_ku64(o, "max_sandbox", s.limit.n[LEDGER_BOXES]);
	json_out_ku64(o, "sandboxes", s.use.n[LEDGER_BOXES]);
	json_out_ku64(o, "creates_per_minute", s.quota.creates_per_minute);
	json_out_end(o, '}');
	as_send(r);
}

/* ---- telemetry: of the caller's own sandboxes ---- */

struct counts {
	uint64_t by[BOX_STATUSES], all, memory_kb;
	int64_t age_ms, oldest_ms, now_ms;
};

static void count(void *arg, const struct box *b)
{
	struct counts *c = arg;
	int64_t age = c->now_ms - b->state.created_ms;
	unsigned n = history_count(b);

	c->by[b->state.status]++;
	c->all++;
	c->age_ms += age;
	c->oldest_ms = age > c->oldest_ms ? age : c->oldest_ms;
	c->memory_kb += n ? history_get(b, n - 1)->memory_kb : 0;
}

static int count_all(struct request *r, struct counts *ret)
{
	struct err e = { 0 };

	*ret = (struct counts){ .now_ms = clock_wall_ms() };
	if (boxes_each(r->core, &r->actor, count, ret, &e) >= 0)
		return 0;
	answer_fail(r, &e);
	return -1;
}

static void put_summary(struct json_out *o, const struct counts *c)
{
	json_out_ku64(o, "total", c->all);
	json_out_ku64(o, "running", c->by[BOX_RUNNING]);
	json_out_ku64(o, "paused", c->by[BOX_PAUSED] + c->by[BOX_STOPPED]);
	json_out_ku64(o, "creating", c->by[BOX_CREATING]);
	json_out_ku64(o, "memoryBytes", c->memory_kb << 10);
}

static void telemetry(struct request *r)
{
	struct view what = r->params[0];
	struct counts c;
	struct err e = { 0 };

	if (count_all(r, &c) < 0)
		return;
	struct json_out *o = as_data(r);
	json_out_object(o);
	if (view_is(what, "status")) {
		json_out_kbool(o, "enabled", true);
	} else if (view_is(what, "summary")) {
		put_summary(o, &c);
	} else if (view_is(what, "by_user")) {
		json_out_key(o, "users");
		json_out_array(o);
		json_out_object(o);
		json_out_kz(o, "user", r->actor.tenant->name);
		put_summary(o, &c);
		json_out_end(o, '}');
		json_out_end(o, ']');
	} else if (view_is(what, "durations")) {
		json_out_ku64(o, "count", c.all);
		json_out_ki64(o, "averageSeconds", c.all ? c.age_ms / (int64_t)c.all / 1000 : 0);
		json_out_ki64(o, "longestSeconds", c.oldest_ms / 1000);
	} else if (view_is(what, "timeseries")) {
		json_out_key(o, "points");
		json_out_array(o);
		json_out_object(o);
		answer_put_time(o, "at", c.now_ms);
		put_summary(o, &c);
		json_out_end(o, '}');
		json_out_end(o, ']');
	} else {
		err_set(&e, ERR_NOT_FOUND, "there is nothing at this path");
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, '}');
	as_send(r);
}

/* ---- events, and the same as lines ---- */

/* The last `most` of them, from the oldest on. */
static uint64_t find_start(const struct request *r, const struct event_filter *f, uint32_t most)
{
	const struct event *v;
	uint64_t after = 0, n = 0, start = 0;

	while ((v = events_next(r->core, &r->actor, f, after))) {
		after = v->id;
		n++;
	}
	for (after = 0; n > most && (v = events_next(r->core, &r->actor, f, after)); n--)
		start = after = v->id;
	return start;
}

/* One that is gone is known by its id. */
static struct view box_of(struct request *r, struct view name)
{
	const struct box *b = name.n ? boxes_find(r->core, &r->actor, ACT_BOX_READ, name, NULL) : NULL;

	return b ? view_of(b->id) : name;
}

static void events(struct request *r)
{
	struct event_filter f = { 0 };
	const struct event *v;
	uint32_t limit;

	if (read_count(r, "limit", EVENTS_DEFAULT, EVENTS_MAX, &limit) < 0)
		return;
	f.box = box_of(r, request_query(r, "sandbox"));
	uint64_t after = find_start(r, &f, limit);
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_key(o, "events");
	json_out_array(o);
	while ((v = events_next(r->core, &r->actor, &f, after))) {
		after = v->id;
		json_out_object(o);
		json_out_kz(o, "type", events_name(v->type));
		json_out_kz(o, "sandbox", v->box);
		answer_put_time(o, "time", v->at_ms);
		json_out_kstr(o, "message", v->data);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
	as_send(r);
}

static void put_line(struct buf *b, const struct event *v)
{
	char at[CLOCK_RFC3339_SIZE];

	clock_rfc3339(v->at_ms, at);
	buf_printf(b, "%s %s %.*s\n", at, events_name(v->type), VIEW_ARG(v->data));
}

/* The last lines of what the filter lets through; false: the answer is sent. */
static bool tail(struct request *r, const struct event_filter *f, struct buf *text)
{
	const struct event *v;
	uint32_t limit;

	if (read_count(r, "tailLines", TAIL_DEFAULT, TAIL_MAX, &limit) < 0)
		return false;
	uint64_t after = find_start(r, f, limit);
	while ((v = events_next(r->core, &r->actor, f, after))) {
		after = v->id;
		put_line(text, v);
	}
	return true;
}

static void logs(struct request *r)
{
	const struct box *b = as_box(r, ACT_BOX_READ);
	_cleanup_(buf_done) struct buf text = BUF_INIT(4u * 1024 * 1024);

	if (!b || !tail(r, &(struct event_filter){ .box = view_of(b->id) }, &text))
		return;
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_kstr(o, "sandbox", as_name(b));
	json_out_kstr(o, "logs", buf_view(&text));
	json_out_end(o, '}');
	as_send(r);
}

/* Of all sandboxes of the caller. */
static void telemetry_logs(struct request *r)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(4u * 1024 * 1024);

	if (!tail(r, &(struct event_filter){ 0 }, &text))
		return;
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_kstr(o, "logs", buf_view(&text));
	json_out_end(o, '}');
	as_send(r);
}

/* ---- the pool, the configuration ---- */

static void pool(struct request *r)
{
	const struct config *c = core_config(r->core);
	struct json_out *o = as_data(r);

	json_out_array(o);
	for (size_t i = 0; i < c->n_pools; i++) {
		json_out_object(o);
		json_out_kstr(o, "name", c->pools[i].image);
		json_out_kstr(o, "template", c->pools[i].image);
		json_out_ku64(o, "size", c->pools[i].warm);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	as_send(r);
}

static void put_template(void *arg, const struct image *i)
{
	struct json_out *o = arg;

	for (size_t n = 0; n < i->n_names; n++) {
		json_out_object(o);
		json_out_kstr(o, "name", i->names[n]);
		json_out_kstr(o, "image", i->names[n]);
		json_out_kz(o, "description", i->machine ? "this machine's own programs" : "");
		json_out_ku64(o, "port", AS_PORT);
		json_out_kz(o, "type", "");
		json_out_end(o, '}');
	}
}

static void templates(struct request *r)
{
	struct json_out *o = as_data(r);
	struct err e = { 0 };

	json_out_array(o);
	if (images_each(r->core, &r->actor, put_template, o, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, ']');
	as_send(r);
}

/* No key and nothing of another tenant is in it. */
static void runtime(struct request *r)
{
	const struct config *c = core_config(r->core);
	struct json_out *o = as_data(r);

	json_out_object(o);
	json_out_kstr(o, "default_image", c->defaults.image);
	json_out_ku64(o, "max_timeout", c->max.ttl_seconds);
	json_out_ku64(o, "max_sandboxes", c->max.boxes);
	json_out_end(o, '}');
	as_send(r);
}

static void not_here(struct request *r)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNSUPPORTED,
		"this is part of the daemon's configuration (paddock.yaml), and is not changed here");
	answer_fail(r, &e);
}

const struct route as_observe_routes[] = {
	{ "GET", "/api/v1/status", status, .auth = ROUTE_OPEN },
	{ "GET", "/api/v1/ratelimit", ratelimit, .query = "api_key" },
	{ "GET", "/api/v1/telemetry/{what}", telemetry, .query = ROUTE_ANY_QUERY },
	{ "GET", "/api/v1/telemetry/logs", telemetry_logs, .query = "tailLines api_key" },
	{ "GET", "/api/v1/events", events, .query = "sandbox limit api_key" },
	{ "GET", "/api/v1/logs/sandbox/{name}", logs, .query = "tailLines api_key" },
	{ "GET", "/api/v1/pool", pool, .query = "api_key" },
	{ "DELETE", "/api/v1/pool/{name}", not_here, .query = "api_key" },
	{ "GET", "/api/v1/config/templates", templates, .query = "api_key" },
	{ "GET", "/api/v1/config/runtime", runtime, .query = "api_key" },
	{ "GET", "/api/v1/config/blueprint", not_here, .query = "api_key" },
	{ "POST", "/api/v1/config/{what}", not_here, .body = ROUTE_WHOLE, .query = "api_key" },
	{ 0 },
};
