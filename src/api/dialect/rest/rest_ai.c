/*
 * /v1/sandboxes/{id}/ai, /v1/tenants/{id}/ai: access of a sandbox to models, its and its tenant's
 * limits, its spending, and its calls. src/api/dialect/models serves the calls themselves.
 */
#include <stdio.h>

#include "box.h"
#include "money.h"
#include "netns.h"
#include "num.h"
#include "rest_impl.h"
#include "who.h"
#include "poison.h"

#define PAGE_DEFAULT 50
#define PAGE_MAX     1000

static void put_dollars(struct json_out *o, const char *key, int64_t nano)
{
	json_out_key(o, key);
	json_out_double(o, (double)nano / 1e9);
}

/* ---- limits ---- */

static void put_force(struct json_out *o, const struct allowance_force *f)
{
	json_out_key(o, "limits");
	json_out_object(o);
	for (int p = 0; p < ALLOWANCE_PARTS; p++) {
		json_out_key(o, allowance_part_name((enum allowance_part)p));
		allowance_put_part(o, (enum allowance_part)p, f->parts[p]);
	}
	json_out_end(o, '}');
	json_out_key(o, "sources");
	json_out_object(o);
	for (int p = 0; p < ALLOWANCE_PARTS; p++)
		json_out_kz(o, allowance_part_name((enum allowance_part)p), f->from[p]);
	json_out_end(o, '}');
}

static void put_spent(struct json_out *o, const struct usage_spent *s)
{
	json_out_key(o, "spent");
	json_out_object(o);
	for (int w = 0; w < BUDGET_WINDOWS; w++)
		put_dollars(o, budget_window_name((enum budget_window)w), s->windows[w]);
	put_dollars(o, "reserved", s->reserved);
	json_out_ku64(o, "parallel", s->parallel);
	json_out_end(o, '}');
}

/* What was said for it; {}: nothing. */
static void put_own(struct json_out *o, const struct allowance *a)
{
	static const struct allowance none;

	json_out_key(o, "own");
	allowance_put(o, a ? a : &none);
}

static void put_patterns(struct json_out *o, const struct json_strlist *l)
{
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		json_out_str(o, l->items[i]);
	json_out_end(o, ']');
}

static void put_level(struct json_out *o, const char *from, const struct allowance *a, enum allowance_list l)
{
	if (!a || !a->listed[l])
		return;
	json_out_object(o);
	json_out_kz(o, "from", from);
	json_out_key(o, "patterns");
	put_patterns(o, &a->lists[l]);
	json_out_end(o, '}');
}

