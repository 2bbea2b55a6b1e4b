/*
 * /v1/file/upload and download: bytes of any size, as fast as the other side takes them.
 */
#include <errno.h>
#include <stdio.h>

#include "aio_file.h"
#include "answer_file.h"
#include "form.h"
#include "rnd.h"
#include "poison.h"

/* ---- upload ---- */

/* The form says where the file goes in `path`. Where that comes behind the file, the file has another name
 * until then. */
struct upload {
	struct form form;
	struct file_op move;
	struct buf path; /* the field */
	bool in_path, has_path, is_aside;
	struct view name, target, aside;
	uint64_t size;
	struct err why;
};

static void release_upload(struct request *r)
{
	struct upload *u = r->own;

	form_done(&u->form);
	files_cancel(&u->move);
	buf_done(&u->path);
}

static void refuse_upload(struct upload *u, const struct err *e)
{
	struct request *r = u->form.r;
	int status = err_http(e->code);

	if ((e->code == ERR_INVALID && !e->sys) || e->code == ERR_MEDIA_TYPE)
		aio_unprocessable(r, "file", e->msg);
	else if (status >= 500 || status == 413 || (status == 403 && !e->sys))
		answer_fail(r, e);
	else
		aio_refuse_file(r, u->target.p ? u->target : VIEW(""), "upload", e);
}

static void on_field(struct form *f, struct view data)
{
	struct upload *u = CONTAINER(f, struct upload, form);

	if (u->in_path)
		buf_add(&u->path, data);
}

