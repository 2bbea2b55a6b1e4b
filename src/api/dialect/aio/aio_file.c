/*
 * /v1/file/read, write, replace and search: one file as text.
 */
#include "aio_file.h"
#include "file_text.h"
#include "text.h"
#include "poison.h"

#define BODY_MAX    (3 * AIO_FILE_MAX) /* base64, and what JSON escapes */
#define MATCHES_MAX 10000
#define ANSWER_ROOM (8u * 1024 * 1024)

struct work {
	struct aio_file f;
	struct file_text text; /* read */
	struct view file, content, encoding, old_str, new_str, regex;
	uint64_t start_line, end_line, line, replaced;
	bool has_start, has_end, append, leading, trailing, sudo;
	struct buf changed;
	struct buf numbers; /* search: of lines, as text */
	struct json_out lines_out, numbers_out;
};

static void release(struct aio_file *f)
{
	struct work *w = CONTAINER(f, struct work, f);

	file_text_release(&w->text);
	buf_done(&w->changed);
	buf_done(&w->numbers);
}

#define AT(m) .offset = offsetof(struct work, m)
#define FILE_FIELD                                                                                           \
	{                                                                                                    \
		"file", JSON_F_STRING, AT(file), .min = 1, .max = 4095, .required = true                     \
	}
#define FLAG(name, m)                                                                                        \
	{                                                                                                    \
		name, JSON_F_BOOL, AT(m), .nullable = true                                                   \
	}

/* The body read, and the place found. NULL: the answer is sent. */
static struct work *begin(struct request *r, const struct json_schema *s, const char *operation)
{
	struct work *w = aio_file_new(r, sizeof(*w), operation);

	if (!w)
		return NULL;
	w->f.also_release = release;
	w->changed = BUF_INIT(2 * AIO_FILE_MAX);
	w->numbers = BUF_INIT(ANSWER_ROOM);
	w->encoding = VIEW("utf-8");
	if (aio_read(r, s, w) < 0 || aio_file_at(&w->f, w->file, w->sudo) < 0)
		return NULL;
	return w;
}

/* ---- read ---- */

static const struct json_field read_fields[] = {
	FILE_FIELD,
	{ "start_line", JSON_F_U64, AT(start_line), .has = offsetof(struct work, has_start), .max = INT64_MAX,
	  .nullable = true },
	{ "end_line", JSON_F_U64, AT(end_line), .has = offsetof(struct work, has_end), .max = INT64_MAX,
	  .nullable = true },
	FLAG("sudo", sudo),
};
static const struct json_schema read_schema = { read_fields, ELEMS(read_fields), .open = true };

static void on_read(struct file_text *text, const struct err *e)
{
	struct work *w = CONTAINER(text, struct work, text);
	struct aio_file *f = &w->f;

	if (text->too_large) {
		aio_file_refuse(f,
				"these are more than %u bytes: read fewer lines (start_line, end_line), "
				"or use GET /v1/file/download",
				AIO_FILE_MAX);
	} else if (e) {
		aio_file_fail(f, e);
	} else if (!text->is_text) {
		aio_file_refuse(f, "the file is not UTF-8 text: GET /v1/file/download has its bytes");
	} else {
		struct json_out *o = aio_data(f->r, "File read successfully");
		json_out_object(o);
		answer_put_from(f->r, "content", &text->source);
		json_out_kstr(o, "file", f->place.path);
		json_out_end(o, '}');
		aio_send(f->r);
	}
}

static void read_file(struct request *r)
{
	struct work *w = begin(r, &read_schema, "read");
	struct err e = { 0 };

	if (!w)
		return;
	if (w->has_end && w->end_line < w->start_line) {
		aio_unprocessable(r, "end_line", "end_line must not be less than start_line");
		return;
	}
	w->text.done = on_read;
	w->text.lines = (struct file_text_lines){ .given = w->has_start || w->has_end,
						  .first = w->start_line,
						  .end = w->has_end ? w->end_line : UINT64_MAX };
	if (file_text_read(&w->text, r, &w->f.place, AIO_FILE_MAX, &e) < 0)
		aio_file_fail(&w->f, &e);
}

