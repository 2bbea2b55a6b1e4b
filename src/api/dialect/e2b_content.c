/*
 * E2B: the files of a volume, without a sandbox. As in rest_workspaces.c the work is
 * done in the hidden box that has the workspace mounted. The volume's own token
 * (tokens.h) is what opens it, not a key. Files are read, removed and given away as
 * root, and made as the box's user, whose the volume's root is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "e2b_impl.h"
#include "num.h"
#include "rest_download.h"
#include "rest_upload.h"
#include "tokens.h"
#include "wire_gen.h"
#include "workspaces.h"
#include "poison.h"

#define MOUNT      "/workspace"
#define MOUNT_N    (sizeof(MOUNT) - 1)
#define PATH_BYTES 4096
#define LIST_BYTES (64u * 1024 * 1024) /* what a list may take in memory */

struct entry {
	struct view path;
	struct wire_file_info info; /* its views are ours */
};

struct content {
	struct file_op op;
	struct req *r;
	struct file_place place;
	const struct workspace *volume; /* until the helper is asked for */
	void (*start)(struct content *c); /* when there is a box */
	int status;
	/* what is to be changed once it is there */
	bool pending, has_mode, has_uid, has_gid;
	uint32_t mode, uid, gid;
	bool parents;
	/* list */
	unsigned depth;
	struct arena arena;
	struct entry *entries;
	size_t n, cap;
	bool full;
	struct rest_upload up;
};

static struct content *content_of(struct file_op *op)
{
	return CONTAINER(op, struct content, op);
}

static void release(struct content *c)
{
	rest_upload_done(&c->up);
	arena_done(&c->arena);
	free(c->entries);
	c->entries = NULL;
}

static void on_gone(struct req *r)
{
	struct content *c = r->own;
	files_cancel(&c->op);
	release(c);
}

static void fail(struct content *c, const struct err *e)
{
	struct err copy = *e;
	release(c);
	rest_fail(c->r, &copy);
}

static struct file_place as_root(const struct content *c)
{
	struct file_place p = c->place;
	p.user = VIEW("root");
	return p;
}

/* ---- what there is ---- */

static struct view in_volume(struct view path)
{
	path = view_skip(path, MOUNT_N);
	return path.n ? path : VIEW("/");
}

static const char *type_name(int32_t type)
{
	switch (type) {
	case WIRE_FILE_TYPE_FILE:
		return "file";
	case WIRE_FILE_TYPE_DIRECTORY:
		return "directory";
	case WIRE_FILE_TYPE_SYMLINK:
		return "symlink";
	default:
		return "unknown";
	}
}

static void put_entry(struct json_out *o, struct view path, const struct wire_file_info *info)
{
	const char *slash = memrchr(path.p, '/', path.n);

	json_out_object(o);
	json_out_kstr(o, "name", slash && path.n > 1 ? view_skip(path, (size_t)(slash + 1 - path.p)) : path);
	json_out_kstr(o, "path", path);
	json_out_kz(o, "type", type_name(info->type));
	json_out_ku64(o, "size", info->size);
	json_out_ku64(o, "mode", info->mode & 07777);
	json_out_ku64(o, "uid", info->uid);
	json_out_ku64(o, "gid", info->gid);
	rest_put_time(o, "atime", info->atime_ms);
	rest_put_time(o, "mtime", info->mtime_ms);
	rest_put_time(o, "ctime", info->ctime_ms);
	if (info->type == WIRE_FILE_TYPE_SYMLINK)
		json_out_kstr(o, "target", info->target);
	json_out_end(o, '}');
}

static void look(struct content *c);

static void on_changed(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct content *c = content_of(op);
	if (e)
		fail(c, e);
	else
		look(c);
}

static const struct file_ops changed_ops = { .done = on_changed };

static void change(struct content *c)
{
	struct file_place place = as_root(c);
	char owner[32];
	struct err e = { 0 };

	if (!c->has_gid)
		snprintf(owner, sizeof(owner), "%u", c->uid);
	else if (!c->has_uid)
		snprintf(owner, sizeof(owner), ":%u", c->gid);
	else
		snprintf(owner, sizeof(owner), "%u:%u", c->uid, c->gid);
	struct file_change ch = { .mode = c->mode, .has_mode = c->has_mode };
	if (c->has_uid || c->has_gid)
		ch.owner = view_of(owner);
	c->pending = false;
	c->op.ops = &changed_ops;
	if (files_chmod(c->r->core, &c->r->actor, &place, &ch, &c->op, &e) < 0)
		fail(c, &e);
}

