/*
 * WriteFile and ReadFile: text, in the roots that agentbox has.
 */
#include <errno.h>

#include "agentbox_gen.h"
#include "agentbox_impl.h"
#include "text.h"
#include "poison.h"

#define PATH_ROOM 4096
#define READ_MAX  (64u * 1024 * 1024)

/* ---- paths ---- */

/* In the root itself, or below it: "/workspace-evil" is neither. */
static bool is_in(struct view path, const char *root)
{
	size_t n = strlen(root);
	return view_starts(path, root) && (path.n == n || path.p[n] == '/');
}

struct view agentbox_path(struct request *r, struct view given, bool to_write)
{
	struct buf b = BUF_INIT(PATH_ROOM);
	struct view path = VIEW_NONE, rest = given;

	if (given.n && given.p[0] != '/')
		buf_puts(&b, AGENTBOX_ROOT "/");
	buf_add(&b, given);
	while (rest.p)
		if (view_is(view_split(rest, '/', &rest), ".."))
			goto out;
	if (!b.bad && given.n && !memchr(given.p, 0, given.n) &&
	    (is_in(buf_view(&b), AGENTBOX_ROOT) ||
	     is_in(buf_view(&b), to_write ? AGENTBOX_OUTPUTS : AGENTBOX_DATA)))
		path = arena_view(&r->arena, buf_view(&b));
out:
	buf_done(&b);
	return path;
}

/* ---- a file as a whole ---- */

static struct agentbox_file *of(struct file_op *op)
{
	return CONTAINER(op, struct agentbox_file, op);
}

static void push(struct file_op *op)
{
	struct agentbox_file *f = of(op);

	f->left = view_skip(f->left, files_send(op, f->left));
	if (f->left.n == 0)
		files_end(op);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct agentbox_file *f = of(op);
	f->done(f, e);
}

static const struct file_ops write_ops = { .on_room = push, .done = on_done };

int agentbox_file_write(struct agentbox_file *f, struct request *r, struct view box, struct view path,
			struct view bytes, bool append, struct err *e)
{
	static const struct view roots[] = { VIEW(AGENTBOX_ROOT), VIEW(AGENTBOX_OUTPUTS) };
	struct file_place place = { .box = box, .path = path, .within = roots, .n_within = ELEMS(roots) };

	f->r = r;
	f->op.ops = &write_ops;
	f->left = bytes;
	if (files_write(r->core, &r->actor, &place, 0, append, &f->op, e) < 0)
		return -1;
	push(&f->op);
	return 0;
}

static void on_info(struct file_op *op, const struct file_info *info)
{
}

static void on_data(struct file_op *op, struct view data)
{
	struct agentbox_file *f = of(op);

	if (buf_add(&f->bytes, data) < 0)
		f->too_large = true;
	http_hold(f->r->x, f->bytes.cap);
	files_consumed(op, data.n);
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_done };

int agentbox_file_read(struct agentbox_file *f, struct request *r, struct view box, struct view path,
		       struct err *e)
{
	static const struct view roots[] = { VIEW(AGENTBOX_ROOT), VIEW(AGENTBOX_DATA) };
	struct file_place place = { .box = box, .path = path, .within = roots, .n_within = ELEMS(roots) };

	f->r = r;
	f->op.ops = &read_ops;
	f->bytes = BUF_INIT(READ_MAX);
	return files_read(r->core, &r->actor, &place, 0, READ_MAX + 1, &f->op, e);
}

void agentbox_file_release(struct agentbox_file *f)
{
	files_cancel(&f->op);
	buf_done(&f->bytes);
}

/* ---- the calls ---- */

static void release(struct request *r)
{
	agentbox_file_release(r->own);
}

static const char *why(const struct err *e)
{
	return agentbox_no_session(e) ? AGENTBOX_NOT_FOUND : e->sys == EXDEV ? AGENTBOX_NOT_ALLOWED : e->msg;
}

static void say_write(struct request *r, const char *error)
{
	rpc_reply(r, &(struct agentbox_write_file_response){ .success = !error,
							     .has_error = error != NULL,
							     .error = view_of(error ? error : "") });
}

static void on_written(struct agentbox_file *f, const struct err *e)
{
	say_write(f->r, e ? why(e) : NULL);
}

static void write_file(struct request *r, const void *msg)
{
	const struct agentbox_write_file_request *q = msg;
	struct view path = agentbox_path(r, q->path, true);
	bool append = view_is(q->mode, "a");
	struct err e = { 0 };

	if (!path.p || (q->mode.n && !append && !view_is(q->mode, "w"))) {
		say_write(r, path.p ? "mode must be \"w\" or \"a\"" : AGENTBOX_NOT_ALLOWED);
		return;
	}
	struct agentbox_file *f = agentbox_own(r, sizeof(*f), release);
	if (!f)
		return;
	f->done = on_written;
	if (agentbox_file_write(f, r, q->session_id, path, q->content, append, &e) < 0)
		say_write(r, why(&e));
}

static void say_read(struct request *r, struct view content, const char *error)
{
	rpc_reply(r, &(struct agentbox_read_file_response){ .success = !error,
							    .has_content = !error,
							    .content = content,
							    .has_error = error != NULL,
							    .error = view_of(error ? error : "") });
}

static void on_read(struct agentbox_file *f, const struct err *e)
{
	struct view bytes = buf_view(&f->bytes);

	if (e)
		say_read(f->r, VIEW(""), why(e));
	else if (f->too_large)
		say_read(f->r, VIEW(""), "the file is larger than 64 MiB");
	else if (!text_is_utf8(bytes))
		say_read(f->r, VIEW(""), "the file is not UTF-8 text");
	else
		say_read(f->r, bytes, NULL);
}

static void read_file(struct request *r, const void *msg)
{
	const struct agentbox_read_file_request *q = msg;
	struct view path = agentbox_path(r, q->path, false);
	struct err e = { 0 };

	if (!path.p) {
		say_read(r, VIEW(""), AGENTBOX_NOT_ALLOWED);
		return;
	}
	struct agentbox_file *f = agentbox_own(r, sizeof(*f), release);
	if (!f)
		return;
	f->done = on_read;
	if (agentbox_file_read(f, r, q->session_id, path, &e) < 0)
		say_read(r, VIEW(""), why(&e));
}

const struct rpc_method agentbox_files_methods[] = {
	{ "/sandbox.v1.SandboxService/WriteFile", RPC_UNARY, &agentbox_write_file_request_msg,
	  &agentbox_write_file_response_msg, write_file },
	{ "/sandbox.v1.SandboxService/ReadFile", RPC_UNARY, &agentbox_read_file_request_msg,
	  &agentbox_read_file_response_msg, read_file },
	{ 0 },
};
