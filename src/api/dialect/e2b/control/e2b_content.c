/*
 * What a request for the files of a volume goes through, whatever it asks for: see e2b_content.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "disk.h"
#include "e2b_content.h"
#include "num.h"
#include "who.h"
#include "poison.h"

#define PATH_BYTES 4096

void e2b_content_release(struct e2b_content *c)
{
	upload_done(&c->up);
	arena_done(&c->arena);
	free(c->entries);
	c->entries = NULL;
}

void e2b_content_gone(struct request *r)
{
	struct e2b_content *c = r->own;
	files_cancel(&c->op);
	e2b_content_release(c);
}

void e2b_content_fail(struct e2b_content *c, const struct err *e)
{
	struct err copy = *e;
	e2b_content_release(c);
	answer_fail(c->r, &copy);
}

/* ---- what there is ---- */

struct view e2b_content_in_volume(struct view path)
{
	path = view_skip(path, E2B_CONTENT_MOUNT_N);
	return path.n ? path : VIEW("/");
}

static const char *type_name(int32_t type)
{
	switch (type) {
	case FILE_TYPE_FILE:
		return "file";
	case FILE_TYPE_DIRECTORY:
		return "directory";
	case FILE_TYPE_SYMLINK:
		return "symlink";
	default:
		return "unknown";
	}
}

void e2b_content_put(struct json_out *o, struct view path, const struct file_info *info)
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
	answer_put_time(o, "atime", info->atime_ms);
	answer_put_time(o, "mtime", info->mtime_ms);
	answer_put_time(o, "ctime", info->ctime_ms);
	if (info->type == FILE_TYPE_SYMLINK)
		json_out_kstr(o, "target", info->target);
	json_out_end(o, '}');
}

void e2b_content_changed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct e2b_content *c = e2b_content_of(op);
	if (e)
		e2b_content_fail(c, e);
	else
		e2b_content_look(c);
}

static const struct file_ops changed_ops = { .done = e2b_content_changed };

static void change(struct e2b_content *c)
{
	struct file_place place = e2b_content_as_root(c);
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
		e2b_content_fail(c, &e);
}

static void on_stat(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct e2b_content *c = e2b_content_of(op);

	if (e) {
		e2b_content_fail(c, e);
		return;
	}
	if (c->pending) {
		change(c);
		return;
	}
	struct json_out *o = answer_json(c->r);
	e2b_content_put(o, e2b_content_in_volume(c->place.path), info);
	e2b_content_release(c);
	answer_send(c->r, c->status);
}

static const struct file_ops stat_ops = { .done = on_stat };

/* What is pending is done, and the answer is what is there then. */
void e2b_content_look(struct e2b_content *c)
{
	struct file_place place = e2b_content_as_root(c);
	struct err e = { 0 };

	c->op.ops = &stat_ops;
	if (files_stat(c->r->core, &c->r->actor, &place, &c->op, &e) < 0)
		e2b_content_fail(c, &e);
}

/* ---- asking ---- */

static const struct workspace *open_volume(struct request *r, struct err *e)
{
	struct view token = http_get_header(r->x, "authorization");

	if (token.n > 7 && view_eq_nocase(view_head(token, 7), VIEW("bearer ")))
		token = view_trim(view_skip(token, 7));
	else
		token = VIEW("");
	return workspace_token_opens(r->core, r->params[0], token, &r->actor, e);
}

int e2b_content_permit(struct request *r, struct err *e)
{
	return open_volume(r, e) ? 0 : -1;
}

/* `path` of the query, below the mount. Links in it are the hidden box's own business. */
static int read_path(struct request *r, struct view *ret, struct err *e)
{
	struct view rest = request_query(r, "path");
	char *out = arena_alloc(r->x->arena, E2B_CONTENT_MOUNT_N + rest.n + 2);
	size_t n = E2B_CONTENT_MOUNT_N;

	if (!rest.p)
		return err_set(e, ERR_INVALID, "path is needed");
	if (!out || rest.n >= PATH_BYTES - E2B_CONTENT_MOUNT_N - 1)
		return err_set(e, ERR_URI_TOO_LONG, "the path is too long");
	memcpy(out, E2B_CONTENT_MOUNT, E2B_CONTENT_MOUNT_N);
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
	struct request *r = arg;
	const struct box *b = result;
	struct e2b_content *c = r->own;
	struct serve *serve = r->serve;
	struct http_exchange *x = r->x;
	bool streams = r->route->body == ROUTE_STREAM;
	struct err failed = { 0 };

	r->job = NULL;
	if (!e)
		c->place.box = arena_view(x->arena, view_of(b->id));
	if (e || !c->place.box.p) {
		err_set(&failed, ERR_INTERNAL, "files cannot be reached");
		e2b_content_fail(c, e ? e : &failed);
		return;
	}
	r->on_gone = e2b_content_gone;
	c->start(c);
	if (streams && request_goes_on(serve, r))
		http_body_resume(x);
}

int e2b_content_number(struct request *r, const char *name, uint32_t max, bool *has, uint32_t *ret,
		       struct err *e)
{
	struct view v = request_query(r, name);

	*has = v.p != NULL;
	if (v.p && (num_u32(v, ret) < 0 || *ret > max))
		return err_set(e, ERR_INVALID, "%s must be a number, at most %u", name, max);
	return 0;
}

int e2b_content_read_change(struct e2b_content *c, struct err *e)
{
	if (e2b_content_number(c->r, "uid", E2B_CONTENT_ID_MAX, &c->has_uid, &c->uid, e) < 0 ||
	    e2b_content_number(c->r, "gid", E2B_CONTENT_ID_MAX, &c->has_gid, &c->gid, e) < 0 ||
	    e2b_content_number(c->r, "mode", E2B_CONTENT_MODE_MAX, &c->has_mode, &c->mode, e) < 0)
		return -1;
	/* A mode is given to what is made at once, but for 0, which stands for none there. */
	c->pending = c->has_uid || c->has_gid || (c->has_mode && !c->mode);
	return 0;
}

/* NULL: the answer is sent. */
struct e2b_content *e2b_content_begin(struct request *r, void (*start)(struct e2b_content *c), int status)
{
	struct e2b_content *c = request_own(r, sizeof(*c));
	struct err e = { 0 };

	if (!c)
		return NULL;
	c->r = r;
	c->start = start;
	c->status = status;
	upload_init(&c->up, r->x, &c->op);
	c->arena = ARENA_INIT(E2B_CONTENT_LIST_BYTES);
	c->volume = open_volume(r, &e); /* once more: it may have gone while the body came */
	if (c->volume && read_path(r, &c->place.path, &e) >= 0)
		return c;
	e2b_content_fail(c, &e);
	return NULL;
}

void e2b_content_go(struct e2b_content *c, enum act act)
{
	struct request *r = c->r;
	struct err e = { 0 };

	if (r->route->body == ROUTE_STREAM)
		http_body_pause(r->x); /* until there is somebody to take it */
	answer_await(r, workspace_helper(r->core, &r->actor, act, view_of(c->volume->name), on_helper, r, &e),
		     &e);
}
