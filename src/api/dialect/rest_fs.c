/*
 * /v1/sandboxes/{id}/fs/…: work on files that is not the transfer of one, asked
 * for in JSON.
 */
#include <stdio.h>

#include "rest_files.h"
#include "sign.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define REPLACE_MAX   (16u * 1024 * 1024)
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     100000

/* The body of any of these; each has its own table of what it takes. */
struct fs_wish {
	char unused; /* nothing at offset 0 */
	struct view path, from, to, user, mode, owner, pattern, type, include, old, new, method;
	bool overwrite, recursive, parents, regex, ignore_case, has_mode;
	uint64_t limit, count, seconds;
};

struct fs_op {
	struct file_op op;
	struct req *r;
	struct fs_wish wish;
	/* find, grep: what is sent as it comes */
	struct json_out out;
	struct buf text;
	bool begun, is_grep;
	size_t held;
	/* replace */
	struct buf content, changed;
	uint64_t replaced;
	bool too_large;
};

#define AT(f)   .offset = offsetof(struct fs_wish, f)
#define PATH(f) { #f, JSON_F_STRING, AT(f), .min = 1, .max = 4095, .required = true }
#define USER    { "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true }
#define FLAG(f) { #f, JSON_F_BOOL, AT(f), .nullable = true }
#define LIMIT   { "limit", JSON_F_U64, AT(limit), .min = 1, .max = LIMIT_MAX, .nullable = true }

static void on_gone(struct req *r)
{
	struct fs_op *f = r->own;
	files_cancel(&f->op);
	buf_done(&f->text);
	buf_done(&f->content);
	buf_done(&f->changed);
}

static void release(struct fs_op *f)
{
	buf_done(&f->text);
	buf_done(&f->content);
	buf_done(&f->changed);
}

static void fail(struct fs_op *f, const struct err *e)
{
	struct req *r = f->r;
	struct err copy = *e;
	release(f);
	if (!f->begun) {
		rest_fail(r, &copy);
		return;
	}
	http_break(r->x);
	rest_done(r);
}

static struct fs_op *begin(struct req *r, const struct file_ops *ops)
{
	struct fs_op *f = rest_own(r, sizeof(*f));
	if (!f)
		return NULL;
	f->r = r;
	f->op.ops = ops;
	f->text = BUF_INIT(REST_ANSWER_MAX);
	f->content = BUF_INIT(REPLACE_MAX);
	f->changed = BUF_INIT(2 * REPLACE_MAX);
	r->on_gone = on_gone;
	return f;
}

/* With its body read; NULL: the answer is sent. */
static struct fs_op *begin_wish(struct req *r, const struct json_schema *s, const struct file_ops *ops)
{
	struct fs_wish w = { .limit = LIMIT_DEFAULT, .parents = true };
	if (rest_read(r, s, &w) < 0)
		return NULL;
	struct fs_op *f = begin(r, ops);
	if (f)
		f->wish = w;
	return f;
}

static struct file_place place(const struct fs_op *f, struct view path)
{
	return (struct file_place){ .box = f->r->params[0], .path = path, .user = f->wish.user };
}

static int wished_mode(const struct fs_wish *w, unsigned *ret, struct err *e)
{
	*ret = 0;
	return w->mode.p ? rest_files_mode(w->mode, ret, e) : 0;
}

/* ---- answers that are one object ---- */

static void on_empty(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	if (e) {
		fail(f, e);
		return;
	}
	release(f);
	rest_no_content(r);
}

static void on_sum(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct buf b = BUF_INIT(4096);
	struct json_out o;
	if (e) {
		fail(f, e);
		return;
	}
	json_out_init(&o, &b);
	rest_files_put_sum(&o, &op->sum);
	release(f);
	rest_reply(r, 200, &b);
}

static void on_changed(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct buf b = BUF_INIT(4096);
	struct json_out o;
	if (e) {
		fail(f, e);
		return;
	}
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_ku64(&o, "changed", op->sum.changed);
	json_out_end(&o, '}');
	release(f);
	rest_reply(r, 200, &b);
}

static void on_moved(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct buf b = BUF_INIT(4096);
	struct json_out o;
	if (e) {
		fail(f, e);
		return;
	}
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kbool(&o, "copied", op->sum.copied);
	json_out_end(&o, '}');
	release(f);
	rest_reply(r, 200, &b);
}

static void on_stat(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct buf b = BUF_INIT(64 * 1024);
	struct json_out o;
	if (e) {
		fail(f, e);
		return;
	}
	json_out_init(&o, &b);
	rest_files_put(&o, info, false);
	release(f);
	rest_reply(r, 200, &b);
}

static const struct file_ops empty_ops = { .done = on_empty };
static const struct file_ops sum_ops = { .done = on_sum };
static const struct file_ops changed_ops = { .done = on_changed };
static const struct file_ops moved_ops = { .done = on_moved };
static const struct file_ops stat_ops = { .done = on_stat };

