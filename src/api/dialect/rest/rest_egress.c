/*
 * /v1/sandboxes/{id}/egress, /v1/tenants/{id}/egress, /v1/egress/sets: egress policies and the gate's
 * verdicts.
 */
#include "box.h"
#include "net.h"
#include "netns.h"
#include "num.h"
#include "rest_impl.h"
#include "poison.h"

#define PAGE_DEFAULT 100

/* ---- showing ---- */

static bool is_used(const struct egress_policy *p, struct view set)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (view_eq(p->rules[i].set, set))
			return true;
	return false;
}

/* The sets that a policy names, or all of them. */
static void put_sets(struct json_out *o, const struct json *sets, const struct egress_policy *p)
{
	json_out_key(o, "sets");
	json_out_object(o);
	for (size_t i = 0; sets && i < sets->n; i++) {
		if (p && !is_used(p, sets->members[i].key))
			continue;
		json_out_key_view(o, sets->members[i].key);
		json_out_value(o, &sets->members[i].value);
	}
	json_out_end(o, '}');
}

static const struct json *find_member(const struct json *object, struct view key)
{
	for (size_t i = 0; object && object->type == JSON_OBJECT && i < object->n; i++)
		if (view_eq(object->members[i].key, key))
			return &object->members[i].value;
	return NULL;
}

/* What was not found anywhere, the administrator has given. */
static void put_sources(struct json_out *o, const struct config_sets *s)
{
	json_out_key(o, "sources");
	json_out_object(o);
	for (size_t i = 0; s->sets && i < s->sets->n; i++) {
		const struct json *from = find_member(s->sources, s->sets->members[i].key);

		json_out_key_view(o, s->sets->members[i].key);
		if (from) {
			json_out_value(o, from);
			continue;
		}
		json_out_array(o);
		json_out_str(o, VIEW("configuration"));
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

static void reply(struct request *r, const char *source, const struct egress_policy *p,
		  const struct json *sets)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "source", source);
	json_out_key(o, "policy");
	egress_put(o, p);
	put_sets(o, sets, p);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void reply_box(struct request *r, const struct box *b)
{
	enum policy_source from;
	const struct egress_policy *p = policies_of(b, &from);

	reply(r, policies_source_name(from), p, policies_sets(b)->sets);
}

static void reply_sets(struct request *r, const struct config_sets *s)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	put_sets(o, s->sets, NULL);
	put_sources(o, s);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void sets(struct request *r)
{
	const struct config_sets s = { core_config(r->core)->egress.sets,
				       core_config(r->core)->egress.sources };
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_CAPABILITIES, NULL, &e) < 0)
		answer_fail(r, &e);
	else
		reply_sets(r, &s);
}

static void box_sets(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

	if (b)
		reply_sets(r, policies_sets(b));
	else
		answer_fail(r, &e);
}

/* ---- a box ---- */

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

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

/* ?open=close: connections that are open are judged again. */
static int read_open(struct request *r, bool *ret, struct err *e)
{
	struct view v = request_query(r, "open");

	*ret = view_is(v, "close");
	if (v.p && !*ret && !view_is(v, "keep"))
		return err_set(e, ERR_INVALID, "open must be keep or close");
	return 0;
}

