/*
 * E2B: what is asked of a volume's paths, directories and files. See e2b_content.h.
 */
#include <stdlib.h>
#include <string.h>

#include "answer_file.h"
#include "e2b_content.h"
#include "poison.h"

/* ---- /path ---- */

static void stat_path(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, e2b_content_look, 200);
	if (c)
		e2b_content_go(c, ACT_WORKSPACE_READ);
}

struct patch_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool has_mode, has_uid, has_gid;
	uint64_t mode, uid, gid;
};

#define AT(f)                                                                                                \
	.offset = offsetof(struct patch_body, f), .has = offsetof(struct patch_body, has_##f),               \
	.nullable = true
static const struct json_field patch_fields[] = {
	{ "mode", JSON_F_U64, AT(mode), .max = E2B_CONTENT_MODE_MAX },
	{ "uid", JSON_F_U64, AT(uid), .max = E2B_CONTENT_ID_MAX },
	{ "gid", JSON_F_U64, AT(gid), .max = E2B_CONTENT_ID_MAX },
};
#undef AT
static const struct json_schema patch_schema = { patch_fields, ELEMS(patch_fields) };

static void patch_path(struct request *r)
{
	struct patch_body b = { 0 };

	struct e2b_content *c = e2b_content_begin(r, e2b_content_look, 200);
	if (!c || e2b_read(r, &patch_schema, &b) < 0)
		return;
	c->has_mode = b.has_mode;
	c->has_uid = b.has_uid;
	c->has_gid = b.has_gid;
	c->mode = (uint32_t)b.mode;
	c->uid = (uint32_t)b.uid;
	c->gid = (uint32_t)b.gid;
	c->pending = b.has_mode || b.has_uid || b.has_gid;
	e2b_content_go(c, c->pending ? ACT_WORKSPACE_WRITE : ACT_WORKSPACE_READ);
}

static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct e2b_content *c = e2b_content_of(op);

	if (e) {
		e2b_content_fail(c, e);
		return;
	}
	e2b_content_release(c);
	answer_no_content(c->r);
}

static const struct file_ops removed_ops = { .done = on_removed };

static void start_remove(struct e2b_content *c)
{
	struct file_place place = e2b_content_as_root(c);
	struct err e = { 0 };

	c->op.ops = &removed_ops;
	if (files_remove(c->r->core, &c->r->actor, &place, true, &c->op, &e) < 0)
		e2b_content_fail(c, &e);
}

static void remove_path(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, start_remove, 204);
	struct err e = { 0 };

	if (!c)
		return;
	if (c->place.path.n == E2B_CONTENT_MOUNT_N) {
		err_set(&e, ERR_INVALID, "the root of a volume cannot be removed");
		e2b_content_fail(c, &e);
		return;
	}
	e2b_content_go(c, ACT_WORKSPACE_WRITE);
}

/* ---- /dir ---- */

static int take_entry(struct e2b_content *c, const struct file_info *info)
{
	struct view dir = e2b_content_in_volume(c->place.path), sep = dir.n > 1 ? VIEW("/") : VIEW("");
	size_t n = dir.n + sep.n + info->name.n;
	char *path = arena_alloc(&c->arena, n + 1);
	struct view target = arena_view(&c->arena, info->target);

	if (!path || !target.p)
		return -1;
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct e2b_entry *more = cap * sizeof(*more) > E2B_CONTENT_LIST_BYTES
						 ? NULL
						 : realloc(c->entries, cap * sizeof(*more));
		if (!more)
			return -1;
		c->entries = more;
		c->cap = cap;
	}
	memcpy(path, dir.p, dir.n);
	memcpy(path + dir.n, sep.p, sep.n);
	memcpy(path + dir.n + sep.n, info->name.p, info->name.n);
	struct e2b_entry *en = &c->entries[c->n++];
	*en = (struct e2b_entry){ { path, n }, *info };
	en->info.target = target;
	return 0;
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct e2b_content *c = e2b_content_of(op);

	for (size_t i = 0; i < n && !c->full; i++)
		c->full = take_entry(c, &entries[i]) < 0;
	files_consumed(op, bytes);
}

