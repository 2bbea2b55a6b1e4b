/*
 * /v1/links: a port of one sandbox on the loopback of another.
 */
#include "port.h"
#include "rest_impl.h"
#include "poison.h"

struct link_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view from, to;
	uint64_t port, listen;
};

#define AT(f) .offset = offsetof(struct link_body, f)
static const struct json_field link_fields[] = {
	{ "from", JSON_F_STRING, AT(from), .min = 1, .required = true },
	{ "to", JSON_F_STRING, AT(to), .min = 1, .required = true },
	{ "port", JSON_F_U64, AT(port), .min = 1, .max = UINT16_MAX, .required = true },
	{ "listen", JSON_F_U64, AT(listen), .min = 1, .max = UINT16_MAX, .nullable = true },
};
#undef AT
static const struct json_schema link_schema = { link_fields, ELEMS(link_fields) };

static void put(void *arg, const struct bridge_view *v)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kz(o, "id", v->id);
	json_out_kz(o, "from", v->from);
	json_out_kz(o, "to", v->to);
	json_out_ku64(o, "port", v->port);
	json_out_ku64(o, "listen", v->listen);
	json_out_kbool(o, "up", v->up);
	json_out_end(o, '}');
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put(o, result);
	answer_send(r, 201);
}

static void create(struct request *r)
{
	struct link_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &link_schema, &body) < 0)
		return;
	struct bridge_wish w = { body.from, body.to, (uint16_t)body.port, (uint16_t)body.listen };
	answer_await(r, bridges_create(r->core, &r->actor, &w, on_created, r, &e), &e);
}

static void list(struct request *r)
{
	struct json_out *o = answer_json_list(r, "links");

	bridges_each(r->core, &r->actor, put, o);
	answer_send_list(r);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, bridges_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

const struct route rest_links_routes[] = {
	{ "POST", "/v1/links", create, .body = ROUTE_JSON, .audit = "link.create", .audit_body = true },
	{ "GET", "/v1/links", list },
	{ "DELETE", "/v1/links/{id}", remove_one, .audit = "link.delete" },
	{ 0 },
};
