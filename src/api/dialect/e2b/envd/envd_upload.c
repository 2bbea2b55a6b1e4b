/*
 * POST /files: one file as the body (application/octet-stream), or any number of
 * them as a form, plain or as gzip. Bytes go to the box as fast as it takes them:
 *
 *   body ─> raw ─(inflate)─> plain ─(form)─> the file that is being written
 *
 * and nothing is taken from a stage while the next one is full.
 */
#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "envd_impl.h"
#include "multipart.h"
#include "poison.h"

#define CHUNK          (64u * 1024)
#define GZIP           (15 + 16)
#define FILES_MAX      10000
#define METADATA       "x-metadata-"
#define METADATA_KEY   246
#define METADATA_BYTES 4096
#define METADATA_N     64

struct intake {
	struct file_op op;
	struct request *c;
	struct view path; /* of the query; p == NULL: each part has its own */
	struct json_strmap metadata;
	struct buf raw, plain;
	bool last; /* the body is complete */
	bool form, gzip, inflating, inflated;
	bool writing;     /* a file is open */
	bool ending;      /* and has all of its bytes: its answer is awaited */
	struct view left; /* of the piece that is being written; within plain or the parser */
	size_t taken;     /* of plain, to be dropped when that is written */
	struct multipart parts;
	bool has_parts;
	z_stream z;
	struct buf answer;
	struct json_out o;
	size_t n_files;
};

static void release(struct request *c)
{
	struct intake *u = c->own;

	files_cancel(&u->op);
	if (u->inflating)
		inflateEnd(&u->z);
	if (u->has_parts)
		multipart_done(&u->parts);
	buf_done(&u->raw);
	buf_done(&u->plain);
	buf_done(&u->answer);
}

static int fail(struct intake *u, enum err_code code, const char *why)
{
	struct err e = { 0 };
	err_set(&e, code, "%s", why);
	answer_fail(u->c, &e);
	return -1;
}

/* ---- stages: 1: went on, 0: waits, -1: the call is over ---- */

static int open_file(struct intake *u, struct view path)
{
	struct request *c = u->c;
	struct err e = { 0 };
	struct view clean;

	if (u->n_files == FILES_MAX)
		return fail(u, ERR_INVALID, "too many files");
	if (!path.n)
		return fail(u, ERR_INVALID, "a file has neither a name in the form nor a path in the query");
	u->op.detail = true;
	u->op.metadata = u->metadata;
	if (envd_path(c->x->arena, path, &clean, &e) < 0) {
		answer_fail(c, &e);
		return -1;
	}
	struct file_place place = envd_place(c, clean);
	if (files_write(c->core, &c->actor, &place, 0, false, &u->op, &e) < 0) {
		answer_fail(c, &e);
		return -1;
	}
	u->writing = true;
	return 1;
}

/* A file of the form. Its name is optional where the query has a path, which is one file's. */
static int open_part(struct intake *u)
{
	if (u->path.p && u->n_files)
		return fail(u, ERR_INVALID,
			    "several files cannot be written to one path: name them in the form instead");
	return open_file(u, u->path.p ? u->path : u->parts.filename);
}

static void close_file(struct intake *u)
{
	u->ending = true;
	files_end(&u->op);
}

static int inflate_some(struct intake *u)
{
	struct view in = buf_view(&u->raw);
	char *room = buf_reserve(&u->plain, CHUNK);

	if (!room)
		return fail(u, ERR_UNAVAILABLE, "out of memory");
	if (u->inflated) { /* what follows the archive means nothing */
		buf_clear(&u->raw);
		return 1;
	}
	u->z.next_in = (Bytef *)(uintptr_t)in.p;
	u->z.avail_in = (uInt)in.n;
	u->z.next_out = (Bytef *)room;
	u->z.avail_out = CHUNK;
	int r = inflate(&u->z, Z_NO_FLUSH);
	buf_consume(&u->raw, in.n - u->z.avail_in);
	buf_commit(&u->plain, CHUNK - u->z.avail_out);
	u->inflated = r == Z_STREAM_END;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return fail(u, ERR_INVALID, "the body is not gzip");
	return 1;
}

