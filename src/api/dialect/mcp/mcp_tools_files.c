/*
 * The tools that read, write and edit a file. PID 1 of the sandbox does the work.
 */
#include "file.h"
#include "mcp_tools.h"
#include "run.h"
#include "text.h"
#include "poison.h"

#define FILE_MAX  (16u * 1024 * 1024)
#define IMAGE_MAX (4u * 1024 * 1024) /* in a result; larger ones are links */

/* The arguments of all three, and what is under way. */
struct work {
	struct mcp_args head;
	struct view path, user, content, encoding, old, new;
	uint64_t offset, limit;
	bool append, all, create;
	struct file_op op;
	struct mcp_call *call;
	struct buf bytes, changed;
	struct output count; /* of them, with the tenant's */
	uint64_t replaced, size;
};

#define AT(f) .offset = offsetof(struct work, f)
#define PATH                                                                                                 \
	{                                                                                                    \
		"path", JSON_F_STRING, AT(path), .min = 1, .max = 4095, .required = true                     \
	}
#define USER                                                                                                 \
	{                                                                                                    \
		"user", JSON_F_STRING, AT(user), .min = 1, .nullable = true                                  \
	}
static const struct json_field read_fields[] = {
	MCP_TOOLS_SANDBOX,
	PATH,
	USER,
	{ "offset", JSON_F_U64, AT(offset), .min = 1, .nullable = true },
	{ "limit", JSON_F_U64, AT(limit), .min = 1, .nullable = true },
};
static const struct json_field write_fields[] = {
	MCP_TOOLS_SANDBOX,
	PATH,
	USER,
	{ "content", JSON_F_STRING, AT(content), .required = true },
	{ "encoding", JSON_F_STRING, AT(encoding), .min = 1, .nullable = true },
	{ "append", JSON_F_BOOL, AT(append), .nullable = true },
};
static const struct json_field edit_fields[] = {
	MCP_TOOLS_SANDBOX,
	PATH,
	USER,
	{ "old", JSON_F_STRING, AT(old), .min = 1, .required = true },
	{ "new", JSON_F_STRING, AT(new), .required = true },
	{ "replace_all", JSON_F_BOOL, AT(all), .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_read_args = { read_fields, ELEMS(read_fields) };
const struct json_schema mcp_tools_write_args = { write_fields, ELEMS(write_fields) };
const struct json_schema mcp_tools_edit_args = { edit_fields, ELEMS(edit_fields) };
const size_t mcp_tools_read_size = sizeof(struct work), mcp_tools_write_size = sizeof(struct work),
	     mcp_tools_edit_size = sizeof(struct work);

static void release(struct mcp_call *c)
{
	struct work *w = c->own;
	buf_done(&w->bytes);
	buf_done(&w->changed);
	outputs_done(&w->count);
}

static void cancel(struct mcp_call *c)
{
	struct work *w = c->own;
	files_cancel(&w->op);
}

static void fail(struct work *w, const struct err *e)
{
	w->call->cancel = NULL;
	mcp_call_fail(w->call, e);
}

static struct work *begin(struct mcp_call *c, const struct file_ops *ops)
{
	struct work *w = c->own;

	w->call = c;
	w->op.ops = ops;
	w->bytes = BUF_INIT(FILE_MAX);
	w->changed = BUF_INIT(2 * FILE_MAX);
	outputs_start(&w->count, c->core, c->actor.tenant);
	c->done = release;
	c->cancel = cancel;
	return w;
}

static struct file_place place(const struct work *w)
{
	return (struct file_place){ .box = w->head.sandbox, .path = w->path, .user = w->user };
}

/* How large it is, its bytes tell. */
static void on_info(struct file_op *op, const struct file_info *info)
{
}

static void on_data(struct file_op *op, struct view data)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct err e = { 0 };

	if (buf_add(&w->bytes, data) < 0)
		err_set(&e, ERR_TOO_LARGE, "the file has more than %u bytes", FILE_MAX);
	else if (!outputs_count(&w->count, w->bytes.cap))
		err_set(&e, ERR_QUOTA,
			"the requests, answers and output of this tenant's commands hold too much memory");
	if (!e.code) {
		files_consumed(op, data.n);
		return;
	}
	files_cancel(op);
	fail(w, &e);
}

/* ---- read ---- */

/* The lines that were asked for. */
static struct view lines_of(struct view v, uint64_t offset, uint64_t limit)
{
	const char *at;

	for (uint64_t i = 1; i < offset && v.n; i++) {
		at = memchr(v.p, '\n', v.n);
		v = view_skip(v, at ? (size_t)(at - v.p) + 1 : v.n);
	}
	size_t n = limit ? 0 : v.n;
	for (uint64_t i = 0; i < limit && n < v.n; i++) {
		at = memchr(v.p + n, '\n', v.n - n);
		n = at ? (size_t)(at - v.p) + 1 : v.n;
	}
	return view_head(v, n);
}

static void link_file(struct mcp_call *c, const struct work *w)
{
	struct buf uri = BUF_INIT(16u * 1024);
	const char *slash = memrchr(w->path.p, '/', w->path.n);
	struct view name = slash ? view_skip(w->path, (size_t)(slash - w->path.p) + 1) : w->path;

	buf_puts(&uri, "paddock://sandboxes/");
	text_percent_all(&uri, w->head.sandbox);
	buf_puts(&uri, "/files/");
	text_percent(&uri, view_skip(w->path, w->path.p[0] == '/' ? 1 : 0));
	const char *mime = mcp_tools_mime(w->path, buf_view(&w->bytes));
	mcp_call_link(c, buf_view(&uri), name, mime ? mime : "application/octet-stream", buf_len(&w->bytes));
	buf_done(&uri);
}

static void on_read(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct mcp_call *c = w->call;
	struct view all = buf_view(&w->bytes);
	const char *mime = mcp_tools_mime(w->path, all);
	bool text = text_is_utf8(all) && !(all.n && memchr(all.p, 0, all.n)), cut = false;
	struct buf room = BUF_INIT(0), coded = BUF_INIT(MCP_RESULT_MAX);
	struct mcp_object x;

	if (e) {
		fail(w, e);
		return;
	}
	c->cancel = NULL;
	struct view part =
		text ? mcp_tools_shorten(lines_of(all, w->offset, w->limit), &room, &cut) : VIEW("");
	struct json_out *o = mcp_tools_open(&x);
	json_out_kstr(o, "path", w->path);
	json_out_ku64(o, "size", all.n);
	json_out_kz(o, "encoding", text ? "utf-8" : "binary");
	json_out_kstr(o, "content", part);
	json_out_kbool(o, "truncated", cut || !text);
	json_out_end(o, '}');
	mcp_call_content(c);
	if (text) {
		mcp_call_text(c, part);
	} else if (mime && view_starts(view_of(mime), "image/") && all.n <= IMAGE_MAX) {
		x.text.bad = text_base64(&coded, all);
		mcp_call_media(c, "image", buf_view(&coded), mime);
	}
	if (cut || !text)
		link_file(c, w);
	c->out.bad = c->out.bad ? c->out.bad : x.text.bad;
	mcp_call_structured(c, buf_view(&x.text));
	buf_done(&x.text);
	buf_done(&coded);
	buf_done(&room);
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_read };

void mcp_tools_read(struct mcp_call *c)
{
	struct work *w = begin(c, &read_ops);
	struct file_place p = place(w);
	struct err e = { 0 };

	if (files_read(c->core, &c->actor, &p, 0, 0, &w->op, &e) < 0)
		fail(w, &e);
}

/* ---- write ---- */

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct mcp_call *c = w->call;
	struct mcp_object x;

	if (e) {
		fail(w, e);
		return;
	}
	c->cancel = NULL;
	struct json_out *o = mcp_tools_open(&x);
	json_out_kstr(o, "path", w->path);
	json_out_ku64(o, "size", info ? info->size : w->size);
	if (w->old.n)
		json_out_ku64(o, "replaced", w->replaced);
	else
		json_out_kbool(o, "created", created);
	mcp_tools_send(c, &x);
}

