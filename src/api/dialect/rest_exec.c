/*
 * POST /v1/sandboxes/{id}/exec: one command, in a process of its own or in a
 * shell; its whole output at the end, or as it comes (rest_stream.h).
 */
#include "exec.h"
#include "rest_stream.h"
#include "secrets.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

/* A streamed command is a kept process, so that a client that was cut off can go on by its pid and offsets;
 * for that its last output is enough. */
#define RING_BYTES (256u * 1024)

struct exec_body {
	struct exec_wish wish;
	bool has_kill, kill;
	const struct json *secrets;
	struct spec_secrets list;
	enum stream_form form;
	struct req *r;
};

struct running {
	struct exec exec;
	struct req *r;
};

#define AT(f) .offset = offsetof(struct exec_body, wish.f)
static const struct json_field exec_fields[] = {
	{ "command", JSON_F_STRING, AT(command), .min = 1, .nullable = true },
	{ "argv", JSON_F_STRLIST, AT(argv), .min = 1, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "stdin", JSON_F_STRING, AT(input), .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
	{ "shell", JSON_F_STRING, AT(shell), .min = 1, .nullable = true },
	{ "kill_on_disconnect", JSON_F_BOOL, .offset = offsetof(struct exec_body, kill),
	  .has = offsetof(struct exec_body, has_kill), .nullable = true },
	{ "secrets", JSON_F_ANY, .offset = offsetof(struct exec_body, secrets), .nullable = true },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields) };

static void put_output(struct json_out *o, const char *key, struct view bytes, bool text)
{
	struct buf coded = BUF_INIT(REST_ANSWER_MAX);

	if (text) {
		json_out_kstr(o, key, bytes);
		return;
	}
	if (text_base64(&coded, bytes) < 0)
		o->b->bad = coded.bad;
	json_out_kstr(o, key, buf_view(&coded));
	buf_done(&coded);
}

/* Text that every JSON reader takes: UTF-8 without NUL. Output that was cut may end within a character. */
static bool take_text(struct view *v, bool cut)
{
	size_t whole = text_utf8_prefix(*v);

	if ((whole < v->n && (!cut || v->n - whole >= 4)) || (v->n && memchr(v->p, 0, v->n)))
		return false;
	v->n = whole;
	return true;
}

static void on_exec(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct req *r = CONTAINER(x, struct running, exec)->r;

	if (e) {
		rest_fail(r, e);
		return;
	}
	struct view so = res->out, se = res->err;
	bool text = take_text(&so, res->truncated) && take_text(&se, res->truncated);
	struct json_out *o = rest_json(r);
	json_out_object(o);
	put_output(o, "stdout", text ? so : res->out, text);
	put_output(o, "stderr", text ? se : res->err, text);
	json_out_kz(o, "encoding", text ? "utf-8" : "base64");
	stream_put_result(o, res);
	json_out_end(o, '}');
	rest_send(r, 200);
}

static void on_gone(struct req *r)
{
	struct running *run = r->own;
	exec_cancel(&run->exec);
}

static void run_plain(struct req *r, const struct exec_wish *w)
{
	struct err e = { 0 };
	struct running *run = rest_own(r, sizeof(*run));

	if (!run)
		return;
	run->r = r;
	run->exec.done = on_exec;
	r->on_gone = on_gone;
	if (exec_start(r->core, &r->actor, r->params[0], w, &run->exec, &e) < 0)
		rest_fail(r, &e);
}

static void run_streamed(struct req *r, const struct exec_wish *w, enum stream_form form)
{
	struct stream *s = stream_new(r, form);
	struct err e = { 0 };

	if (s && exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		rest_fail(r, &e);
}

static void run_any(struct req *r, const struct exec_body *b)
{
	if (b->form == STREAM_NONE)
		run_plain(r, &b->wish);
	else
		run_streamed(r, &b->wish, b->form);
}

/* ---- with secrets ---- */

static int add_variables(struct req *r, struct exec_body *b, const struct wire_secret_read_reply *reply, struct err *e)
{
	const struct json_strmap old = b->wish.env;
	struct json_strmap env = { .keys = arena_array(&r->arena, old.n + b->list.n, sizeof(struct view)),
				   .values = arena_array(&r->arena, old.n + b->list.n, sizeof(struct view)) };

	if (!env.keys || !env.values || reply->values.n != b->list.n)
		return err_set(e, ERR_INTERNAL, "the secrets cannot be passed on");
	for (; env.n < old.n; env.n++) {
		env.keys[env.n] = old.keys[env.n];
		env.values[env.n] = old.values[env.n];
	}
	for (size_t i = 0; i < b->list.n; i++, env.n++) {
		env.keys[env.n] = b->list.items[i].env;
		env.values[env.n] = arena_view(&r->arena, reply->values.items[i]);
		if (!env.values[env.n].p)
			return err_set(e, ERR_TOO_LARGE, "the secrets are too large");
	}
	b->wish.env = env;
	return 0;
}

static void on_secrets(void *arg, const void *result, const struct err *failed)
{
	struct exec_body *b = arg;
	struct req *r = b->r;
	struct err e = { 0 };

	r->job = NULL;
	if (failed)
		e = *failed;
	else if (add_variables(r, b, result, &e) == 0)
		b->wish.secret = true;
	if (e.code)
		rest_fail(r, &e);
	else
		run_any(r, b);
}

/* The wish waits in the request's own memory, which is wiped from here on. */
static void fetch_secrets(struct req *r, const struct exec_body *body)
{
	struct exec_body *b = arena_alloc(&r->arena, sizeof(*b));
	struct err e = { 0 };

	r->arena.secret = true;
	if (!b) {
		err_set(&e, ERR_TOO_LARGE, "the request is too large");
	} else {
		*b = *body;
		b->r = r;
		r->job = secrets_read(r->core, &r->actor, r->params[0], &b->list, on_secrets, b, &e);
	}
	if (!r->job)
		rest_fail(r, &e);
}

static int read_secrets(struct req *r, struct exec_body *b, struct err *e)
{
	if (spec_secrets_read(&r->arena, b->secrets, false, &b->list, e) < 0)
		return -1;
	if (b->list.n && b->wish.shell.p)
		return err_set(e, ERR_INVALID, "secrets are for a process of its own, not for a shell's command");
	return 0;
}

/* Whoever waits for a plain answer wants the command only as long as that, unless they say otherwise; a
 * stream can be taken up again, so its command goes on, unless they say otherwise. */
static void exec(struct req *r)
{
	enum stream_form form = stream_form(r);
	struct exec_body b = { 0 };
	struct exec_wish *w = &b.wish;

	struct err e = { 0 };

	if (rest_read(r, &exec_schema, &b) < 0)
		return;
	if (read_secrets(r, &b, &e) < 0) {
		rest_fail(r, &e);
		return;
	}
	w->kill = b.kill;
	w->keep = !w->shell.p && !b.kill && (form != STREAM_NONE || b.has_kill);
	if (w->keep) {
		w->ring_bytes = RING_BYTES;
		w->timeout_ms = w->timeout_ms ? w->timeout_ms : core_config(r->core)->max.exec_timeout_ms;
	}
	b.form = form;
	if (b.list.n)
		fetch_secrets(r, &b);
	else
		run_any(r, &b);
}

const struct route rest_exec_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/exec", exec, .body = REST_JSON },
	{ 0 },
};