static void on_stat(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct content *c = content_of(op);

	if (e) {
		fail(c, e);
		return;
	}
	if (c->pending) {
		change(c);
		return;
	}
	struct json_out *o = rest_json(c->r);
	put_entry(o, in_volume(c->place.path), info);
	release(c);
	rest_send(c->r, c->status);
}

static const struct file_ops stat_ops = { .done = on_stat };

/* What is pending is done, and the answer is what is there then. */
static void look(struct content *c)
{
	struct file_place place = as_root(c);
	struct err e = { 0 };

	c->op.ops = &stat_ops;
	if (files_stat(c->r->core, &c->r->actor, &place, &c->op, &e) < 0)
		fail(c, &e);
}

/* ---- asking ---- */

static const struct workspace *open_volume(struct req *r, struct err *e)
{
	struct view token = http_get_header(r->x, "authorization");

	if (token.n > 7 && view_eq_nocase(view_head(token, 7), VIEW("bearer ")))
		token = view_trim(view_skip(token, 7));
	else
		token = VIEW("");
	return tokens_workspace(r->core, r->params[0], token, &r->actor, e);
}

static int permit(struct req *r, struct err *e)
{
	return open_volume(r, e) ? 0 : -1;
}

/* `path` of the query, below the mount. Links in it are the hidden box's own business. */
static int read_path(struct req *r, struct view *ret, struct err *e)
{
	struct view rest = rest_query(r, "path");
	char *out = arena_alloc(r->x->arena, MOUNT_N + rest.n + 2);
	size_t n = MOUNT_N;

	if (!rest.p)
		return err_set(e, ERR_INVALID, "path is needed");
	if (!out || rest.n >= PATH_BYTES - MOUNT_N - 1)
		return err_set(e, ERR_URI_TOO_LONG, "the path is too long");
	memcpy(out, MOUNT, MOUNT_N);
	while (rest.p) {
		struct view part = view_split(rest, '/', &rest);
		if (view_is(part, "..") || memchr(part.p, 0, part.n))
			return err_set(e, ERR_INVALID, "the path must not hold \"..\"");
		if (!part.n || view_is(part, "."))
			continue;
		out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
	}
	*ret = (struct view){ out, n };
	return 0;
}

static void on_helper(void *arg, const void *result, const struct err *e)
{
	struct req *r = arg;
	const struct box *b = result;
	struct content *c = r->own;
	struct rest *rest = r->rest;
	struct http_exchange *x = r->x;
	bool streams = r->route->body == REST_STREAM;
	struct err failed = { 0 };

	r->job = NULL;
	if (!e)
		c->place.box = arena_view(x->arena, view_of(b->id));
	if (e || !c->place.box.p) {
		err_set(&failed, ERR_INTERNAL, "files cannot be reached");
		fail(c, e ? e : &failed);
		return;
	}
	r->on_gone = on_gone;
	c->start(c);
	if (streams && rest_goes_on(rest, r))
		http_body_resume(x);
}

static int read_u32(struct req *r, const char *name, uint32_t max, bool *has, uint32_t *ret, struct err *e)
{
	struct view v = rest_query(r, name);

	*has = v.p != NULL;
	if (v.p && (num_u32(v, ret) < 0 || *ret > max))
		return err_set(e, ERR_INVALID, "%s must be a number, at most %u", name, max);
	return 0;
}

#define ID_MAX   (UINT32_MAX - 1)
#define MODE_MAX 07777u

static int read_change(struct content *c, struct err *e)
{
	if (read_u32(c->r, "uid", ID_MAX, &c->has_uid, &c->uid, e) < 0 ||
	    read_u32(c->r, "gid", ID_MAX, &c->has_gid, &c->gid, e) < 0 ||
	    read_u32(c->r, "mode", MODE_MAX, &c->has_mode, &c->mode, e) < 0)
		return -1;
	/* A mode is given to what is made at once, but for 0, which stands for none there. */
	c->pending = c->has_uid || c->has_gid || (c->has_mode && !c->mode);
	return 0;
}

/* NULL: the answer is sent. */
static struct content *begin(struct req *r, void (*start)(struct content *c), int status)
{
	struct content *c = rest_own(r, sizeof(*c));
	struct err e = { 0 };

	if (!c)
		return NULL;
	c->r = r;
	c->start = start;
	c->status = status;
	rest_upload_init(&c->up, r->x, &c->op);
	c->arena = ARENA_INIT(LIST_BYTES);
	c->volume = open_volume(r, &e); /* once more: it may have gone while the body came */
	if (c->volume && read_path(r, &c->place.path, &e) >= 0)
		return c;
	fail(c, &e);
	return NULL;
}

