/*
 * /v1/sandboxes/{id}/files/{path}: raw bodies of any size, streamed both ways,
 * of a file or, as a tar archive, of a tree. Bytes are taken from one side only
 * as fast as the other takes them. With a signature in the query no key is
 * needed (sign.h).
 */
#include "rest_files.h"

#include <stdio.h>
#include <time.h>

#include "http_range.h"
#include "num.h"
#include "sign.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define PIECES_MAX (4u * 1024 * 1024) /* of an upload that wait for room; a piece of the body at most */

struct file_headers {
	char modified[40], mode[8], range[HTTP_RANGE_TEXT];
	struct http_header h[6];
	size_t n;
};

struct transfer {
	struct file_op op;
	struct req *r;
	struct file_place place;
	/* download */
	bool begun;
	struct http_range range; /* as asked for */
	uint64_t left;          /* of what was promised */
	bool exact;             /* a length was promised */
	struct file_headers headers;
	size_t held; /* bytes that the client has not taken yet */
	/* list */
	struct json_out list;
	struct buf text;
	struct file_page page;
	struct buf last_path; /* the path of the last entry, where pages are asked for */
	/* upload */
	struct buf pieces;
	bool last;
};

static void release(struct transfer *t)
{
	buf_done(&t->text);
	buf_done(&t->pieces);
	buf_done(&t->last_path);
}

static void fail(struct transfer *t, const struct err *e)
{
	struct req *r = t->r;
	struct err copy = *e;
	release(t);
	if (!t->begun) {
		rest_fail(r, &copy);
		return;
	}
	http_break(r->x);
	rest_done(r);
}

static void finish(struct transfer *t)
{
	struct req *r = t->r;
	release(t);
	http_end(r->x);
	rest_done(r);
}

static void on_gone(struct req *r)
{
	struct transfer *t = r->own;
	files_cancel(&t->op);
	release(t);
}

/* A signature is for the bytes of one file: with it nothing else can be asked for. */
static int check_signature(struct transfer *t, struct err *e)
{
	struct req *r = t->r;
	struct view signature = rest_query(r, "signature");

	if (!signature.p)
		return 0;
	for (size_t i = 0; i < r->n_query; i++) {
		struct view name = r->query[i].name;
		if (!view_is(name, "signature") && !view_is(name, "expires") && !view_is(name, "user"))
			return err_set(e, ERR_FORBIDDEN, "a signed URL takes no other parameters");
	}
	return sign_check(r->core, &t->place, r->x->method, rest_query(r, "expires"), signature, &r->actor, e);
}

/* The path after /files, absolute. What `..` means in it is the box's business. */
static struct transfer *begin(struct req *r, const struct file_ops *ops)
{
	struct err e = { 0 };
	struct transfer *t = rest_own(r, sizeof(*t));
	if (!t)
		return NULL;
	char *path = arena_alloc(r->x->arena, r->params[1].n + 1);
	if (!path) {
		err_set(&e, ERR_URI_TOO_LONG, "the path is too long");
		rest_fail(r, &e);
		return NULL;
	}
	path[0] = '/';
	memcpy(path + 1, r->params[1].p, r->params[1].n);
	t->r = r;
	t->op.ops = ops;
	t->place = (struct file_place){ .box = r->params[0],
					.path = { path, r->params[1].n + 1 },
					.user = rest_query(r, "user") };
	t->text = BUF_INIT(REST_ANSWER_MAX);
	t->pieces = BUF_INIT(PIECES_MAX);
	t->last_path = BUF_INIT(16 * 1024);
	if (check_signature(t, &e) < 0) {
		rest_fail(r, &e);
		return NULL;
	}
	r->on_gone = on_gone;
	return t;
}

/* ---- what a file is ---- */

static void add_header(struct file_headers *f, const char *name, const char *value)
{
	f->h[f->n++] = (struct http_header){ view_of(name), view_of(value) };
}