/* ---- move, copy, mkdir, chmod, stat ---- */

static const struct json_field move_fields[] = { PATH(from), PATH(to), USER, FLAG(overwrite) };
static const struct json_schema move_schema = { move_fields, ELEMS(move_fields) };

static void move(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin_wish(r, &move_schema, &moved_ops);
	if (!f)
		return;
	struct file_place p = place(f, f->wish.from);
	if (files_move(r->core, &r->actor, &p, f->wish.to, f->wish.overwrite, &f->op, &e) < 0)
		fail(f, &e);
}

static const struct json_field copy_fields[] = { PATH(from), PATH(to), USER, FLAG(overwrite), FLAG(recursive) };
static const struct json_schema copy_schema = { copy_fields, ELEMS(copy_fields) };

static void copy(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin_wish(r, &copy_schema, &sum_ops);
	if (!f)
		return;
	struct file_place p = place(f, f->wish.from);
	if (files_copy(r->core, &r->actor, &p, f->wish.to, f->wish.recursive, f->wish.overwrite, &f->op, &e) < 0)
		fail(f, &e);
}

static const struct json_field mkdir_fields[] = {
	PATH(path), USER, FLAG(parents), { "mode", JSON_F_STRING, AT(mode), .min = 1, .nullable = true }
};
static const struct json_schema mkdir_schema = { mkdir_fields, ELEMS(mkdir_fields) };

static void make_dir(struct req *r)
{
	struct err e = { 0 };
	unsigned mode;
	struct fs_op *f = begin_wish(r, &mkdir_schema, &empty_ops);
	if (!f)
		return;
	struct file_place p = place(f, f->wish.path);
	if (wished_mode(&f->wish, &mode, &e) < 0 ||
	    files_mkdir(r->core, &r->actor, &p, mode, f->wish.parents, &f->op, &e) < 0)
		fail(f, &e);
}

static const struct json_field chmod_fields[] = {
	PATH(path),
	USER,
	FLAG(recursive),
	{ "mode", JSON_F_STRING, AT(mode), .min = 1, .nullable = true },
	{ "owner", JSON_F_STRING, AT(owner), .min = 1, .max = 128, .nullable = true },
};
static const struct json_schema chmod_schema = { chmod_fields, ELEMS(chmod_fields) };

static void change_mode(struct req *r)
{
	struct err e = { 0 };
	struct file_change change = { 0 };
	struct fs_op *f = begin_wish(r, &chmod_schema, &changed_ops);
	if (!f)
		return;
	struct file_place p = place(f, f->wish.path);
	change.has_mode = f->wish.mode.p != NULL;
	change.owner = f->wish.owner;
	change.recursive = f->wish.recursive;
	if (wished_mode(&f->wish, &change.mode, &e) < 0 ||
	    files_chmod(r->core, &r->actor, &p, &change, &f->op, &e) < 0)
		fail(f, &e);
}

static void stat_path(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin(r, &stat_ops);
	if (!f)
		return;
	f->wish.user = rest_query(r, "user");
	struct file_place p = place(f, rest_query(r, "path"));
	if (files_stat(r->core, &r->actor, &p, &f->op, &e) < 0)
		fail(f, &e);
}

/* ---- find and grep: lists that go out as they come ---- */

static void begin_list(struct fs_op *f)
{
	if (f->begun)
		return;
	f->begun = true;
	http_begin(f->r->x, 200, "application/json", -1, NULL, 0);
	json_out_init(&f->out, &f->text);
	json_out_object(&f->out);
	json_out_key(&f->out, f->is_grep ? "matches" : "entries");
	json_out_array(&f->out);
}

/* What has been written so far goes out; the box's bytes are given back when the client has taken it. */
static void flush(struct fs_op *f, size_t bytes)
{
	bool more = http_write(f->r->x, buf_view(&f->text));
	buf_clear(&f->text);
	if (more)
		files_consumed(&f->op, bytes);
	else
		f->held += bytes;
}

static void on_writable(struct http_exchange *x)
{
	struct fs_op *f = ((struct req *)x->ctx)->own;
	size_t n = f->held;
	f->held = 0;
	files_consumed(&f->op, n);
}

static void on_entries(struct file_op *op, const struct wire_file_info *entries, size_t n, size_t bytes)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	begin_list(f);
	for (size_t i = 0; i < n; i++)
		rest_files_put(&f->out, &entries[i], true);
	flush(f, bytes);
}

