/*
 * /v1/workspaces, and their files: the same handlers as for the files of a sandbox,
 * in the hidden one that has the workspace mounted.
 */
#include "disk.h"
#include "rest_files.h"
#include "poison.h"

#define MOUNT "workspace/"

/* ---- what it is ---- */

static void put_user(void *arg, const struct box *b, const struct spec_workspace *at)
{
	struct json_out *o = arg;
	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_kstr(o, "path", at->path);
	json_out_kz(o, "mode", at->readonly ? "ro" : "rw");
	json_out_kz(o, "status", boxes_status_name(b->state.status));
	json_out_end(o, '}');
}

static void put_workspace(struct request *r, struct json_out *o, const struct workspace_info *i)
{
	const struct workspace *w = i->workspace;

	json_out_object(o);
	json_out_kz(o, "id", w->id);
	json_out_kz(o, "name", w->name);
	json_out_kz(o, "tenant", w->tenant->name);
	json_out_key(o, "disk");
	json_out_object(o);
	json_out_ku64(o, "used_bytes", i->used_bytes);
	json_out_key(o, "limit_mb");
	if (w->disk_mb)
		json_out_u64(o, w->disk_mb);
	else
		json_out_null(o);
	json_out_end(o, '}');
	json_out_kbool(o, "readonly", w->readonly);
	json_out_key(o, "used_by");
	json_out_array(o);
	workspaces_each_user(r->core, w, put_user, o);
	json_out_end(o, ']');
	answer_put_time(o, "created_at", w->created_ms);
	json_out_end(o, '}');
}

static void reply_one(struct request *r, int status, const struct workspace_info *i)
{
	struct json_out *o = answer_json(r);

	put_workspace(r, o, i);
	answer_send(r, status);
}

/* ---- create ---- */

#define AT(f) .offset = offsetof(struct workspace_wish, f)
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .required = true },
	{ "disk_mb", JSON_F_U64, AT(disk_mb), .has = offsetof(struct workspace_wish, has_disk_mb),
	  .nullable = true },
	{ "clone_of", JSON_F_STRING, AT(clone_of), .min = 1, .nullable = true },
	{ "readonly", JSON_F_BOOL, AT(readonly), .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_one(r, 201, result);
}

static void create(struct request *r)
{
	struct workspace_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &w) < 0)
		return;
	answer_await(r, workspaces_create(r->core, &r->actor, &w, on_created, r, &e), &e);
}

/* ---- list, show, remove ---- */

static void on_listed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct workspace_list *l = result;
	struct json_out *o = answer_result_list(r, e, "workspaces");

	if (!o)
		return;
	for (size_t i = 0; i < l->n; i++)
		put_workspace(r, o, &l->items[i]);
	answer_send_list(r);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_list(r->core, &r->actor, on_listed, r, &e), &e);
}

static void on_shown(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_one(r, 200, result);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_show(r->core, &r->actor, r->params[0], on_shown, r, &e), &e);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- files ---- */

/* A path that stays in the workspace by its text; links in it are the helper's own business. */
static bool stays_inside(struct view path)
{
	while (path.p)
		if (view_is(view_split(path, '/', &path), ".."))
			return false;
	return true;
}

static void on_helper(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	const struct route *route = rest_files_route(r->route->method);
	struct http_exchange *x = r->x;
	struct err failed = { 0 };

	r->job = NULL;
	if (e || !route) {
		err_set(&failed, ERR_INTERNAL, "files cannot be reached");
		answer_fail(r, e ? e : &failed);
		return;
	}
	size_t n = sizeof(MOUNT) - 1;
	char *path = arena_alloc(x->arena, n + r->params[1].n + 1);
	struct view id = arena_view(x->arena, view_of(b->id));
	if (!path || !id.p) {
		err_set(&failed, ERR_URI_TOO_LONG, "the path is too long");
		answer_fail(r, &failed);
		return;
	}
	memcpy(path, MOUNT, n);
	memcpy(path + n, r->params[1].p, r->params[1].n);
	r->params[0] = id;
	r->params[1] = (struct view){ path, n + r->params[1].n };
	struct serve *serve = r->serve;
	r->route = route;
	route->handle(r);
	if (route->body == ROUTE_STREAM && request_goes_on(serve, r))
		http_body_resume(x);
}

static void begin(struct request *r, enum act act)
{
	struct err e = { 0 };

	if (!stays_inside(r->params[1])) {
		err_set(&e, ERR_INVALID, "the path must not hold \"..\"");
		answer_fail(r, &e);
		return;
	}
	if (r->route->body == ROUTE_STREAM)
		http_body_pause(r->x); /* until there is somebody to take it */
	answer_await(r, workspace_helper(r->core, &r->actor, act, r->params[0], on_helper, r, &e), &e);
}

static void read_file(struct request *r)
{
	begin(r, ACT_WORKSPACE_READ);
}

static void write_file(struct request *r)
{
	begin(r, ACT_WORKSPACE_WRITE);
}

const struct route rest_workspaces_routes[] = {
	{ "POST", "/v1/workspaces", create, .body = ROUTE_JSON, .audit = "workspace.create" },
	{ "GET", "/v1/workspaces", list },
	{ "GET", "/v1/workspaces/{name}", get },
	{ "DELETE", "/v1/workspaces/{name}", remove_one, .audit = "workspace.delete" },
	{ "PUT", "/v1/workspaces/{name}/files/{path}", write_file, .body = ROUTE_STREAM,
	  .query = "mode user append archive" },
	{ "HEAD", "/v1/workspaces/{name}/files/{path}", read_file, .query = "user" },
	{ "GET", "/v1/workspaces/{name}/files/{path}", read_file,
	  .query = "user list depth limit cursor archive" },
	{ "DELETE", "/v1/workspaces/{name}/files/{path}", write_file, .query = "user recursive" },
	{ 0 },
};
