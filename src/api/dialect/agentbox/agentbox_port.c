/*
 * Port 2024 of every sandbox: the HTTP API that agentbox has in its containers. There anybody could use it;
 * here whoever may use the sandbox's ports can.
 */
#include <errno.h>

#include "agentbox_impl.h"
#include "answer_long.h"
#include "exec_stream.h"
#include "proxy.h"
#include "poison.h"

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "error", e->msg);
	json_out_end(&o, '}');
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

static void health(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", "ok");
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- exec ---- */

struct exec_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view command, workdir;
	uint64_t timeout;
};

#define AT(f) .offset = offsetof(struct exec_body, f)
static const struct json_field exec_fields[] = {
	{ "command", JSON_F_STRING, AT(command), .min = 1, .required = true },
	{ "workdir", JSON_F_STRING, AT(workdir), .nullable = true },
	{ "timeout", JSON_F_U64, AT(timeout), .max = 86400, .nullable = true },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields) };

struct run {
	struct exec exec;
	struct request *r;
};

static void release_run(struct request *r)
{
	exec_cancel(&((struct run *)r->own)->exec);
}

static void on_exec(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct request *r = CONTAINER(x, struct run, exec)->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = answer_json(r);
	answer_keep(r, res->kept);
	json_out_object(o);
	json_out_ki64(o, "exit_code", res->timed_out ? -1 : (int64_t)res->exit_code);
	answer_put_long(r, "stdout", ANSWER_STRING, res->out);
	answer_put_long(r, "stderr", ANSWER_STRING,
			res->timed_out && !res->err.n ? VIEW(AGENTBOX_TIMED_OUT) : res->err);
	json_out_kbool(o, "timed_out", res->timed_out);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void exec(struct request *r)
{
	struct exec_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &exec_schema, &body) < 0)
		return;
	struct run *run = agentbox_own(r, sizeof(*run), release_run);
	if (!run)
		return;
	struct exec_wish w = agentbox_wish(r, body.command, body.workdir, body.timeout);
	run->r = r;
	run->exec.done = on_exec;
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &run->exec, &e) < 0)
		answer_fail(r, &e);
}

/* ---- exec/stream: lines of data without a name ---- */

static void put_piece(struct exec_stream *s, unsigned channel, struct view text)
{
	struct json_out o;

	stream_open(&s->stream, &o, NULL);
	json_out_kz(&o, "type", channel == 1 ? "stdout" : "stderr");
	json_out_kstr(&o, "data", text);
	stream_close(&s->stream, &o);
}

static void finish(struct exec_stream *s, const struct exec_result *res, const struct err *e)
{
	struct json_out o;

	exec_stream_begin(s);
	stream_open(&s->stream, &o, NULL);
	if (e || res->timed_out) {
		json_out_kz(&o, "type", "error");
		json_out_kz(&o, "data", e ? e->msg : AGENTBOX_TIMED_OUT);
	} else {
		json_out_kz(&o, "type", "exit");
		json_out_ku64(&o, "exit_code", res->exit_code);
	}
	stream_close(&s->stream, &o);
	stream_finish(&s->stream);
}

static const struct exec_stream_ops stream_ops = { .put = put_piece, .finish = finish };

static void exec_stream(struct request *r)
{
	struct exec_body body = { 0 };

	if (request_read(r, &exec_schema, &body) < 0)
		return;
	struct exec_wish w = agentbox_wish(r, body.command, body.workdir, body.timeout);
	w.timeout_ms = body.timeout ? w.timeout_ms : 0;
	exec_stream_start(r, &stream_ops, view_of(r->box), &w);
}

/* ---- files ---- */

struct file_body {
	struct whole_file file; /* that is written */
	struct file_text text;  /* that is read */
	struct view path, content, mode;
};

#define AT(f) .offset = offsetof(struct file_body, f)
static const struct json_field write_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .required = true },
	{ "content", JSON_F_STRING, AT(content), .nullable = true },
	{ "mode", JSON_F_STRING, AT(mode), .nullable = true },
};
static const struct json_field read_fields[] = {
	{ "path", JSON_F_STRING, AT(path), .min = 1, .required = true },
};
#undef AT
static const struct json_schema write_schema = { write_fields, ELEMS(write_fields) };
static const struct json_schema read_schema = { read_fields, ELEMS(read_fields) };

static void release_file(struct request *r)
{
	struct file_body *f = r->own;

	whole_file_release(&f->file);
	file_text_release(&f->text);
}

/* On failure the answer is sent. */
static struct file_body *read_body(struct request *r, const struct json_schema *s, bool to_write)
{
	struct file_body *f = agentbox_own(r, sizeof(*f), release_file);
	struct err e = { 0 };

	if (!f || request_read(r, s, f) < 0)
		return NULL;
	f->path = agentbox_path(r, f->path, to_write);
	if (f->path.p)
		return f;
	err_set(&e, ERR_FORBIDDEN, AGENTBOX_NOT_ALLOWED);
	answer_fail(r, &e);
	return NULL;
}

static void on_written(struct whole_file *f, const struct file_info *info, const struct err *e)
{
	struct request *r = f->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void write_file(struct request *r)
{
	struct file_body *f = read_body(r, &write_schema, true);
	struct err e = { 0 };

	if (!f)
		return;
	f->file.done = on_written;
	if (f->mode.n && !view_is(f->mode, "a") && !view_is(f->mode, "w"))
		err_set(&e, ERR_INVALID, "mode must be \"w\" or \"a\"");
	struct file_place place = agentbox_place(view_of(r->box), f->path, true);
	if (e.code || whole_file_write(&f->file, r, &place, f->content, view_is(f->mode, "a"), &e) < 0)
		answer_fail(r, &e);
}

static void answer_unread(struct request *r, const char *error)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "success", false);
	json_out_kz(o, "error", error);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_read(struct file_text *f, const struct err *e)
{
	struct request *r = f->r;
	struct json_out *o;

	if (e && e->sys == EXDEV) {
		answer_fail(r, e);
		return;
	}
	if (e) {
		answer_unread(r, agentbox_read_error(f, e));
		return;
	}
	o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "success", true);
	answer_put_from(r, "content", &f->source);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void read_file(struct request *r)
{
	struct file_body *f = read_body(r, &read_schema, false);
	struct err e = { 0 };

	if (!f)
		return;
	struct file_place place = agentbox_place(view_of(r->box), f->path, false);
	f->text.done = on_read;
	if (file_text_read(&f->text, r, &place, AGENTBOX_READ_MAX, &e) < 0)
		answer_unread(r, e.msg);
}

static const struct route routes[] = {
	{ "GET", "/health", health },
	{ "POST", "/exec", exec, .body = ROUTE_JSON },
	{ "POST", "/exec/stream", exec_stream, .body = ROUTE_JSON },
	{ "POST", "/file/write", write_file, .body = ROUTE_JSON },
	{ "POST", "/file/read", read_file, .body = ROUTE_JSON },
	{ 0 },
};
static const struct route *const tables[] = { routes, NULL };

/* A link that leads out is told as a path that does. */
static void translate(struct err *e)
{
	if (e->code == ERR_FORBIDDEN && e->sys == EXDEV)
		err_set(e, ERR_FORBIDDEN, AGENTBOX_NOT_ALLOWED);
}

void agentbox_port_refuse(struct json_out *o, const struct proxy_refusal *why)
{
	json_out_object(o);
	json_out_kz(o, "error", why->message);
	json_out_end(o, '}');
}

const struct surface agentbox_port_surface = {
	.heading = "agentbox in a sandbox (port 2024)", .routes = tables, .fail = fail, .translate = translate
};