static void push(struct file_op *op)
{
	struct work *w = CONTAINER(op, struct work, op);

	buf_consume(&w->changed, files_send(op, buf_view(&w->changed)));
	if (buf_len(&w->changed) == 0)
		files_end(op);
}

static const struct file_ops write_ops = { .on_room = push, .done = on_written };

static void write_changed(struct work *w, bool append)
{
	struct mcp_call *c = w->call;
	struct file_place p = place(w);
	struct err e = { 0 };

	w->op.ops = &write_ops;
	w->size = buf_len(&w->changed);
	if (files_write(c->core, &c->actor, &p, 0, append, &w->op, &e) < 0)
		fail(w, &e);
	else
		push(&w->op);
}

void mcp_tools_write(struct mcp_call *c)
{
	struct work *w = begin(c, &write_ops);
	struct err e = { 0 };
	int r = -1;

	if (view_is(w->encoding, "base64"))
		r = text_unbase64(&w->changed, w->content);
	else if (!w->encoding.n || view_is(w->encoding, "utf-8"))
		r = buf_add(&w->changed, w->content);
	if (r >= 0) {
		write_changed(w, w->append);
		return;
	}
	err_set(&e, ERR_INVALID, "content must be text (utf-8) or base64, as encoding says");
	fail(w, &e);
}

/* ---- edit ---- */

static int change(struct work *w, struct err *e)
{
	struct view rest = buf_view(&w->bytes);
	const char *at;

	while (rest.n && (at = memmem(rest.p, rest.n, w->old.p, w->old.n))) {
		buf_append(&w->changed, rest.p, (size_t)(at - rest.p));
		buf_add(&w->changed, w->new);
		rest = view_skip(rest, (size_t)(at - rest.p) + w->old.n);
		w->replaced++;
	}
	buf_add(&w->changed, rest);
	if (w->changed.bad)
		return err_set(e, ERR_TOO_LARGE, "the file would have more than %u bytes", 2 * FILE_MAX);
	if (!w->replaced)
		return err_set(e, ERR_CONFLICT, "the file does not hold the text in old");
	if (w->replaced > 1 && !w->all)
		return err_set(e, ERR_CONFLICT,
			       "the file holds the text in old %llu times: give more of it, or replace_all",
			       (unsigned long long)w->replaced);
	return 0;
}

static void on_content(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, op);
	struct err mine = { 0 };

	if (e)
		fail(w, e);
	else if (change(w, &mine) < 0)
		fail(w, &mine);
	else
		write_changed(w, false);
}

static const struct file_ops edit_ops = { .on_info = on_info, .on_data = on_data, .done = on_content };

void mcp_tools_edit(struct mcp_call *c)
{
	struct work *w = begin(c, &edit_ops);
	struct file_place p = place(w);
	struct err e = { 0 };

	if (files_read(c->core, &c->actor, &p, 0, 0, &w->op, &e) < 0)
		fail(w, &e);
}
