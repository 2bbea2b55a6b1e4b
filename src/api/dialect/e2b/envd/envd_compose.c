/*
 * POST /files/compose: several files become one, and are removed. One source
 * after the other is read into the new file, which takes its name at the end; only
 * then do the sources go.
 */
#include "envd_gen.h"
#include "envd_impl.h"
#include "poison.h"

#define SOURCES_MAX 1000

struct compose {
	struct file_op in, out;
	struct request *c;
	struct view *sources, to;
	size_t n, at;     /* the one that is read, or removed */
	struct buf piece; /* what the new file has not taken yet */
	bool reading;
	struct buf answer;
};

struct wish {
	struct json_strlist sources;
	struct view destination, username;
};

static const struct json_field fields[] = {
	{ "source_paths", JSON_F_STRLIST, offsetof(struct wish, sources), .min = 1, .max = SOURCES_MAX,
	  .required = true },
	{ "destination", JSON_F_STRING, offsetof(struct wish, destination), .min = 1, .required = true },
	{ "username", JSON_F_STRING, offsetof(struct wish, username), .nullable = true },
};
static const struct json_schema schema = { fields, ELEMS(fields) };

static void release(struct request *c)
{
	struct compose *k = c->own;

	files_cancel(&k->in);
	files_cancel(&k->out);
	buf_done(&k->piece);
	buf_done(&k->answer);
}

/* ---- the sources go ---- */

static void remove_next(struct compose *k);

static void on_removed(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct compose *k = CONTAINER(op, struct compose, in);

	if (e && e->code != ERR_NOT_FOUND) { /* one may be named twice */
		answer_fail(k->c, e);
		return;
	}
	k->at++;
	remove_next(k);
}

static const struct file_ops remove_ops = { .done = on_removed };

static void remove_next(struct compose *k)
{
	struct request *c = k->c;
	struct err e = { 0 };

	while (k->at < k->n && view_eq(k->sources[k->at], k->to))
		k->at++; /* the new file has its name */
	if (k->at == k->n) {
		struct buf answer = k->answer;
		k->answer = BUF_INIT(0);
		answer_reply(c, 200, &answer);
		return;
	}
	struct file_place place = envd_place(c, k->sources[k->at]);
	k->in.ops = &remove_ops;
	if (files_remove(c->core, &c->actor, &place, false, &k->in, &e) < 0)
		answer_fail(c, &e);
}

/* ---- the new file ---- */

static void on_written(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct compose *k = CONTAINER(op, struct compose, out);
	struct json_out o;

	if (e) {
		answer_fail(k->c, e);
		return;
	}
	struct view path = envd_clean(k->c->x->arena, info->path);
	json_out_init(&o, &k->answer);
	json_out_object(&o);
	json_out_kstr(&o, "path", path);
	json_out_kstr(&o, "name", envd_base(path));
	json_out_kz(&o, "type", "file");
	json_out_end(&o, '}');
	k->at = 0;
	remove_next(k);
}

/* ---- reading ---- */

static void read_next(struct compose *k);

static void on_info(struct file_op *op, const struct file_info *info)
{
}

static void on_data(struct file_op *op, struct view data)
{
	struct compose *k = CONTAINER(op, struct compose, in);
	size_t n = buf_len(&k->piece) ? 0 : files_send(&k->out, data);
	struct err e = { 0 };

	files_consumed(op, n);
	if (buf_add(&k->piece, view_skip(data, n)) < 0) {
		err_set(&e, ERR_UNAVAILABLE, "out of memory");
		answer_fail(k->c, &e);
	}
}

static void go_on(struct compose *k)
{
	if (!buf_len(&k->piece) && !k->reading)
		read_next(k);
}

static void on_room(struct file_op *op)
{
	struct compose *k = CONTAINER(op, struct compose, out);
	size_t n = files_send(op, buf_view(&k->piece));

	buf_consume(&k->piece, n);
	if (k->reading)
		files_consumed(&k->in, n);
	go_on(k);
}

static void on_read(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct compose *k = CONTAINER(op, struct compose, in);

	if (e) {
		answer_fail(k->c, e);
		return;
	}
	k->reading = false;
	k->at++;
	go_on(k);
}

static const struct file_ops read_ops = { .on_info = on_info, .on_data = on_data, .done = on_read };
static const struct file_ops write_ops = { .on_room = on_room, .done = on_written };

static void read_next(struct compose *k)
{
	struct request *c = k->c;
	struct err e = { 0 };

	if (k->at == k->n) {
		files_end(&k->out);
		return;
	}
	struct file_place place = envd_place(c, k->sources[k->at]);
	k->reading = true;
	k->in.ops = &read_ops;
	if (files_read(c->core, &c->actor, &place, 0, 0, &k->in, &e) < 0)
		answer_fail(c, &e);
}

/* ---- the request ---- */

static int read_wish(struct compose *k, struct err *e)
{
	struct request *c = k->c;
	struct wish w = { 0 };
	struct json *doc;

	if (json_parse(&c->arena, buf_view(&c->body), &doc, e) < 0 ||
	    json_read(&c->arena, doc, &schema, &w, false, e) < 0)
		return -1;
	if (w.username.n) {
		if (spec_check_user(w.username, "username", e) < 0)
			return -1;
		c->user = w.username;
	}
	k->n = w.sources.n;
	k->sources = arena_array(&c->arena, k->n, sizeof(*k->sources));
	if (!k->sources)
		return err_set(e, ERR_TOO_LARGE, "the request is too large");
	for (size_t i = 0; i < k->n; i++)
		if (envd_path(&c->arena, w.sources.items[i], &k->sources[i], e) < 0)
			return -1;
	return envd_path(&c->arena, w.destination, &k->to, e);
}

static void begin(struct compose *k)
{
	struct request *c = k->c;
	struct err e = { 0 };

	if (read_wish(k, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	struct file_place place = envd_place(c, k->to);
	k->out.ops = &write_ops;
	k->out.detail = true;
	if (files_write(c->core, &c->actor, &place, 0, false, &k->out, &e) < 0)
		answer_fail(c, &e);
	else
		read_next(k);
}

void envd_compose(struct request *c)
{
	struct compose *k = envd_own(c, sizeof(*k), release);

	if (!k)
		return;
	k->c = c;
	k->piece = BUF_INIT(1024 * 1024);
	k->answer = BUF_INIT(64 * 1024);
	c->arena.max = 16 * ENVD_COMPOSE_MAX; /* many short strings */
	begin(k);
}