/* Fills `plain`, which is empty. */
static int refill(struct intake *u)
{
	if (buf_len(&u->raw) == 0)
		return 0;
	if (u->gzip)
		return inflate_some(u);
	buf_add(&u->plain, buf_view(&u->raw));
	buf_clear(&u->raw);
	return u->plain.bad ? fail(u, ERR_UNAVAILABLE, "out of memory") : 1;
}

static int drop(struct intake *u)
{
	buf_consume(&u->plain, u->taken);
	u->taken = 0;
	return 1;
}

static int step_form(struct intake *u)
{
	struct view before = buf_view(&u->plain), in = before;
	int ev = multipart_next(&u->parts, &in);

	switch (ev) {
	case MULTIPART_DATA:
		if (u->writing)
			u->left = u->parts.data;
		break;
	case MULTIPART_PART:
		if (view_is(u->parts.name, "file") && open_part(u) < 0)
			return -1;
		break;
	case MULTIPART_PART_END:
		if (u->writing)
			close_file(u);
		break;
	case MULTIPART_MORE:
	case MULTIPART_END:
		break;
	default:
		return fail(u, ERR_INVALID, u->parts.why ? u->parts.why : "the form cannot be read");
	}
	u->taken = ev == MULTIPART_END ? before.n : before.n - in.n;
	return u->left.n ? 1 : drop(u);
}

static int step_plain(struct intake *u)
{
	u->left = buf_view(&u->plain);
	u->taken = u->left.n;
	return 1;
}

static int push(struct intake *u)
{
	u->left = view_skip(u->left, files_send(&u->op, u->left));
	return u->left.n ? 0 : drop(u); /* on_room comes back */
}

static void finish(struct intake *u)
{
	if (u->gzip && !u->inflated) {
		fail(u, ERR_INVALID, "the body ends within the archive");
		return;
	}
	if (u->form && !multipart_is_over(&u->parts)) {
		fail(u, ERR_INVALID, "the form is not complete");
		return;
	}
	if (u->writing) {
		close_file(u);
		return;
	}
	if (!u->n_files) {
		fail(u, ERR_INVALID, "the form has no part with the name 'file'");
		return;
	}
	json_out_end(&u->o, ']');
	struct buf answer = u->answer;
	u->answer = BUF_INIT(0);
	answer_reply(u->c, 200, &answer);
}

static void pump(struct intake *u)
{
	int r = 1;

	while (r > 0 && !u->ending) {
		if (u->left.n)
			r = push(u);
		else if (buf_len(&u->plain))
			r = u->form ? step_form(u) : step_plain(u);
		else
			r = refill(u);
	}
	if (r < 0 || u->ending || u->left.n || buf_len(&u->plain) || buf_len(&u->raw))
		return;
	if (u->last)
		finish(u);
	else
		http_body_resume(u->c->x);
}

/* ---- the file ---- */

static void on_room(struct file_op *op)
{
	pump(CONTAINER(op, struct intake, op));
}

static void put_entry(struct intake *u, const struct file_info *info)
{
	struct view path = envd_clean(u->c->x->arena, info->path);

	json_out_object(&u->o);
	json_out_kstr(&u->o, "path", path);
	json_out_kstr(&u->o, "name", envd_base(path));
	json_out_kz(&u->o, "type", "file");
	if (info->metadata.n) {
		json_out_key(&u->o, "metadata");
		json_out_object(&u->o);
		for (size_t i = 0; i < info->metadata.n; i++) {
			json_out_key_view(&u->o, info->metadata.keys[i]);
			json_out_str(&u->o, info->metadata.values[i]);
		}
		json_out_end(&u->o, '}');
	}
	json_out_end(&u->o, '}');
	u->n_files++;
}

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct intake *u = CONTAINER(op, struct intake, op);

	if (e) {
		answer_fail(u->c, e);
		return;
	}
	put_entry(u, info);
	u->writing = u->ending = false;
	pump(u);
}

static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