static void fill_headers(struct file_headers *f, const struct wire_file_info *info)
{
	time_t s = (time_t)(info->mtime_ms / 1000);
	struct tm tm;

	f->n = 0;
	/* A box's file must not become a page in somebody's browser. */
	add_header(f, "x-content-type-options", "nosniff");
	if (gmtime_r(&s, &tm) && tm.tm_year >= 0 && tm.tm_year < 8000 &&
	    strftime(f->modified, sizeof(f->modified), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		add_header(f, "last-modified", f->modified);
	snprintf(f->mode, sizeof(f->mode), "%04o", info->mode & 07777);
	add_header(f, "x-file-mode", f->mode);
	add_header(f, "x-file-type", files_type_name(info->type));
}

void rest_files_put_bytes(struct json_out *o, const char *key, const char *key_base64, struct view v)
{
	json_out_kstr(o, key, v);
	if (text_is_utf8(v))
		return;
	struct buf b = BUF_INIT(2 * v.n + 16);
	text_base64(&b, v);
	json_out_kstr(o, key_base64, buf_view(&b));
	buf_done(&b);
}

void rest_files_put(struct json_out *o, const struct wire_file_info *info, bool with_path)
{
	char mode[8];
	struct view name = info->name;
	const char *slash = with_path && name.n ? memrchr(name.p, '/', name.n) : NULL;

	json_out_object(o);
	rest_files_put_bytes(o, "name", "name_base64",
			     slash ? view_skip(name, (size_t)(slash + 1 - name.p)) : name);
	if (with_path)
		rest_files_put_bytes(o, "path", "path_base64", name);
	json_out_kz(o, "type", files_type_name(info->type));
	json_out_ku64(o, "size", info->size);
	snprintf(mode, sizeof(mode), "%04o", info->mode & 07777);
	json_out_kz(o, "mode", mode);
	json_out_ku64(o, "uid", info->uid);
	json_out_ku64(o, "gid", info->gid);
	rest_put_time(o, "modified_at", info->mtime_ms);
	if (info->target.n)
		json_out_kstr(o, "target", info->target);
	json_out_end(o, '}');
}

void rest_files_put_sum(struct json_out *o, const struct file_sum *sum)
{
	json_out_object(o);
	json_out_ku64(o, "files", sum->files);
	json_out_ku64(o, "directories", sum->directories);
	json_out_ku64(o, "bytes", sum->bytes);
	json_out_ku64(o, "skipped", sum->skipped);
	json_out_end(o, '}');
}

/* ---- GET: the bytes ---- */

static void refuse_range(struct transfer *t, uint64_t size)
{
	struct req *r = t->r;
	struct err e = { 0 };
	char range[HTTP_RANGE_TEXT];

	http_range_fit(&(struct http_range){ .first = size }, size, range);
	err_set(&e, ERR_RANGE, "the file has %llu bytes, and none in this range", (unsigned long long)size);
	files_cancel(&t->op);
	release(t);
	rest_fail_with(r, &e, &(struct http_header){ VIEW("content-range"), view_of(range) });
}

static void begin_answer(struct transfer *t, int64_t length)
{
	t->begun = true;
	t->exact = length >= 0;
	t->left = t->exact ? (uint64_t)length : 0;
	http_begin(t->r->x, t->range.given ? 206 : 200, "application/octet-stream", length, t->headers.h,
		   t->headers.n);
}

static void on_info(struct file_op *op, const struct wire_file_info *info)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	struct file_headers *f = &t->headers;
	uint64_t n = info->size;

	fill_headers(f, info);
	add_header(f, "accept-ranges", "bytes");
	if (t->range.given) {
		n = http_range_fit(&t->range, info->size, f->range);
		if (n == 0) {
			refuse_range(t, info->size);
			return;
		}
		add_header(f, "content-range", f->range);
	}
	/* Files of /proc and /sys say 0 and hold more: the first bytes will tell. */
	if (n > 0)
		begin_answer(t, (int64_t)n);
}

static void on_data(struct file_op *op, struct view data)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	size_t n = data.n;

	if (!t->begun)
		begin_answer(t, -1);
	/* A file that grows while it is read ends where it was said to end. */
	if (t->exact)
		data = view_head(data, (size_t)MIN(t->left, (uint64_t)data.n));
	t->left -= t->exact ? data.n : 0;
	if (data.n == 0 || http_write(t->r->x, data))
		files_consumed(op, n);
	else
		t->held += n;
}

static void on_writable(struct http_exchange *x)
{
	struct transfer *t = ((struct req *)x->ctx)->own;
	size_t n = t->held;
	t->held = 0;
	files_consumed(&t->op, n);
}

