/*
 * /v1/sandboxes/{id}/fs/…: work on files that is not the transfer of one, asked
 * for in JSON. Searching is in rest_search.c, replacing in rest_replace.c.
 */
#include "rest_fs.h"

#include "text.h"
#include "transfer.h"
#include "who.h"
#include "poison.h"

#define LIMIT_DEFAULT 1000

struct rest_fs *rest_fs_of(struct file_op *op)
{
	return CONTAINER(op, struct rest_fs, op);
}

static void on_gone(struct request *r)
{
	struct rest_fs *f = r->own;

	files_cancel(&f->op);
}

void *rest_fs_begin(struct request *r, const struct json_schema *schema, const struct file_ops *ops,
		    size_t size)
{
	struct rest_fs_wish w = { .limit = LIMIT_DEFAULT, .parents = true };
	struct rest_fs *f;

	if (schema && request_read(r, schema, &w) < 0)
		return NULL;
	f = request_own(r, size);
	if (!f)
		return NULL;
	f->r = r;
	f->op.ops = ops;
	f->wish = w;
	r->on_gone = on_gone;
	return f;
}

struct file_place rest_fs_place(const struct rest_fs *f, struct view path)
{
	return (struct file_place){ .box = f->r->params[0], .path = path, .user = f->wish.user };
}

static int wished_mode(const struct rest_fs_wish *w, unsigned *ret, struct err *e)
{
	*ret = 0;
	return w->mode.p ? rest_files_mode(w->mode, ret, e) : 0;
}

/* ---- answers ---- */

static void on_empty(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = rest_fs_of(op)->r;

	if (e)
		answer_fail(r, e);
	else
		answer_no_content(r);
}

static void on_sum(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = rest_fs_of(op)->r;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	rest_files_put_sum(o, &op->sum);
	answer_send(r, 200);
}