static void go(struct content *c, enum act act)
{
	struct req *r = c->r;
	struct err e = { 0 };

	if (r->route->body == REST_STREAM)
		http_body_pause(r->x); /* until there is somebody to take it */
	rest_await(r, workspace_helper(r->core, &r->actor, act, view_of(c->volume->name), on_helper, r, &e), &e);
}

/* ---- /path ---- */

static void stat_path(struct req *r)
{
	struct content *c = begin(r, look, 200);
	if (c)
		go(c, ACT_WORKSPACE_READ);
}

struct patch_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool has_mode, has_uid, has_gid;
	uint64_t mode, uid, gid;
};

#define AT(f) .offset = offsetof(struct patch_body, f), .has = offsetof(struct patch_body, has_##f), .nullable = true
static const struct json_field patch_fields[] = {
	{ "mode", JSON_F_U64, AT(mode), .max = MODE_MAX },
	{ "uid", JSON_F_U64, AT(uid), .max = ID_MAX },
	{ "gid", JSON_F_U64, AT(gid), .max = ID_MAX },
};
#undef AT
static const struct json_schema patch_schema = { patch_fields, ELEMS(patch_fields) };

static void patch_path(struct req *r)
{
	struct patch_body b = { 0 };

	struct content *c = begin(r, look, 200);
	if (!c || e2b_read(r, &patch_schema, &b) < 0)
		return;
	c->has_mode = b.has_mode;
	c->has_uid = b.has_uid;
	c->has_gid = b.has_gid;
	c->mode = (uint32_t)b.mode;
	c->uid = (uint32_t)b.uid;
	c->gid = (uint32_t)b.gid;
	c->pending = b.has_mode || b.has_uid || b.has_gid;
	go(c, c->pending ? ACT_WORKSPACE_WRITE : ACT_WORKSPACE_READ);
}

static void on_removed(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct content *c = content_of(op);

	if (e) {
		fail(c, e);
		return;
	}
	release(c);
	rest_no_content(c->r);
}

static const struct file_ops removed_ops = { .done = on_removed };

static void start_remove(struct content *c)
{
	struct file_place place = as_root(c);
	struct err e = { 0 };

	c->op.ops = &removed_ops;
	if (files_remove(c->r->core, &c->r->actor, &place, true, &c->op, &e) < 0)
		fail(c, &e);
}

static void remove_path(struct req *r)
{
	struct content *c = begin(r, start_remove, 204);
	struct err e = { 0 };

	if (!c)
		return;
	if (c->place.path.n == MOUNT_N) {
		err_set(&e, ERR_INVALID, "the root of a volume cannot be removed");
		fail(c, &e);
		return;
	}
	go(c, ACT_WORKSPACE_WRITE);
}

/* ---- /dir ---- */

static int take_entry(struct content *c, const struct wire_file_info *info)
{
	struct view dir = in_volume(c->place.path), sep = dir.n > 1 ? VIEW("/") : VIEW("");
	size_t n = dir.n + sep.n + info->name.n;
	char *path = arena_alloc(&c->arena, n + 1);
	struct view target = arena_view(&c->arena, info->target);

	if (!path || !target.p)
		return -1;
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct entry *more = cap * sizeof(*more) > LIST_BYTES ? NULL : realloc(c->entries, cap * sizeof(*more));
		if (!more)
			return -1;
		c->entries = more;
		c->cap = cap;
	}
	memcpy(path, dir.p, dir.n);
	memcpy(path + dir.n, sep.p, sep.n);
	memcpy(path + dir.n + sep.n, info->name.p, info->name.n);
	struct entry *en = &c->entries[c->n++];
	*en = (struct entry){ { path, n }, *info };
	en->info.target = target;
	return 0;
}

static void on_entries(struct file_op *op, const struct wire_file_info *entries, size_t n, size_t bytes)
{
	struct content *c = content_of(op);

	for (size_t i = 0; i < n && !c->full; i++)
		c->full = take_entry(c, &entries[i]) < 0;
	files_consumed(op, bytes);
}

static int by_path(const void *a, const void *b)
{
	const struct view x = ((const struct entry *)a)->path, y = ((const struct entry *)b)->path;
	int r = memcmp(x.p, y.p, MIN(x.n, y.n));
	return r ? r : (x.n > y.n) - (x.n < y.n);
}

