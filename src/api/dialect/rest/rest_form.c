/*
 * POST /v1/sandboxes/{id}/files/{dir} with multipart/form-data: every part that has a filename is written
 * below the directory, each as a PUT would. Other fields are passed over.
 */
#include "form.h"
#include "rest_files.h"
#include "poison.h"

struct files_form {
	struct form form;
	bool passed_over; /* a part without a filename */
	struct buf path, text;
	struct json_out out;
};

static void release(struct request *r)
{
	struct files_form *f = r->own;

	form_done(&f->form);
	buf_done(&f->path);
	buf_done(&f->text);
}

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

static int place(struct form *form, struct file_place *ret, struct err *e)
{
	struct files_form *f = CONTAINER(form, struct files_form, form);
	struct request *r = form->r;

	if (!form->parser.filename.p) {
		f->passed_over = true;
		return 0;
	}
	if (check_name(form->parser.filename, e) < 0)
		return -1;
	buf_clear(&f->path);
	buf_putc(&f->path, '/');
	buf_add(&f->path, r->params[1]);
	buf_putc(&f->path, '/');
	buf_add(&f->path, form->parser.filename);
	if (f->path.bad)
		return err_set(e, ERR_URI_TOO_LONG, "the path is too long");
	*ret = (struct file_place){ .box = r->params[0],
				    .path = buf_view(&f->path),
				    .user = request_query(r, "user") };
	return 1;
}

static void written(struct form *form, const struct file_info *info)
{
	rest_files_put(&CONTAINER(form, struct files_form, form)->out, info, false);
}

static void finish(struct form *form)
{
	struct files_form *f = CONTAINER(form, struct files_form, form);
	struct err e = { 0 };

	if (f->passed_over &&
	    form->n == 0) { /* a client that forgot the names must not take it for success */
		err_set(&e, ERR_INVALID, "the form has no part with a filename");
		answer_fail(form->r, &e);
		return;
	}
	json_out_end(&f->out, ']');
	json_out_end(&f->out, '}');
	struct buf answer = f->text;
	buf_init(&f->text, 0);
	answer_reply(form->r, 201, &answer);
}

static const struct form_ops ops = { .place = place, .written = written, .finish = finish };

static void post(struct request *r)
{
	struct files_form *f = request_own(r, sizeof(*f));

	if (!f)
		return;
	f->path = BUF_INIT(16 * 1024);
	f->text = BUF_INIT(ANSWER_MAX);
	json_out_init(&f->out, &f->text);
	json_out_object(&f->out);
	json_out_key(&f->out, "files");
	json_out_array(&f->out);
	r->release = release;
	form_start(&f->form, r, &ops);
}

const struct route rest_form_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/files/{path}", post, .body = ROUTE_STREAM, .query = "user" },
	{ 0 },
};
