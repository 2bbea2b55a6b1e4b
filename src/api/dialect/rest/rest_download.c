/*
 * GET /v1/sandboxes/{id}/files/{path}: a file's bytes, a directory's list, a tree
 * as a tar archive. Bytes are taken from the box only as fast as the client takes
 * them.
 */
#include "answer_file.h"

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
	struct request *r = x->ctx;

	r->on_gone(r);
	request_done(r);
}

/* ---- ?list=1 and ?archive=tar: answers of no known length ---- */

struct listing {
	struct file_op op;
	struct request *r;
	struct file_place place;
	bool begun;
	size_t held; /* bytes of the box's that the client has not taken */
	/* list */
	struct file_page page;
	struct buf last_path; /* of the last entry, where pages are asked for */
};

static struct listing *listing_of(struct file_op *op)
{
	return CONTAINER(op, struct listing, op);
}

static void on_listing_gone(struct request *r)
{
	struct listing *s = r->own;

	files_cancel(&s->op);
	buf_done(&s->last_path);
}

static void on_listing_writable(struct http_exchange *x)
{
	struct listing *s = ((struct request *)x->ctx)->own;
	size_t n = s->held;

	s->held = 0;
	files_consumed(&s->op, n);
}

static const struct http_ops listing_http = { .on_body = no_body,
					      .on_abort = on_abort,
					      .on_writable = on_listing_writable };

static struct listing *listing_new(struct request *r, const struct file_place *p, const struct file_ops *ops)
{
	struct listing *s = request_own(r, sizeof(*s));

	if (!s)
		return NULL;
	s->r = r;
	s->place = *p;
	s->op.ops = ops;
	s->last_path = BUF_INIT(16 * 1024);
	r->on_gone = on_listing_gone;
	r->x->ops = &listing_http;
	return s;
}

/* `bytes` of the box's became `data`. */
static void pass(struct listing *s, struct view data, size_t bytes)
{
	if (http_write(s->r->x, data))
		files_consumed(&s->op, bytes);
	else
		s->held += bytes;
}

static void finish(struct listing *s)
{
	struct request *r = s->r;

	buf_done(&s->last_path);
	http_end(r->x);
	request_done(r);
}

static void fail(struct listing *s, const struct err *e)
{
	struct request *r = s->r;

	buf_done(&s->last_path);
	if (!s->begun) {
		answer_fail(r, e);
		return;
	}
	http_break(r->x);
	request_done(r);
}

/* ---- the list ---- */

static struct json_out *begin_list(struct listing *s)
{
	struct json_out *o = &s->r->json;

	if (s->begun)
		return o;
	s->begun = true;
	http_begin(s->r->x, 200, "application/json", -1, NULL, 0);
	answer_json(s->r);
	json_out_object(o);
	json_out_kstr(o, "path", s->place.path);
	json_out_key(o, "entries");
	json_out_array(o);
	return o;
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct listing *s = listing_of(op);
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
static void put_next(struct listing *s, struct json_out *o)
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
	struct listing *s = listing_of(op);

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

static int read_number(const struct request *r, const char *name, uint64_t max, unsigned *ret, struct err *e)
{
	struct view v = request_query(r, name);
	uint64_t n = 0;

	if (v.p && (num_u64(v, &n) < 0 || n == 0 || n > max))
		return err_set(e, ERR_INVALID, "%s must be between 1 and %llu", name,
			       (unsigned long long)max);
	*ret = (unsigned)n;
	return 0;
}

static int read_page(const struct request *r, struct file_page *ret, struct err *e)
{
	struct view cursor = request_query(r, "cursor");

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

static void list(struct request *r, const struct file_place *p)
{
	struct err e = { 0 };
	struct listing *s = listing_new(r, p, &list_ops);

	if (s && (read_page(r, &s->page, &e) < 0 ||
		  files_list(r->core, &r->actor, &s->place, &s->page, &s->op, &e) < 0))
		fail(s, &e);
}

/* ---- the archive ---- */

static void begin_archive(struct listing *s)
{
	if (!s->begun)
		http_begin(s->r->x, 200, "application/x-tar", -1, NULL, 0);
	s->begun = true;
}

static void on_archive(struct file_op *op, struct view data)
{
	struct listing *s = listing_of(op);

	begin_archive(s);
	pass(s, data, data.n);
}

static void on_packed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct listing *s = listing_of(op);

	if (e) {
		fail(s, e);
		return;
	}
	begin_archive(s);
	finish(s);
}

static const struct file_ops pack_ops = { .on_data = on_archive, .done = on_packed };

static void pack(struct request *r, const struct file_place *p)
{
	struct err e = { 0 };
	struct listing *s = listing_new(r, p, &pack_ops);

	if (s && files_pack(r->core, &r->actor, &s->place, &s->op, &e) < 0)
		fail(s, &e);
}

void rest_download(struct request *r)
{
	struct file_place p;
	struct err e = { 0 };
	bool wants_list;
	int archive;

	if (request_query_flag(r, "list", &wants_list) < 0)
		return;
	archive = rest_files_archive(r, &e);
	if (archive < 0 || rest_files_place(r, &p, &e) < 0)
		answer_fail(r, &e);
	else if (archive)
		pack(r, &p);
	else if (wants_list)
		list(r, &p);
	else
		answer_file(r, &p);
}