static void on_matches(struct file_op *op, const struct wire_grep_match *matches, size_t n, size_t bytes)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	begin_list(f);
	for (size_t i = 0; i < n; i++) {
		const struct wire_grep_match *m = &matches[i];
		json_out_object(&f->out);
		rest_files_put_bytes(&f->out, "path", "path_base64", m->path);
		json_out_ku64(&f->out, "line", m->line);
		json_out_ku64(&f->out, "column", m->column);
		json_out_kstr(&f->out, "text", m->text);
		json_out_end(&f->out, '}');
	}
	flush(f, bytes);
}

static void on_list_done(struct file_op *op, const struct wire_file_info *info, bool created,
			 const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	if (e) {
		fail(f, e);
		return;
	}
	begin_list(f);
	json_out_end(&f->out, ']');
	json_out_kbool(&f->out, "truncated", op->sum.truncated);
	if (f->is_grep) {
		json_out_ku64(&f->out, "files", op->sum.files);
		json_out_ku64(&f->out, "skipped", op->sum.skipped);
	}
	json_out_end(&f->out, '}');
	buf_putc(&f->text, '\n');
	http_write(r->x, buf_view(&f->text));
	release(f);
	http_end(r->x);
	rest_done(r);
}

static const struct file_ops find_ops = { .on_entries = on_entries, .done = on_list_done };
static const struct file_ops grep_ops = { .on_matches = on_matches, .done = on_list_done };

static void no_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;
	on_gone(r);
	rest_done(r);
}

static const struct http_ops list_http_ops = {
	.on_body = no_body,
	.on_abort = on_abort,
	.on_writable = on_writable,
};

static struct file_search search_of(const struct fs_wish *w)
{
	return (struct file_search){
		.pattern = w->pattern,
		.type = w->type,
		.include = w->include,
		.regex = w->regex,
		.ignore_case = w->ignore_case,
		.limit = (unsigned)w->limit,
	};
}

#define PATTERN { "pattern", JSON_F_STRING, AT(pattern), .min = 1, .max = 1000, .required = true }

static const struct json_field find_fields[] = {
	PATH(path), USER, PATTERN, LIMIT, { "type", JSON_F_STRING, AT(type), .min = 1, .nullable = true }
};
static const struct json_schema find_schema = { find_fields, ELEMS(find_fields) };

static void find(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin_wish(r, &find_schema, &find_ops);
	if (!f)
		return;
	r->x->ops = &list_http_ops;
	struct file_place p = place(f, f->wish.path);
	struct file_search s = search_of(&f->wish);
	if (files_find(r->core, &r->actor, &p, &s, &f->op, &e) < 0)
		fail(f, &e);
}

static const struct json_field grep_fields[] = {
	PATH(path),  USER,
	PATTERN,     LIMIT,
	FLAG(regex), FLAG(ignore_case),
	{ "include", JSON_F_STRING, AT(include), .min = 1, .max = 1000, .nullable = true },
};
static const struct json_schema grep_schema = { grep_fields, ELEMS(grep_fields) };

static void grep(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin_wish(r, &grep_schema, &grep_ops);
	if (!f)
		return;
	f->is_grep = true;
	r->x->ops = &list_http_ops;
	struct file_place p = place(f, f->wish.path);
	struct file_search s = search_of(&f->wish);
	if (files_grep(r->core, &r->actor, &p, &s, &f->op, &e) < 0)
		fail(f, &e);
}

/* ---- replace: read, change, write at once ---- */

static void on_replaced(struct file_op *op, const struct wire_file_info *info, bool created,
			const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct buf b = BUF_INIT(64 * 1024);
	struct json_out o;
	if (e) {
		fail(f, e);
		return;
	}
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_ku64(&o, "replaced", f->replaced);
	json_out_key(&o, "file");
	rest_files_put(&o, info, false);
	json_out_end(&o, '}');
	release(f);
	rest_reply(r, 200, &b);
}

static void push_changed(struct file_op *op)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	buf_consume(&f->changed, files_send(op, buf_view(&f->changed)));
	if (buf_len(&f->changed) == 0)
		files_end(op);
}

static const struct file_ops write_ops = { .on_room = push_changed, .done = on_replaced };

/* Every occurrence, or the first `count` of them. */
static int change(struct fs_op *f, struct err *e)
{
	struct view rest = buf_view(&f->content), old = f->wish.old;
	const char *at;
	while ((!f->wish.count || f->replaced < f->wish.count) && rest.n &&
	       (at = memmem(rest.p, rest.n, old.p, old.n))) {
		buf_append(&f->changed, rest.p, (size_t)(at - rest.p));
		buf_add(&f->changed, f->wish.new);
		rest = view_skip(rest, (size_t)(at - rest.p) + old.n);
		f->replaced++;
	}
	buf_add(&f->changed, rest);
	if (f->changed.bad)
		return err_set(e, ERR_TOO_LARGE, "the file would have more than %u bytes", 2 * REPLACE_MAX);
	if (!f->replaced)
		return err_set(e, ERR_CONFLICT, "the file does not hold the text that is to be replaced");
	return 0;
}