/* ---- write ---- */

static const struct json_field write_fields[] = {
	FILE_FIELD,
	{ "content", JSON_F_STRING, AT(content), .required = true },
	{ "encoding", JSON_F_STRING, AT(encoding), .nullable = true },
	FLAG("append", append),
	FLAG("leading_newline", leading),
	FLAG("trailing_newline", trailing),
	FLAG("sudo", sudo),
};
static const struct json_schema write_schema = { write_fields, ELEMS(write_fields), .open = true };

static void on_written(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = CONTAINER(f, struct work, f);

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	struct json_out *o = aio_data(f->r, "File written successfully");
	json_out_object(o);
	json_out_kstr(o, "file", f->place.path);
	json_out_ku64(o, "bytes_written", buf_len(&w->changed));
	json_out_end(o, '}');
	aio_send(f->r);
}

static void write_file(struct request *r)
{
	struct work *w = begin(r, &write_schema, "write");

	if (!w)
		return;
	bool is_base64 = view_is(w->encoding, "base64");
	if (!is_base64 && !view_is(w->encoding, "utf-8") && !view_is(w->encoding, "raw")) {
		aio_unprocessable(r, "encoding", "encoding must be utf-8, base64 or raw");
		return;
	}
	if (is_base64 && text_unbase64(&w->changed, w->content) < 0) {
		aio_file_refuse(&w->f, "content is not base64");
		return;
	}
	if (!is_base64 && w->leading)
		buf_putc(&w->changed, '\n');
	if (!is_base64)
		buf_add(&w->changed, w->content);
	if (!is_base64 && w->trailing)
		buf_putc(&w->changed, '\n');
	http_hold(r->x, w->changed.cap + r->body.cap + r->arena.used);
	if (w->changed.bad)
		aio_file_refuse(&w->f, "content has more than %u bytes", 2 * AIO_FILE_MAX);
	else
		aio_file_write(&w->f, buf_view(&w->changed), w->append, on_written);
}

/* ---- replace ---- */

static const struct json_field replace_fields[] = {
	FILE_FIELD,
	{ "old_str", JSON_F_STRING, AT(old_str), .min = 1, .required = true },
	{ "new_str", JSON_F_STRING, AT(new_str), .required = true },
	FLAG("sudo", sudo),
};
static const struct json_schema replace_schema = { replace_fields, ELEMS(replace_fields), .open = true };

static void on_replaced(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = CONTAINER(f, struct work, f);

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	struct json_out *o = aio_data(f->r, w->replaced ? "Replacement completed" : "Nothing was replaced");
	json_out_object(o);
	json_out_kstr(o, "file", f->place.path);
	json_out_ku64(o, "replaced_count", w->replaced);
	json_out_end(o, '}');
	aio_send(f->r);
}

static void on_old(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = CONTAINER(f, struct work, f);
	struct view rest = buf_view(&f->whole.bytes);
	const char *at;

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	while (rest.n && (at = memmem(rest.p, rest.n, w->old_str.p, w->old_str.n))) {
		buf_append(&w->changed, rest.p, (size_t)(at - rest.p));
		buf_add(&w->changed, w->new_str);
		rest = view_skip(rest, (size_t)(at - rest.p) + w->old_str.n);
		w->replaced++;
	}
	buf_add(&w->changed, rest);
	http_hold(f->r->x, w->changed.cap + f->whole.bytes.cap + f->r->body.cap + f->r->arena.used);
	if (w->changed.bad)
		aio_file_refuse(f, "the file would have more than %u bytes", 2 * AIO_FILE_MAX);
	else if (!w->replaced)
		on_replaced(f, NULL, NULL);
	else
		aio_file_write(f, buf_view(&w->changed), false, on_replaced);
}

static void replace(struct request *r)
{
	struct work *w = begin(r, &replace_schema, "replace");

	if (w)
		aio_file_read(&w->f, AIO_FILE_MAX, on_old);
}

