/*
 * GET /files: a file's bytes, whole or a range of them, plain or as gzip.
 *
 * gzip is given to who asks for it alone ("Accept-Encoding: gzip"): every client
 * library offers it beside others, and compressing costs more than a box's network.
 */
#include <stdio.h>
#include <time.h>
#include <zlib.h>

#include "envd_impl.h"
#include "transfer.h"
#include "text.h"
#include "poison.h"

#define HEADERS        8
#define CHUNK          (64u * 1024)
#define GZIP           (15 + 16) /* zlib's name for it */
#define LEVEL          1
#define NAME_MAX_BYTES 400

struct transfer {
	struct download d;
	struct request *c;
	bool gzip, deflating;
	z_stream z;
	struct http_header headers[HEADERS];
	size_t n_headers;
	char modified[40], name[NAME_MAX_BYTES];
};

static struct transfer *of(struct download *d)
{
	return CONTAINER(d, struct transfer, d);
}

static void release(struct request *c)
{
	struct transfer *t = c->own;
	download_cancel(&t->d);
	if (t->deflating)
		deflateEnd(&t->z);
}

/* ---- what is asked for ---- */

struct codings {
	bool gzip, identity; /* may be given */
	bool only_gzip;      /* nothing else is named */
};

/* "gzip;q=0.5": whether the weight is zero */
static bool is_refused(struct view parameters)
{
	while (parameters.p && parameters.n) {
		struct view one = view_trim(view_split(parameters, ';', &parameters)), value;
		struct view key = view_trim(view_split(one, '=', &value));
		if (!view_eq_nocase(key, VIEW("q")))
			continue;
		value = view_trim(value);
		for (size_t i = 0; i < value.n; i++)
			if (value.p[i] != '0' && value.p[i] != '.')
				return false;
		return value.n > 0;
	}
	return false;
}

static struct codings read_codings(struct view header)
{
	struct codings c = { .identity = true, .only_gzip = true };
	bool named_identity = false, any = false;

	while (header.p && header.n) {
		struct view one = view_split(header, ',', &header), parameters;
		struct view name = view_trim(view_split(one, ';', &parameters));
		bool no = is_refused(parameters);
		if (view_eq_nocase(name, VIEW("gzip"))) {
			c.gzip = !no;
			any |= !no;
		} else if (view_eq_nocase(name, VIEW("identity"))) {
			named_identity = true;
			c.identity = !no;
			c.only_gzip &= no;
		} else if (view_is(name, "*")) {
			c.gzip |= !no;
			if (!named_identity)
				c.identity = !no;
			c.only_gzip = false;
		} else if (name.n) {
			c.only_gzip = false;
		}
	}
	c.only_gzip &= any;
	return c;
}

/* ---- the head of the answer ---- */

static void add_header(struct transfer *t, const char *name, const char *value)
{
	t->headers[t->n_headers++] = (struct http_header){ view_of(name), view_of(value) };
}

static void put_name(struct transfer *t)
{
	struct buf b = BUF_INIT(NAME_MAX_BYTES);

	buf_puts(&b, "inline; filename*=utf-8''");
	text_percent(&b, view_head(envd_base(t->d.place.path), 100));
	if (!b.bad && view_to_str(buf_view(&b), t->name, sizeof(t->name)) >= 0)
		add_header(t, "content-disposition", t->name);
	buf_done(&b);
}

