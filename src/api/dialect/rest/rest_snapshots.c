/*
 * /v1/snapshots, and the two ways to copy a sandbox: snapshot and fork.
 */
#include "disk.h"
#include "rest_boxes.h"
#include "rest_impl.h"
#include "poison.h"

static void put_snapshot(struct json_out *o, const struct snapshot *s)
{
	json_out_object(o);
	json_out_kz(o, "id", s->id);
	json_out_kz(o, "name", s->name[0] ? s->name : NULL);
	json_out_kz(o, "tenant", s->tenant->name);
	json_out_kz(o, "image", s->image);
	json_out_kz(o, "image_digest", s->digest);
	json_out_kz(o, "backend", s->backend);
	json_out_ku64(o, "bytes", s->bytes);
	json_out_ku64(o, "stopped_us", s->stopped_us);
	answer_put_time(o, "created_at", s->created_ms);
	json_out_end(o, '}');
}

static void reply_snapshot(struct request *r, int status, const struct snapshot *s)
{
	struct json_out *o = answer_json(r);

	put_snapshot(o, s);
	answer_send(r, status);
}

/* ---- create ---- */

struct create_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name;
};

static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, .offset = offsetof(struct create_body, name), .min = 1, .nullable = true },
};
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_snapshot(r, 201, result);
}

static void create(struct request *r)
{
	struct create_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &body) < 0)
		return;
	answer_await(r, snapshots_create(r->core, &r->actor, r->params[0], body.name, on_created, r, &e), &e);
}

/* ---- list, show, remove ---- */

static void put_each(void *arg, const struct snapshot *s)
{
	put_snapshot(arg, s);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "snapshots");

	if (snapshots_each(r->core, &r->actor, put_each, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct snapshot *s = snapshots_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], &e);
	if (s)
		reply_snapshot(r, 200, s);
	else
		answer_fail(r, &e);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, snapshots_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- fork ---- */

#define AT(f) .offset = offsetof(struct fork_wish, f)
static const struct json_field fork_fields[] = {
	{ "count", JSON_F_U64, AT(count), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), .has = offsetof(struct fork_wish, has_metadata),
	  .nullable = true },
	{ "name_prefix", JSON_F_STRING, AT(name_prefix), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema fork_schema = { fork_fields, ELEMS(fork_fields) };

static void on_forked(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct fork_result *f = result;
	struct json_out *o = answer_result_list(r, e, "sandboxes");

	if (!o)
		return;
	for (size_t i = 0; i < f->n; i++)
		rest_boxes_put(o, f->boxes[i]);
	json_out_end(o, ']');
	json_out_ku64(o, "stopped_us", f->stopped_us);
	json_out_end(o, '}');
	answer_send(r, 201);
}

static void fork_one(struct request *r)
{
	struct fork_wish w = { .count = 1 };
	struct err e = { 0 };

	if (request_read(r, &fork_schema, &w) < 0)
		return;
	answer_await(r, fork_box(r->core, &r->actor, r->params[0], &w, on_forked, r, &e), &e);
}

const struct route rest_snapshots_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/snapshots", create, .body = ROUTE_JSON, .audit = "sandbox.snapshot" },
	{ "POST", "/v1/sandboxes/{id}/fork", fork_one, .body = ROUTE_JSON, .audit = "sandbox.fork" },
	{ "GET", "/v1/snapshots", list },
	{ "GET", "/v1/snapshots/{id}", get },
	{ "DELETE", "/v1/snapshots/{id}", remove_one, .audit = "snapshot.delete" },
	{ 0 },
};
