/*
 * /v1/sandboxes: the boxes themselves.
 */
#include <errno.h>

#include "box.h"
#include "feature.h"
#include "money.h"
#include "net.h"
#include "rest_boxes.h"
#include "rest_impl.h"
#include "rest_tied.h"
#include "poison.h"

#define PAGE_DEFAULT 100

static void put_disk(struct json_out *o, const struct box *b)
{
	uint64_t limit = b->spec.limits.disk_mb;

	json_out_key(o, "disk");
	json_out_object(o);
	json_out_key(o, "used_bytes");
	if (b->state.disk_used >= 0)
		json_out_i64(o, b->state.disk_used);
	else
		json_out_null(o);
	json_out_key(o, "limit_mb");
	if (limit)
		json_out_u64(o, limit);
	else
		json_out_null(o);
	json_out_end(o, '}');
}

static void put_origin(struct json_out *o, const struct box_spec *s)
{
	json_out_key(o, "snapshot");
	if (s->snapshot.n)
		json_out_str(o, s->snapshot);
	else
		json_out_null(o);
	const struct spec_workspace *w = spec_workspace(s);
	json_out_key(o, "workspace");
	if (w) {
		json_out_object(o);
		json_out_kstr(o, "name", w->name);
		json_out_kz(o, "mode", w->readonly ? "ro" : "rw");
		json_out_end(o, '}');
	} else {
		json_out_null(o);
	}
	json_out_key(o, "workspaces");
	spec_workspaces_put(o, &s->workspaces);
}

/* Behind what an answer has the plain fields (box_fields.def). */
enum place { AFTER_NOTHING, AFTER_TENANT, AFTER_EXPIRY, AFTER_ON_END, AFTER_DISK, AFTER_END };
#define AFTER_HIDDEN AFTER_NOTHING