static void put_headers(struct transfer *t, const struct file_info *info)
{
	time_t s = (time_t)(info->mtime_ms / 1000);
	struct tm tm;

	t->n_headers = 0;
	t->headers[t->n_headers++] = envd_cors[0];
	/* A box's file must not become a page in somebody's browser. */
	add_header(t, "x-content-type-options", "nosniff");
	add_header(t, "vary", "accept-encoding");
	if (t->gzip)
		add_header(t, "content-encoding", "gzip");
	else
		add_header(t, "accept-ranges", "bytes");
	if (gmtime_r(&s, &tm) && tm.tm_year >= 0 && tm.tm_year < 8000 &&
	    strftime(t->modified, sizeof(t->modified), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		add_header(t, "last-modified", t->modified);
	put_name(t);
}

static void on_info(struct download *d, const struct file_info *info)
{
	struct transfer *t = of(d);

	put_headers(t, info);
	if (d->range.given)
		add_header(t, "content-range", d->range_text);
}

static void on_no_range(struct download *d, uint64_t size)
{
	struct request *c = of(d)->c;
	struct http_header h[] = { envd_cors[0], { VIEW("content-range"), view_of(d->range_text) } };

	http_reply(c->x, 416, NULL, VIEW_NONE, h, ELEMS(h));
	request_done(c);
}

static void on_begin(struct download *d, int64_t length)
{
	struct transfer *t = of(d);

	http_begin(t->c->x, d->range.given ? 206 : 200, "application/octet-stream", t->gzip ? -1 : length,
		   t->headers, t->n_headers);
}

/* ---- the bytes ---- */

/* False: the client is behind. */
static bool deflate_some(struct transfer *t, struct view data, int flush)
{
	char room[CHUNK];
	bool more = true;

	t->z.next_in = (Bytef *)(uintptr_t)data.p;
	t->z.avail_in = (uInt)data.n;
	do {
		t->z.next_out = (Bytef *)room;
		t->z.avail_out = sizeof(room);
		(void)deflate(&t->z, flush); /* cannot fail with room for its output */
		more = http_write(t->c->x, (struct view){ room, sizeof(room) - t->z.avail_out });
	} while (t->z.avail_out == 0);
	return more;
}

static bool on_bytes(struct download *d, struct view data)
{
	struct transfer *t = of(d);

	return t->gzip ? deflate_some(t, data, Z_NO_FLUSH) : http_write(t->c->x, data);
}

static void on_read(struct download *d, const struct err *e)
{
	struct transfer *t = of(d);
	struct request *c = t->c;

	if (e && !d->begun) {
		answer_fail(c, e);
		return;
	}
	if (e || (d->exact && d->left)) {
		http_break(c->x);
		request_done(c);
		return;
	}
	if (t->gzip)
		deflate_some(t, VIEW(""), Z_FINISH);
	http_end(c->x);
	request_done(c);
}

static const struct download_ops download_ops = { .on_info = on_info,
						  .on_begin = on_begin,
						  .on_bytes = on_bytes,
						  .on_no_range = on_no_range,
						  .done = on_read };

/* ---- the exchange ---- */

static void on_writable(struct http_exchange *x)
{
	struct transfer *t = ((struct request *)x->ctx)->own;

	download_writable(&t->d);
}

static const struct http_ops ops = { .on_body = request_drop_body,
				     .on_abort = request_abort,
				     .on_writable = on_writable };

static int choose_coding(struct transfer *t, bool range, struct err *e)
{
	struct view header = http_get_header(t->c->x, "accept-encoding");
	struct codings c = header.p ? read_codings(header) : (struct codings){ .identity = true };

	t->gzip = !range && c.gzip && (c.only_gzip || !c.identity);
	if (!t->gzip && !c.identity)
		return err_set(e, ERR_INVALID, "no acceptable encoding");
	if (t->gzip && deflateInit2(&t->z, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, ERR_UNAVAILABLE, "out of memory");
	t->deflating = t->gzip;
	return 0;
}

void envd_download(struct request *c)
{
	struct err e = { 0 };
	struct transfer *t = envd_own(c, sizeof(*t), release);
	struct view path = http_get_query(c->x, "path");

	if (!t)
		return;
	t->c = c;
	c->x->ops = &ops;
	if (envd_path(c->x->arena, path, &path, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	struct view range = http_get_header(c->x, "range");
	struct http_range parsed;
	http_range_parse(range, &parsed);
	if (choose_coding(t, parsed.given, &e) < 0) {
		envd_fail_status(c, e.code == ERR_INVALID ? 406 : 503, e.msg);
		return;
	}
	struct file_place place = envd_place(c, path);
	if (download_start(c->core, &c->actor, &place, range, &download_ops, &t->d, &e) < 0)
		answer_fail(c, &e);
}
