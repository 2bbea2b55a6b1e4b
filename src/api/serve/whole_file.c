/*
 * A file as a whole: see whole_file.h.
 */
#include "whole_file.h"

#include "poison.h"

static struct whole_file *of(struct file_op *op)
{
	return CONTAINER(op, struct whole_file, op);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	of(op)->done(of(op), info, e);
}

/* ---- reading ---- */

static void too_large(struct whole_file *f)
{
	struct err e = { 0 };

	files_cancel(&f->op);
	f->too_large = true;
	err_set(&e, ERR_TOO_LARGE, "the file has more than %zu bytes", f->most);
	f->done(f, NULL, &e);
}

static void on_info(struct file_op *op, const struct file_info *info)
{
	if (info->size > of(op)->most)
		too_large(of(op));
}

static void on_data(struct file_op *op, struct view data)
{
	struct whole_file *f = of(op);
	struct err e = { 0 };

	if (request_may_hold(f->r, &e) < 0) {
		files_cancel(op);
		f->done(f, NULL, &e);
		return;
	}
	if (buf_len(&f->bytes) + data.n > f->most || buf_add(&f->bytes, data) < 0) {
		too_large(f);
		return;
	}
	http_hold(f->r->x, f->bytes.cap + f->r->body.cap + f->r->arena.used);
	files_consumed(op, data.n);
}

int whole_file_read(struct whole_file *f, struct request *r, const struct file_place *p, size_t most,
		    struct err *e)
{
	static const struct file_ops ops = { .on_info = on_info, .on_data = on_data, .done = on_done };

	f->r = r;
	f->most = most;
	f->too_large = false;
	f->op = (struct file_op){ .ops = &ops };
	if (f->bytes.max != most) {
		buf_done(&f->bytes);
		f->bytes = BUF_INIT(most);
	}
	buf_clear(&f->bytes);
	return files_read(r->core, &r->actor, p, 0, 0, &f->op, e);
}

/* ---- writing ---- */

static void push(struct file_op *op)
{
	struct whole_file *f = of(op);

	f->left = view_skip(f->left, files_send(op, f->left));
	if (f->left.n == 0)
		files_end(op);
}

int whole_file_write(struct whole_file *f, struct request *r, const struct file_place *p, struct view bytes,
		     bool append, struct err *e)
{
	static const struct file_ops ops = { .on_room = push, .done = on_done };

	f->r = r;
	f->op = (struct file_op){ .ops = &ops };
	f->left = bytes;
	if (files_write(r->core, &r->actor, p, 0, append, &f->op, e) < 0)
		return -1;
	push(&f->op);
	return 0;
}

void whole_file_release(struct whole_file *f)
{
	files_cancel(&f->op);
	buf_done(&f->bytes);
}