static void put(struct request *r)
{
	struct egress_policy policy;
	struct err e = { 0 };
	struct json *doc;
	bool close;

	const struct box *b = read_open(r, &close, &e) >= 0 && request_read_doc(r, &doc, &e) >= 0
				      ? boxes_find_made(r->core, &r->actor, r->params[0], &e)
				      : NULL;
	if (b && egress_read(&r->arena, doc, policies_sets(b)->sets, &policy, &e) >= 0)
		r->job = policies_put(r->core, &r->actor, r->params[0], &policy, close, on_changed, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

static void drop(struct request *r)
{
	struct err e = { 0 };
	bool close;

	if (read_open(r, &close, &e) >= 0)
		r->job = policies_put(r->core, &r->actor, r->params[0], NULL, close, on_changed, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

struct rules_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view action;
	struct json_strlist targets;
	const struct json *inject;
};

static const struct json_field rules_fields[] = {
	{ "action", JSON_F_STRING, offsetof(struct rules_body, action), .min = 1, .required = true },
	{ "targets", JSON_F_STRLIST, offsetof(struct rules_body, targets), .min = 1, .max = EGRESS_RULES_MAX,
	  .required = true },
	{ "inject", JSON_F_ANY, offsetof(struct rules_body, inject), .nullable = true },
};
static const struct json_schema rules_schema = { rules_fields, ELEMS(rules_fields) };

static void add_rules(struct request *r)
{
	struct rules_body body = { 0 };
	struct policies_more more = { 0 };
	struct err e = { 0 };
	bool close;

	if (request_read(r, &rules_schema, &body) < 0)
		return;
	more.verdict = view_is(body.action, "allow")  ? EGRESS_ALLOW
		       : view_is(body.action, "deny") ? EGRESS_DENY
						      : EGRESS_NONE;
	more.targets = body.targets;
	more.inject = body.inject;
	if (more.verdict == EGRESS_NONE)
		err_set(&e, ERR_INVALID, "action must be allow or deny");
	else if (read_open(r, &close, &e) >= 0)
		r->job = policies_add(r->core, &r->actor, r->params[0], &more, close, on_changed, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* ---- tokens ---- */

struct token_body {
	bool unused;
	struct json_strlist hosts;
	uint64_t ttl_seconds;
};

static const struct json_field token_fields[] = {
	{ "allowed_hosts", JSON_F_STRLIST, offsetof(struct token_body, hosts), .min = 1,
	  .max = POLICIES_TOKEN_HOSTS, .required = true },
	{ "ttl_seconds", JSON_F_U64, offsetof(struct token_body, ttl_seconds), .min = 1,
	  .max = POLICIES_TOKEN_TTL_MAX, .nullable = true },
};
static const struct json_schema token_schema = { token_fields, ELEMS(token_fields) };

static void make_token(struct request *r)
{
	struct token_body body = { .ttl_seconds = POLICIES_TOKEN_TTL };
	struct buf url = BUF_INIT(16 * 1024);
	struct policies_token t;
	struct err e = { 0 };

	if (request_read(r, &token_schema, &body) < 0)
		return;
	if (policies_token(r->core, &r->actor, r->params[0], &body.hosts, body.ttl_seconds, &r->arena, &t,
			   &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	buf_printf(&url, "http://sandbox:jwt_%.*s@" NETNS_PROXY_HOST, VIEW_ARG(t.text));
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kstr(o, "token", t.text);
	json_out_kstr(o, "proxy", buf_view(&url));
	answer_put_time(o, "expires_at", t.expires_ms);
	json_out_end(o, '}');
	buf_done(&url);
	answer_send(r, 201);
}

/* ---- the log ---- */

static void put_verdict(struct json_out *o, const struct core *c, const struct policy_verdict *v)
{
	struct buf advice = BUF_INIT(1024);

	json_out_object(o);
	json_out_ku64(o, "id", v->id);
	answer_put_time(o, "at", v->at_ms);
	answer_put_time(o, "first_at", v->first_ms);
	json_out_ku64(o, "count", v->count);
	json_out_kz(o, "verdict", v->allowed ? "allow" : "deny");
	json_out_kz(o, "reason", policies_reason_name(v->reason));
	json_out_kstr_any(o, "rule", v->rule);
	json_out_kstr_any(o, "protocol", v->protocol);
	json_out_kstr_any(o, "host", v->host);
	json_out_kstr_any(o, "address", v->address);
	json_out_ku64(o, "port", v->port);
	json_out_kstr_any(o, "method", v->method);
	json_out_kstr_any(o, "path", v->path);
	json_out_kstr_any(o, "via", v->via);
	json_out_kstr_any(o, "would_allow", policies_advice(c, v, &advice) ? buf_view(&advice) : VIEW_NONE);
	json_out_end(o, '}');
	buf_done(&advice);
}

struct page {
	uint64_t after;
	uint32_t limit;
	struct view verdict;
};

static int read_page(struct request *r, struct page *ret, struct err *e)
{
	struct view after = request_query(r, "after");

	*ret = (struct page){ .limit = PAGE_DEFAULT, .verdict = request_query(r, "verdict") };
	if (after.p && num_u64(after, &ret->after) < 0)
		return err_set(e, ERR_INVALID, "after must be the id of a verdict");
	if (request_query_limit(r, POLICIES_PAGE_MAX, &ret->limit, e) < 0)
		return -1;
	if (ret->verdict.p && !view_is(ret->verdict, "allow") && !view_is(ret->verdict, "deny"))
		return err_set(e, ERR_INVALID, "verdict must be allow or deny");
	return 0;
}

static void reply_page(struct request *r)
{
	struct err e = { 0 };
	struct page p;
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);
	const struct policy_verdict *v;

	if (!b || read_page(r, &p, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json_list(r, "verdicts");
	for (uint32_t n = 0; n < p.limit && (v = policies_next(b, p.after));) {
		p.after = v->id;
		if (p.verdict.p && view_is(p.verdict, "allow") != v->allowed)
			continue;
		put_verdict(o, r->core, v);
		n++;
	}
	json_out_end(o, ']');
	json_out_ku64(o, "next", p.after);
	v = policies_next(b, 0);
	json_out_ku64_any(o, "first", v ? v->id : 0);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_settled(void *arg, const void *result _unused_, const struct err *e _unused_)
{
	struct request *r = arg;

	r->job = NULL;
	reply_page(r);
}

static void log_page(struct request *r)
{
	struct err e = { 0 };
	struct page p;
	struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

	if (!b || read_page(r, &p, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	r->job = policies_settle(b, on_settled, r);
	if (!r->job)
		reply_page(r);
}

/* ---- a tenant ---- */

static void reply_tenant(struct request *r, struct view ref)
{
	const struct egress_policy *p = NULL, none = { .otherwise = EGRESS_DENY };
	const struct tenant *t;
	struct err e = { 0 };

	if (policies_tenant(r->core, &r->actor, ref, &t, &p, &e) < 0)
		answer_fail(r, &e);
	else
		reply(r, policies_source_name(p ? POLICY_TENANT : POLICY_NONE), p ? p : &none,
		      core_config(r->core)->egress.sets);
}

static void tenant_get(struct request *r)
{
	reply_tenant(r, r->params[0]);
}

static void on_tenant(void *arg, const void *result, const struct err *e)
{
	const struct tenant *t = result;
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_tenant(r, view_of(t->id));
}

static void tenant_put(struct request *r)
{
	const struct json *sets = policies_sets_tenants(r->core)->sets;
	struct egress_policy policy;
	struct err e = { 0 };
	struct json *doc;

	if (request_read_doc(r, &doc, &e) >= 0 && keys_find_tenant(r->core, &r->actor, r->params[0], &e) &&
	    egress_read(&r->arena, doc, sets, &policy, &e) >= 0)
		r->job = policies_tenant_put(r->core, &r->actor, r->params[0], &policy, on_tenant, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

static void tenant_drop(struct request *r)
{
	struct err e = { 0 };

	answer_await(r, policies_tenant_put(r->core, &r->actor, r->params[0], NULL, on_tenant, r, &e), &e);
}

const struct route rest_egress_routes[] = {
	{ "GET", "/v1/sandboxes/{id}/egress", get },
	{ "PUT", "/v1/sandboxes/{id}/egress", put, .body = ROUTE_JSON, .query = "open", .audit = "policy.set",
	  .audit_body = true },
	{ "DELETE", "/v1/sandboxes/{id}/egress", drop, .query = "open", .audit = "policy.delete" },
	{ "POST", "/v1/sandboxes/{id}/egress/rules", add_rules, .body = ROUTE_JSON, .query = "open",
	  .audit = "policy.rule", .audit_body = true },
	{ "POST", "/v1/sandboxes/{id}/egress/token", make_token, .body = ROUTE_JSON,
	  .audit = "policy.token" },
	{ "GET", "/v1/sandboxes/{id}/egress/log", log_page, .query = "after limit verdict" },
	{ "GET", "/v1/sandboxes/{id}/egress/sets", box_sets },
	{ "GET", "/v1/tenants/{id}/egress", tenant_get },
	{ "PUT", "/v1/tenants/{id}/egress", tenant_put, .body = ROUTE_JSON, .audit = "policy.set",
	  .audit_body = true },
	{ "DELETE", "/v1/tenants/{id}/egress", tenant_drop, .audit = "policy.delete" },
	{ "GET", "/v1/egress/sets", sets },
	{ 0 },
};
