/*
 * E2B: volumes, which are workspaces. Their files are in e2b_content.c.
 */
#include "e2b_volumes.h"

#include <errno.h>

#include "disk.h"
#include "who.h"
#include "poison.h"

static void put_volume(struct json_out *o, struct request *r, const struct workspace *w, bool with_token)
{
	char token[TOKENS_SIZE];

	json_out_object(o);
	json_out_kz(o, "volumeID", w->id);
	json_out_kz(o, "name", w->name);
	if (with_token) {
		workspace_token_of(r->core, w, token);
		json_out_kz(o, "token", token);
		explicit_bzero(token, sizeof(token));
	}
	json_out_end(o, '}');
}

static void reply_one(struct request *r, int status, const struct workspace *w)
{
	struct json_out *o = answer_json(r);

	put_volume(o, r, w, true);
	answer_send(r, status);
}

/* ---- making, showing, removing ---- */

struct create_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name;
};

static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct create_body, name), .min = 1, .required = true },
};
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct workspace_info *i = result;

	if (answer_ended(r, e))
		reply_one(r, 201, i->workspace);
}

static void create(struct request *r)
{
	struct create_body b = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &b) < 0)
		return;
	struct workspace_wish w = { .name = b.name };
	answer_await(r, workspaces_create(r->core, &r->actor, &w, on_created, r, &e), &e);
}

static void on_listed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct workspace_list *l = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_array(o);
	for (size_t i = 0; i < l->n; i++)
		put_volume(o, r, l->items[i].workspace, false);
	json_out_end(o, ']');
	answer_send(r, 200);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_list(r->core, &r->actor, on_listed, r, &e), &e);
}

/* Whoever gets the token may write with it. */
static void get(struct request *r)
{
	struct err e = { 0 };
	const struct workspace *w =
		workspaces_find(r->core, &r->actor, ACT_WORKSPACE_WRITE, r->params[0], &e);

	if (w)
		reply_one(r, 200, w);
	else
		answer_fail(r, &e);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

const struct route e2b_volumes_routes[] = {
	{ "POST", "/volumes", create, .body = ROUTE_JSON, .audit = "workspace.create" },
	{ "GET", "/volumes", list },
	{ "GET", "/volumes/{id}", get },
	{ "DELETE", "/volumes/{id}", remove_one, .audit = "workspace.delete" },
	{ 0 },
};

/* ---- mounting ---- */

struct mount_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, path;
};

#define AT(f) .offset = offsetof(struct mount_body, f), .min = 1, .required = true
static const struct json_field mount_fields[] = {
	{ "name", JSON_F_STRING, AT(name) },
	{ "path", JSON_F_STRING, AT(path) },
};
#undef AT
static const struct json_schema mount_schema = { mount_fields, ELEMS(mount_fields) };

int e2b_volumes_mount(struct request *r, const struct json *mounts, struct spec_workspace_list *ret,
		      struct err *e)
{
	*ret = (struct spec_workspace_list){ 0 };
	if (!mounts || mounts->type == JSON_NULL)
		return 0;
	if (mounts->type != JSON_ARRAY || mounts->n > SPEC_WORKSPACES_MAX)
		return err_set(e, ERR_INVALID, "volumeMounts: must be an array of at most %d",
			       SPEC_WORKSPACES_MAX);
	ret->items = arena_array(&r->arena, mounts->n, sizeof(*ret->items));
	if (!ret->items)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "volumeMounts");
	for (size_t i = 0; i < mounts->n; i++) {
		struct mount_body b = { 0 };
		if (json_read(&r->arena, &mounts->items[i], &mount_schema, &b, false, e) < 0)
			return err_wrap(e, "volumeMounts[%zu]", i);
		while (b.path.n > 1 && b.path.p[b.path.n - 1] == '/')
			b.path.n--;
		ret->items[ret->n++] = (struct spec_workspace){ .name = b.name, .path = b.path };
	}
	return 0;
}

void e2b_volumes_put(struct json_out *o, const struct box *b)
{
	if (!b->spec.workspaces.n)
		return;
	json_out_key(o, "volumeMounts");
	json_out_array(o);
	for (size_t i = 0; i < b->spec.workspaces.n; i++) {
		json_out_object(o);
		json_out_kstr(o, "name", b->spec.workspaces.items[i].name);
		json_out_kstr(o, "path", b->spec.workspaces.items[i].path);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}
