/*
 * A file's bytes as an answer: see answer_file.h.
 */
#include "answer_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transfer.h"
#include "poison.h"

/* ---- the head ---- */

void answer_file_add(struct answer_file_head *f, const char *name, const char *value)
{
	f->h[f->n++] = (struct http_header){ view_of(name), view_of(value) };
}

void answer_file_fill(struct answer_file_head *f, const struct file_info *info)
{
	time_t s = (time_t)(info->mtime_ms / 1000);
	struct tm tm;

	f->n = 0;
	/* A box's file must not become a page in somebody's browser. */
	answer_file_add(f, "x-content-type-options", "nosniff");
	if (gmtime_r(&s, &tm) && tm.tm_year >= 0 && tm.tm_year < 8000 &&
	    strftime(f->modified, sizeof(f->modified), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		answer_file_add(f, "last-modified", f->modified);
	snprintf(f->mode, sizeof(f->mode), "%04o", info->mode & 07777);
	answer_file_add(f, "x-file-mode", f->mode);
	answer_file_add(f, "x-file-type", files_type_name(info->type));
}

/* ---- the bytes ---- */

struct bytes {
	struct download d;
	struct request *r;
	struct answer_file_head head;
	const char *type;
};

static struct bytes *bytes_of(struct download *d)
{
	return CONTAINER(d, struct bytes, d);
}

static void on_info(struct download *d, const struct file_info *info)
{
	struct answer_file_head *h = &bytes_of(d)->head;

	answer_file_fill(h, info);
	answer_file_add(h, "accept-ranges", "bytes");
	if (d->range.given)
		answer_file_add(h, "content-range", d->range_text);
}

static void on_begin(struct download *d, int64_t length)
{
	struct bytes *b = bytes_of(d);

	http_begin(b->r->x, d->range.given ? 206 : 200, b->type, length, b->head.h, b->head.n);
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
	answer_fail_with(bytes_of(d)->r, &e, &range);
}

static void on_read(struct download *d, const struct err *e)
{
	struct request *r = bytes_of(d)->r;

	if (e && !d->begun) {
		answer_fail(r, e);
		return;
	}
	if (e)
		http_break(r->x);
	else
		http_end(r->x); /* short of the promise: it breaks it */
	request_done(r);
}

static const struct download_ops bytes_ops = { .on_info = on_info,
					       .on_begin = on_begin,
					       .on_bytes = on_bytes,
					       .on_no_range = on_no_range,
					       .done = on_read };

static void on_bytes_gone(struct request *r)
{
	struct bytes *b = r->own;

	download_cancel(&b->d);
}

static void on_bytes_writable(struct http_exchange *x)
{
	struct bytes *b = ((struct request *)x->ctx)->own;

	download_writable(&b->d);
}

static const struct http_ops bytes_http = { .on_body = request_drop_body,
					    .on_abort = request_abort,
					    .on_writable = on_bytes_writable };

void answer_file(struct request *r, const struct file_place *p)
{
	answer_file_as(r, p, "application/octet-stream");
}

void answer_file_as(struct request *r, const struct file_place *p, const char *type)
{
	struct bytes *b;
	struct err e = { 0 };

	free(TAKE_PTR(r->own));
	b = request_own(r, sizeof(*b));
	if (!b)
		return;
	b->r = r;
	b->type = type;
	r->on_gone = on_bytes_gone;
	r->x->ops = &bytes_http;
	if (download_start(r->core, &r->actor, p, http_get_header(r->x, "range"), &bytes_ops, &b->d, &e) < 0)
		answer_fail(r, &e);
}
