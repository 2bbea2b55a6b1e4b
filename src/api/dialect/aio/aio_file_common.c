/*
 * Work on files: see aio_file.h.
 */
#include "aio_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "glob.h"
#include "text.h"
#include "poison.h"

#define PATH_ROOM 8192

/* ---- one request ---- */

static void release(struct request *r)
{
	struct aio_file *f = r->own;

	files_cancel(&f->op);
	if (f->also_release)
		f->also_release(f);
	buf_done(&f->bytes);
	answer_long_done(&f->answer);
}

void *aio_file_new(struct request *r, size_t size, const char *operation)
{
	struct aio_file *f = aio_own(r, size, release);

	if (!f)
		return NULL;
	f->r = r;
	f->operation = operation;
	f->bytes = BUF_INIT(AIO_FILE_MAX);
	return f;
}

struct view aio_file_join(struct buf *b, struct view dir, struct view name)
{
	buf_clear(b);
	buf_add(b, dir);
	if (name.n && dir.n && dir.p[dir.n - 1] != '/')
		buf_putc(b, '/');
	buf_add(b, name);
	return buf_view(b);
}

int aio_file_path(struct request *r, struct view given, struct view *ret, struct err *e)
{
	const struct box *box = boxes_by_id(r->core, view_of(r->box));
	struct buf b = BUF_INIT(PATH_ROOM);

	if (!box)
		return boxes_unknown(e);
	if (!given.n || memchr(given.p, 0, given.n))
		return err_set(e, ERR_INVALID, "the path must not be empty");
	if (given.p[0] == '/')
		buf_add(&b, given);
	else
		aio_file_join(&b, aio_workspace(box), given);
	*ret = b.bad ? VIEW_NONE : arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	return ret->p ? 0 : err_set(e, ERR_INVALID, "the path is too long");
}

int aio_file_at(struct aio_file *f, struct view path, bool sudo)
{
	const struct box *box = aio_box(f->r);
	struct err e = { 0 };

	if (!box)
		return -1;
	f->place = (struct file_place){ .box = view_of(f->r->box), .path = path };
	if (sudo && box->spec.no_sudo)
		err_sys(&e, ERR_FORBIDDEN, EPERM, "this sandbox has no sudo");
	else if (aio_file_path(f->r, path, &f->place.path, &e) >= 0) {
		f->place.user = sudo ? VIEW("root") : VIEW("");
		return 0;
	}
	aio_file_fail(f, &e);
	return -1;
}

/* An errno comes from the sandbox: then even "forbidden" is about the file and not about the caller. */
void aio_file_fail(struct aio_file *f, const struct err *e)
{
	int status = err_http(e->code);

	buf_done(&f->r->out); /* an answer that was begun */
	if (status >= 500 || ((status == 401 || status == 403) && !e->sys))
		answer_fail(f->r, e);
	else
		aio_refuse_file(f->r, f->place.path, f->operation, e);
}

void aio_file_refuse(struct aio_file *f, const char *fmt, ...)
{
	struct err e = { .code = ERR_INVALID };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
	va_end(ap);
	buf_done(&f->r->out);
	aio_refuse_file(f->r, f->place.path, f->operation, &e);
}

/* ---- reading all of it ---- */

static void too_large(struct aio_file *f)
{
	struct err e = { 0 };

	files_cancel(&f->op);
	f->is_too_large = true;
	err_set(&e, ERR_TOO_LARGE, "the file has more than %zu bytes", f->most);
	f->on_end(f, NULL, &e);
}

static void on_info(struct file_op *op, const struct file_info *info)
{
	struct aio_file *f = CONTAINER(op, struct aio_file, op);

	if (info->size > f->most)
		too_large(f);
}

static void on_data(struct file_op *op, struct view data)
{
	struct aio_file *f = CONTAINER(op, struct aio_file, op);

	if (buf_len(&f->bytes) + data.n > f->most || buf_add(&f->bytes, data) < 0) {
		too_large(f);
		return;
	}
	http_hold(f->r->x, f->bytes.cap + f->r->body.cap + f->r->arena.used);
	files_consumed(op, data.n);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct aio_file *f = CONTAINER(op, struct aio_file, op);
	f->on_end(f, info, e);
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_done };

void aio_file_read(struct aio_file *f, size_t most,
		   void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e))
{
	struct err e = { 0 };

	f->op = (struct file_op){ .ops = &read_ops };
	f->most = most;
	f->on_end = on_end;
	f->is_too_large = false;
	buf_clear(&f->bytes);
	if (files_read(f->r->core, &f->r->actor, &f->place, 0, 0, &f->op, &e) < 0)
		aio_file_fail(f, &e);
}

/* ---- writing ---- */

static void push(struct file_op *op)
{
	struct aio_file *f = CONTAINER(op, struct aio_file, op);

	f->left = view_skip(f->left, files_send(op, f->left));
	if (f->left.n == 0)
		files_end(op);
}

static const struct file_ops write_ops = { .on_room = push, .done = on_done };

void aio_file_write(struct aio_file *f, struct view bytes, bool append,
		    void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e))
{
	struct err e = { 0 };

	f->op = (struct file_op){ .ops = &write_ops };
	f->left = bytes;
	f->on_end = on_end;
	if (files_write(f->r->core, &f->r->actor, &f->place, 0, append, &f->op, &e) < 0)
		aio_file_fail(f, &e);
	else
		push(&f->op);
}

/* ---- answers ---- */

void aio_file_put_long(struct aio_file *f, const char *key, struct view text)
{
	struct request *r = f->r;

	assert(f->n_longs < AIO_FILE_LONGS);
	json_out_key(&r->json, key);
	json_out_raw(&r->json, VIEW("\"\""));
	f->longs[f->n_longs].at = buf_len(&r->out) - 1;
	f->longs[f->n_longs++].text = text;
}

void aio_file_send(struct aio_file *f)
{
	struct request *r = f->r;
	struct view text;
	size_t at = 0;

	json_out_end(&r->json, '}');
	text = buf_view(&r->out);
	for (size_t i = 0; i < f->n_longs; i++) {
		answer_long_add(&f->answer, ANSWER_LONG_TEXT,
				(struct view){ text.p + at, f->longs[i].at - at });
		answer_long_add(&f->answer, ANSWER_LONG_STRING, f->longs[i].text);
		at = f->longs[i].at;
	}
	answer_long_add(&f->answer, ANSWER_LONG_TEXT, view_skip(text, at));
	answer_long_send(&f->answer, r, 200);
}

/* ---- patterns ---- */

bool aio_file_is_among(const struct json_strlist *patterns, struct view path)
{
	for (size_t i = 0; i < patterns->n; i++)
		for (size_t n = 1; n <= path.n; n++)
			if ((n == path.n || path.p[n] == '/') &&
			    glob_match(patterns->items[i], view_head(path, n)))
				return true;
	return false;
}
