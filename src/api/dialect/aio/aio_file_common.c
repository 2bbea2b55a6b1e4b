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
	whole_file_release(&f->whole);
}

void *aio_file_new(struct request *r, size_t size, const char *operation)
{
	struct aio_file *f = aio_own(r, size, release);

	if (!f)
		return NULL;
	f->r = r;
	f->operation = operation;
	f->whole.bytes = BUF_INIT(AIO_FILE_MAX);
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

/* ---- all of it ---- */

static void on_whole(struct whole_file *whole, const struct file_info *info, const struct err *e)
{
	struct aio_file *f = CONTAINER(whole, struct aio_file, whole);
	f->on_end(f, info, e);
}

void aio_file_read(struct aio_file *f, size_t most,
		   void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e))
{
	struct err e = { 0 };

	f->on_end = on_end;
	f->whole.done = on_whole;
	if (whole_file_read(&f->whole, f->r, &f->place, most, &e) < 0)
		aio_file_fail(f, &e);
}

void aio_file_write(struct aio_file *f, struct view bytes, bool append,
		    void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e))
{
	struct err e = { 0 };

	f->on_end = on_end;
	f->whole.done = on_whole;
	if (whole_file_write(&f->whole, f->r, &f->place, bytes, append, &e) < 0)
		aio_file_fail(f, &e);
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
