/*
 * /v1/sandboxes/{id}/fs/replace: reads a file, changes it and writes it at once.
 */
#include "rest_fs.h"
#include "poison.h"

#define REPLACE_MAX (16u * 1024 * 1024)

struct replacing {
	struct rest_fs fs;
	struct buf content, changed;
	uint64_t replaced;
};

static struct replacing *of(struct file_op *op)
{
	return CONTAINER(rest_fs_of(op), struct replacing, fs);
}

static void release(struct replacing *p)
{
	buf_done(&p->content);
	buf_done(&p->changed);
}

static void fail(struct replacing *p, const struct err *e)
{
	release(p);
	answer_fail(p->fs.r, e);
}

static void on_gone(struct request *r)
{
	struct replacing *p = r->own;

	files_cancel(&p->fs.op);
	release(p);
}

static void on_replaced(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct replacing *p = of(op);
	struct request *r = p->fs.r;
	uint64_t replaced = p->replaced;

	release(p);
	struct json_out *o = answer_result(r, e);
	if (!o)
		return;
	json_out_object(o);
	json_out_ku64(o, "replaced", replaced);
	json_out_key(o, "file");
	rest_files_put(o, info, false);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void push_changed(struct file_op *op)
{
	struct replacing *p = of(op);

	buf_consume(&p->changed, files_send(op, buf_view(&p->changed)));
	if (buf_len(&p->changed) == 0)
		files_end(op);
}

static const struct file_ops write_ops = { .on_room = push_changed, .done = on_replaced };

/* Every occurrence, or the first `count` of them. */
static int change(struct replacing *p, struct err *e)
{
	struct view rest = buf_view(&p->content), old = p->fs.wish.old;
	const char *at;
	while ((!p->fs.wish.count || p->replaced < p->fs.wish.count) && rest.n &&
	       (at = memmem(rest.p, rest.n, old.p, old.n))) {
		buf_append(&p->changed, rest.p, (size_t)(at - rest.p));
		buf_add(&p->changed, p->fs.wish.new);
		rest = view_skip(rest, (size_t)(at - rest.p) + old.n);
		p->replaced++;
	}
	buf_add(&p->changed, rest);
	if (p->changed.bad)
		return err_set(e, ERR_TOO_LARGE, "the file would have more than %u bytes", 2 * REPLACE_MAX);
	if (!p->replaced)
		return err_set(e, ERR_CONFLICT, "the file does not hold the text that is to be replaced");
	return 0;
}

static void on_content_done(struct file_op *op, const struct file_info *info, bool created,
			    const struct err *e)
{
	struct replacing *p = of(op);
	struct request *r = p->fs.r;
	struct err mine = { 0 };
	if (e) {
		fail(p, e);
		return;
	}
	struct file_place where = rest_fs_place(&p->fs, p->fs.wish.path);
	op->ops = &write_ops;
	if (change(p, &mine) < 0 || files_write(r->core, &r->actor, &where, 0, false, op, &mine) < 0)
		fail(p, &mine);
	else
		push_changed(op);
}

static void refuse_size(struct replacing *p)
{
	struct err e = { 0 };
	files_cancel(&p->fs.op);
	err_set(&e, ERR_TOO_LARGE, "the file has more than %u bytes", REPLACE_MAX);
	fail(p, &e);
}

static void on_content_info(struct file_op *op, const struct file_info *info)
{
	if (info->size > REPLACE_MAX)
		refuse_size(of(op));
}

static void on_content(struct file_op *op, struct view data)
{
	struct replacing *p = of(op);
	if (buf_add(&p->content, data) < 0) {
		refuse_size(p);
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
	REST_FS_PATH(path),
	REST_FS_USER,
	{ "old", JSON_F_STRING, REST_FS_AT(old), .min = 1, .required = true },
	{ "new", JSON_F_STRING, REST_FS_AT(new), .required = true },
	{ "count", JSON_F_U64, REST_FS_AT(count), .min = 1, .max = UINT32_MAX, .nullable = true },
};
static const struct json_schema replace_schema = { replace_fields, ELEMS(replace_fields) };

static void replace(struct request *r)
{
	struct err e = { 0 };
	struct replacing *p = rest_fs_begin(r, &replace_schema, &content_ops, sizeof(*p));

	if (!p)
		return;
	p->content = BUF_INIT(REPLACE_MAX);
	p->changed = BUF_INIT(2 * REPLACE_MAX);
	r->on_gone = on_gone;
	struct file_place where = rest_fs_place(&p->fs, p->fs.wish.path);
	if (files_read(r->core, &r->actor, &where, 0, 0, &p->fs.op, &e) < 0)
		answer_fail(r, &e);
}

const struct route rest_replace_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/fs/replace", replace, .body = ROUTE_JSON },
	{ 0 },
};