static void on_read_done(struct file_op *op, const struct wire_file_info *info, bool created,
			 const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	if (e) {
		fail(t, e);
		return;
	}
	if (!t->begun)
		begin_answer(t, 0);
	finish(t); /* short of the promise: http_end breaks it */
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_read_done };

static void start_read(struct transfer *t)
{
	struct err e = { 0 };
	if (files_read(t->r->core, &t->r->actor, &t->place, t->range.first, t->range.length,
		       &t->op, &e) < 0)
		fail(t, &e);
}

/* "The last n bytes" needs the size first. */
static void on_size(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);

	if (e) {
		fail(t, e);
		return;
	}
	if (!http_range_from_end(&t->range, info->size)) {
		refuse_range(t, info->size);
		return;
	}
	t->op.ops = &read_ops;
	start_read(t);
}

static const struct file_ops size_ops = { .done = on_size };

static void no_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort_stream(struct http_exchange *x)
{
	struct req *r = x->ctx;
	on_gone(r);
	rest_done(r);
}

static const struct http_ops download_ops = {
	.on_body = no_body,
	.on_abort = on_abort_stream,
	.on_writable = on_writable,
};

static void list(struct req *r);
static void pack(struct req *r);

/* 1: archive=tar, 0: none, -1: something else. */
static int wants_archive(const struct req *r, struct err *e)
{
	struct view v = rest_query(r, "archive");
	if (!v.p || view_is(v, "tar"))
		return v.p != NULL;
	return err_set(e, ERR_INVALID, "archive must be tar");
}

static void get(struct req *r)
{
	bool wants_list;
	struct err e = { 0 };

	if (rest_query_flag(r, "list", &wants_list) < 0)
		return;
	int archive = wants_archive(r, &e);
	if (archive < 0) {
		rest_fail(r, &e);
		return;
	}
	r->x->ops = &download_ops;
	if (wants_list || archive) {
		if (archive)
			pack(r);
		else
			list(r);
		return;
	}
	struct transfer *t = begin(r, &read_ops);
	if (!t)
		return;
	http_range_parse(http_get_header(t->r->x, "range"), &t->range);
	if (!t->range.from_end) {
		start_read(t);
		return;
	}
	t->op.ops = &size_ops;
	if (files_stat(r->core, &r->actor, &t->place, &t->op, &e) < 0)
		fail(t, &e);
}

/* ---- GET ?list=1 ---- */

static void begin_list(struct transfer *t)
{
	if (t->begun)
		return;
	t->begun = true;
	http_begin(t->r->x, 200, "application/json", -1, NULL, 0);
	json_out_init(&t->list, &t->text);
	json_out_object(&t->list);
	json_out_kstr(&t->list, "path", t->place.path);
	json_out_key(&t->list, "entries");
	json_out_array(&t->list);
}

/* What has been written so far goes out; false: the client is behind. */
static bool flush_list(struct transfer *t)
{
	bool more = http_write(t->r->x, buf_view(&t->text));
	buf_clear(&t->text);
	return more;
}

static void on_entries(struct file_op *op, const struct wire_file_info *entries, size_t n, size_t bytes)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);

	begin_list(t);
	for (size_t i = 0; i < n; i++)
		rest_files_put(&t->list, &entries[i], t->page.depth > 1);
	if (n && t->page.limit) {
		buf_clear(&t->last_path);
		buf_add(&t->last_path, entries[n - 1].name);
	}
	if (flush_list(t))
		files_consumed(op, bytes);
	else
		t->held += bytes;
}

/* The cursor of the next page: the last path, in hex, since it may be any bytes. */
static void put_next(struct transfer *t)
{
	struct view v = buf_view(&t->last_path);
	char *hex = t->page.limit && t->op.sum.truncated ? arena_alloc(t->r->x->arena, 2 * v.n + 1) : NULL;

	if (hex)
		text_hex(v.p, v.n, hex);
	if (!t->page.limit)
		return;
	json_out_key(&t->list, "next");
	if (hex)
		json_out_str(&t->list, view_of(hex));
	else
		json_out_null(&t->list);
}

