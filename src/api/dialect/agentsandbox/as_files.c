/*
 * /api/v1/sandbox/files/{name}: list, upload, download and delete, as the sandbox's user.
 */
#include <errno.h>

#include "answer_file.h"
#include "as_impl.h"
#include "form.h"
#include "poison.h"

#define UPLOAD_MAX (100u * 1024 * 1024)

static int take_place(struct request *r, struct file_place *ret, struct err *e)
{
	struct view path = request_query(r, "path");

	if (!path.p)
		path = VIEW("/workspace");
	if (!path.n || path.p[0] != '/')
		return err_set(e, ERR_INVALID, "path must be absolute");
	*ret = (struct file_place){ .box = r->params[0], .path = path };
	return 0;
}

/* ---- list ---- */

struct listing {
	struct file_op op;
	struct request *r;
	struct json_out *o;
};

static void release_listing(struct request *r)
{
	files_cancel(&((struct listing *)r->own)->op);
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct listing *l = CONTAINER(op, struct listing, op);

	for (size_t i = 0; i < n; i++) {
		json_out_object(l->o);
		json_out_kstr(l->o, "name", entries[i].name);
		json_out_kstr(l->o, "path", entries[i].path);
		json_out_kz(l->o, "type", files_type_name(entries[i].type));
		json_out_kbool(l->o, "isDir", entries[i].type == FILE_TYPE_DIRECTORY);
		json_out_ku64(l->o, "size", entries[i].size);
		answer_put_time(l->o, "modifiedAt", entries[i].mtime_ms);
		json_out_end(l->o, '}');
	}
	files_consumed(op, bytes);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct listing *l = CONTAINER(op, struct listing, op);

	if (e) {
		answer_fail(l->r, e);
		return;
	}
	json_out_end(l->o, ']');
	json_out_end(l->o, '}');
	as_send(l->r);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static void list(struct request *r)
{
	struct listing *l = request_own(r, sizeof(*l));
	struct file_page page = { .depth = 1 };
	struct file_place place;
	struct err e = { 0 };

	if (!l)
		return;
	l->r = r;
	l->op.ops = &list_ops;
	r->release = release_listing;
	if (take_place(r, &place, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	l->o = as_data(r);
	json_out_object(l->o);
	json_out_kstr(l->o, "path", place.path);
	json_out_key(l->o, "files");
	json_out_array(l->o);
	if (files_list(r->core, &r->actor, &place, &page, &l->op, &e) < 0)
		answer_fail(r, &e);
}

/* ---- delete, download ---- */

struct removal {
	struct file_op op;
	struct request *r;
};

static void release_removal(struct request *r)
{
	files_cancel(&((struct removal *)r->own)->op);
}

static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = CONTAINER(op, struct removal, op)->r;

	if (e)
		answer_fail(r, e);
	else
		as_say(r, "deleted");
}

static const struct file_ops remove_ops = { .done = on_removed };

static void remove_one(struct request *r)
{
	struct removal *d = request_own(r, sizeof(*d));
	struct file_place place;
	struct err e = { 0 };

	if (!d)
		return;
	d->r = r;
	d->op.ops = &remove_ops;
	r->release = release_removal;
	if (!request_query(r, "path").p)
		err_set(&e, ERR_INVALID, "path is needed");
	if (e.code || take_place(r, &place, &e) < 0 ||
	    files_remove(r->core, &r->actor, &place, true, &d->op, &e) < 0)
		answer_fail(r, &e);
}

static void download(struct request *r)
{
	struct file_place *place = arena_alloc(r->x->arena, sizeof(*place));
	struct err e = { 0 };

	if (!place || take_place(r, place, &e) < 0) {
		if (!place)
			err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		answer_fail(r, &e);
		return;
	}
	answer_file(r, place);
}

/* ---- upload: the files of a form, into the directory ---- */

struct upload {
	struct form form;
	struct buf path;
};

static void release_upload(struct request *r)
{
	struct upload *u = r->own;

	form_done(&u->form);
	buf_done(&u->path);
}

static int place_part(struct form *f, struct file_place *ret, struct err *e)
{
	struct upload *u = CONTAINER(f, struct upload, form);
	struct view name = form_base_name(f->parser.filename);

	if (!f->parser.filename.p)
		return 0;
	if (!name.p)
		return err_set(e, ERR_INVALID, "a file of the form has no filename");
	if (take_place(f->r, ret, e) < 0)
		return -1;
	buf_clear(&u->path);
	buf_add(&u->path, ret->path);
	buf_putc(&u->path, '/');
	buf_add(&u->path, name);
	ret->path = buf_view(&u->path);
	return u->path.bad ? err_set(e, ERR_INVALID, "path is too long") : 1;
}

static void finish_upload(struct form *f)
{
	struct err e = { 0 };

	if (f->n) {
		as_say(f->r, "uploaded %u file%s", f->n, f->n == 1 ? "" : "s");
		return;
	}
	err_set(&e, ERR_INVALID, "the form has no file");
	answer_fail(f->r, &e);
}

static const struct form_ops upload_ops = { .place = place_part, .finish = finish_upload };

static void upload(struct request *r)
{
	struct upload *u = request_own(r, sizeof(*u));

	if (!u)
		return;
	u->path = BUF_INIT(8192);
	u->form.most = UPLOAD_MAX;
	r->release = release_upload;
	form_start(&u->form, r, &upload_ops);
}

const struct route as_files_routes[] = {
	{ "GET", "/api/v1/sandbox/files/{name}", list, .query = "path api_key" },
	{ "DELETE", "/api/v1/sandbox/files/{name}", remove_one, .query = "path api_key" },
	{ "POST", "/api/v1/sandbox/files/{name}/upload", upload, .body = ROUTE_STREAM,
	  .query = "path api_key" },
	{ "GET", "/api/v1/sandbox/files/{name}/download", download, .query = "path api_key" },
	{ 0 },
};
