/*
 * POST /v1/sandboxes/{id}/exec: one command, its whole output.
 */
#include "exec.h"
#include "rest_impl.h"
#include "text.h"
#include "poison.h"

struct running {
	struct exec exec;
	struct req *r;
};

#define AT(f) .offset = offsetof(struct exec_wish, f)
static const struct json_field exec_fields[] = {
	{ "command", JSON_F_STRING, AT(command), .min = 1, .nullable = true },
	{ "argv", JSON_F_STRLIST, AT(argv), .min = 1, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "stdin", JSON_F_STRING, AT(input), .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
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
	struct buf out = BUF_INIT(REST_ANSWER_MAX);
	struct json_out o;

	if (e) {
		rest_fail(r, e);
		return;
	}
	struct view so = res->out, se = res->err;
	bool text = take_text(&so, res->truncated) && take_text(&se, res->truncated);
	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_ku64(&o, "exit_code", res->exit_code);
	json_out_kz(&o, "signal", res->signal);
	put_output(&o, "stdout", text ? so : res->out, text);
	put_output(&o, "stderr", text ? se : res->err, text);
	json_out_kz(&o, "encoding", text ? "utf-8" : "base64");
	json_out_kbool(&o, "truncated", res->truncated);
	json_out_kbool(&o, "timed_out", res->timed_out);
	json_out_key(&o, "duration_ms");
	json_out_double(&o, (double)res->duration_us / 1000);
	json_out_end(&o, '}');
	rest_reply(r, 200, &out);
}

static void on_gone(struct req *r)
{
	struct running *run = r->own;
	exec_cancel(&run->exec);
}

static void exec(struct req *r)
{
	struct exec_wish w = { 0 };
	struct err e = { 0 };

	if (rest_read(r, &exec_schema, &w) < 0)
		return;
	struct running *run = rest_own(r, sizeof(*run));
	if (!run)
		return;
	run->r = r;
	run->exec.done = on_exec;
	r->on_gone = on_gone;
	if (exec_start(r->core, &r->actor, r->params[0], &w, &run->exec, &e) < 0)
		rest_fail(r, &e);
}

const struct route rest_exec_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/exec", exec, .body = REST_JSON },
	{ 0 },
};