static int by_path(const void *a, const void *b)
{
	const struct view x = ((const struct e2b_entry *)a)->path, y = ((const struct e2b_entry *)b)->path;
	int r = memcmp(x.p, y.p, MIN(x.n, y.n));
	return r ? r : (x.n > y.n) - (x.n < y.n);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *said)
{
	struct e2b_content *c = e2b_content_of(op);
	struct err e = { 0 };

	if (said || c->full) {
		err_set(&e, ERR_TOO_LARGE, "there are too many entries");
		e2b_content_fail(c, said ? said : &e);
		return;
	}
	if (c->n)
		qsort(c->entries, c->n, sizeof(*c->entries), by_path);
	struct json_out *o = answer_json(c->r);
	json_out_array(o);
	for (size_t i = 0; i < c->n; i++)
		e2b_content_put(o, c->entries[i].path, &c->entries[i].info);
	json_out_end(o, ']');
	e2b_content_release(c);
	answer_send(c->r, 200);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static void start_list(struct e2b_content *c)
{
	struct file_place place = e2b_content_as_root(c);
	struct file_page page = { .depth = c->depth };
	struct err e = { 0 };

	c->op.ops = &list_ops;
	if (files_list(c->r->core, &c->r->actor, &place, &page, &c->op, &e) < 0)
		e2b_content_fail(c, &e);
}

static void list_dir(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, start_list, 200);
	struct err e = { 0 };
	bool given;

	if (!c)
		return;
	if (e2b_content_number(r, "depth", FILES_DEPTH_MAX, &given, &c->depth, &e) < 0) {
		e2b_content_fail(c, &e);
		return;
	}
	e2b_content_go(c, ACT_WORKSPACE_READ);
}

static const struct file_ops made_ops = { .done = e2b_content_changed };

static void start_mkdir(struct e2b_content *c)
{
	struct err e = { 0 };

	c->op.ops = &made_ops;
	if (files_mkdir(c->r->core, &c->r->actor, &c->place, c->mode, c->parents, &c->op, &e) < 0)
		e2b_content_fail(c, &e);
}

static void make_dir(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, start_mkdir, 201);
	struct err e = { 0 };

	if (!c || request_query_flag(r, "force", &c->parents) < 0)
		return;
	if (e2b_content_read_change(c, &e) < 0)
		e2b_content_fail(c, &e);
	else
		e2b_content_go(c, ACT_WORKSPACE_WRITE);
}

/* ---- /file ---- */

static void on_room(struct file_op *op)
{
	upload_push(&e2b_content_of(op)->up);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct e2b_content *c = ((struct request *)x->ctx)->own;
	struct err e = { 0 };

	if (upload_piece(&c->up, data, last, &e) < 0)
		e2b_content_fail(c, &e);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	e2b_content_gone(r);
	request_done(r);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort };
static const struct file_ops write_ops = { .on_room = on_room, .done = e2b_content_changed };

static void start_write(struct e2b_content *c)
{
	struct err e = { 0 };

	c->op.ops = &write_ops;
	c->r->x->ops = &upload_ops;
	if (files_write(c->r->core, &c->r->actor, &c->place, c->mode, false, &c->op, &e) < 0)
		e2b_content_fail(c, &e);
}

/* A file that is there is overwritten unless force is false. */
static void write_file(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, start_write, 201);
	struct err e = { 0 };
	bool force;

	if (!c || request_query_flag(r, "force", &force) < 0)
		return;
	c->op.exclusive = request_query(r, "force").p && !force;
	if (e2b_content_read_change(c, &e) < 0)
		e2b_content_fail(c, &e);
	else
		e2b_content_go(c, ACT_WORKSPACE_WRITE);
}

static void start_read(struct e2b_content *c)
{
	struct file_place place = e2b_content_as_root(c);
	struct request *r = c->r;

	e2b_content_release(c);
	answer_file(r, &place);
}

static void read_file(struct request *r)
{
	struct e2b_content *c = e2b_content_begin(r, start_read, 200);
	if (c)
		e2b_content_go(c, ACT_WORKSPACE_READ);
}

#define OWN_TOKEN .auth = ROUTE_OPEN, .permit = e2b_content_permit
const struct route e2b_content_routes[] = {
	{ "GET", "/volumecontent/{id}/path", stat_path, OWN_TOKEN, .query = "path" },
	{ "PATCH", "/volumecontent/{id}/path", patch_path, OWN_TOKEN, .body = ROUTE_JSON, .query = "path" },
	{ "DELETE", "/volumecontent/{id}/path", remove_path, OWN_TOKEN, .query = "path" },
	{ "GET", "/volumecontent/{id}/dir", list_dir, OWN_TOKEN, .query = "path depth" },
	{ "POST", "/volumecontent/{id}/dir", make_dir, OWN_TOKEN, .query = "path uid gid mode force" },
	{ "GET", "/volumecontent/{id}/file", read_file, OWN_TOKEN, .query = "path" },
	{ "PUT", "/volumecontent/{id}/file", write_file, OWN_TOKEN, .body = ROUTE_STREAM,
	  .query = "path uid gid mode force" },
	{ 0 },
};
