/*
 * /v1/sessions: sandboxes as Sandkasten shows them.
 */
#include <stdio.h>

#include "config_stock.h"
#include "disk.h"
#include "image.h"
#include "session.h"
#include "sk_impl.h"
#include "poison.h"

#define TTL_MAX 86400
#define SHELL   "default"

/* ---- what it is ---- */

/* The end that its time to live has, which each use moves. */
static int64_t expires_ms(const struct box *b)
{
	int64_t idle = b->spec.idle_seconds ? b->state.used_ms + (int64_t)b->spec.idle_seconds * 1000 : 0;
	int64_t end = b->state.expires_ms;

	return !idle ? end : !end ? idle : MIN(idle, end);
}

static const char *status_of(const struct box *b)
{
	return b->state.status == BOX_DELETING ? "destroying" : boxes_status_name(b->state.status);
}

static void put_members(struct json_out *o, const struct box *b)
{
	struct view cwd = shells_cwd(b, VIEW(SHELL));
	const struct spec_workspace *w = spec_workspace(&b->spec);

	json_out_kz(o, "id", b->id);
	json_out_kstr(o, "image", b->spec.image);
	json_out_kz(o, "status", status_of(b));
	json_out_kstr(o, "cwd", cwd.p ? cwd : b->spec.workdir);
	if (w)
		json_out_kstr(o, "workspace_id", w->name);
	answer_put_time(o, "created_at", b->state.created_ms);
	answer_put_time(o, "expires_at", expires_ms(b));
}

static void put_session(void *arg, const struct box *b)
{
	struct json_out *o = arg;

	json_out_object(o);
	put_members(o, b);
	json_out_end(o, '}');
}

/* ---- create ---- */

struct create_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view image, workspace;
	uint64_t ttl_seconds;
};

#define AT(f) .offset = offsetof(struct create_body, f)
static const struct json_field create_fields[] = {
	{ "image", JSON_F_STRING, AT(image), .max = 200, .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .max = TTL_MAX, .nullable = true },
	{ "workspace_id", JSON_F_STRING, AT(workspace), .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

struct creation {
	struct box_wish wish;
};

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;

	if (!answer_ended(r, e))
		return;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_members(o, b);
	json_out_kz(o, "acquire_source", b->state.from_pool ? "pool" : "cold");
	json_out_end(o, '}');
	answer_send(r, 201);
}

static void make(struct request *r)
{
	struct creation *c = r->own;
	struct err e = { 0 };

	answer_await(r, create_box(r->core, &r->actor, &c->wish, on_created, r, &e), &e);
}

static void on_workspace(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	/* Somebody else made it in between: just as well. */
	if (e && e->code != ERR_CONFLICT) {
		(void)!answer_ended(r, e);
		return;
	}
	r->job = NULL;
	make(r);
}

static bool is_workspace_id(struct view v)
{
	if (v.n < 2 || v.n > 64)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!(v.p[i] >= 'a' && v.p[i] <= 'z') && !(v.p[i] >= '0' && v.p[i] <= '9') && v.p[i] != '-')
			return false;
	return true;
}

/* A workspace that nobody has named before is made. */
static void make_in_workspace(struct request *r)
{
	struct creation *c = r->own;
	struct workspace_wish w = { .name = c->wish.workspace };
	struct err e = { 0 };
	const struct workspace *there;

	if (!core_config(r->core)->sandkasten.workspaces) {
		sk_refuse(r, 400, "INVALID_WORKSPACE",
			  "workspaces are not enabled here (sandkasten.workspaces)");
		return;
	}
	if (!is_workspace_id(c->wish.workspace)) {
		sk_refuse(r, 400, "INVALID_WORKSPACE",
			  "workspace_id must be 2 to 64 characters of a-z, 0-9 and \"-\"");
		return;
	}
	there = workspaces_find(r->core, &r->actor, ACT_WORKSPACE_WRITE, c->wish.workspace, &e);
	if (there) {
		c->wish.workspace = arena_view(r->x->arena, view_of(there->name));
		make(r);
	} else {
		answer_await(r, workspaces_create(r->core, &r->actor, &w, on_workspace, r, &e), &e);
	}
}

/* `name` as the client wrote it. */
static bool is_allowed(const struct config *c, struct view name)
{
	const struct json *all = c->sandkasten.images;

	for (size_t i = 0; all && i < all->n; i++)
		if (view_eq(all->items[i].text, name))
			return true;
	return !all || !name.n; /* the default is the administrator's choice */
}

static void create(struct request *r)
{
	const struct config *cfg = core_config(r->core);
	struct create_body body = { 0 };
	struct creation *c;
	struct view digest;
	struct err e = { 0 };

	if (buf_len(&r->body) && request_read(r, &create_schema, &body) < 0)
		return;
	c = request_own(r, sizeof(*c));
	if (!c)
		return;
	if (!is_allowed(cfg, body.image)) {
		sk_refuse(r, 400, "INVALID_IMAGE", "the image is not one of those that sessions may have");
		return;
	}
	/* Where nothing was imported by these names they are the default image, which has a shell, Python and
	 * Node. */
	if (!images_find(r->core, body.image) && config_stock_is(body.image))
		body.image = VIEW("");
	if (body.image.n && images_resolve(r->core, body.image, &digest, &e) < 0) {
		sk_refuse(r, 400, "INVALID_IMAGE", e.msg);
		return;
	}
	c->wish = (struct box_wish){ .image = body.image,
				     .workspace = body.workspace,
				     .readonly_root = cfg->sandkasten.readonly_root,
				     .idle_seconds = body.ttl_seconds ? body.ttl_seconds
								      : cfg->sandkasten.session_ttl_seconds };
	if (body.workspace.n)
		make_in_workspace(r);
	else
		make(r);
}

/* ---- list ---- */

static void list(struct request *r)
{
	struct json_out *o = answer_json(r);
	struct err e = { 0 };

	json_out_array(o);
	if (boxes_each(r->core, &r->actor, put_session, o, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, ']');
	answer_send(r, 200);
}

/* ---- one of them ---- */

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

	if (!b) {
		answer_fail(r, &e);
		return;
	}
	put_session(answer_json(r), b);
	answer_send(r, 200);
}

static void on_removed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		sk_ok(r);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, remove_box(r->core, &r->actor, r->params[0], on_removed, r, &e), &e);
}

static void on_stats(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box_stats *s = result;

	if (!answer_ended(r, e))
		return;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_ku64(o, "memory_bytes", s->memory_bytes);
	json_out_ku64(o, "memory_limit", s->box->spec.limits.memory_mb << 20);
	json_out_ku64(o, "cpu_usage_usec", s->cpu_usec);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void stats(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, stats_box(r->core, &r->actor, r->params[0], on_stats, r, &e), &e);
}

const struct route sk_sessions_routes[] = {
	{ "POST", "/v1/sessions", create, .body = ROUTE_JSON, .body_max = SK_BODY_MAX,
	  .audit = "sandbox.create" },
	{ "GET", "/v1/sessions", list },
	{ "GET", "/v1/sessions/{id}", get },
	{ "DELETE", "/v1/sessions/{id}", remove_one, .audit = "sandbox.delete" },
	{ "GET", "/v1/sessions/{id}/stats", stats },
	{ 0 },
};