static void on_list_done(struct file_op *op, const struct wire_file_info *info, bool created,
			 const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);

	if (e) {
		fail(t, e);
		return;
	}
	begin_list(t);
	json_out_end(&t->list, ']');
	put_next(t);
	json_out_end(&t->list, '}');
	buf_putc(&t->text, '\n');
	flush_list(t);
	finish(t);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_list_done };

static int read_number(const struct req *r, const char *name, uint64_t max, unsigned *ret, struct err *e)
{
	struct view v = rest_query(r, name);
	uint64_t n = 0;

	if (v.p && (num_u64(v, &n) < 0 || n == 0 || n > max))
		return err_set(e, ERR_INVALID, "%s must be between 1 and %llu", name, (unsigned long long)max);
	*ret = (unsigned)n;
	return 0;
}

static int read_page(struct transfer *t, struct err *e)
{
	struct req *r = t->r;
	struct view cursor = rest_query(r, "cursor");

	if (read_number(r, "depth", FILES_DEPTH_MAX, &t->page.depth, e) < 0 ||
	    read_number(r, "limit", FILES_PAGE_MAX, &t->page.limit, e) < 0)
		return -1;
	if (!cursor.n)
		return 0;
	size_t n = cursor.n / 2;
	char *path = arena_alloc(r->x->arena, n + 1);
	if (!path || text_unhex(cursor, path, n) < 0 || !t->page.limit)
		return err_set(e, ERR_INVALID, "cursor must be the `next` of a page, with its limit");
	t->page.after = (struct view){ path, n };
	return 0;
}

static void list(struct req *r)
{
	struct err e = { 0 };
	struct transfer *t = begin(r, &list_ops);
	if (t && (read_page(t, &e) < 0 ||
		  files_list(r->core, &r->actor, &t->place, &t->page, &t->op, &e) < 0))
		fail(t, &e);
}

/* ---- GET ?archive=tar ---- */

static void begin_archive(struct transfer *t)
{
	if (!t->begun)
		http_begin(t->r->x, 200, "application/x-tar", -1, NULL, 0);
	t->begun = true;
}

static void on_archive(struct file_op *op, struct view data)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	begin_archive(t);
	if (http_write(t->r->x, data))
		files_consumed(op, data.n);
	else
		t->held += data.n;
}

static void on_packed(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	if (e) {
		fail(t, e);
		return;
	}
	begin_archive(t);
	finish(t);
}

static const struct file_ops pack_ops = { .on_data = on_archive, .done = on_packed };

static void pack(struct req *r)
{
	struct err e = { 0 };
	struct transfer *t = begin(r, &pack_ops);
	if (t && files_pack(r->core, &r->actor, &t->place, &t->op, &e) < 0)
		fail(t, &e);
}

/* ---- HEAD ---- */

static void on_stat(struct file_op *op, const struct wire_file_info *info, bool created, const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	struct file_headers f;

	if (e) {
		fail(t, e);
		return;
	}
	fill_headers(&f, info);
	add_header(&f, "accept-ranges", "bytes");
	t->begun = true;
	http_begin(t->r->x, 200, "application/octet-stream", (int64_t)info->size, f.h, f.n);
	finish(t);
}

static const struct file_ops stat_ops = { .done = on_stat };

static void head(struct req *r)
{
	struct err e = { 0 };
	struct transfer *t = begin(r, &stat_ops);
	if (t && files_stat(r->core, &r->actor, &t->place, &t->op, &e) < 0)
		fail(t, &e);
}

/* ---- DELETE ---- */

static void on_removed(struct file_op *op, const struct wire_file_info *info, bool created,
		       const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	struct req *r = t->r;

	if (e) {
		fail(t, e);
		return;
	}
	release(t);
	rest_no_content(r);
}

static const struct file_ops remove_ops = { .done = on_removed };

static void remove_one(struct req *r)
{
	struct err e = { 0 };
	bool recursive;

	if (rest_query_flag(r, "recursive", &recursive) < 0)
		return;
	struct transfer *t = begin(r, &remove_ops);
	if (t && files_remove(r->core, &r->actor, &t->place, recursive, &t->op, &e) < 0)
		fail(t, &e);
}

/* ---- PUT ---- */

static void push(struct transfer *t)
{
	buf_consume(&t->pieces, files_send(&t->op, buf_view(&t->pieces)));
	if (buf_len(&t->pieces))
		return;
	if (t->last)
		files_end(&t->op);
	else
		http_body_resume(t->r->x);
}