/* ---- search ---- */

static const struct json_field search_fields[] = {
	FILE_FIELD,
	{ "regex", JSON_F_STRING, AT(regex), .min = 1, .max = 1000, .required = true },
	FLAG("sudo", sudo),
};
#undef AT
static const struct json_schema search_schema = { search_fields, ELEMS(search_fields), .open = true };

/* Line n, counted from 1, of what was read. */
static struct view line_of(struct work *w, uint64_t n)
{
	struct view rest = view_skip(buf_view(&w->f.whole.bytes), w->start_line), line = VIEW("");

	for (; rest.p && w->line < n; w->line++)
		line = view_split(rest, '\n', &rest);
	w->start_line =
		rest.p ? (uint64_t)(rest.p - buf_view(&w->f.whole.bytes).p) : buf_len(&w->f.whole.bytes);
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

static void on_matches(struct file_op *op, const struct file_match *matches, size_t n, size_t bytes)
{
	struct work *w = CONTAINER(op, struct work, f.op);

	for (size_t i = 0; i < n; i++) {
		json_out_str(&w->lines_out, line_of(w, matches[i].line));
		json_out_u64(&w->numbers_out, matches[i].line - 1);
	}
	files_consumed(op, bytes);
}

static void on_searched(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct work *w = CONTAINER(op, struct work, f.op);
	struct request *r = w->f.r;

	if (e) {
		aio_file_fail(&w->f, e);
		return;
	}
	json_out_end(&w->lines_out, ']');
	json_out_end(&w->numbers_out, ']');
	if (op->sum.skipped || w->changed.bad || w->numbers.bad || op->sum.truncated) {
		aio_file_refuse(&w->f, op->sum.skipped ? "the file is not text"
						       : "there are too many matches for one answer");
		return;
	}
	struct json_out *o = aio_data(r, "Search completed");
	json_out_object(o);
	json_out_kstr(o, "file", w->f.place.path);
	answer_put_raw(r, "matches", buf_view(&w->changed));
	answer_put_raw(r, "line_numbers", buf_view(&w->numbers));
	json_out_end(o, '}');
	aio_send(r);
}

static const struct file_ops search_ops = { .on_matches = on_matches, .done = on_searched };

/* The file is read first, since the sandbox tells only the beginning of a line that matches. */
static void on_text(struct aio_file *f, const struct file_info *info, const struct err *e)
{
	struct work *w = CONTAINER(f, struct work, f);
	struct file_search s = { .pattern = w->regex, .regex = true, .limit = MATCHES_MAX };
	struct err mine = { 0 };

	if (e) {
		aio_file_fail(f, e);
		return;
	}
	json_out_init(&w->lines_out, &w->changed);
	json_out_array(&w->lines_out);
	json_out_init(&w->numbers_out, &w->numbers);
	json_out_array(&w->numbers_out);
	f->op = (struct file_op){ .ops = &search_ops };
	if (files_grep(f->r->core, &f->r->actor, &f->place, &s, &f->op, &mine) < 0)
		aio_file_fail(f, &mine);
}

static void search(struct request *r)
{
	struct work *w = begin(r, &search_schema, "search");

	if (w)
		aio_file_read(&w->f, AIO_FILE_MAX, on_text);
}

const struct route aio_file_routes[] = {
	{ "POST", "/v1/file/read", read_file, .body = ROUTE_JSON, .schema = &read_schema,
	  .query = "api_key" },
	{ "POST", "/v1/file/write", write_file, .body = ROUTE_JSON, .schema = &write_schema,
	  .body_max = BODY_MAX, .query = "api_key" },
	{ "POST", "/v1/file/replace", replace, .body = ROUTE_JSON, .schema = &replace_schema,
	  .query = "api_key" },
	{ "POST", "/v1/file/search", search, .body = ROUTE_JSON, .schema = &search_schema,
	  .query = "api_key" },
	{ 0 },
};
