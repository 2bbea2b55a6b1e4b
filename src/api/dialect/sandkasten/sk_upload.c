/*
 * …/fs/upload: a form with files (`file` or `files`) and the directory they go to (`path`, wherever in the
 * form it stands). The form is held as a whole, so it has a size that a client can rely on.
 */
#include <errno.h>

#include "multipart.h"
#include "sk_impl.h"
#include "poison.h"

#define UPLOAD_MAX   (10u * 1024 * 1024)
#define UPLOAD_EXTRA (256u * 1024) /* heads of parts */
#define FILES_MAX    100

struct part {
	struct view name; /* of the file */
	struct buf bytes;
};

struct form {
	struct sk_place place;
	struct whole_file write;
	struct request *r;
	struct part parts[FILES_MAX];
	size_t n, at;
	struct buf directory;
};

static void release(struct request *r)
{
	struct form *f = r->own;

	whole_file_release(&f->write);
	for (size_t i = 0; i < f->n; i++)
		buf_done(&f->parts[i].bytes);
	buf_done(&f->directory);
}

/* ---- reading it ---- */

/* The last part of a path: some clients send what they opened. */
static struct view base_name(struct view name)
{
	struct view last = name;

	while (name.p)
		last = view_split(name, '/', &name);
	return last;
}

static int add_part(struct form *f, const struct multipart *m, struct buf **ret, struct err *e)
{
	*ret = NULL;
	if (view_is(m->name, "path") && !m->filename.p) {
		*ret = &f->directory;
		return 0;
	}
	if (!view_is(m->name, "file") && !view_is(m->name, "files"))
		return 0; /* another field */
	struct view name = base_name(m->filename);
	if (!name.n || view_is(name, ".") || view_is(name, ".."))
		return err_set(e, ERR_INVALID, "a file of the form has no filename");
	if (f->n == FILES_MAX)
		return err_set(e, ERR_INVALID, "a form has at most %d files", FILES_MAX);
	struct part *p = &f->parts[f->n++];
	p->name = arena_view(f->r->x->arena, name);
	p->bytes = BUF_INIT(UPLOAD_MAX);
	*ret = &p->bytes;
	return p->name.p ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "form");
}

static int take(struct form *f, struct multipart *m, struct view in, struct err *e)
{
	struct buf *into = NULL;

	while (in.n) {
		int event = multipart_next(m, &in);
		if (event < 0)
			return err_set(e, ERR_INVALID, "the form has %s", m->why ? m->why : "too much");
		if (event == MULTIPART_PART && add_part(f, m, &into, e) < 0)
			return -1;
		if (event == MULTIPART_DATA && into && buf_add(into, m->data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the form holds more than %u bytes", UPLOAD_MAX);
		if (event == MULTIPART_END)
			break;
	}
	if (!multipart_is_over(m))
		return err_set(e, ERR_INVALID, "the form is cut off");
	return f->n ? 0 : err_set(e, ERR_INVALID, "the form has no file");
}

static int read_form(struct form *f, struct err *e)
{
	struct multipart m;
	int done;

	if (multipart_init(&m, http_get_header(f->r->x, "content-type")) < 0)
		return err_set(e, ERR_INVALID, "the body must be multipart/form-data with a boundary");
	done = take(f, &m, buf_view(&f->r->body), e);
	multipart_done(&m);
	return done;
}

/* ---- writing them, one after the other ---- */

static int set_path(struct form *f, struct err *e)
{
	struct buf b = BUF_INIT(SK_PATH_ROOM);
	struct view directory = buf_len(&f->directory) ? buf_view(&f->directory) : VIEW(SK_ROOT);
	int done = -1;

	buf_add(&b, directory);
	buf_putc(&b, '/');
	buf_add(&b, f->parts[f->at].name);
	if (b.bad)
		err_set(e, ERR_INVALID, "path is too long");
	else
		done = sk_path(f->r, buf_view(&b), &f->place.path, e);
	buf_done(&b);
	return done;
}

static void write_next(struct request *r)
{
	struct form *f = r->own;
	struct err e = { 0 };

	if (set_path(f, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct file_place place = sk_file_place(&f->place);
	if (whole_file_write(&f->write, r, &place, buf_view(&f->parts[f->at].bytes), false, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	f->parts[f->at].name = f->place.path;
}

static void on_written(struct whole_file *w, const struct file_info *info, const struct err *e)
{
	struct form *f = CONTAINER(w, struct form, write);
	struct request *r = f->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	if (++f->at < f->n) {
		write_next(r);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "ok", true);
	json_out_key(o, "paths");
	json_out_array(o);
	for (size_t i = 0; i < f->n; i++)
		json_out_str(o, f->parts[i].name);
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void upload(struct request *r)
{
	struct form *f = request_own(r, sizeof(*f));
	struct err e = { 0 };

	if (!f)
		return;
	f->r = r;
	f->directory = BUF_INIT(SK_PATH_ROOM);
	f->write.done = on_written;
	r->release = release;
	/* A bad directory is refused before anything is written. */
	if (read_form(f, &e) < 0 || set_path(f, &e) < 0)
		answer_fail(r, &e);
	else
		sk_with_files(r, &f->place, ACT_WORKSPACE_WRITE, write_next);
}

const struct route sk_upload_routes[] = {
	{ "POST", "/v1/sessions/{id}/fs/upload", upload, .body = ROUTE_WHOLE,
	  .body_max = UPLOAD_MAX + UPLOAD_EXTRA },
	{ "POST", "/v1/workspaces/{id}/fs/upload", upload, .body = ROUTE_WHOLE,
	  .body_max = UPLOAD_MAX + UPLOAD_EXTRA },
	{ 0 },
};
