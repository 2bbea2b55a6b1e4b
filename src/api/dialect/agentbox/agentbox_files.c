/*
 * WriteFile and ReadFile: text, in the roots that agentbox has.
 */
#include <errno.h>

#include "agentbox_gen.h"
#include "agentbox_impl.h"
#include "rpc_long.h"
#include "poison.h"

#define PATH_ROOM 4096

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

struct file_place agentbox_place(struct view box, struct view path, bool to_write)
{
	static const struct view roots[] = { VIEW(AGENTBOX_ROOT), VIEW(AGENTBOX_OUTPUTS) },
				 read_roots[] = { VIEW(AGENTBOX_ROOT), VIEW(AGENTBOX_DATA) };

	return (struct file_place){
		.box = box, .path = path, .within = to_write ? roots : read_roots, .n_within = ELEMS(roots)
	};
}

/* ---- the calls ---- */

const char *agentbox_read_error(const struct file_text *f, const struct err *e)
{
	return f->too_large ? "the file is larger than 64 MiB" : e ? e->msg : NULL;
}

static void release(struct request *r)
{
	whole_file_release(r->own);
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

static void on_written(struct whole_file *f, const struct file_info *info, const struct err *e)
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
	struct whole_file *f = agentbox_own(r, sizeof(*f), release);
	if (!f)
		return;
	struct file_place place = agentbox_place(q->session_id, path, true);
	f->done = on_written;
	if (whole_file_write(f, r, &place, q->content, append, &e) < 0)
		say_write(r, why(&e));
}

static void say_unread(struct request *r, const char *error)
{
	rpc_reply(r, &(struct agentbox_read_file_response){ .has_error = true, .error = view_of(error) });
}

static void release_read(struct request *r)
{
	file_text_release(r->own);
}

static void on_read(struct file_text *f, const struct err *e)
{
	const struct rpc_content content = { "content", &f->source, f->n, f->escaped };

	if (e)
		say_unread(f->r, f->too_large ? agentbox_read_error(f, e) : why(e));
	else if (!f->is_text)
		say_unread(f->r, "the file is not UTF-8 text");
	else
		rpc_reply_from(f->r, &(struct agentbox_read_file_response){ .success = true }, &content);
}

static void read_file(struct request *r, const void *msg)
{
	const struct agentbox_read_file_request *q = msg;
	struct view path = agentbox_path(r, q->path, false);
	struct err e = { 0 };

	if (!path.p) {
		say_unread(r, AGENTBOX_NOT_ALLOWED);
		return;
	}
	struct file_text *f = agentbox_own(r, sizeof(*f), release_read);
	if (!f)
		return;
	struct file_place place = agentbox_place(q->session_id, path, false);
	f->done = on_read;
	f->measure = true;
	if (file_text_read(f, r, &place, AGENTBOX_READ_MAX, &e) < 0)
		say_unread(r, why(&e));
}

const struct rpc_method agentbox_files_methods[] = {
	{ "/sandbox.v1.SandboxService/WriteFile", RPC_UNARY, &agentbox_write_file_request_msg,
	  &agentbox_write_file_response_msg, write_file },
	{ "/sandbox.v1.SandboxService/ReadFile", RPC_UNARY, &agentbox_read_file_request_msg,
	  &agentbox_read_file_response_msg, read_file },
	{ 0 },
};
