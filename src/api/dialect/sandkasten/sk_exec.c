/*
 * POST /v1/sessions/{id}/exec and …/exec/stream: a command in the session's shell, stdout and stderr as
 * one text.
 */
#include "answer_long.h"
#include "clock.h"
#include "run.h"
#include "sk_impl.h"
#include "stream.h"
#include "text_pieces.h"
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
	struct output kept;
	struct answer_long answer;
};

static void release(struct request *r)
{
	struct running *run = r->own;

	answer_long_done(&run->answer);
	outputs_done(&run->kept);
}

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
	run->kept = *res->kept;
	*res->kept = (struct output){ 0 };
	r->release = release;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_end(o, res);
	json_out_kbool(o, "truncated", res->truncated);
	json_out_key(o, "output");
	if (r->out.bad) {
		answer_send(r, 200); /* which says what went wrong */
		return;
	}
	answer_long_add(&run->answer, ANSWER_LONG_TEXT, buf_view(&r->out));
	answer_long_add(&run->answer, ANSWER_LONG_TEXT, VIEW("\""));
	answer_long_add(&run->answer, ANSWER_LONG_STRING, buf_view(&run->kept.bytes[0]));
	answer_long_add(&run->answer, ANSWER_LONG_TEXT, VIEW("\"}\n"));
	answer_long_send(&run->answer, r, 200);
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

struct streamed {
	struct stream stream;
	struct exec exec;
	struct text_pieces pieces[EXEC_CHANNELS]; /* a character that one channel has begun ends in it */
};

static void begin(struct streamed *s)
{
	if (!s->stream.begun)
		stream_begin(&s->stream, NULL, 0);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	begin(CONTAINER(x, struct streamed, exec));
}

static void put_chunk(void *arg, struct view text)
{
	struct streamed *s = arg;
	struct json_out o;

	begin(s);
	stream_open(&s->stream, &o, "chunk");
	json_out_kstr(&o, "chunk", text);
	json_out_ki64(&o, "timestamp", clock_wall_ms());
	stream_close(&s->stream, &o);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct streamed *s = CONTAINER(x, struct streamed, exec);

	text_pieces_add(&s->pieces[channel - 1], data, put_chunk, s);
	if (s->stream.full)
		s->stream.held += data.n;
	else
		exec_consumed(x, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct streamed *s = ((struct request *)x->ctx)->own;
	size_t n = s->stream.held;

	s->stream.full = false;
	s->stream.held = 0;
	exec_consumed(&s->exec, n);
}

static void finish_badly(struct streamed *s, const struct err *e)
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

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct streamed *s = CONTAINER(x, struct streamed, exec);
	struct err timeout = { 0 };
	struct json_out o;

	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		text_pieces_end(&s->pieces[i], put_chunk, s);
	if (!e && res->timed_out) {
		err_set(&timeout, ERR_TIMEOUT, "the command was killed at its time limit");
		begin(s); /* it ran: what it said before is part of the answer */
		e = &timeout;
	}
	if (e) {
		finish_badly(s, e);
		return;
	}
	begin(s);
	stream_open(&s->stream, &o, "done");
	put_end(&o, res);
	stream_close(&s->stream, &o);
	stream_finish(&s->stream);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	struct streamed *s = r->own;

	exec_cancel(&s->exec);
	stream_release(&s->stream);
	request_done(r);
}

static const struct http_ops stream_ops = { .on_body = request_drop_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

static void exec_stream(struct request *r)
{
	struct exec_wish w;
	struct err e = { 0 };

	if (read_wish(r, &w) < 0)
		return;
	struct streamed *s = request_own(r, sizeof(*s));
	if (!s)
		return;
	stream_init(&s->stream, r, STREAM_SSE, &stream_ops);
	s->exec.on_begun = on_begun;
	s->exec.on_output = on_output;
	s->exec.done = on_done;
	if (exec_start(r->core, &r->actor, r->params[0], &w, &s->exec, &e) < 0) {
		stream_release(&s->stream);
		answer_fail(r, &e);
	}
}

const struct route sk_exec_routes[] = {
	{ "POST", "/v1/sessions/{id}/exec", exec, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ "POST", "/v1/sessions/{id}/exec/stream", exec_stream, .body = ROUTE_JSON, .body_max = SK_BODY_MAX },
	{ 0 },
};