static void on_content_done(struct file_op *op, const struct wire_file_info *info, bool created,
			    const struct err *e)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	struct req *r = f->r;
	struct err mine = { 0 };
	if (e) {
		fail(f, e);
		return;
	}
	struct file_place p = place(f, f->wish.path);
	op->ops = &write_ops;
	if (change(f, &mine) < 0 || files_write(r->core, &r->actor, &p, 0, false, op, &mine) < 0)
		fail(f, &mine);
	else
		push_changed(op);
}

static void refuse_size(struct fs_op *f)
{
	struct err e = { 0 };
	files_cancel(&f->op);
	err_set(&e, ERR_TOO_LARGE, "the file has more than %u bytes", REPLACE_MAX);
	fail(f, &e);
}

static void on_content_info(struct file_op *op, const struct wire_file_info *info)
{
	if (info->size > REPLACE_MAX)
		refuse_size(CONTAINER(op, struct fs_op, op));
}

static void on_content(struct file_op *op, struct view data)
{
	struct fs_op *f = CONTAINER(op, struct fs_op, op);
	if (buf_add(&f->content, data) < 0) {
		refuse_size(f);
		return;
	}
	files_consumed(op, data.n);
}

static const struct file_ops content_ops = {
	.on_info = on_content_info,
	.on_data = on_content,
	.done = on_content_done,
};

static const struct json_field replace_fields[] = {
	PATH(path),
	USER,
	{ "old", JSON_F_STRING, AT(old), .min = 1, .required = true },
	{ "new", JSON_F_STRING, AT(new), .required = true },
	{ "count", JSON_F_U64, AT(count), .min = 1, .max = UINT32_MAX, .nullable = true },
};
static const struct json_schema replace_schema = { replace_fields, ELEMS(replace_fields) };

static void replace(struct req *r)
{
	struct err e = { 0 };
	struct fs_op *f = begin_wish(r, &replace_schema, &content_ops);
	if (!f)
		return;
	struct file_place p = place(f, f->wish.path);
	if (files_read(r->core, &r->actor, &p, 0, 0, &f->op, &e) < 0)
		fail(f, &e);
}

/* ---- sign ---- */

static const struct json_field sign_fields[] = {
	PATH(path),
	USER,
	{ "method", JSON_F_STRING, AT(method), .required = true },
	{ "expires_seconds", JSON_F_U64, AT(seconds), .min = 1, .max = SIGN_SECONDS_MAX, .required = true },
};
static const struct json_schema sign_schema = { sign_fields, ELEMS(sign_fields) };

static void put_url(struct buf *b, const struct req *r, const struct fs_wish *w, const struct signed_url *s)
{
	if (r->x->host.n) {
		buf_puts(b, r->x->tls ? "https://" : "http://");
		buf_add(b, r->x->host);
	}
	buf_printf(b, "/v1/sandboxes/%s/files", s->box);
	text_percent(b, w->path);
	buf_printf(b, "?expires=%lld&signature=%s", (long long)s->expires_s, s->signature);
	if (w->user.n) {
		buf_puts(b, "&user=");
		text_percent(b, w->user);
	}
}

static void sign(struct req *r)
{
	struct fs_wish w = { 0 };
	struct err e = { 0 };
	struct signed_url s;
	struct buf b = BUF_INIT(64 * 1024), url = BUF_INIT(32 * 1024);
	struct json_out o;

	if (rest_read(r, &sign_schema, &w) < 0)
		return;
	struct file_place p = { .box = r->params[0], .path = w.path, .user = w.user };
	if (sign_url(r->core, &r->actor, &p, w.method, (uint32_t)w.seconds, &s, &e) < 0) {
		rest_fail(r, &e);
		return;
	}
	put_url(&url, r, &w, &s);
	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kstr(&o, "url", buf_view(&url));
	rest_put_time(&o, "expires_at", s.expires_s * 1000);
	json_out_end(&o, '}');
	buf_done(&url);
	rest_reply(r, 200, &b);
}

#define FS "/v1/sandboxes/{id}/fs/"
const struct route rest_fs_routes[] = {
	{ "POST", FS "move", move, .body = REST_JSON },
	{ "POST", FS "copy", copy, .body = REST_JSON },
	{ "POST", FS "mkdir", make_dir, .body = REST_JSON },
	{ "POST", FS "chmod", change_mode, .body = REST_JSON },
	{ "GET", FS "stat", stat_path, .query = "path user" },
	{ "POST", FS "find", find, .body = REST_JSON },
	{ "POST", FS "grep", grep, .body = REST_JSON },
	{ "POST", FS "replace", replace, .body = REST_JSON },
	{ "POST", FS "sign", sign, .body = REST_JSON },
	{ 0 },
};
