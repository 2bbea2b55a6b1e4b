/*
 * /v1/sandboxes/{id}/files/{path}: raw bodies of any size, streamed both ways,
 * of a file or, as a tar archive, of a tree. With a signature in the query no key
 * is needed (sign.h). GET is in rest_download.c, PUT in rest_upload.c.
 */
#include "rest_files.h"

#include <stdio.h>

#include "answer_file.h"
#include "text.h"
#include "transfer.h"
#include "who.h"
#include "poison.h"

/* ---- what is asked for ---- */

/* A signature is for the bytes of one file: with it nothing else can be asked for. */
static int check_signature(struct request *r, const struct file_place *p, struct err *e)
{
	struct view signature = request_query(r, "signature");

	if (!signature.p)
		return 0;
	for (size_t i = 0; i < r->n_query; i++) {
		struct view name = r->query[i].name;
		if (!view_is(name, "signature") && !view_is(name, "expires") && !view_is(name, "user"))
			return err_set(e, ERR_FORBIDDEN, "a signed URL takes no other parameters");
	}
	return sign_url_check(r->core, p, r->x->method, request_query(r, "expires"), signature, &r->actor, e);
}

/* The path after /files, absolute. What `..` means in it is the box's business. */
int rest_files_place(struct request *r, struct file_place *ret, struct err *e)
{
	char *path = arena_alloc(r->x->arena, r->params[1].n + 1);

	if (!path)
		return err_set(e, ERR_URI_TOO_LONG, "the path is too long");
	path[0] = '/';
	memcpy(path + 1, r->params[1].p, r->params[1].n);
	*ret = (struct file_place){ .box = r->params[0],
				    .path = { path, r->params[1].n + 1 },
				    .user = request_query(r, "user") };
	return check_signature(r, ret, e);
}

int rest_files_archive(const struct request *r, struct err *e)
{
	struct view v = request_query(r, "archive");

	if (!v.p || view_is(v, "tar"))
		return v.p != NULL;
	return err_set(e, ERR_INVALID, "archive must be tar");
}

int rest_files_mode(struct view v, unsigned *ret, struct err *e)
{
	unsigned mode = 0;

	for (size_t i = 0; i < v.n; i++) {
		if (v.n > 5 || v.p[i] < '0' || v.p[i] > '7')
			return err_set(e, ERR_INVALID, "mode must be octal, such as 0644");
		mode = mode * 8 + (unsigned)(v.p[i] - '0');
	}
	if (v.p && (mode == 0 || mode > 07777))
		return err_set(e, ERR_INVALID, "mode must be octal, between 1 and 7777");
	*ret = mode;
	return 0;
}

/* ---- what a file is ---- */

void rest_files_put_bytes(struct json_out *o, const char *key, const char *key_base64, struct view v)
{
	json_out_kstr(o, key, v);
	if (text_is_utf8(v))
		return;
	struct buf b = BUF_INIT(2 * v.n + 16);
	text_base64(&b, v);
	json_out_kstr(o, key_base64, buf_view(&b));
	buf_done(&b);
}

void rest_files_put(struct json_out *o, const struct file_info *info, bool with_path)
{
	char mode[8];
	struct view name = info->name;
	const char *slash = with_path && name.n ? memrchr(name.p, '/', name.n) : NULL;

	json_out_object(o);
	rest_files_put_bytes(o, "name", "name_base64",
			     slash ? view_skip(name, (size_t)(slash + 1 - name.p)) : name);
	if (with_path)
		rest_files_put_bytes(o, "path", "path_base64", name);
	json_out_kz(o, "type", files_type_name(info->type));
	json_out_ku64(o, "size", info->size);
	snprintf(mode, sizeof(mode), "%04o", info->mode & 07777);
	json_out_kz(o, "mode", mode);
	json_out_ku64(o, "uid", info->uid);
	json_out_ku64(o, "gid", info->gid);
	answer_put_time(o, "modified_at", info->mtime_ms);
	if (info->target.n)
		json_out_kstr(o, "target", info->target);
	json_out_end(o, '}');
}

void rest_files_put_sum(struct json_out *o, const struct file_sum *sum)
{
	json_out_object(o);
	json_out_ku64(o, "files", sum->files);
	json_out_ku64(o, "directories", sum->directories);
	json_out_ku64(o, "bytes", sum->bytes);
	json_out_ku64(o, "skipped", sum->skipped);
	json_out_end(o, '}');
}

/* ---- HEAD, DELETE ---- */

struct asking {
	struct file_op op;
	struct request *r;
	struct file_place place;
};

static void on_gone(struct request *r)
{
	struct asking *k = r->own;

	files_cancel(&k->op);
}

/* NULL: the answer is sent. */
static struct asking *asking(struct request *r, const struct file_ops *ops)
{
	struct asking *k = request_own(r, sizeof(*k));
	struct err e = { 0 };

	if (!k)
		return NULL;
	k->r = r;
	k->op.ops = ops;
	r->on_gone = on_gone;
	if (rest_files_place(r, &k->place, &e) >= 0)
		return k;
	answer_fail(r, &e);
	return NULL;
}

static void on_stat(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct answer_file_head f;

	if (e) {
		answer_fail(r, e);
		return;
	}
	answer_file_fill(&f, info);
	answer_file_add(&f, "accept-ranges", "bytes");
	http_begin(r->x, 200, "application/octet-stream", (int64_t)info->size, f.h, f.n);
	http_end(r->x);
	request_done(r);
}

static const struct file_ops stat_ops = { .done = on_stat };

static void head(struct request *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, &stat_ops);

	if (k && files_stat(r->core, &r->actor, &k->place, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;

	if (e)
		answer_fail(r, e);
	else
		answer_no_content(r);
}

static const struct file_ops remove_ops = { .done = on_removed };

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	bool recursive;

	if (request_query_flag(r, "recursive", &recursive) < 0)
		return;
	struct asking *k = asking(r, &remove_ops);
	if (k && files_remove(r->core, &r->actor, &k->place, recursive, &k->op, &e) < 0)
		answer_fail(r, &e);
}

const struct route rest_files_routes[] = {
	{ "PUT", "/v1/sandboxes/{id}/files/{path}", rest_upload, .auth = ROUTE_SIGNED, .body = ROUTE_STREAM,
	  .query = "mode user append archive signature expires" },
	{ "HEAD", "/v1/sandboxes/{id}/files/{path}", head, .auth = ROUTE_SIGNED,
	  .query = "user signature expires" },
	{ "GET", "/v1/sandboxes/{id}/files/{path}", rest_download, .auth = ROUTE_SIGNED,
	  .query = "user list depth limit cursor archive signature expires" },
	{ "DELETE", "/v1/sandboxes/{id}/files/{path}", remove_one, .query = "user recursive" },
	{ 0 },
};

const struct route *rest_files_route(const char *method)
{
	for (const struct route *t = rest_files_routes; t->method; t++)
		if (view_is(view_of(t->method), method) &&
		    view_is(view_of(t->pattern), rest_files_routes[0].pattern))
			return t;
	return NULL;
}
