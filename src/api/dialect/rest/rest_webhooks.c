/*
 * /v1/webhooks: where events are sent to.
 */
#include "event.h"

#include "rest_impl.h"
#include "poison.h"

static void put_attempt(void *arg, const struct webhook_attempt *t)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_ku64(o, "event", t->event);
	json_out_kz(o, "type", t->type == EVENT_NONE ? NULL : events_name(t->type));
	answer_put_time(o, "at", t->at_ms);
	json_out_ku64(o, "attempt", t->attempt);
	json_out_key(o, "status");
	if (t->status)
		json_out_u64(o, t->status);
	else
		json_out_null(o);
	json_out_kz(o, "error", t->error[0] ? t->error : NULL);
	json_out_ku64(o, "duration_ms", t->took_ms);
	json_out_kbool(o, "final", t->last);
	json_out_end(o, '}');
}

/* The secret is shown once, when it is made. */
static void put(struct json_out *o, const struct webhook *w, bool secret, bool log)
{
	struct webhook_view v;

	webhooks_show(w, &v);
	json_out_object(o);
	json_out_kz(o, "id", v.id);
	json_out_kz(o, "url", v.url);
	json_out_kz(o, "tenant", v.tenant->name);
	json_out_key(o, "events");
	json_out_array(o);
	for (enum event_type t = EVENT_CREATED; t < EVENT_TYPES; t++)
		if (v.types & 1u << t)
			json_out_str(o, view_of(events_name(t)));
	json_out_end(o, ']');
	answer_put_time(o, "created_at", v.created_ms);
	json_out_ku64(o, "delivered", v.delivered);
	json_out_ku64(o, "failed", v.failed);
	json_out_ku64(o, "pending", v.pending);
	if (secret)
		json_out_kz(o, "secret", v.secret);
	if (log) {
		json_out_key(o, "deliveries");
		json_out_array(o);
		webhooks_log(w, put_attempt, o);
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
}

#define AT(f) .offset = offsetof(struct webhook_wish, f)
static const struct json_field wish_fields[] = {
	{ "url", JSON_F_STRING, AT(url), .min = 1, .max = WEBHOOKS_URL_MAX, .required = true },
	{ "secret", JSON_F_STRING, AT(secret), .min = 8, .max = WEBHOOKS_SECRET_MAX, .nullable = true },
	{ "events", JSON_F_STRLIST, AT(events), .max = EVENT_TYPES, .nullable = true },
};
#undef AT
static const struct json_schema wish_schema = { wish_fields, ELEMS(wish_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put(o, result, true, false);
	answer_send(r, 201);
}

static void create(struct request *r)
{
	struct webhook_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &wish_schema, &w) < 0)
		return;
	answer_await(r, webhooks_create(r->core, &r->actor, &w, on_created, r, &e), &e);
}

static void put_each(void *arg, const struct webhook *w)
{
	put(arg, w, false, false);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "webhooks");

	if (webhooks_each(r->core, &r->actor, put_each, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct webhook *w = webhooks_find(r->core, &r->actor, r->params[0], &e);

	if (!w) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	put(o, w, false, true);
	answer_send(r, 200);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, webhooks_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

const struct route rest_webhooks_routes[] = {
	{ "POST", "/v1/webhooks", create, .body = ROUTE_JSON, .audit = "webhook.create" },
	{ "GET", "/v1/webhooks", list },
	{ "GET", "/v1/webhooks/{id}", get },
	{ "DELETE", "/v1/webhooks/{id}", remove_one, .audit = "webhook.delete" },
	{ 0 },
};
