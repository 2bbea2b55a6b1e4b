/*
 * /v1/tenants: tenants and what they may use. For admins.
 */
#include "money.h"
#include "rest_impl.h"
#include "who.h"
#include "poison.h"

#define CPU_MOST 1048576

static void put_numbers(struct json_out *o, const char *key, const uint64_t n[LEDGER_ITEMS], bool bounds,
			const uint64_t *rate)
{
	json_out_key(o, key);
	json_out_object(o);
	for (size_t i = 0; i < LEDGER_ITEMS; i++) {
		if (bounds && ledger_kinds[i].shown_only)
			continue;
		json_out_key(o, ledger_kinds[i].name);
		if (ledger_kinds[i].milli)
			json_out_double(o, (double)n[i] / 1000);
		else
			json_out_u64(o, n[i]);
	}
	if (rate)
		json_out_ku64(o, "creates_per_minute", *rate);
	json_out_end(o, '}');
}

static void put_tenant(struct json_out *o, const struct tenant_state *s)
{
	json_out_object(o);
	json_out_kz(o, "id", s->tenant->id);
	json_out_kz(o, "name", s->tenant->name);
	answer_put_time(o, "created_at", s->tenant->created_ms);
	put_numbers(o, "quota", s->quota.most, true, &s->quota.creates_per_minute);
	put_numbers(o, "limits", s->limit.n, true, &s->quota.creates_per_minute);
	put_numbers(o, "used", s->use.n, false, NULL);
	json_out_end(o, '}');
}

static void reply(struct request *r, int status, const struct tenant_state *s)
{
	struct json_out *o = answer_json(r);

	put_tenant(o, s);
	answer_send(r, status);
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply(r, 201, result);
}

struct tenant_wish {
	struct view unused; /* the schema puts nothing at offset 0 */
	struct view name;
};

static const struct json_field tenant_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct tenant_wish, name), .min = 1, .max = KEYS_NAME_MAX,
	  .required = true },
};
static const struct json_schema tenant_schema = { tenant_fields, ELEMS(tenant_fields) };

static void create(struct request *r)
{
	struct tenant_wish w = { .name = VIEW_NONE };
	struct err e = { 0 };

	if (request_read(r, &tenant_schema, &w) < 0)
		return;
	answer_await(r, quotas_tenant_create(r->core, &r->actor, w.name, on_created, r, &e), &e);
}

static void put_each(void *arg, const struct tenant_state *s)
{
	put_tenant(arg, s);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "tenants");

	if (quotas_each_tenant(r->core, &r->actor, put_each, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

/* ---- quotas ---- */

struct quota_wish {
	bool unused;
	double cpu;
	struct quota quota;
};

#define MOST  (UINT64_C(1) << 40)
#define AT(f) .offset = offsetof(struct quota_wish, f), .nullable = true
static const struct json_field quota_fields[] = {
	{ "cpu", JSON_F_DOUBLE, AT(cpu), .fmax = CPU_MOST },
	{ "boxes", JSON_F_U64, AT(quota.most[LEDGER_BOXES]), .max = 1000000 },
	{ "memory_mb", JSON_F_U64, AT(quota.most[LEDGER_MEMORY]), .max = MOST },
	{ "disk_mb", JSON_F_U64, AT(quota.most[LEDGER_DISK]), .max = MOST },
	{ "processes", JSON_F_U64, AT(quota.most[LEDGER_PROCESSES]), .max = MOST },
	{ "helpers", JSON_F_U64, AT(quota.most[LEDGER_HELPERS]), .max = MOST },
	{ "workspaces", JSON_F_U64, AT(quota.most[LEDGER_WORKSPACES]), .max = MOST },
	{ "snapshots", JSON_F_U64, AT(quota.most[LEDGER_SNAPSHOTS]), .max = MOST },
	{ "templates", JSON_F_U64, AT(quota.most[LEDGER_TEMPLATES]), .max = MOST },
	{ "webhooks", JSON_F_U64, AT(quota.most[LEDGER_WEBHOOKS]), .max = MOST },
	{ "secrets", JSON_F_U64, AT(quota.most[LEDGER_SECRETS]), .max = MOST },
	{ "secrets_kb", JSON_F_U64, AT(quota.most[LEDGER_SECRETS_KB]), .max = MOST },
	{ "creates_per_minute", JSON_F_U64, AT(quota.creates_per_minute), .max = 1000000 },
};
#undef AT
static const struct json_schema quota_schema = { quota_fields, ELEMS(quota_fields) };

static void on_quota(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply(r, 200, result);
}

static void quota_put(struct request *r)
{
	struct quota_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &quota_schema, &w) < 0)
		return;
	w.quota.most[LEDGER_CPU] = (uint64_t)(w.cpu * 1000 + 0.5);
	answer_await(r, quotas_put(r->core, &r->actor, r->params[0], &w.quota, on_quota, r, &e), &e);
}

static void quota_get(struct request *r)
{
	struct tenant_state s;
	struct err e = { 0 };

	if (quotas_tenant(r->core, &r->actor, r->params[0], &s, &e) < 0)
		answer_fail(r, &e);
	else
		reply(r, 200, &s);
}

const struct route rest_tenants_routes[] = {
	{ "POST", "/v1/tenants", create, .body = ROUTE_JSON, .audit = "tenant.create", .audit_body = true },
	{ "GET", "/v1/tenants", list },
	{ "PUT", "/v1/tenants/{id}/quota", quota_put, .body = ROUTE_JSON, .audit = "quota.set",
	  .audit_body = true },
	{ "GET", "/v1/tenants/{id}/quota", quota_get },
	{ 0 },
};