/* ---- the exchange ---- */

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct intake *u = ((struct request *)x->ctx)->own;

	u->last = last;
	if (buf_add(&u->raw, data) < 0) {
		fail(u, ERR_UNAVAILABLE, "the body comes in pieces that are too large");
		return;
	}
	http_body_pause(x);
	pump(u);
}

static const struct http_ops ops = { .on_body = on_body, .on_abort = request_abort };

static bool is_printable(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < 0x20 || v.p[i] > 0x7e)
			return false;
	return true;
}

/* X-Metadata-KEY: the names of headers are in lower case already. */
static int read_metadata(struct intake *u, struct err *e)
{
	const struct http_exchange *x = u->c->x;
	struct json_strmap *m = &u->metadata;
	size_t bytes = 0, prefix = sizeof(METADATA) - 1;

	m->keys = arena_array(x->arena, METADATA_N, sizeof(struct view));
	m->values = arena_array(x->arena, METADATA_N, sizeof(struct view));
	if (!m->keys || !m->values)
		return err_set(e, ERR_UNAVAILABLE, "out of memory");
	for (size_t i = 0; i < x->n_headers; i++) {
		struct view key = x->headers[i].name, value = x->headers[i].value;
		if (!view_starts(key, METADATA))
			continue;
		key = view_skip(key, prefix);
		if (key.n == 0 || key.n > METADATA_KEY || !is_printable(key) || !is_printable(value))
			return err_set(e, ERR_INVALID,
				       "metadata must be printable, with keys of 1 to %d bytes",
				       METADATA_KEY);
		bytes += key.n + value.n;
		if (m->n == METADATA_N || bytes > METADATA_BYTES)
			return err_set(e, ERR_INVALID,
				       "metadata is larger than %d bytes or has more than %d keys",
				       METADATA_BYTES, METADATA_N);
		m->keys[m->n] = key;
		m->values[m->n++] = value;
	}
	return 0;
}

static int read_coding(struct intake *u, struct err *e)
{
	struct view coding = http_get_header(u->c->x, "content-encoding");

	u->gzip = view_eq_nocase(coding, VIEW("gzip"));
	if (coding.n && !u->gzip && !view_eq_nocase(coding, VIEW("identity")))
		return err_set(e, ERR_MEDIA_TYPE, "content-encoding must be gzip or identity");
	if (u->gzip && inflateInit2(&u->z, GZIP) != Z_OK)
		return err_set(e, ERR_UNAVAILABLE, "out of memory");
	u->inflating = u->gzip;
	return 0;
}

static int read_type(struct intake *u, struct err *e)
{
	struct view type = http_get_header(u->c->x, "content-type"), parameters;
	struct view name = view_trim(view_split(type, ';', &parameters));

	u->path = http_get_query(u->c->x, "path");
	if (!u->path.n)
		u->path = VIEW_NONE;
	u->form = view_eq_nocase(name, VIEW("multipart/form-data"));
	if (!u->form && !view_eq_nocase(name, VIEW("application/octet-stream")))
		return err_set(e, ERR_MEDIA_TYPE,
			       "the body must be multipart/form-data or application/octet-stream");
	if (!u->form && !u->path.p)
		return err_set(e, ERR_INVALID, "path is needed");
	if (!u->form)
		return 0;
	int r = multipart_init(&u->parts, type);
	u->has_parts = r >= 0;
	return r < 0 ? err_set(e, ERR_INVALID, "the form has no boundary") : 0;
}

void envd_upload(struct request *c)
{
	struct err e = { 0 };
	struct intake *u = envd_own(c, sizeof(*u), release);

	if (!u)
		return;
	u->c = c;
	u->op.ops = &write_ops;
	u->raw = BUF_INIT(4 * 1024 * 1024);
	u->plain = BUF_INIT(4 * 1024 * 1024);
	u->answer = BUF_INIT(RPC_ANSWER_MAX);
	json_out_init(&u->o, &u->answer);
	json_out_array(&u->o);
	if (read_metadata(u, &e) < 0 || read_coding(u, &e) < 0 || read_type(u, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	c->x->ops = &ops;
	if (!u->form)
		(void)!open_file(u, u->path);
}