static void on_changed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = rest_fs_of(op)->r;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_ku64(o, "changed", op->sum.changed);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_moved(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = rest_fs_of(op)->r;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kbool(o, "copied", op->sum.copied);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_stat(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = rest_fs_of(op)->r;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	rest_files_put(o, info, false);
	answer_send(r, 200);
}

static const struct file_ops empty_ops = { .done = on_empty };
static const struct file_ops sum_ops = { .done = on_sum };
static const struct file_ops changed_ops = { .done = on_changed };
static const struct file_ops moved_ops = { .done = on_moved };
static const struct file_ops stat_ops = { .done = on_stat };

/* ---- move, copy, mkdir, chmod, stat ---- */

static const struct json_field move_fields[] = { REST_FS_PATH(from), REST_FS_PATH(to), REST_FS_USER,
						 REST_FS_FLAG(overwrite) };
static const struct json_schema move_schema = { move_fields, ELEMS(move_fields) };

static void move(struct request *r)
{
	struct err e = { 0 };
	struct rest_fs *f = rest_fs_begin(r, &move_schema, &moved_ops, sizeof(*f));
	if (!f)
		return;
	struct file_place p = rest_fs_place(f, f->wish.from);
	if (files_move(r->core, &r->actor, &p, f->wish.to, f->wish.overwrite, &f->op, &e) < 0)
		answer_fail(r, &e);
}

static const struct json_field copy_fields[] = { REST_FS_PATH(from), REST_FS_PATH(to), REST_FS_USER,
						 REST_FS_FLAG(overwrite), REST_FS_FLAG(recursive) };
static const struct json_schema copy_schema = { copy_fields, ELEMS(copy_fields) };

static void copy(struct request *r)
{
	struct err e = { 0 };
	struct rest_fs *f = rest_fs_begin(r, &copy_schema, &sum_ops, sizeof(*f));
	if (!f)
		return;
	struct file_place p = rest_fs_place(f, f->wish.from);
	if (files_copy(r->core, &r->actor, &p, f->wish.to, f->wish.recursive, f->wish.overwrite, &f->op, &e) <
	    0)
		answer_fail(r, &e);
}

static const struct json_field mkdir_fields[] = { REST_FS_PATH(path),
						  REST_FS_USER,
						  REST_FS_FLAG(parents),
						  { "mode", JSON_F_STRING, REST_FS_AT(mode), .min = 1,
						    .nullable = true } };
static const struct json_schema mkdir_schema = { mkdir_fields, ELEMS(mkdir_fields) };

static void make_dir(struct request *r)
{
	struct err e = { 0 };
	unsigned mode;
	struct rest_fs *f = rest_fs_begin(r, &mkdir_schema, &empty_ops, sizeof(*f));
	if (!f)
		return;
	struct file_place p = rest_fs_place(f, f->wish.path);
	if (wished_mode(&f->wish, &mode, &e) < 0 ||
	    files_mkdir(r->core, &r->actor, &p, mode, f->wish.parents, &f->op, &e) < 0)
		answer_fail(r, &e);
}

static const struct json_field chmod_fields[] = {
	REST_FS_PATH(path),
	REST_FS_USER,
	REST_FS_FLAG(recursive),
	{ "mode", JSON_F_STRING, REST_FS_AT(mode), .min = 1, .nullable = true },
	{ "owner", JSON_F_STRING, REST_FS_AT(owner), .min = 1, .max = 128, .nullable = true },
};
static const struct json_schema chmod_schema = { chmod_fields, ELEMS(chmod_fields) };

static void change_mode(struct request *r)
{
	struct err e = { 0 };
	struct file_change change = { 0 };
	struct rest_fs *f = rest_fs_begin(r, &chmod_schema, &changed_ops, sizeof(*f));
	if (!f)
		return;
	struct file_place p = rest_fs_place(f, f->wish.path);
	change.has_mode = f->wish.mode.p != NULL;
	change.owner = f->wish.owner;
	change.recursive = f->wish.recursive;
	if (wished_mode(&f->wish, &change.mode, &e) < 0 ||
	    files_chmod(r->core, &r->actor, &p, &change, &f->op, &e) < 0)
		answer_fail(r, &e);
}

static void stat_path(struct request *r)
{
	struct err e = { 0 };
	struct rest_fs *f = rest_fs_begin(r, NULL, &stat_ops, sizeof(*f));
	if (!f)
		return;
	f->wish.user = request_query(r, "user");
	struct file_place p = rest_fs_place(f, request_query(r, "path"));
	if (files_stat(r->core, &r->actor, &p, &f->op, &e) < 0)
		answer_fail(r, &e);
}

/* ---- sign ---- */

static const struct json_field sign_fields[] = {
	REST_FS_PATH(path),
	REST_FS_USER,
	{ "method", JSON_F_STRING, REST_FS_AT(method), .required = true },
	{ "expires_seconds", JSON_F_U64, REST_FS_AT(seconds), .min = 1, .max = SIGN_SECONDS_MAX,
	  .required = true },
};
static const struct json_schema sign_schema = { sign_fields, ELEMS(sign_fields) };

static void put_url(struct buf *b, const struct request *r, const struct rest_fs_wish *w,
		    const struct signed_url *s)
{
	if (r->x->host.n) {
		buf_puts(b, r->x->tls ? "https://" : "http://");
		buf_add(b, r->x->host);
	}
	buf_printf(b, "/v1/sandboxes/%s/files", s->box);
	text_percent(b, w->path);
	buf_printf(b, "?expires=%lld&signature=%s", (long long)s->expires_s, s->signature);
	if (w->user.n) {
		buf_puts(b, "&user=");
		text_percent(b, w->user);
	}
}

static void sign(struct request *r)
{
	struct rest_fs_wish w = { 0 };
	struct err e = { 0 };
	struct signed_url s;
	struct buf url = BUF_INIT(32 * 1024);

	if (request_read(r, &sign_schema, &w) < 0)
		return;
	struct file_place p = { .box = r->params[0], .path = w.path, .user = w.user };
	if (sign_url(r->core, &r->actor, &p, w.method, (uint32_t)w.seconds, &s, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	put_url(&url, r, &w, &s);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kstr(o, "url", buf_view(&url));
	answer_put_time(o, "expires_at", s.expires_s * 1000);
	json_out_end(o, '}');
	buf_done(&url);
	answer_send(r, 200);
}

#define FS "/v1/sandboxes/{id}/fs/"
const struct route rest_fs_routes[] = {
	{ "POST", FS "move", move, .body = ROUTE_JSON },
	{ "POST", FS "copy", copy, .body = ROUTE_JSON },
	{ "POST", FS "mkdir", make_dir, .body = ROUTE_JSON },
	{ "POST", FS "chmod", change_mode, .body = ROUTE_JSON },
	{ "GET", FS "stat", stat_path, .query = "path user" },
	{ "POST", FS "sign", sign, .body = ROUTE_JSON },
	{ 0 },
};