static void on_listed(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *said)
{
	struct content *c = content_of(op);
	struct err e = { 0 };

	if (said || c->full) {
		err_set(&e, ERR_TOO_LARGE, "there are too many entries");
		fail(c, said ? said : &e);
		return;
	}
	if (c->n)
		qsort(c->entries, c->n, sizeof(*c->entries), by_path);
	struct json_out *o = rest_json(c->r);
	json_out_array(o);
	for (size_t i = 0; i < c->n; i++)
		put_entry(o, c->entries[i].path, &c->entries[i].info);
	json_out_end(o, ']');
	release(c);
	rest_send(c->r, 200);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static void start_list(struct content *c)
{
	struct file_place place = as_root(c);
	struct file_page page = { .depth = c->depth };
	struct err e = { 0 };

	c->op.ops = &list_ops;
	if (files_list(c->r->core, &c->r->actor, &place, &page, &c->op, &e) < 0)
		fail(c, &e);
}

static void list_dir(struct req *r)
{
	struct content *c = begin(r, start_list, 200);
	struct err e = { 0 };
	bool given;

	if (!c)
		return;
	if (read_u32(r, "depth", FILES_DEPTH_MAX, &given, &c->depth, &e) < 0) {
		fail(c, &e);
		return;
	}
	go(c, ACT_WORKSPACE_READ);
}

static void start_mkdir(struct content *c)
{
	struct err e = { 0 };

	c->op.ops = &changed_ops;
	if (files_mkdir(c->r->core, &c->r->actor, &c->place, c->mode, c->parents, &c->op, &e) < 0)
		fail(c, &e);
}

static void make_dir(struct req *r)
{
	struct content *c = begin(r, start_mkdir, 201);
	struct err e = { 0 };

	if (!c || rest_query_flag(r, "force", &c->parents) < 0)
		return;
	if (read_change(c, &e) < 0)
		fail(c, &e);
	else
		go(c, ACT_WORKSPACE_WRITE);
}

/* ---- /file ---- */

static void on_room(struct file_op *op)
{
	rest_upload_push(&content_of(op)->up);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct content *c = ((struct req *)x->ctx)->own;
	struct err e = { 0 };

	if (rest_upload_piece(&c->up, data, last, &e) < 0)
		fail(c, &e);
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;
	on_gone(r);
	rest_done(r);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort };
static const struct file_ops write_ops = { .on_room = on_room, .done = on_changed };

static void start_write(struct content *c)
{
	struct err e = { 0 };

	c->op.ops = &write_ops;
	c->r->x->ops = &upload_ops;
	if (files_write(c->r->core, &c->r->actor, &c->place, c->mode, false, &c->op, &e) < 0)
		fail(c, &e);
}

/* `force` is taken: a file that is there is overwritten with or without it. */
static void write_file(struct req *r)
{
	struct content *c = begin(r, start_write, 201);
	struct err e = { 0 };
	bool force;

	if (!c || rest_query_flag(r, "force", &force) < 0)
		return;
	if (read_change(c, &e) < 0)
		fail(c, &e);
	else
		go(c, ACT_WORKSPACE_WRITE);
}

static void start_read(struct content *c)
{
	struct file_place place = as_root(c);
	struct req *r = c->r;

	release(c);
	rest_download_bytes(r, &place);
}

static void read_file(struct req *r)
{
	struct content *c = begin(r, start_read, 200);
	if (c)
		go(c, ACT_WORKSPACE_READ);
}

#define OWN_TOKEN .auth = REST_OPEN, .permit = permit
const struct route e2b_content_routes[] = {
	{ "GET", "/volumecontent/{id}/path", stat_path, OWN_TOKEN, .query = "path" },
	{ "PATCH", "/volumecontent/{id}/path", patch_path, OWN_TOKEN, .body = REST_JSON, .query = "path" },
	{ "DELETE", "/volumecontent/{id}/path", remove_path, OWN_TOKEN, .query = "path" },
	{ "GET", "/volumecontent/{id}/dir", list_dir, OWN_TOKEN, .query = "path depth" },
	{ "POST", "/volumecontent/{id}/dir", make_dir, OWN_TOKEN, .query = "path uid gid mode force" },
	{ "GET", "/volumecontent/{id}/file", read_file, OWN_TOKEN, .query = "path" },
	{ "PUT", "/volumecontent/{id}/file", write_file, OWN_TOKEN, .body = REST_STREAM,
	  .query = "path uid gid mode force" },
	{ 0 },
};
