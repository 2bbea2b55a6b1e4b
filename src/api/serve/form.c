/*
 * Forms: see form.h.
 */
#include "form.h"

#include "poison.h"

#define PIECE_MAX (4u * 1024 * 1024) /* of the body that waits; a piece of it at most */
#define FILES_MAX 10000

void form_done(struct form *f)
{
	files_cancel(&f->op);
	if (f->has_parser)
		multipart_done(&f->parser);
	buf_done(&f->pending);
	buf_done(&f->in);
}

struct view form_base_name(struct view filename)
{
	struct view last = filename;

	while (filename.p)
		last = view_split(filename, '/', &filename);
	return !last.n || view_is(last, ".") || view_is(last, "..") || memchr(last.p, 0, last.n) ? VIEW_NONE
												 : last;
}

static void refuse(struct form *f, const struct err *e)
{
	if (f->ops->fail)
		f->ops->fail(f, e);
	else
		answer_fail(f->r, e);
}

/* ---- parts ---- */

static int begin_part(struct form *f, struct err *e)
{
	struct file_place place;
	int r = f->ops->place(f, &place, e);

	if (r <= 0)
		return r;
	if (++f->n > FILES_MAX)
		return err_set(e, ERR_TOO_LARGE, "a form has at most %d files", FILES_MAX);
	if (files_write(f->r->core, &f->r->actor, &place, 0, false, &f->op, e) < 0)
		return -1;
	f->writing = true;
	return 0;
}

static int send_data(struct form *f, struct view data, struct err *e)
{
	if (!f->writing) {
		if (f->ops->field)
			f->ops->field(f, data);
		return 0;
	}
	data = view_skip(data, files_send(&f->op, data));
	if (buf_add(&f->pending, data) < 0)
		return err_set(e, ERR_INTERNAL, "the body comes in pieces that are too large");
	return 0;
}

static int take(struct form *f, int event, struct err *e)
{
	if (event == MULTIPART_PART)
		return begin_part(f, e);
	if (event == MULTIPART_DATA)
		return send_data(f, f->parser.data, e);
	if (event == MULTIPART_PART_END && f->writing) {
		f->ending = true;
		files_end(&f->op);
	}
	return 0;
}

static bool is_waiting(const struct form *f)
{
	return f->ending || buf_len(&f->pending);
}

/* As far as the box takes it. False: the answer is sent. */
static bool parse(struct form *f, struct view *in)
{
	struct err e = { 0 };

	while (in->n && !is_waiting(f)) {
		int r = multipart_next(&f->parser, in);
		if (r < 0)
			err_set(&e, ERR_INVALID, "the form has %s",
				f->parser.why ? f->parser.why : "too much");
		if (r < 0 || take(f, r, &e) < 0) {
			refuse(f, &e);
			return false;
		}
	}
	return true;
}

static void finish(struct form *f)
{
	struct err e = { 0 };

	if (multipart_is_over(&f->parser)) {
		f->ops->finish(f);
		return;
	}
	err_set(&e, ERR_INVALID, "the form is cut off");
	refuse(f, &e);
}

/* The box has room again, or has written a file. */
static void go_on(struct form *f)
{
	if (buf_len(&f->pending) && f->writing)
		buf_consume(&f->pending, files_send(&f->op, buf_view(&f->pending)));
	struct view in = buf_view(&f->in);
	size_t n = in.n;
	if (!parse(f, &in))
		return;
	buf_consume(&f->in, n - in.n);
	if (is_waiting(f) || buf_len(&f->in))
		return;
	if (f->last)
		finish(f);
	else
		http_body_resume(f->r->x);
}

static void on_room(struct file_op *op)
{
	go_on(CONTAINER(op, struct form, op));
}

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct form *f = CONTAINER(op, struct form, op);

	f->writing = f->ending = false;
	if (e) {
		refuse(f, e);
		return;
	}
	if (f->ops->written)
		f->ops->written(f, info);
	go_on(f);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct form *f = ((struct request *)x->ctx)->own;
	struct err e = { 0 };

	f->last = last;
	f->bytes += data.n;
	if (f->most && f->bytes > f->most)
		err_set(&e, ERR_TOO_LARGE, "the body is larger than %llu bytes", (unsigned long long)f->most);
	else if (buf_len(&f->in) == 0 && !parse(f, &data))
		return;
	else if (buf_add(&f->in, data) < 0)
		err_set(&e, ERR_INTERNAL, "the body comes in pieces that are too large");
	if (e.code)
		refuse(f, &e);
	else if (is_waiting(f) || buf_len(&f->in))
		http_body_pause(x);
	else if (last)
		finish(f);
}

static const struct http_ops body_ops = { .on_body = on_body, .on_abort = request_abort };

void form_start(struct form *f, struct request *r, const struct form_ops *ops)
{
	struct err e = { 0 };

	f->r = r;
	f->ops = ops;
	f->op.ops = &write_ops;
	f->pending = BUF_INIT(PIECE_MAX);
	f->in = BUF_INIT(PIECE_MAX);
	r->x->ops = &body_ops;
	f->has_parser = multipart_init(&f->parser, http_get_header(r->x, "content-type")) >= 0;
	if (f->has_parser)
		return;
	err_set(&e, ERR_MEDIA_TYPE, "the body must be multipart/form-data with a boundary");
	refuse(f, &e);
}
