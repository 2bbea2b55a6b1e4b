/*
 * GET /v1/sandboxes/{id}/files/{path}: a file's bytes, a directory's list, a tree
 * as a tar archive. Bytes are taken from the box only as fast as the client takes
 * them.
 */
#include "rest_download.h"

#include <stdlib.h>

#include "file.h"
#include "num.h"
#include "rest_files.h"
#include "text.h"
#include "poison.h"

static void no_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;

	r->on_gone(r);
	rest_done(r);
}

/* ---- the bytes ---- */

struct bytes {
	struct download d;
	struct req *r;
	struct rest_files_head head;
};

static struct bytes *bytes_of(struct download *d)
{
	return CONTAINER(d, struct bytes, d);
}

static void on_info(struct download *d, const struct file_info *info)
{
	struct rest_files_head *h = &bytes_of(d)->head;

	rest_files_head_fill(h, info);
	rest_files_head_add(h, "accept-ranges", "bytes");
	if (d->range.given)
		rest_files_head_add(h, "content-range", d->range_text);
}

static void on_begin(struct download *d, int64_t length)
{
	struct bytes *b = bytes_of(d);

	http_begin(b->r->x, d->range.given ? 206 : 200, "application/octet-stream", length, b->head.h,
		   b->head.n);
}

static bool on_bytes(struct download *d, struct view data)
{
	return http_write(bytes_of(d)->r->x, data);
}

static void on_no_range(struct download *d, uint64_t size)
{
	struct http_header range = { VIEW("content-range"), view_of(d->range_text) };
	struct err e = { 0 };

	err_set(&e, ERR_RANGE, "the file has %llu bytes, and none in this range", (unsigned long long)size);
	rest_fail_with(bytes_of(d)->r, &e, &range);
}

static void on_read(struct download *d, const struct err *e)
{
	struct req *r = bytes_of(d)->r;

	if (e && !d->begun) {
		rest_fail(r, e);
		return;
	}
	if (e)
		http_break(r->x);
	else
		http_end(r->x); /* short of the promise: it breaks it */
	rest_done(r);
}

static const struct download_ops bytes_ops = { .on_info = on_info,
					       .on_begin = on_begin,
					       .on_bytes = on_bytes,
					       .on_no_range = on_no_range,
					       .done = on_read };

static void on_bytes_gone(struct req *r)
{
	struct bytes *b = r->own;

	download_cancel(&b->d);
}

static void on_bytes_writable(struct http_exchange *x)
{
	struct bytes *b = ((struct req *)x->ctx)->own;

	download_writable(&b->d);
}

static const struct http_ops bytes_http = { .on_body = no_body,
					    .on_abort = on_abort,
					    .on_writable = on_bytes_writable };

void rest_download_bytes(struct req *r, const struct file_place *p)
{
	struct bytes *b;
	struct err e = { 0 };

	free(TAKE_PTR(r->own));
	b = rest_own(r, sizeof(*b));
	if (!b)
		return;
	b->r = r;
	r->on_gone = on_bytes_gone;
	r->x->ops = &bytes_http;
	if (download_start(r->core, &r->actor, p, http_get_header(r->x, "range"), &bytes_ops, &b->d, &e) < 0)
		rest_fail(r, &e);
}

/* ---- ?list=1 and ?archive=tar: answers of no known length ---- */

struct stream {
	struct file_op op;
	struct req *r;
	struct file_place place;
	bool begun;
	size_t held; /* bytes of the box's that the client has not taken */
	/* list */
	struct file_page page;
	struct buf last_path; /* of the last entry, where pages are asked for */
};

static struct stream *stream_of(struct file_op *op)
{
	return CONTAINER(op, struct stream, op);
}

static void on_stream_gone(struct req *r)
{
	struct stream *s = r->own;

	files_cancel(&s->op);
	buf_done(&s->last_path);
}

static void on_stream_writable(struct http_exchange *x)
{
	struct stream *s = ((struct req *)x->ctx)->own;
	size_t n = s->held;

	s->held = 0;
	files_consumed(&s->op, n);
}

static const struct http_ops stream_http = { .on_body = no_body,
					     .on_abort = on_abort,
					     .on_writable = on_stream_writable };

static struct stream *stream_new(struct req *r, const struct file_place *p, const struct file_ops *ops)
{
	struct stream *s = rest_own(r, sizeof(*s));

	if (!s)
		return NULL;
	s->r = r;
	s->place = *p;
	s->op.ops = ops;
	s->last_path = BUF_INIT(16 * 1024);
	r->on_gone = on_stream_gone;
	r->x->ops = &stream_http;
	return s;
}

/* `bytes` of the box's became `data`. */
static void pass(struct stream *s, struct view data, size_t bytes)
{
	if (http_write(s->r->x, data))
		files_consumed(&s->op, bytes);
	else
		s->held += bytes;
}

static void finish(struct stream *s)
{
	struct req *r = s->r;

	buf_done(&s->last_path);
	http_end(r->x);
	rest_done(r);
}

