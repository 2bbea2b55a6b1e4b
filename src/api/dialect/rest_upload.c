/*
 * Uploads: see rest_upload.h.
 */
#include "rest_upload.h"

#include "rest_files.h"
#include "poison.h"

#define PIECES_MAX (4u * 1024 * 1024) /* that wait for room; a piece of the body at most */

void rest_upload_init(struct rest_upload *u, struct http_exchange *x, struct file_op *op)
{
	*u = (struct rest_upload){ .op = op, .x = x, .pieces = BUF_INIT(PIECES_MAX) };
}

void rest_upload_done(struct rest_upload *u)
{
	buf_done(&u->pieces);
}

void rest_upload_push(struct rest_upload *u)
{
	buf_consume(&u->pieces, files_send(u->op, buf_view(&u->pieces)));
	if (buf_len(&u->pieces))
		return;
	if (u->last)
		files_end(u->op);
	else
		http_body_resume(u->x);
}

int rest_upload_piece(struct rest_upload *u, struct view data, bool last, struct err *e)
{
	u->last = last;
	if (buf_len(&u->pieces) == 0) /* the usual case: no copy */
		data = view_skip(data, files_send(u->op, data));
	if (buf_add(&u->pieces, data) < 0) {
		files_cancel(u->op);
		return err_set(e, ERR_INTERNAL, "the body comes in pieces that are too large");
	}
	if (buf_len(&u->pieces))
		http_body_pause(u->x);
	else if (last)
		files_end(u->op);
	return 0;
}

/* ---- PUT ---- */

struct writing {
	struct file_op op;
	struct req *r;
	struct file_place place;
	struct rest_upload up;
};

static struct writing *of(struct file_op *op)
{
	return CONTAINER(op, struct writing, op);
}

static void on_gone(struct req *r)
{
	struct writing *w = r->own;

	files_cancel(&w->op);
	rest_upload_done(&w->up);
}

static void fail(struct writing *w, const struct err *e)
{
	rest_upload_done(&w->up);
	rest_fail(w->r, e);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct writing *w = ((struct req *)x->ctx)->own;
	struct err e = { 0 };

	if (rest_upload_piece(&w->up, data, last, &e) < 0)
		fail(w, &e);
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;

	on_gone(r);
	rest_done(r);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort };

static void on_room(struct file_op *op)
{
	rest_upload_push(&of(op)->up);
}

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct writing *w = of(op);
	struct req *r = w->r;

	rest_upload_done(&w->up);
	struct json_out *o = rest_result(r, e);
	if (!o)
		return;
	rest_files_put(o, info, false);
	rest_send(r, created ? 201 : 200);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void on_unpacked(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct writing *w = of(op);
	struct req *r = w->r;

	rest_upload_done(&w->up);
	struct json_out *o = rest_result(r, e);
	if (!o)
		return;
	rest_files_put_sum(o, &op->sum);
	rest_send(r, 200);
}

static const struct file_ops unpack_ops = { .on_room = on_room, .done = on_unpacked };

static int start(struct req *r, struct writing *w, bool append, struct err *e)
{
	unsigned mode = 0;
	int archive = rest_files_archive(r, e);

	if (archive < 0 || rest_files_mode(rest_query(r, "mode"), &mode, e) < 0)
		return -1;
	if (archive && (mode || append))
		return err_set(e, ERR_INVALID, "an archive has modes of its own and cannot be appended");
	w->op.ops = archive ? &unpack_ops : &write_ops;
	return archive ? files_unpack(r->core, &r->actor, &w->place, &w->op, e)
		       : files_write(r->core, &r->actor, &w->place, mode, append, &w->op, e);
}

void rest_upload(struct req *r)
{
	struct err e = { 0 };
	struct writing *w;
	bool append;

	if (rest_query_flag(r, "append", &append) < 0)
		return;
	w = rest_own(r, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	rest_upload_init(&w->up, r->x, &w->op);
	r->on_gone = on_gone;
	r->x->ops = &upload_ops;
	if (rest_files_place(r, &w->place, &e) < 0 || start(r, w, append, &e) < 0)
		fail(w, &e);
}
