/*
 * Files of sessions and of workspaces: fs/write, fs/read and, of workspaces, the list of a directory. All
 * paths lie in /workspace.
 */
#include <errno.h>

#include "disk.h"
#include "num.h"
#include "sk_impl.h"
#include "text.h"
#include "poison.h"

#define READ_DEFAULT (10u * 1024 * 1024)
#define READ_MAX     (100u * 1024 * 1024)

/* ---- paths ---- */

static const struct view sk_root = VIEW(SK_ROOT);

int sk_path(struct request *r, struct view given, struct view *ret, struct err *e)
{
	struct buf b = BUF_INIT(SK_PATH_ROOM);
	struct view rest = given;

	if (!given.n || memchr(given.p, 0, given.n))
		return err_set(e, ERR_INVALID, "path must not be empty");
	if (given.p[0] != '/')
		buf_puts(&b, SK_ROOT "/");
	else if (!view_is(given, SK_ROOT) && !view_starts(given, SK_ROOT "/"))
		return err_set(e, ERR_INVALID, "path must lie in " SK_ROOT);
	while (rest.p)
		if (view_is(view_split(rest, '/', &rest), ".."))
			return err_set(e, ERR_INVALID, "path must not hold \"..\"");
	buf_add(&b, given);
	*ret = b.bad ? VIEW_NONE : arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	return ret->p ? 0 : err_set(e, ERR_INVALID, "path is too long");
}

/* ---- whose files ---- */

static void on_helper(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	struct sk_place *p = r->own;

	if (!answer_ended(r, e))
		return;
	p->box = arena_view(r->x->arena, view_of(b->id));
	p->go(r);
}

void sk_with_files(struct request *r, struct sk_place *p, enum act act, void (*go)(struct request *r))
{
	struct err e = { 0 };

	p->go = go;
	if (view_starts(view_of(r->route->pattern), "/v1/sessions/")) {
		p->box = r->params[0];
		go(r);
		return;
	}
	answer_await(r, workspace_helper(r->core, &r->actor, act, r->params[0], on_helper, r, &e), &e);
}

/* ---- write ---- */

struct file_place sk_file_place(const struct sk_place *p)
{
	return (struct file_place){ .box = p->box, .path = p->path, .within = &sk_root, .n_within = 1 };
}

struct writing {
	struct sk_place place;
	struct whole_file write;
	struct request *r;
	struct view path, text, coded; /* of the body */
	struct buf bytes;
};

#define AT(f) .offset = offsetof(struct writing, f)
static const struct json_field write_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .required = true },
	{ "text", JSON_F_STRING, AT(text), .nullable = true },
	{ "content_base64", JSON_F_STRING, AT(coded), .nullable = true },
};
#undef AT
static const struct json_schema write_schema = { write_fields, ELEMS(write_fields) };

static void release_writing(struct request *r)
{
	struct writing *w = r->own;

	whole_file_release(&w->write);
	buf_done(&w->bytes);
}

static void write_done(struct whole_file *write, const struct file_info *info, const struct err *e)
{
	struct request *r = CONTAINER(write, struct writing, write)->r;

	if (e)
		answer_fail(r, e);
	else
		sk_ok(r);
}

static void begin_write(struct request *r)
{
	struct writing *w = r->own;
	struct err e = { 0 };

	struct file_place place = sk_file_place(&w->place);
	struct view bytes = w->coded.p ? buf_view(&w->bytes) : w->text;
	if (whole_file_write(&w->write, r, &place, bytes, false, &e) < 0)
		answer_fail(r, &e);
}

static int check_write(struct writing *w, struct err *e)
{
	if (!w->text.p == !w->coded.p)
		return err_set(e, ERR_INVALID, "exactly one of text and content_base64 is needed");
	if (w->coded.p && text_unbase64(&w->bytes, w->coded) < 0)
		return err_set(e, ERR_INVALID, "content_base64 is not base64");
	return sk_path(w->r, w->path, &w->place.path, e);
}

static void write_file(struct request *r)
{
	struct writing *w = request_own(r, sizeof(*w));
	struct err e = { 0 };

	if (!w)
		return;
	w->r = r;
	w->bytes = BUF_INIT(SK_BODY_MAX);
	w->write.done = write_done;
	r->release = release_writing;
	if (request_read(r, &write_schema, w) < 0)
		return;
	if (check_write(w, &e) < 0)
		answer_fail(r, &e);
	else
		sk_with_files(r, &w->place, ACT_WORKSPACE_WRITE, begin_write);
}

/* ---- read: the answer is coded as the bytes come ---- */

struct reading {
	struct sk_place place;
	struct file_op op;
	struct request *r;
	struct view asked;
	uint64_t most, size;
	bool begun;
	char carry[3]; /* that wait for a group of three */
	size_t n_carry, held;
	struct buf text;
};

static void release_reading(struct request *r)
{
	struct reading *d = r->own;

	files_cancel(&d->op);
	buf_done(&d->text);
}

static void begin_answer(struct reading *d)
{
	struct json_out o;

	if (d->begun)
		return;
	d->begun = true;
	http_begin(d->r->x, 200, "application/json", -1, NULL, 0);
	json_out_init(&o, &d->text);
	json_out_object(&o);
	json_out_kstr(&o, "path", d->asked);
	json_out_key(&o, "content_base64");
	buf_putc(&d->text, '"');
}

static void on_read_info(struct file_op *op, const struct file_info *info)
{
	CONTAINER(op, struct reading, op)->size = info->size;
}