/* Each list that there is must allow a call. */
static void put_allow(struct json_out *o, const struct allowance *tenant, const struct allowance *box)
{
	json_out_key(o, "allow");
	json_out_object(o);
	for (int l = 0; l < ALLOWANCE_LISTS; l++) {
		json_out_key(o, allowance_list_name((enum allowance_list)l));
		json_out_array(o);
		put_level(o, "tenant", tenant, (enum allowance_list)l);
		put_level(o, "sandbox", box, (enum allowance_list)l);
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

/* ---- a box ---- */

/* endpoints and models: the configuration's; none are all. */
static void put_provider(struct json_out *o, const struct box *b, const struct config_provider *p)
{
	char url[96];

	json_out_key_view(o, p->name);
	json_out_object(o);
	snprintf(url, sizeof(url), "/api/%.*s", VIEW_ARG(p->name));
	json_out_kz(o, "path", url);
	snprintf(url, sizeof(url), "http://" NETNS_PROXY_HOST "/api/%.*s", VIEW_ARG(p->name));
	json_out_kz(o, "inside", url);
	json_out_kbool(o, "allowed", allowances_allow(b, ALLOWANCE_PROVIDERS, p->name));
	json_out_key(o, "endpoints");
	put_patterns(o, &p->endpoints);
	json_out_key(o, "models");
	put_patterns(o, &p->models);
	json_out_end(o, '}');
}

static void put_tenant(struct json_out *o, struct core *c, const struct tenant *t)
{
	struct allowance_force f;
	struct usage_spent spent;

	allowances_of_tenant(c, t, &f);
	usage_spent_tenant(c, t, &spent);
	put_force(o, &f);
	put_own(o, allowances_said_tenant(c, t));
	put_spent(o, &spent);
}

static void reply_box(struct request *r, const struct box *b)
{
	const struct config *cfg = core_config(r->core);
	struct json_out *o = answer_json(r);
	char token[TOKENS_SIZE];
	struct allowance_force f;
	struct usage_spent spent;

	tokens_of(r->core, b, TOKEN_AI, token);
	allowances_of(b, &f);
	usage_spent(r->core, b, &spent);
	json_out_object(o);
	json_out_kz(o, "token", token);
	answer_put_time(o, "token_expires_at", b->spec.ai_token_ends_ms);
	json_out_key(o, "providers");
	json_out_object(o);
	for (size_t i = 0; i < cfg->n_providers; i++)
		put_provider(o, b, &cfg->providers[i]);
	json_out_end(o, '}');
	put_force(o, &f);
	put_own(o, allowances_said(b));
	put_allow(o, allowances_said_tenant(r->core, b->tenant), allowances_said(b));
	put_spent(o, &spent);
	json_out_key(o, "tenant");
	json_out_object(o);
	put_tenant(o, r->core, b->tenant);
	json_out_end(o, '}');
	json_out_end(o, '}');
	explicit_bzero(token, sizeof(token));
	answer_send(r, 200);
}

static void get_box(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_EXEC, r->params[0], &e);

	if (b)
		reply_box(r, b);
	else
		answer_fail(r, &e);
}

static void on_changed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_box(r, result);
}

static void change_box(struct request *r, bool whole)
{
	struct err e = { 0 };
	struct json *doc;

	if (request_read_doc(r, &doc, &e) < 0)
		answer_fail(r, &e);
	else
		answer_await(r,
			     allowances_put(r->core, &r->actor, r->params[0], doc, whole, on_changed, r, &e),
			     &e);
}

static void put_box(struct request *r)
{
	change_box(r, true);
}

static void patch_box(struct request *r)
{
	change_box(r, false);
}

struct token_body {
	bool unused; /* the schema puts nothing at offset 0 */
	uint64_t ttl_seconds;
};

static const struct json_field token_fields[] = {
	{ "ttl_seconds", JSON_F_U64, offsetof(struct token_body, ttl_seconds), .min = 1,
	  .max = ALLOWANCES_TOKEN_TTL_MAX, .nullable = true },
};
static const struct json_schema token_schema = { token_fields, ELEMS(token_fields) };

static void rotate(struct request *r)
{
	struct token_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &token_schema, &body) < 0)
		return;
	answer_await(r,
		     allowances_rotate(r->core, &r->actor, r->params[0], body.ttl_seconds, on_changed, r, &e),
		     &e);
}

/* ---- calls ---- */

struct page {
	struct json_out *o;
	uint32_t left;
	uint64_t last; /* the last that was put, where there are more */
	bool more;
};

static void put_members(struct json_out *o, const struct store_ai_log *l)
{
	json_out_ku64(o, "id", l->id);
	answer_put_time(o, "at", l->at_ms);
	json_out_ki64(o, "duration_ms", l->duration_ms);
	json_out_kstr(o, "provider", l->provider);
	json_out_kstr(o, "endpoint", l->endpoint);
	json_out_kstr(o, "model", l->model);
	json_out_ku64(o, "status", l->status);
	json_out_kstr(o, "finish", l->finish);
	json_out_kbool(o, "estimated", l->estimated);
	json_out_ku64(o, "input_tokens", l->input);
	json_out_ku64(o, "cache_read_tokens", l->cache_read);
	json_out_ku64(o, "cache_write_tokens", l->cache_write);
	json_out_ku64(o, "output_tokens", l->output);
	put_dollars(o, "cost_usd", l->cost);
}