static void on_room(struct file_op *op)
{
	push(CONTAINER(op, struct transfer, op));
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct transfer *t = ((struct req *)x->ctx)->own;
	struct err e = { 0 };

	t->last = last;
	if (buf_len(&t->pieces) == 0) /* the usual case: no copy */
		data = view_skip(data, files_send(&t->op, data));
	if (buf_add(&t->pieces, data) < 0) {
		files_cancel(&t->op);
		err_set(&e, ERR_INTERNAL, "the body comes in pieces that are too large");
		fail(t, &e);
		return;
	}
	if (buf_len(&t->pieces))
		http_body_pause(x);
	else if (last)
		files_end(&t->op);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort_stream };

static void on_written(struct file_op *op, const struct wire_file_info *info, bool created,
		       const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	struct req *r = t->r;
	struct buf out = BUF_INIT(64 * 1024);
	struct json_out o;

	if (e) {
		fail(t, e);
		return;
	}
	json_out_init(&o, &out);
	rest_files_put(&o, info, false);
	release(t);
	rest_reply(r, created ? 201 : 200, &out);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void on_unpacked(struct file_op *op, const struct wire_file_info *info, bool created,
			const struct err *e)
{
	struct transfer *t = CONTAINER(op, struct transfer, op);
	struct req *r = t->r;
	struct buf out = BUF_INIT(4096);
	struct json_out o;

	if (e) {
		fail(t, e);
		return;
	}
	json_out_init(&o, &out);
	rest_files_put_sum(&o, &op->sum);
	release(t);
	rest_reply(r, 200, &out);
}

static const struct file_ops unpack_ops = { .on_room = on_room, .done = on_unpacked };

int rest_files_mode(struct view v, unsigned *ret, struct err *e)
{
	unsigned mode = 0;

	for (size_t i = 0; i < v.n; i++) {
		if (v.n > 5 || v.p[i] < '0' || v.p[i] > '7')
			return err_set(e, ERR_INVALID, "mode must be octal, such as 0644");
		mode = mode * 8 + (unsigned)(v.p[i] - '0');
	}
	if (v.p && (mode == 0 || mode > 07777))
		return err_set(e, ERR_INVALID, "mode must be octal, between 1 and 7777");
	*ret = mode;
	return 0;
}

static int start_put(struct req *r, struct transfer *t, bool append, struct err *e)
{
	unsigned mode = 0;
	int archive = wants_archive(r, e);

	if (archive < 0 || rest_files_mode(rest_query(r, "mode"), &mode, e) < 0)
		return -1;
	if (archive && (mode || append))
		return err_set(e, ERR_INVALID, "an archive has modes of its own and cannot be appended");
	if (archive)
		t->op.ops = &unpack_ops;
	return archive ? files_unpack(r->core, &r->actor, &t->place, &t->op, e)
		       : files_write(r->core, &r->actor, &t->place, mode, append, &t->op, e);
}

static void put(struct req *r)
{
	struct err e = { 0 };
	bool append;

	if (rest_query_flag(r, "append", &append) < 0)
		return;
	struct transfer *t = begin(r, &write_ops);
	if (!t)
		return;
	r->x->ops = &upload_ops;
	if (start_put(r, t, append, &e) < 0)
		fail(t, &e);
}

const struct route rest_files_routes[] = {
	{ "PUT", "/v1/sandboxes/{id}/files/{path}", put, .auth = REST_SIGNED, .body = REST_STREAM,
	  .query = "mode user append archive signature expires" },
	{ "HEAD", "/v1/sandboxes/{id}/files/{path}", head, .auth = REST_SIGNED,
	  .query = "user signature expires" },
	{ "GET", "/v1/sandboxes/{id}/files/{path}", get, .auth = REST_SIGNED,
	  .query = "user list depth limit cursor archive signature expires" },
	{ "DELETE", "/v1/sandboxes/{id}/files/{path}", remove_one, .query = "user recursive" },
	{ 0 },
};

const struct route *rest_files_route(const char *method)
{
	for (const struct route *t = rest_files_routes; t->method; t++)
		if (view_is(view_of(t->method), method) && view_is(view_of(t->pattern), rest_files_routes[0].pattern))
			return t;
	return NULL;
}