static void on_read_data(struct file_op *op, struct view data)
{
	struct reading *d = CONTAINER(op, struct reading, op);
	size_t n = data.n;

	begin_answer(d);
	while (d->n_carry && d->n_carry < 3 && data.n) {
		d->carry[d->n_carry++] = data.p[0];
		data = view_skip(data, 1);
	}
	if (d->n_carry == 3) {
		text_base64(&d->text, (struct view){ d->carry, 3 });
		d->n_carry = 0;
	}
	if (!d->n_carry) {
		size_t whole = data.n - data.n % 3;
		text_base64(&d->text, view_head(data, whole));
		d->n_carry = data.n - whole;
		memcpy(d->carry, data.p + whole, d->n_carry);
	}
	if (http_write(d->r->x, buf_view(&d->text)))
		files_consumed(op, n);
	else
		d->held += n;
	buf_clear(&d->text);
}

static void on_read(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct reading *d = CONTAINER(op, struct reading, op);
	struct request *r = d->r;

	if (e && !d->begun) {
		answer_fail(r, e);
		return;
	}
	begin_answer(d);
	text_base64(&d->text, (struct view){ d->carry, d->n_carry });
	buf_printf(&d->text, "\",\"truncated\":%s}\n", d->size > d->most ? "true" : "false");
	(void)http_write(r->x, buf_view(&d->text));
	if (e || d->text.bad)
		http_break(r->x);
	else
		http_end(r->x);
	request_done(r);
}

static const struct file_ops read_ops = { .on_info = on_read_info, .on_data = on_read_data, .done = on_read };

static void on_read_writable(struct http_exchange *x)
{
	struct reading *d = ((struct request *)x->ctx)->own;
	size_t n = d->held;

	d->held = 0;
	files_consumed(&d->op, n);
}

static const struct http_ops reading_ops = { .on_body = request_drop_body,
					     .on_abort = request_abort,
					     .on_writable = on_read_writable };

static void begin_read(struct request *r)
{
	struct reading *d = r->own;
	struct file_place place = {
		.box = d->place.box, .path = d->place.path, .within = &sk_root, .n_within = 1
	};
	struct err e = { 0 };

	r->x->ops = &reading_ops;
	if (files_read(r->core, &r->actor, &place, 0, d->most, &d->op, &e) < 0)
		answer_fail(r, &e);
}

static int read_most(struct request *r, uint64_t *ret, struct err *e)
{
	struct view given = request_query(r, "max_bytes");

	*ret = READ_DEFAULT;
	if (given.p && (num_u64(given, ret) < 0 || *ret > READ_MAX))
		return err_set(e, ERR_INVALID, "max_bytes must be between 0 and %u", READ_MAX);
	if (*ret == 0)
		*ret = READ_DEFAULT;
	return 0;
}

static void read_file(struct request *r)
{
	struct reading *d = request_own(r, sizeof(*d));
	struct err e = { 0 };

	if (!d)
		return;
	d->r = r;
	d->op.ops = &read_ops;
	d->text = BUF_INIT(ANSWER_MAX);
	d->asked = request_query(r, "path");
	r->release = release_reading;
	if (read_most(r, &d->most, &e) < 0 || sk_path(r, d->asked, &d->place.path, &e) < 0)
		answer_fail(r, &e);
	else
		sk_with_files(r, &d->place, ACT_WORKSPACE_READ, begin_read);
}

/* ---- list ---- */

struct listing {
	struct sk_place place;
	struct file_op op;
	struct request *r;
	struct json_out *o;
};

static void release_listing(struct request *r)
{
	struct listing *l = r->own;
	files_cancel(&l->op);
}

static void on_entries(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes)
{
	struct listing *l = CONTAINER(op, struct listing, op);

	for (size_t i = 0; i < n; i++) {
		json_out_object(l->o);
		json_out_kstr(l->o, "name", entries[i].name);
		json_out_kbool(l->o, "is_dir", entries[i].type == FILE_TYPE_DIRECTORY);
		json_out_end(l->o, '}');
	}
	files_consumed(op, bytes);
}

static void on_listed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct request *r = CONTAINER(op, struct listing, op)->r;

	if (e)
		answer_fail(r, e);
	else
		answer_send_list(r);
}

static const struct file_ops list_ops = { .on_entries = on_entries, .done = on_listed };

static void begin_list(struct request *r)
{
	struct listing *l = r->own;
	struct file_place place = { .box = l->place.box, .path = l->place.path };
	struct file_page page = { .depth = 1 };
	struct err e = { 0 };

	l->o = answer_json_list(r, "entries");
	if (files_list(r->core, &r->actor, &place, &page, &l->op, &e) < 0)
		answer_fail(r, &e);
}

static void list_files(struct request *r)
{
	struct listing *l = request_own(r, sizeof(*l));
	struct view path = request_query(r, "path");
	struct err e = { 0 };

	if (!l)
		return;
	l->r = r;
	l->op.ops = &list_ops;
	r->release = release_listing;
	if (sk_path(r, path.n ? path : VIEW(SK_ROOT), &l->place.path, &e) < 0)
		answer_fail(r, &e);
	else
		sk_with_files(r, &l->place, ACT_WORKSPACE_READ, begin_list);
}

const struct route sk_files_routes[] = {
	{ "POST", "/v1/sessions/{id}/fs/write", write_file, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ "GET", "/v1/sessions/{id}/fs/read", read_file, .query = "path max_bytes" },
	{ "POST", "/v1/workspaces/{id}/fs/write", write_file, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ "GET", "/v1/workspaces/{id}/fs/read", read_file, .query = "path max_bytes" },
	{ "GET", "/v1/workspaces/{id}/fs", list_files, .query = "path" },
	{ 0 },
};