static void put_fields(struct json_out *o, const struct box_spec *s, enum place place)
{
	static const struct {
		enum place place;
		struct json_field field;
	} shown[] = {
#define FIELD(kind, name, json, shown, ...)                                                                  \
	{ AFTER_##shown, { #json, .offset = offsetof(struct box_spec, name), BOX_FIELD_SHOWN_##kind } },
#include "box_fields.def"
#undef FIELD
	};

	for (size_t i = 0; i < ELEMS(shown); i++)
		if (shown[i].place == place)
			json_write_members(o, &(struct json_schema){ .fields = &shown[i].field, .n = 1 }, s);
}

void rest_boxes_put(struct json_out *o, const struct box *b)
{
	const struct box_spec *s = &b->spec;

	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_key(o, "name");
	if (s->name.n)
		json_out_str(o, s->name);
	else
		json_out_null(o);
	json_out_kz(o, "status", boxes_status_name(b->state.status));
	json_out_kstr(o, "image", s->image);
	json_out_kstr(o, "image_digest", s->digest);
	json_out_kz(o, "backend", s->backend);
	json_out_kz(o, "tenant", b->tenant->name);
	put_fields(o, s, AFTER_TENANT);
	answer_put_time(o, "created_at", b->state.created_ms);
	answer_put_time(o, "expires_at", b->state.expires_ms);
	put_fields(o, s, AFTER_EXPIRY);
	json_out_kz(o, "on_end", spec_on_end_name(s->on_end));
	put_fields(o, s, AFTER_ON_END);
	put_origin(o, s);
	json_out_key(o, "secrets");
	spec_secrets_put(o, &s->secrets);
	json_out_key(o, "mounts");
	spec_mounts_put(o, &s->mounts);
	json_out_kwrite(o, "limits", &box_limits_schema, &s->limits);
	put_disk(o, b);
	put_fields(o, s, AFTER_DISK);
	spec_put_require(o, s->require);
	put_fields(o, s, AFTER_END);
	json_out_kmap(o, "metadata", &s->metadata);
	json_out_end(o, '}');
}

static void rest_boxes_reply(struct request *r, int status, const struct box *b)
{
	struct json_out *o = answer_json(r);

	rest_boxes_put(o, b);
	answer_send(r, status);
}

void rest_boxes_done(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		rest_boxes_reply(r, 200, result);
}

/* ---- create ---- */

struct create_body {
	struct box_wish wish;
	const struct json *workspace; /* a name, or an object */
	const struct json *egress;
	const struct json *ai;
	const struct json *secrets, *mounts, *workspaces;
	struct json_strlist require;
};

#define AT(f) .offset = offsetof(struct create_body, wish.f)
static const struct json_field create_fields[] = {
#define FIELD(kind, name, json, ...) { #json, AT(name), BOX_FIELD_ASKED_##kind, .nullable = true },
#include "box_fields.def"
#undef FIELD
	{ "name", JSON_F_STRING, AT(name), .min = 1, .nullable = true },
	{ "image", JSON_F_STRING, AT(image), .min = 1, .max = 200, .nullable = true },
	{ "backend", JSON_F_STRING, AT(backend), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), .nullable = true },
	{ "limits", JSON_F_OBJECT, AT(limits), .sub = &box_limits_wish_schema, .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .has = offsetof(struct create_body, wish.has_ttl),
	  .nullable = true },
	{ "on_end", JSON_F_STRING, AT(on_end), .min = 1, .nullable = true },
	{ "snapshot", JSON_F_STRING, AT(snapshot), .min = 1, .max = 200, .nullable = true },
	{ "workspace", JSON_F_ANY, .offset = offsetof(struct create_body, workspace), .nullable = true },
	{ "workspaces", JSON_F_ANY, .offset = offsetof(struct create_body, workspaces), .nullable = true },
	{ "egress", JSON_F_ANY, .offset = offsetof(struct create_body, egress), .nullable = true },
	{ "ai", JSON_F_ANY, .offset = offsetof(struct create_body, ai), .nullable = true },
	{ "secrets", JSON_F_ANY, .offset = offsetof(struct create_body, secrets), .nullable = true },
	{ "mounts", JSON_F_ANY, .offset = offsetof(struct create_body, mounts), .nullable = true },
	{ "require", JSON_F_STRLIST, .offset = offsetof(struct create_body, require), .max = FEATURES,
	  .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

struct mount_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, mode;
};

static const struct json_field mount_fields[] = {
	{ "name", JSON_F_STRING, .offset = offsetof(struct mount_body, name), .min = 1, .required = true },
	{ "mode", JSON_F_STRING, .offset = offsetof(struct mount_body, mode), .min = 1, .nullable = true },
};
static const struct json_schema mount_schema = { mount_fields, ELEMS(mount_fields) };

static int read_mount(struct request *r, const struct json *j, struct box_wish *w, struct err *e)
{
	struct mount_body m = { 0 };

	if (!j || j->type == JSON_NULL)
		return 0;
	if (j->type == JSON_STRING)
		m.name = j->text;
	else if (j->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "workspace must be a name, or an object with name and mode");
	else if (json_read(&r->arena, j, &mount_schema, &m, false, e) < 0)
		return err_wrap(e, "workspace");
	if (!m.name.n)
		return err_set(e, ERR_INVALID, "workspace must not be empty");
	if (m.mode.n && !view_is(m.mode, "rw") && !view_is(m.mode, "ro"))
		return err_set(e, ERR_INVALID, "workspace.mode must be rw or ro");
	w->workspace = m.name;
	w->workspace_readonly = view_is(m.mode, "ro");
	return 0;
}

/* Only the kind of key is judged here; what it may make is create_box's to say. */
static int read_egress(struct request *r, const struct json *j, struct box_wish *w, struct err *e)
{
	struct egress_policy *p = j ? arena_array(&r->arena, 1, sizeof(*p)) : NULL;

	if (!j)
		return 0;
	if (!p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "egress");
	if (egress_read(&r->arena, j, policies_sets_wish(r->core, &r->actor, w)->sets, p, e) < 0 ||
	    policies_wish(r->core, &r->actor, w, p, e) < 0)
		return err_wrap(e, "egress");
	return 0;
}

static int read_ai(struct request *r, const struct json *j, struct box_wish *w, struct err *e)
{
	if (!j)
		return 0;
	return allowances_wish(r->core, r->actor.tenant, j, &r->arena, &w->ai, e) < 0 ? err_wrap(e, "ai") : 0;
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (!answer_ended(r, e))
		return;
	if (((const struct box *)result)->spec.tied)
		rest_tied_answer(r, result);
	else
		rest_boxes_reply(r, 201, result);
}

static void create(struct request *r)
{
	struct create_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &body) < 0)
		return;
	if (read_mount(r, body.workspace, &body.wish, &e) < 0 ||
	    read_egress(r, body.egress, &body.wish, &e) < 0 || read_ai(r, body.ai, &body.wish, &e) < 0 ||
	    spec_secrets_read(&r->arena, body.secrets, true, &body.wish.secrets, &e) < 0 ||
	    spec_workspaces_read(&r->arena, body.workspaces, &body.wish.workspaces, &e) < 0 ||
	    spec_mounts_read(&r->arena, body.mounts, &body.wish.mounts, &e) < 0 ||
	    spec_take_require(&body.require, &body.wish.require, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	answer_await(r, create_box(r->core, &r->actor, &body.wish, on_created, r, &e), &e);
}

/* ---- list ---- */

static void put_each(void *arg, const struct box *b)
{
	rest_boxes_put(arg, b);
}

static int read_filter(struct request *r, struct box_filter *ret, struct err *e)
{
	struct view status = request_query(r, "status");
	size_t n = strlen("metadata.");
	uint32_t v = PAGE_DEFAULT;

	ret->status = status.p ? boxes_status(status) : BOX_NONE;
	if (status.p && (ret->status == BOX_NONE || ret->status == BOX_DELETING))
		return err_set(e, ERR_INVALID, "status must be creating, running, paused or stopped");
	if (request_query_limit(r, BOXES_PAGE_MAX, &v, e) < 0)
		return -1;
	ret->limit = v;
	ret->cursor = request_query(r, "cursor");
	if (ret->cursor.p && !ret->cursor.n)
		return err_set(e, ERR_INVALID, "cursor must not be empty");
	ret->metadata.keys = arena_array(r->x->arena, r->n_query, sizeof(struct view));
	ret->metadata.values = arena_array(r->x->arena, r->n_query, sizeof(struct view));
	if (!ret->metadata.keys || !ret->metadata.values)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < r->n_query; i++) {
		if (!view_starts(r->query[i].name, "metadata."))
			continue;
		ret->metadata.keys[ret->metadata.n] = view_skip(r->query[i].name, n);
		ret->metadata.values[ret->metadata.n++] = r->query[i].value;
	}
	return 0;
}

static void list(struct request *r)
{
	struct box_filter f = { 0 };
	struct err e = { 0 };
	char next[BOXES_CURSOR_SIZE];
	struct json_out *o = answer_json_list(r, "sandboxes");

	if (read_filter(r, &f, &e) < 0 || boxes_list(r->core, &r->actor, &f, put_each, o, next, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, ']');
	json_out_kz(o, "next", next[0] ? next : NULL);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- one of them ---- */

static void get(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, boxes_measure(r->core, &r->actor, r->params[0], rest_boxes_done, r, &e), &e);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, remove_box(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

const struct route rest_boxes_routes[] = {
	{ "POST", "/v1/sandboxes", create, .body = ROUTE_JSON, .audit = "sandbox.create" },
	{ "GET", "/v1/sandboxes", list, .query = "status limit cursor metadata.*" },
	{ "GET", "/v1/sandboxes/{id}", get },
	{ "DELETE", "/v1/sandboxes/{id}", remove_one, .audit = "sandbox.delete" },
	{ 0 },
};
