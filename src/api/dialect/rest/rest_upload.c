/*
 * PUT /v1/sandboxes/{id}/files/{path}: see rest_files.h.
 */
#include "rest_files.h"
#include "upload.h"
#include "poison.h"

struct writing {
	struct file_op op;
	struct request *r;
	struct file_place place;
	struct upload up;
};

static struct writing *of(struct file_op *op)
{
	return CONTAINER(op, struct writing, op);
}

static void on_gone(struct request *r)
{
	struct writing *w = r->own;

	files_cancel(&w->op);
	upload_done(&w->up);
}

static void fail(struct writing *w, const struct err *e)
{
	upload_done(&w->up);
	answer_fail(w->r, e);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct writing *w = ((struct request *)x->ctx)->own;
	struct err e = { 0 };

	if (upload_piece(&w->up, data, last, &e) < 0)
		fail(w, &e);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;

	on_gone(r);
	request_done(r);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort };

static void on_room(struct file_op *op)
{
	upload_push(&of(op)->up);
}

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct writing *w = of(op);
	struct request *r = w->r;

	upload_done(&w->up);
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	rest_files_put(o, info, false);
	answer_send(r, created ? 201 : 200);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void on_unpacked(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct writing *w = of(op);
	struct request *r = w->r;

	upload_done(&w->up);
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	rest_files_put_sum(o, &op->sum);
	answer_send(r, 200);
}

static const struct file_ops unpack_ops = { .on_room = on_room, .done = on_unpacked };

static int start(struct request *r, struct writing *w, bool append, struct err *e)
{
	unsigned mode = 0;
	int archive = rest_files_archive(r, e);

	if (archive < 0 || rest_files_mode(request_query(r, "mode"), &mode, e) < 0)
		return -1;
	if (archive && (mode || append))
		return err_set(e, ERR_INVALID, "an archive has modes of its own and cannot be appended");
	w->op.ops = archive ? &unpack_ops : &write_ops;
	return archive ? files_unpack(r->core, &r->actor, &w->place, &w->op, e)
		       : files_write(r->core, &r->actor, &w->place, mode, append, &w->op, e);
}

void rest_upload(struct request *r)
{
	struct err e = { 0 };
	struct writing *w;
	bool append;

	if (request_query_flag(r, "append", &append) < 0)
		return;
	w = request_own(r, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	upload_init(&w->up, r->x, &w->op);
	r->on_gone = on_gone;
	r->x->ops = &upload_ops;
	if (rest_files_place(r, &w->place, &e) < 0 || start(r, w, append, &e) < 0)
		fail(w, &e);
}
