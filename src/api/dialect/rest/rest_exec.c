/*
 * POST /v1/sandboxes/{id}/exec: one command, in a process of its own or in a
 * shell; its whole output at the end, or as it comes (rest_output.h).
 */
#include "answer_long.h"
#include "rest_output.h"
#include "rest_variables.h"
#include "run.h"
#include "poison.h"

/* A streamed command is a kept process, so that a client that was cut off can go on by its pid and offsets;
 * for that its last output is enough. */
#define RING_BYTES (256u * 1024)

struct exec_body {
	struct exec_wish wish;
	bool has_kill, kill;
	struct rest_variables variables;
};

struct running {
	struct exec exec;
	struct request *r;
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
	{ "secrets", JSON_F_ANY, .offset = offsetof(struct exec_body, variables.wish), .nullable = true },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields) };

static void on_exec(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct request *r = CONTAINER(x, struct running, exec)->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct view so = res->out, se = res->err;
	bool text = rest_output_is_text(&so, res->truncated) && rest_output_is_text(&se, res->truncated);
	enum answer_form form = text ? ANSWER_STRING : ANSWER_BASE64;
	struct json_out *o = answer_json(r);
	answer_keep(r, res->kept);
	json_out_object(o);
	answer_put_long(r, "stdout", form, text ? so : res->out);
	answer_put_long(r, "stderr", form, text ? se : res->err);
	json_out_kz(o, "encoding", text ? "utf-8" : "base64");
	rest_output_put_result(o, res);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_gone(struct request *r)
{
	struct running *run = r->own;
	exec_cancel(&run->exec);
}

static void run_plain(struct request *r, const struct exec_wish *w)
{
	struct err e = { 0 };
	struct running *run = request_own(r, sizeof(*run));

	if (!run)
		return;
	run->r = r;
	run->exec.done = on_exec;
	r->on_gone = on_gone;
	/* Clients that go away mostly end the connection in order, which reads like one that only sends no
	 * more. */
	r->x->eof_aborts = true;
	if (exec_start(r->core, &r->actor, r->params[0], w, &run->exec, &e) < 0)
		answer_fail(r, &e);
}

static void run_streamed(struct request *r, const struct exec_wish *w, enum stream_form form)
{
	struct rest_output *s = rest_output_new(r, form);
	struct err e = { 0 };

	if (s && exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		answer_fail(r, &e);
}

/* Whoever waits for a plain answer wants the command only as long as that, unless they say otherwise; a
 * stream can be taken up again, so its command goes on, unless they say otherwise. */
static void run_any(struct request *r, void *body)
{
	struct exec_body *b = body;
	struct exec_wish *w = &b->wish;
	enum stream_form form = stream_form(r);

	w->kill = b->kill;
	w->keep = !w->shell.p && !b->kill && (form != STREAM_NONE || b->has_kill);
	if (w->keep) {
		w->ring_bytes = RING_BYTES;
		w->timeout_ms = w->timeout_ms ? w->timeout_ms : core_config(r->core)->max.exec_timeout_ms;
	}
	if (form == STREAM_NONE)
		run_plain(r, w);
	else
		run_streamed(r, w, form);
}

static void exec(struct request *r)
{
	struct exec_body *b = rest_variables_body(r, sizeof(*b));

	if (b && request_read(r, &exec_schema, b) >= 0)
		rest_variables_fetch(r, &b->variables, &b->wish.secrets, run_any, b);
}

const struct route rest_exec_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/exec", exec, .body = ROUTE_JSON },
	{ 0 },
};
