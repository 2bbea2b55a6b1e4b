/*
 * /v1/sandboxes/{id}: how long it lives, and pause, resume, stop, start.
 */
#include "box.h"
#include "rest_boxes.h"
#include "rest_impl.h"
#include "poison.h"

static void change(struct request *r, enum life_step step)
{
	struct err e = { 0 };
	answer_await(r, life_change(r->core, &r->actor, r->params[0], step, rest_boxes_done, r, &e), &e);
}

static void pause_one(struct request *r)
{
	change(r, LIFE_PAUSE);
}

static void resume(struct request *r)
{
	change(r, LIFE_RESUME);
}

static void stop(struct request *r)
{
	change(r, LIFE_STOP);
}

static void start(struct request *r)
{
	change(r, LIFE_START);
}

/* ---- extend ---- */

struct extend_body {
	bool unused; /* the schema puts nothing at offset 0 */
	uint64_t ttl_seconds;
};

static const struct json_field extend_fields[] = {
	{ "ttl_seconds", JSON_F_U64, .offset = offsetof(struct extend_body, ttl_seconds), .required = true },
};
static const struct json_schema extend_schema = { extend_fields, ELEMS(extend_fields) };

static void extend(struct request *r)
{
	struct extend_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &extend_schema, &body) < 0)
		return;
	answer_await(
		r,
		lifetime_extend(r->core, &r->actor, r->params[0], body.ttl_seconds, rest_boxes_done, r, &e),
		&e);
}

/* ---- patch ---- */

#define AT(f)  .offset = offsetof(struct lifetime_patch, f)
#define HAS(f) .has = offsetof(struct lifetime_patch, has_##f)
static const struct json_field patch_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .nullable = true },
	{ "limits", JSON_F_OBJECT, AT(limits), HAS(limits), .sub = &box_limits_wish_schema,
	  .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), HAS(ttl), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), HAS(metadata), .nullable = true },
	{ "on_end", JSON_F_STRING, AT(on_end), .min = 1, .nullable = true },
#define PATCHED(kind, name, json) { #json, AT(name), HAS(name), BOX_FIELD_ASKED_##kind, .nullable = true },
#define FIELD(kind, name, json, shown, wire, twin, pool, change, ...)                                        \
	BOX_FIELD_IF_##change(PATCHED, kind, name, json)
#include "box_fields.def"
#undef FIELD
};
#undef AT
#undef HAS
static const struct json_schema patch_schema = { patch_fields, ELEMS(patch_fields) };

static void patch(struct request *r)
{
	struct lifetime_patch p = { 0 };
	struct err e = { 0 };

	if (request_read(r, &patch_schema, &p) < 0)
		return;
	answer_await(r, lifetime_change(r->core, &r->actor, r->params[0], &p, rest_boxes_done, r, &e), &e);
}

const struct route rest_life_routes[] = {
	{ "PATCH", "/v1/sandboxes/{id}", patch, .body = ROUTE_JSON, .audit = "sandbox.change" },
	{ "POST", "/v1/sandboxes/{id}/extend", extend, .body = ROUTE_JSON, .audit = "sandbox.extend" },
	{ "POST", "/v1/sandboxes/{id}/pause", pause_one, .audit = "sandbox.pause" },
	{ "POST", "/v1/sandboxes/{id}/resume", resume, .audit = "sandbox.resume" },
	{ "POST", "/v1/sandboxes/{id}/stop", stop, .audit = "sandbox.stop" },
	{ "POST", "/v1/sandboxes/{id}/start", start, .audit = "sandbox.start" },
	{ 0 },
};
