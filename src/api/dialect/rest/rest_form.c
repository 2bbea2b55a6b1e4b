/*
 * POST /v1/sandboxes/{id}/files/{dir} with multipart/form-data: every part that
 * has a filename is written below the directory, one after the other, each as a
 * PUT would. Other fields are passed over. The body is read only as fast as the
 * box takes the files.
 */
#include "multipart.h"
#include "rest_files.h"
#include "poison.h"

#define PIECE_MAX (4u * 1024 * 1024) /* of the body that waits; a piece of it at most */
#define FILES_MAX 10000

struct form {
	struct file_op op;
	struct request *r;
	struct multipart parser;
	bool writing; /* a file is open in the box */
	bool ending;  /* all of it is sent, and it is not answered yet */
	bool last;    /* the body is complete */
	unsigned n;
	bool passed_over;   /* a part without a filename */
	struct buf pending; /* for the box, which had no room */
	struct buf in;      /* of the body, behind that */
	struct buf path, text;
	struct json_out out;
};

static void release(struct form *f)
{
	multipart_done(&f->parser);
	buf_done(&f->pending);
	buf_done(&f->in);
	buf_done(&f->path);
	buf_done(&f->text);
}

static void on_gone(struct request *r)
{
	struct form *f = r->own;
	files_cancel(&f->op);
	release(f);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	on_gone(r);
	request_done(r);
}

static void fail(struct form *f, const struct err *e)
{
	struct request *r = f->r;
	struct err copy = *e;
	files_cancel(&f->op);
	release(f);
	answer_fail(r, &copy);
}

static void finish(struct form *f)
{
	struct request *r = f->r;
	struct err e = { 0 };
	if (!multipart_is_over(&f->parser)) {
		err_set(&e, ERR_INVALID, "the form is cut off");
		fail(f, &e);
		return;
	}
	if (f->passed_over && f->n == 0) { /* a client that forgot the names must not take it for success */
		err_set(&e, ERR_INVALID, "the form has no part with a filename");
		fail(f, &e);
		return;
	}
	json_out_end(&f->out, ']');
	json_out_end(&f->out, '}');
	struct buf answer = f->text;
	buf_init(&f->text, 0);
	release(f);
	answer_reply(r, 201, &answer);
}

/* ---- parts ---- */

/* Below the directory: relative, and no way up. */
static int check_name(struct view name, struct err *e)
{
	struct view rest = name;
	if (name.n == 0 || name.p[0] == '/' || name.p[name.n - 1] == '/' || memchr(name.p, 0, name.n))
		return err_set(e, ERR_INVALID, "a filename must be relative, and the name of a file");
	while (rest.p)
		if (view_is(view_split(rest, '/', &rest), ".."))
			return err_set(e, ERR_INVALID, "a filename must not go up");
	return 0;
}

static int begin_file(struct form *f, struct err *e)
{
	struct request *r = f->r;
	if (check_name(f->parser.filename, e) < 0)
		return -1;
	if (++f->n > FILES_MAX)
		return err_set(e, ERR_TOO_LARGE, "a form has at most %d files", FILES_MAX);
	buf_clear(&f->path);
	buf_putc(&f->path, '/');
	buf_add(&f->path, r->params[1]);
	buf_putc(&f->path, '/');
	buf_add(&f->path, f->parser.filename);
	if (f->path.bad)
		return err_set(e, ERR_URI_TOO_LONG, "the path is too long");
	struct file_place p = { .box = r->params[0],
				.path = buf_view(&f->path),
				.user = request_query(r, "user") };
	if (files_write(r->core, &r->actor, &p, 0, false, &f->op, e) < 0)
		return -1;
	f->writing = true;
	return 0;
}

static int send_data(struct form *f, struct view data, struct err *e)
{
	if (!f->writing)
		return 0; /* of a field that is no file */
	data = view_skip(data, files_send(&f->op, data));
	if (buf_add(&f->pending, data) < 0)
		return err_set(e, ERR_INTERNAL, "the body comes in pieces that are too large");
	return 0;
}

static int take(struct form *f, int event, struct err *e)
{
	if (event == MULTIPART_PART && f->parser.filename.p)
		return begin_file(f, e);
	f->passed_over |= event == MULTIPART_PART;
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
			fail(f, &e);
			return false;
		}
	}
	return true;
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
		fail(f, e);
		return;
	}
	rest_files_put(&f->out, info, false);
	go_on(f);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct form *f = ((struct request *)x->ctx)->own;
	struct err e = { 0 };
	f->last = last;
	if (buf_len(&f->in) == 0 && !parse(f, &data))
		return;
	if (buf_add(&f->in, data) < 0) {
		err_set(&e, ERR_INTERNAL, "the body comes in pieces that are too large");
		fail(f, &e);
		return;
	}
	if (is_waiting(f) || buf_len(&f->in))
		http_body_pause(x);
	else if (last)
		finish(f);
}

static const struct http_ops form_ops = { .on_body = on_body, .on_abort = on_abort };

static void post(struct request *r)
{
	struct err e = { 0 };
	struct form *f = request_own(r, sizeof(*f));
	if (!f)
		return;
	f->r = r;
	f->op.ops = &write_ops;
	f->pending = BUF_INIT(PIECE_MAX);
	f->in = BUF_INIT(PIECE_MAX);
	f->path = BUF_INIT(16 * 1024);
	f->text = BUF_INIT(ANSWER_MAX);
	json_out_init(&f->out, &f->text);
	json_out_object(&f->out);
	json_out_key(&f->out, "files");
	json_out_array(&f->out);
	r->on_gone = on_gone;
	r->x->ops = &form_ops;
	if (multipart_init(&f->parser, http_get_header(r->x, "content-type")) < 0) {
		err_set(&e, ERR_MEDIA_TYPE, "the body must be multipart/form-data with a boundary");
		fail(f, &e);
	}
}

const struct route rest_form_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/files/{path}", post, .body = ROUTE_STREAM, .query = "user" },
	{ 0 },
};
