/*
 * POST /v1/sessions/{id}/exec and …/exec/stream: a command in the session's shell, stdout and stderr as
 * one text.
 */
#include "answer_long.h"
#include "clock.h"
#include "exec_stream.h"
#include "run.h"
#include "sk_impl.h"
#include "poison.h"

#define COMMAND_MAX     (1024u * 1024)
#define TIMEOUT_DEFAULT 30000
#define TIMEOUT_MAX     600000
#define SHELL           "default"

struct exec_body {
	bool raw_output; /* there is nothing to clean: commands have no terminal */
	struct view command;
	uint64_t timeout_ms;
};

#define AT(f) .offset = offsetof(struct exec_body, f)
static const struct json_field exec_fields[] = {
	{ "cmd", JSON_F_STRING, AT(command), .min = 1, .max = COMMAND_MAX, .required = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .max = TIMEOUT_MAX, .nullable = true },
	{ "raw_output", JSON_F_BOOL, AT(raw_output), .nullable = true },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields) };

static int read_wish(struct request *r, struct exec_wish *ret)
{
	uint64_t most = core_config(r->core)->max.exec_timeout_ms;
	struct exec_body body = { 0 };

	if (request_read(r, &exec_schema, &body) < 0)
		return -1;
	*ret = (struct exec_wish){ .command = body.command,
				   .shell = VIEW(SHELL),
				   .merged = true,
				   .kill = true,
				   .timeout_ms = body.timeout_ms ? body.timeout_ms : TIMEOUT_DEFAULT };
	if (most)
		ret->timeout_ms = MIN(ret->timeout_ms, most);
	return 0;
}

static void put_end(struct json_out *o, const struct exec_result *res)
{
	json_out_ku64(o, "exit_code", res->exit_code);
	json_out_kstr(o, "cwd", res->cwd);
	json_out_ku64(o, "duration_ms", res->duration_us / 1000);
}

/* ---- as a whole ---- */

struct running {
	struct exec exec;
	struct request *r;
};

static void on_exec(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct running *run = CONTAINER(x, struct running, exec);
	struct request *r = run->r;
	struct err timeout = { 0 };

	if (!e && res->timed_out) {
		err_set(&timeout, ERR_TIMEOUT, "the command was killed at its time limit");
		e = &timeout;
	}
	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = answer_json(r);
	answer_keep(r, res->kept);
	json_out_object(o);
	put_end(o, res);
	json_out_kbool(o, "truncated", res->truncated);
	answer_put_long(r, "output", ANSWER_STRING, res->out);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_gone(struct request *r)
{
	struct running *run = r->own;
	exec_cancel(&run->exec);
}

static void exec(struct request *r)
{
	struct exec_wish w;
	struct err e = { 0 };

	if (read_wish(r, &w) < 0)
		return;
	struct running *run = request_own(r, sizeof(*run));
	if (!run)
		return;
	run->r = r;
	run->exec.done = on_exec;
	r->on_gone = on_gone;
	if (exec_start(r->core, &r->actor, r->params[0], &w, &run->exec, &e) < 0)
		answer_fail(r, &e);
}

/* ---- as it comes ---- */

static void put_chunk(struct exec_stream *s, unsigned channel, struct view text)
{
	struct json_out o;

	stream_open(&s->stream, &o, "chunk");
	json_out_kstr(&o, "chunk", text);
	json_out_ki64(&o, "timestamp", clock_wall_ms());
	stream_close(&s->stream, &o);
}

static void finish_badly(struct exec_stream *s, const struct err *e)
{
	struct request *r = s->stream.r;
	struct err copy = *e;
	struct json_out o;

	if (!s->stream.begun) {
		stream_release(&s->stream);
		answer_fail(r, &copy);
		return;
	}
	stream_open(&s->stream, &o, "error");
	json_out_kz(&o, "error", copy.msg);
	stream_close(&s->stream, &o);
	stream_finish(&s->stream);
}

static void finish(struct exec_stream *s, const struct exec_result *res, const struct err *e)
{
	struct err timeout = { 0 };
	struct json_out o;

	if (!e) /* it ran: what it said before is part of the answer, also of one that ran out of time */
		exec_stream_begin(s);
	if (!e && res->timed_out) {
		err_set(&timeout, ERR_TIMEOUT, "the command was killed at its time limit");
		e = &timeout;
	}
	if (e) {
		finish_badly(s, e);
		return;
	}
	stream_open(&s->stream, &o, "done");
	put_end(&o, res);
	stream_close(&s->stream, &o);
	stream_finish(&s->stream);
}

static const struct exec_stream_ops stream_ops = { .put = put_chunk, .finish = finish };

static void exec_stream(struct request *r)
{
	struct exec_wish w;

	if (read_wish(r, &w) >= 0)
		exec_stream_start(r, &stream_ops, r->params[0], &w);
}

const struct route sk_exec_routes[] = {
	{ "POST", "/v1/sessions/{id}/exec", exec, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ "POST", "/v1/sessions/{id}/exec/stream", exec_stream, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ 0 },
};