static void fail(struct stream *s, const struct err *e)
{
	struct req *r = s->r;

	buf_done(&s->last_path);
	if (!s->begun) {
		rest_fail(r, e);
		return;
	}
	http_break(r->x);
	rest_done(r);
}

/* ---- the list ---- */

static struct json_out *begin_list(struct stream *s)
{
	struct json_out *o = &s->r->json;

	if (s->begun)
		return o;
	s->begun = true;
	http_begin(s->r->x, 200, "application/json", -1, NULL, 0);
	rest_json(s->r);
	json_out_object(o);
	json_out_kstr(o, "path", s->place.path);
	json_out_key(o, "entries");
	json_out_array(o);
	return o;
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct stream *s = stream_of(op);
	struct json_out *o = begin_list(s);

	for (size_t i = 0; i < n; i++)
		rest_files_put(o, &entries[i], s->page.depth > 1);
	if (n && s->page.limit) {
		buf_clear(&s->last_path);
		buf_add(&s->last_path, entries[n - 1].name);
	}
	pass(s, buf_view(&s->r->out), bytes);
	buf_clear(&s->r->out);
}

/* The cursor of the next page: the last path, in hex, since it may be any bytes. */
static void put_next(struct stream *s, struct json_out *o)
{
	struct view v = buf_view(&s->last_path);
	char *hex = s->page.limit && s->op.sum.truncated ? arena_alloc(s->r->x->arena, 2 * v.n + 1) : NULL;

	if (hex)
		text_hex(v.p, v.n, hex);
	if (s->page.limit)
		json_out_kz(o, "next", hex);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct stream *s = stream_of(op);

	if (e) {
		fail(s, e);
		return;
	}
	struct json_out *o = begin_list(s);
	json_out_end(o, ']');
	put_next(s, o);
	json_out_end(o, '}');
	buf_putc(&s->r->out, '\n');
	http_write(s->r->x, buf_view(&s->r->out));
	finish(s);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static int read_number(const struct req *r, const char *name, uint64_t max, unsigned *ret, struct err *e)
{
	struct view v = rest_query(r, name);
	uint64_t n = 0;

	if (v.p && (num_u64(v, &n) < 0 || n == 0 || n > max))
		return err_set(e, ERR_INVALID, "%s must be between 1 and %llu", name,
			       (unsigned long long)max);
	*ret = (unsigned)n;
	return 0;
}

static int read_page(const struct req *r, struct file_page *ret, struct err *e)
{
	struct view cursor = rest_query(r, "cursor");

	if (read_number(r, "depth", FILES_DEPTH_MAX, &ret->depth, e) < 0 ||
	    read_number(r, "limit", FILES_PAGE_MAX, &ret->limit, e) < 0)
		return -1;
	if (!cursor.n)
		return 0;
	size_t n = cursor.n / 2;
	char *path = arena_alloc(r->x->arena, n + 1);
	if (!path || text_unhex(cursor, path, n) < 0 || !ret->limit)
		return err_set(e, ERR_INVALID, "cursor must be the `next` of a page, with its limit");
	ret->after = (struct view){ path, n };
	return 0;
}

static void list(struct req *r, const struct file_place *p)
{
	struct err e = { 0 };
	struct stream *s = stream_new(r, p, &list_ops);

	if (s && (read_page(r, &s->page, &e) < 0 ||
		  files_list(r->core, &r->actor, &s->place, &s->page, &s->op, &e) < 0))
		fail(s, &e);
}

/* ---- the archive ---- */

static void begin_archive(struct stream *s)
{
	if (!s->begun)
		http_begin(s->r->x, 200, "application/x-tar", -1, NULL, 0);
	s->begun = true;
}

static void on_archive(struct file_op *op, struct view data)
{
	struct stream *s = stream_of(op);

	begin_archive(s);
	pass(s, data, data.n);
}

static void on_packed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct stream *s = stream_of(op);

	if (e) {
		fail(s, e);
		return;
	}
	begin_archive(s);
	finish(s);
}

static const struct file_ops pack_ops = { .on_data = on_archive, .done = on_packed };

static void pack(struct req *r, const struct file_place *p)
{
	struct err e = { 0 };
	struct stream *s = stream_new(r, p, &pack_ops);

	if (s && files_pack(r->core, &r->actor, &s->place, &s->op, &e) < 0)
		fail(s, &e);
}

void rest_download(struct req *r)
{
	struct file_place p;
	struct err e = { 0 };
	bool wants_list;
	int archive;

	if (rest_query_flag(r, "list", &wants_list) < 0)
		return;
	archive = rest_files_archive(r, &e);
	if (archive < 0 || rest_files_place(r, &p, &e) < 0)
		rest_fail(r, &e);
	else if (archive)
		pack(r, &p);
	else if (wants_list)
		list(r, &p);
	else
		rest_download_bytes(r, &p);
}
