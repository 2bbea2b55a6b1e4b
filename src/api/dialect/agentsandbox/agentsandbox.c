/*
 * The Agent-Sandbox dialect: what is its own, who asks, and how an answer is wrapped.
 */
#include "agentsandbox.h"

#include <stdarg.h>
#include <stdio.h>

#include "as_impl.h"
#include "poison.h"

static bool claims(const struct http_exchange *x, void *state)
{
	struct view rest;

	if (boxes_path(x->path, &rest).p && view_is(rest, "/mcp"))
		return false; /* MCP's own */
	return view_starts(x->path, "/api/v1/") || view_starts(x->path, "/sandboxes/router/") ||
	       boxes_path(x->path, &rest).p;
}

struct view as_token(const struct http_exchange *x)
{
	struct view token = request_token(x);

	if (!token.p)
		token = http_get_query(x, "api_key");
	/* Who uses E2B's clients with it writes this before every key. */
	return view_starts(token, "e2b_pdk_") ? view_skip(token, strlen("e2b_")) : token;
}

static int authenticate(struct request *r, struct err *e)
{
	return auth_actor(r->core, as_token(r->x), &r->actor, e);
}

/* ---- answers ---- */

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;
	char code[8];

	snprintf(code, sizeof(code), "%d", err_http(e->code));
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "code", code);
	json_out_kz(&o, "error", e->code == ERR_UNAUTHORIZED ? "Unauthorized" : e->msg);
	json_out_end(&o, '}');
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

struct json_out *as_data(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "code", "0");
	json_out_key(o, "data");
	return o;
}

void as_send(struct request *r)
{
	json_out_end(&r->json, '}');
	answer_send(r, 200);
}

void as_say(struct request *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_out_str(as_data(r), view_of(text));
	as_send(r);
}

struct view as_name(const struct box *b)
{
	return b->spec.name.n ? b->spec.name : view_of(b->id);
}

struct box *as_box(struct request *r, int act)
{
	struct err e = { 0 };
	struct box *b = boxes_find(r->core, &r->actor, act, r->params[0], &e);

	if (!b && e.code == ERR_NOT_FOUND)
		err_set(&e, ERR_NOT_FOUND, "sandbox %.*s not found", (int)MIN(r->params[0].n, 64),
			r->params[0].p);
	if (!b)
		answer_fail(r, &e);
	return b;
}

/* Of its own listener; on the common one it is the REST API's. */
static void healthz(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", "ok");
	json_out_kz(o, "version", PADDOCK_VERSION);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static const struct route own_routes[] = {
	{ "GET", "/healthz", healthz, .auth = ROUTE_OPEN },
	{ 0 },
};

static const struct route *const tables[] = {
	own_routes, as_boxes_routes, as_observe_routes, as_terminal_routes, as_files_routes, as_proxy_routes,
	NULL,
};

static const struct surface surface = {
	.heading = "agent-sandbox", .routes = tables, .authenticate = authenticate, .fail = fail
};

static void off(const struct core *c, void (*say)(void *arg, const char *what, const char *why), void *arg)
{
	if (!core_config(c)->n_pools)
		say(arg, "/api/v1/pool", "pool is empty");
	say(arg, "POST /api/v1/config", "settings are part of paddock.yaml");
}

const struct dialect agentsandbox_dialect = { .name = "agent-sandbox",
					      .version = "0.1.0, 0.8.1",
					      .with = "aio mcp e2b",
					      .ports_here = true,
					      .off = off,
					      .claims = claims,
					      .surface = &surface };
