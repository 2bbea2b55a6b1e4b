/*
 * /v1/sandboxes/{id}/fs/find and …/grep: lists that go out as they come.
 */
#include "rest_fs.h"
#include "poison.h"

#define LIMIT_MAX 100000
#define LIMIT                                                                                                \
	{                                                                                                    \
		"limit", JSON_F_U64, REST_FS_AT(limit), .min = 1, .max = LIMIT_MAX, .nullable = true         \
	}

struct search {
	struct rest_fs fs;
	bool begun, is_grep;
	size_t held; /* bytes of the box's that the client has not taken */
};

static struct search *of(struct file_op *op)
{
	return CONTAINER(rest_fs_of(op), struct search, fs);
}

static void begin_list(struct search *s)
{
	if (s->begun)
		return;
	s->begun = true;
	http_begin(s->fs.r->x, 200, "application/json", -1, NULL, 0);
	answer_json_list(s->fs.r, s->is_grep ? "matches" : "entries");
}

/* What has been written so far goes out; the box's bytes are given back when the client has taken it. */
static void flush(struct search *s, size_t bytes)
{
	struct request *r = s->fs.r;
	bool more = http_write(r->x, buf_view(&r->out));

	buf_clear(&r->out);
	if (more)
		files_consumed(&s->fs.op, bytes);
	else
		s->held += bytes;
}

static void on_writable(struct http_exchange *x)
{
	struct search *s = ((struct request *)x->ctx)->own;
	size_t n = s->held;

	s->held = 0;
	files_consumed(&s->fs.op, n);
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct search *s = of(op);

	begin_list(s);
	for (size_t i = 0; i < n; i++)
		rest_files_put(&s->fs.r->json, &entries[i], true);
	flush(s, bytes);
}

static void on_matches(struct file_op *op, const struct file_match *matches, size_t n, size_t bytes)
{
	struct search *s = of(op);
	struct json_out *o = &s->fs.r->json;

	begin_list(s);
	for (size_t i = 0; i < n; i++) {
		const struct file_match *m = &matches[i];
		json_out_object(o);
		rest_files_put_bytes(o, "path", "path_base64", m->path);
		json_out_ku64(o, "line", m->line);
		json_out_ku64(o, "column", m->column);
		json_out_kstr(o, "text", m->text);
		json_out_end(o, '}');
	}
	flush(s, bytes);
}

static void on_done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct search *s = of(op);
	struct request *r = s->fs.r;
	struct json_out *o = &r->json;

	if (e && !s->begun) {
		answer_fail(r, e);
		return;
	}
	if (e) {
		http_break(r->x);
		request_done(r);
		return;
	}
	begin_list(s);
	json_out_end(o, ']');
	json_out_kbool(o, "truncated", op->sum.truncated);
	if (s->is_grep) {
		json_out_ku64(o, "files", op->sum.files);
		json_out_ku64(o, "skipped", op->sum.skipped);
	}
	json_out_end(o, '}');
	buf_putc(&r->out, '\n');
	http_write(r->x, buf_view(&r->out));
	http_end(r->x);
	request_done(r);
}

static const struct file_ops find_ops = { .on_entries = on_entries, .done = on_done };
static const struct file_ops grep_ops = { .on_matches = on_matches, .done = on_done };

static void no_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;

	r->on_gone(r);
	request_done(r);
}

static const struct http_ops list_http_ops = {
	.on_body = no_body,
	.on_abort = on_abort,
	.on_writable = on_writable,
};

static struct file_search wished(const struct rest_fs_wish *w)
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

#define PATTERN                                                                                              \
	{                                                                                                    \
		"pattern", JSON_F_STRING, REST_FS_AT(pattern), .min = 1, .max = 1000, .required = true       \
	}

static const struct json_field find_fields[] = {
	REST_FS_PATH(path),
	REST_FS_USER,
	PATTERN,
	LIMIT,
	{ "type", JSON_F_STRING, REST_FS_AT(type), .min = 1, .nullable = true },
};
static const struct json_schema find_schema = { find_fields, ELEMS(find_fields) };

static void find(struct request *r)
{
	struct err e = { 0 };
	struct search *s = rest_fs_begin(r, &find_schema, &find_ops, sizeof(*s));

	if (!s)
		return;
	r->x->ops = &list_http_ops;
	struct file_place p = rest_fs_place(&s->fs, s->fs.wish.path);
	struct file_search w = wished(&s->fs.wish);
	if (files_find(r->core, &r->actor, &p, &w, &s->fs.op, &e) < 0)
		answer_fail(r, &e);
}

static const struct json_field grep_fields[] = {
	REST_FS_PATH(path),
	REST_FS_USER,
	PATTERN,
	LIMIT,
	REST_FS_FLAG(regex),
	REST_FS_FLAG(ignore_case),
	{ "include", JSON_F_STRING, REST_FS_AT(include), .min = 1, .max = 1000, .nullable = true },
};
static const struct json_schema grep_schema = { grep_fields, ELEMS(grep_fields) };

static void grep(struct request *r)
{
	struct err e = { 0 };
	struct search *s = rest_fs_begin(r, &grep_schema, &grep_ops, sizeof(*s));

	if (!s)
		return;
	s->is_grep = true;
	r->x->ops = &list_http_ops;
	struct file_place p = rest_fs_place(&s->fs, s->fs.wish.path);
	struct file_search w = wished(&s->fs.wish);
	if (files_grep(r->core, &r->actor, &p, &w, &s->fs.op, &e) < 0)
		answer_fail(r, &e);
}

const struct route rest_search_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/fs/find", find, .body = ROUTE_JSON },
	{ "POST", "/v1/sandboxes/{id}/fs/grep", grep, .body = ROUTE_JSON },
	{ 0 },
};
