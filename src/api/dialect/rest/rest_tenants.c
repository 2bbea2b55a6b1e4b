/*
 * /v1/tenants: tenants and what they may use. For admins.
 */
#include "money.h"
#include "rest_impl.h"
#include "who.h"
#include "poison.h"

#define CPU_MOST 1048576

static void put_numbers(struct json_out *o, const char *key, const struct quota *q, bool rate)
{
	json_out_key(o, key);
	json_out_object(o);
	json_out_ku64(o, "boxes", q->boxes);
	json_out_key(o, "cpu");
	json_out_double(o, (double)q->cpu_milli / 1000);
	json_out_ku64(o, "memory_mb", q->memory_mb);
	json_out_ku64(o, "disk_mb", q->disk_mb);
	if (rate)
		json_out_ku64(o, "creates_per_minute", q->creates_per_minute);
	json_out_end(o, '}');
}

static void put_tenant(struct json_out *o, const struct tenant_state *s)
{
	const struct quota used = { .boxes = s->use.boxes,
				    .cpu_milli = s->use.cpu_milli,
				    .memory_mb = s->use.memory_mb,
				    .disk_mb = s->use.disk_mb };

	json_out_object(o);
	json_out_kz(o, "id", s->tenant->id);
	json_out_kz(o, "name", s->tenant->name);
	answer_put_time(o, "created_at", s->tenant->created_ms);
	put_numbers(o, "quota", &s->quota, true);
	put_numbers(o, "used", &used, false);
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
	uint64_t boxes, memory_mb, disk_mb, creates_per_minute;
};

#define AT(f) .offset = offsetof(struct quota_wish, f), .nullable = true
static const struct json_field quota_fields[] = {
	{ "boxes", JSON_F_U64, AT(boxes), .max = 1000000 },
	{ "cpu", JSON_F_DOUBLE, AT(cpu), .fmax = CPU_MOST },
	{ "memory_mb", JSON_F_U64, AT(memory_mb), .max = UINT64_C(1) << 40 },
	{ "disk_mb", JSON_F_U64, AT(disk_mb), .max = UINT64_C(1) << 40 },
	{ "creates_per_minute", JSON_F_U64, AT(creates_per_minute), .max = 1000000 },
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
	const struct quota q = { .boxes = w.boxes,
				 .cpu_milli = (uint64_t)(w.cpu * 1000 + 0.5),
				 .memory_mb = w.memory_mb,
				 .disk_mb = w.disk_mb,
				 .creates_per_minute = w.creates_per_minute };
	answer_await(r, quotas_put(r->core, &r->actor, r->params[0], &q, on_quota, r, &e), &e);
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
	{ "POST", "/v1/tenants", create, .body = ROUTE_JSON },
	{ "GET", "/v1/tenants", list },
	{ "PUT", "/v1/tenants/{id}/quota", quota_put, .body = ROUTE_JSON },
	{ "GET", "/v1/tenants/{id}/quota", quota_get },
	{ 0 },
};