static bool put_call(void *arg, const struct store_ai_log *l)
{
	struct page *p = arg;

	if (!p->left) {
		p->more = true;
		return false;
	}
	p->left--;
	p->last = l->id;
	json_out_object(p->o);
	put_members(p->o, l);
	json_out_end(p->o, '}');
	return true;
}

static void put_body(struct json_out *o, const char *key, bool kept, struct view text, bool cut)
{
	json_out_key(o, key);
	if (!kept) {
		json_out_null(o);
		return;
	}
	json_out_object(o);
	json_out_kstr(o, "text", text);
	json_out_kbool(o, "truncated", cut);
	json_out_end(o, '}');
}

static void one_call(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);
	const struct store_ai_log *l = NULL;
	uint64_t id = 0;

	if (b && num_u64(r->params[1], &id) >= 0)
		l = ailog_find(r->core, view_of(b->id), id);
	if (b && !l)
		err_set(&e, ERR_NOT_FOUND, "the sandbox has no such call, or it is not kept any more");
	if (!l) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_members(o, l);
	put_body(o, "request", l->bodies.kept, l->bodies.request, l->bodies.request_cut);
	put_body(o, "response", l->bodies.kept, l->bodies.response, l->bodies.response_cut);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void calls(struct request *r)
{
	struct view before = request_query(r, "before");
	struct page p = { .left = PAGE_DEFAULT };
	struct err e = { 0 };
	uint64_t from = 0;
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

	if (b && before.p && num_u64(before, &from) < 0)
		err_set(&e, ERR_INVALID, "before must be the id of a call");
	if (e.code || request_query_limit(r, PAGE_MAX, &p.left, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	p.o = answer_json_list(r, "calls");
	ailog_each(r->core, view_of(b->id), from, put_call, &p);
	json_out_end(p.o, ']');
	json_out_ku64_any(p.o, "next", p.more ? p.last : 0);
	json_out_end(p.o, '}');
	answer_send(r, 200);
}

/* ---- a tenant ---- */

static void reply_tenant(struct request *r, const struct tenant *t)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	put_tenant(o, r->core, t);
	put_allow(o, allowances_said_tenant(r->core, t), NULL);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void get_tenant(struct request *r)
{
	struct err e = { 0 };
	const struct tenant *t = keys_find_tenant(r->core, &r->actor, r->params[0], &e);

	if (t)
		reply_tenant(r, t);
	else
		answer_fail(r, &e);
}

static void on_tenant(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_tenant(r, result);
}

static void change_tenant(struct request *r, bool whole)
{
	struct err e = { 0 };
	struct json *doc;

	if (request_read_doc(r, &doc, &e) < 0)
		answer_fail(r, &e);
	else
		answer_await(
			r,
			allowances_tenant_put(r->core, &r->actor, r->params[0], doc, whole, on_tenant, r, &e),
			&e);
}

static void put_tenant_limits(struct request *r)
{
	change_tenant(r, true);
}

static void patch_tenant_limits(struct request *r)
{
	change_tenant(r, false);
}

const struct route rest_ai_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/ai", get_box },
	{ "PUT", "/v1/sandboxes/{id}/ai", put_box, .body = ROUTE_JSON, .audit = "ai.limits",
	  .audit_body = true },
	{ "PATCH", "/v1/sandboxes/{id}/ai", patch_box, .body = ROUTE_JSON, .audit = "ai.limits",
	  .audit_body = true },
	{ "POST", "/v1/sandboxes/{id}/ai/token", rotate, .body = ROUTE_JSON, .audit = "ai.token" },
	{ "GET", "/v1/sandboxes/{id}/ai/calls", calls, .query = "before limit" },
	{ "GET", "/v1/sandboxes/{id}/ai/calls/{call}", one_call },
	{ "GET", "/v1/tenants/{id}/ai", get_tenant },
	{ "PUT", "/v1/tenants/{id}/ai", put_tenant_limits, .body = ROUTE_JSON, .audit = "ai.limits",
	  .audit_body = true },
	{ "PATCH", "/v1/tenants/{id}/ai", patch_tenant_limits, .body = ROUTE_JSON, .audit = "ai.limits",
	  .audit_body = true },
	{ 0 },
};