/* A path that ends with a slash is a directory; without one the file goes to the workspace. */
static int find_target(struct upload *u, struct err *e)
{
	struct view path = buf_view(&u->path);
	struct buf b = BUF_INIT(8192);
	bool is_dir = path.n && path.p[path.n - 1] == '/';

	if (u->path.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	aio_file_join(&b, path.n ? path : u->name, is_dir ? u->name : VIEW(""));
	int done = aio_file_path(u->form.r, buf_view(&b), &u->target, e);
	buf_done(&b);
	return done;
}

static int place(struct form *f, struct file_place *ret, struct err *e)
{
	struct upload *u = CONTAINER(f, struct upload, form);
	char random[17];
	struct buf b = BUF_INIT(8192);

	u->in_path = view_is(f->parser.name, "path") && !f->parser.filename.p;
	u->has_path |= u->in_path;
	if (!view_is(f->parser.name, "file"))
		return 0;
	u->name = form_base_name(f->parser.filename);
	if (!f->parser.filename.p || !u->name.p)
		return err_set(e, ERR_INVALID, "file has no filename");
	if (f->n)
		return err_set(e, ERR_INVALID, "an upload has one file");
	u->name = arena_view(f->r->x->arena, u->name);
	if (find_target(u, e) < 0)
		return -1;
	*ret = (struct file_place){ .box = view_of(f->r->box), .path = u->target };
	if (u->has_path)
		return 1;
	u->is_aside = true;
	rnd_name(random, 16);
	buf_printf(&b, "/tmp/.upload-%s", random);
	u->aside = ret->path = arena_view(f->r->x->arena, buf_view(&b));
	buf_done(&b);
	return 1;
}

static void on_uploaded(struct form *f, const struct file_info *info)
{
	CONTAINER(f, struct upload, form)->size = info->size;
}

static void send_uploaded(struct upload *u)
{
	struct json_out *o = aio_data(u->form.r, "File uploaded successfully");

	json_out_object(o);
	json_out_kstr(o, "file_path", u->target);
	json_out_ku64(o, "file_size", u->size);
	json_out_kbool(o, "success", true);
	json_out_end(o, '}');
	aio_send(u->form.r);
}

static void on_aside_removed(struct file_op *op, const struct file_info *info, bool created,
			     const struct err *e)
{
	struct upload *u = CONTAINER(op, struct upload, move);
	refuse_upload(u, &u->why);
}

static const struct file_ops remove_ops = { .done = on_aside_removed };

static void drop_aside(struct upload *u, const struct err *why)
{
	struct request *r = u->form.r;
	struct file_place p = { .box = view_of(r->box), .path = u->aside };
	struct err e = { 0 };

	u->why = *why;
	u->move = (struct file_op){ .ops = &remove_ops };
	if (files_remove(r->core, &r->actor, &p, false, &u->move, &e) < 0)
		refuse_upload(u, why);
}

static void on_form_failed(struct form *f, const struct err *e)
{
	struct upload *u = CONTAINER(f, struct upload, form);

	if (u->is_aside && !f->writing)
		drop_aside(u, e);
	else
		refuse_upload(u, e);
}

static void on_moved(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct upload *u = CONTAINER(op, struct upload, move);

	if (e)
		drop_aside(u, e);
	else
		send_uploaded(u);
}

static const struct file_ops move_ops = { .done = on_moved };

static void finish(struct form *f)
{
	struct upload *u = CONTAINER(f, struct upload, form);
	struct file_place p = { .box = view_of(f->r->box), .path = u->aside };
	struct err e = { 0 };

	if (!f->n) {
		aio_unprocessable(f->r, "file", "file is needed");
		return;
	}
	if (!u->is_aside) {
		send_uploaded(u);
		return;
	}
	u->move = (struct file_op){ .ops = &move_ops };
	if (find_target(u, &e) < 0 ||
	    files_move(f->r->core, &f->r->actor, &p, u->target, true, &u->move, &e) < 0)
		drop_aside(u, &e);
}

static const struct form_ops upload_ops = {
	.place = place, .written = on_uploaded, .field = on_field, .fail = on_form_failed, .finish = finish
};

static void upload(struct request *r)
{
	struct upload *u = aio_own(r, sizeof(*u), release_upload);

	if (!u)
		return;
	u->path = BUF_INIT(4095);
	form_start(&u->form, r, &upload_ops);
}

/* ---- download ---- */

#define WHOLE_MAX (4u * 1024 * 1024) /* with `abort`, a file of this size is checked before it is sent */

struct state {
	uint64_t size;
	int64_t mtime_ms, ctime_ms;
};

struct download_work {
	struct aio_file f;
	struct file_op probe;
	struct state first, last;
	bool begun;
	size_t held;
};

static void release_probe(struct aio_file *f)
{
	files_cancel(&CONTAINER(f, struct download_work, f)->probe);
}

static void fail_download(struct download_work *d, const struct err *e)
{
	struct request *r = d->f.r;

	if (!d->begun && e->code == ERR_INVALID) {
		aio_unprocessable(r, "path", e->msg);
		return;
	}
	if (!d->begun) {
		aio_refuse_bytes(r, err_http(e->code), e->msg);
		return;
	}
	http_break(r->x);
	request_done(r);
}

static struct state state_of(const struct file_info *info)
{
	return (struct state){ info->size, info->mtime_ms, info->ctime_ms };
}

static bool is_same(const struct state *a, const struct state *b)
{
	return a->size == b->size && a->mtime_ms == b->mtime_ms && a->ctime_ms == b->ctime_ms;
}

/* The file's state is asked for by reading one byte, which follows links as the download does. */
static void on_probe_data(struct file_op *op, struct view data)
{
	files_consumed(op, data.n);
}

static void send_checked(struct download_work *d)
{
	static const struct http_header plain = { VIEW("x-content-type-options"), VIEW("nosniff") };
	struct request *r = d->f.r;
	struct err e = { 0 };

	if (!is_same(&d->first, &d->last)) {
		err_set(&e, ERR_CONFLICT, "the file has changed while it was read");
		fail_download(d, &e);
		return;
	}
	if (!d->begun) {
		struct view all = buf_view(&d->f.whole.bytes);
		http_begin(r->x, 200, "application/octet-stream", (int64_t)all.n, &plain, 1);
		(void)http_write(r->x, all);
	}
	http_end(r->x);
	request_done(r);
}

static void on_last_info(struct file_op *op, const struct file_info *info)
{
	CONTAINER(op, struct download_work, probe)->last = state_of(info);
}

static void on_last(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct download_work *d = CONTAINER(op, struct download_work, probe);
	struct err changed = { 0 };

	if (!e) {
		send_checked(d);
		return;
	}
	err_set(&changed, ERR_CONFLICT, "the file has changed while it was read");
	fail_download(d, &changed);
}

static const struct file_ops last_ops = { .on_info = on_last_info,
					  .on_data = on_probe_data,
					  .done = on_last };

static void on_guarded_info(struct file_op *op, const struct file_info *info)
{
	static const struct http_header plain = { VIEW("x-content-type-options"), VIEW("nosniff") };
	struct download_work *d = CONTAINER(op, struct download_work, f.op);

	d->first = state_of(info);
	if (info->size <= WHOLE_MAX)
		return;
	d->begun = true;
	/* Of no known length: without its end it is seen to be broken. */
	http_begin(d->f.r->x, 200, "application/octet-stream", -1, &plain, 1);
}

static void on_guarded_data(struct file_op *op, struct view data)
{
	struct download_work *d = CONTAINER(op, struct download_work, f.op);
	struct err e = { 0 };

	if (d->begun && !http_write(d->f.r->x, data)) {
		d->held += data.n;
		return;
	}
	if (!d->begun && buf_add(&d->f.whole.bytes, data) < 0) {
		files_cancel(op);
		err_set(&e, ERR_CONFLICT, "the file has grown while it was read");
		fail_download(d, &e);
		return;
	}
	if (!d->begun)
		http_hold(d->f.r->x, d->f.whole.bytes.cap);
	files_consumed(op, data.n);
}

static void on_guarded(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct download_work *d = CONTAINER(op, struct download_work, f.op);
	struct request *r = d->f.r;
	struct err mine = { 0 };

	if (e) {
		fail_download(d, e);
		return;
	}
	d->probe.ops = &last_ops;
	if (files_read(r->core, &r->actor, &d->f.place, 0, 1, &d->probe, &mine) < 0)
		fail_download(d, &mine);
}

static const struct file_ops guarded_ops = { .on_info = on_guarded_info,
					     .on_data = on_guarded_data,
					     .done = on_guarded };

static void on_writable(struct http_exchange *x)
{
	struct download_work *d = ((struct request *)x->ctx)->own;
	size_t n = d->held;

	d->held = 0;
	files_consumed(&d->f.op, n);
}

static const struct http_ops guarded_http = { .on_body = request_drop_body,
					      .on_abort = request_abort,
					      .on_writable = on_writable };

/* ---- download without a guard: it is looked at first, for the status of what is wrong ---- */

static void on_seen_info(struct file_op *op, const struct file_info *info)
{
}

static void on_seen(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct download_work *d = CONTAINER(op, struct download_work, probe);
	struct request *r = d->f.r;

	if (e) {
		fail_download(d, e);
		return;
	}
	struct file_place *p = arena_alloc(r->x->arena, sizeof(*p));
	if (!p) {
		struct err mine = { 0 };
		err_sys(&mine, ERR_INTERNAL, ENOMEM, "download");
		fail_download(d, &mine);
		return;
	}
	*p = d->f.place;
	r->release(r);
	r->release = NULL;
	answer_file(r, p);
}

static const struct file_ops seen_ops = { .on_info = on_seen_info,
					  .on_data = on_probe_data,
					  .done = on_seen };

static int start_download(struct download_work *d, bool is_guarded, struct err *e)
{
	struct request *r = d->f.r;

	if (!is_guarded) {
		d->probe.ops = &seen_ops;
		return files_read(r->core, &r->actor, &d->f.place, 0, 1, &d->probe, e);
	}
	r->x->ops = &guarded_http;
	d->f.op.ops = &guarded_ops;
	return files_read(r->core, &r->actor, &d->f.place, 0, 0, &d->f.op, e);
}

static void download(struct request *r)
{
	struct view path = request_query(r, "path"), policy = request_query(r, "change_policy");
	struct download_work *d = aio_file_new(r, sizeof(*d), "download");
	struct err e = { 0 };

	if (!d)
		return;
	d->f.also_release = release_probe;
	if (policy.p && !view_is(policy, "ignore") && !view_is(policy, "abort")) {
		aio_unprocessable(r, "change_policy", "change_policy must be ignore or abort");
		return;
	}
	if (!path.n) {
		aio_unprocessable(r, "path", "path is needed");
		return;
	}
	d->f.place.box = view_of(r->box);
	if (aio_file_path(r, path, &d->f.place.path, &e) < 0 ||
	    start_download(d, view_is(policy, "abort"), &e) < 0)
		fail_download(d, &e);
}

const struct route aio_transfer_routes[] = {
	{ "POST", "/v1/file/upload", upload, .body = ROUTE_STREAM, .query = "api_key" },
	{ "GET", "/v1/file/download", download, .query = "path change_policy api_key ticket" },
	{ 0 },
};
