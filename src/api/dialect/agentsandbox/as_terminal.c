/*
 * /api/v1/terminal: a command and its output, which shell there is, and a terminal over a WebSocket. Its
 * messages are JSON, both ways:
 *
 *   to us    {"type":"init","cols","rows"}, {"type":"resize","cols","rows"}, {"type":"input","data"},
 * {"type":"close"} from us  {"type":"ready"}, {"type":"output","data"}, {"type":"error","message"},
 * {"type":"exit","code"}, {"type":"closed"}
 */
#include <stdio.h>

#include "as_impl.h"
#include "clock.h"
#include "resize.h"
#include "run.h"
#include "text_pieces.h"
#include "typed.h"
#include "ws.h"
#include "poison.h"

#define INPUT_HIGH (64u * 1024)

/* ---- a command ---- */

struct run {
	struct exec exec;
	struct request *r;
	struct view command;
};

static void release_run(struct request *r)
{
	exec_cancel(&((struct run *)r->own)->exec);
}

static void on_ran(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct run *run = CONTAINER(x, struct run, exec);
	struct request *r = run->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_kstr(o, "sandbox", r->params[0]);
	json_out_kstr(o, "pod", r->params[0]);
	json_out_kz(o, "container", "sandbox");
	json_out_kstr(o, "command", run->command);
	json_out_kstr(o, "output", res->out);
	json_out_kstr(o, "errorOutput", res->err);
	json_out_ku64(o, "exitCode", res->exit_code);
	answer_put_time(o, "executedAt", clock_wall_ms());
	json_out_end(o, '}');
	as_send(r);
}

static void start(struct request *r, const struct exec_wish *w,
		  void (*done)(struct exec *, const struct exec_result *, const struct err *))
{
	struct run *run = request_own(r, sizeof(*run));
	struct err e = { 0 };

	if (!run)
		return;
	run->r = r;
	run->command = w->command;
	run->exec.done = done;
	r->release = release_run;
	if (exec_start(r->core, &r->actor, r->params[0], w, &run->exec, &e) < 0)
		answer_fail(r, &e);
}

struct command_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view command;
};
static const struct json_field command_fields[] = {
	{ "command", JSON_F_STRING, .offset = offsetof(struct command_body, command), .min = 1,
	  .required = true },
};
static const struct json_schema command_schema = { command_fields, ELEMS(command_fields) };

static void run_command(struct request *r)
{
	struct command_body body = { 0 };

	if (!as_box(r, ACT_BOX_EXEC) || request_read(r, &command_schema, &body) < 0)
		return;
	start(r, &(struct exec_wish){ .command = body.command }, on_ran);
}

static void on_detected(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct request *r = CONTAINER(x, struct run, exec)->r;
	struct view rest;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_kstr(o, "shell", view_split(res->out, '\n', &rest));
	json_out_end(o, '}');
	as_send(r);
}

static void detect_shell(struct request *r)
{
	static struct view argv[] = { VIEW("/bin/sh"), VIEW("-c"), VIEW("command -v bash || command -v sh") };

	if (as_box(r, ACT_BOX_EXEC))
		start(r, &(struct exec_wish){ .argv = { argv, ELEMS(argv) } }, on_detected);
}

/* ---- a terminal ---- */

struct terminal {
	struct ws w;
	struct exec exec;
	struct text_pieces pieces;
	char process[16];
	struct resize size;
	struct typed typed;
	struct loop_timer leaving;
};

static struct terminal *of(struct ws *w)
{
	return CONTAINER(w, struct terminal, w);
}

static void on_gone(struct ws *w)
{
	struct terminal *t = of(w);

	exec_cancel(&t->exec);
	resize_cancel(&t->size);
	loop_timer_stop(&t->leaving);
	typed_done(&t->typed);
}

static void say(struct terminal *t, const char *type, const char *key, struct view value)
{
	struct buf json = BUF_INIT(8u * 1024 * 1024);
	struct json_out o;

	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", type);
	if (key)
		json_out_kstr(&o, key, value);
	json_out_end(&o, '}');
	ws_text(&t->w, buf_view(&json));
	buf_done(&json);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);

	snprintf(t->process, sizeof(t->process), "%u", b->pid);
	ws_open(&t->w);
	say(t, "ready", NULL, VIEW_NONE);
}

static void put_piece(void *arg, struct view piece)
{
	say(arg, "output", "data", piece);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);

	text_pieces_add(&t->pieces, data, put_piece, t);
	/* What the client has not taken holds the rest back. */
	exec_consumed(x, ws_hold(&t->w, data.n));
}

static void on_sent(struct ws *w, size_t n)
{
	exec_consumed(&of(w)->exec, n);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct terminal *t = CONTAINER(x, struct terminal, exec);
	struct buf json = BUF_INIT(1024);
	struct json_out o;

	if (!t->w.open) {
		struct err early = { 0 };
		err_set(&early, ERR_INTERNAL, "the shell ended before it began");
		ws_fail(&t->w, e ? e : &early);
		return;
	}
	text_pieces_end(&t->pieces, put_piece, t);
	if (e) {
		say(t, "error", "message", view_of(e->msg));
	} else {
		json_out_init(&o, &json);
		json_out_object(&o);
		json_out_kz(&o, "type", "exit");
		json_out_ku64(&o, "code", res->exit_code);
		json_out_end(&o, '}');
		ws_text(&t->w, buf_view(&json));
		buf_done(&json);
	}
	say(t, "closed", NULL, VIEW_NONE);
	ws_leave(&t->w, WEBSOCKET_NORMAL, VIEW_NONE);
}

struct message {
	struct view type, data;
	uint64_t cols, rows;
};
static const struct json_field message_fields[] = {
	{ "type", JSON_F_STRING, .offset = offsetof(struct message, type), .required = true },
	{ "data", JSON_F_STRING, .offset = offsetof(struct message, data), .nullable = true },
	{ "cols", JSON_F_U64, .offset = offsetof(struct message, cols), .min = 1, .max = 10000 },
	{ "rows", JSON_F_U64, .offset = offsetof(struct message, rows), .min = 1, .max = 10000 },
};
static const struct json_schema message_schema = { message_fields, ELEMS(message_fields) };

static bool obey(struct terminal *t, const struct message *m, struct err *e)
{
	if (view_is(m->type, "input")) {
		if (typed_add(&t->typed, m->data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the shell does not read its input") >= 0;
	} else if ((view_is(m->type, "init") || view_is(m->type, "resize")) && m->cols && m->rows) {
		resize_to(&t->size, t->w.r, t->process, m->cols, m->rows);
	} else if (!view_is(m->type, "close")) {
		return err_set(e, ERR_INVALID, "the messages are init, resize, input and close") >= 0;
	}
	return true;
}

static void on_leaving(struct loop_timer *timer)
{
	struct terminal *t = CONTAINER(timer, struct terminal, leaving);

	say(t, "closed", NULL, VIEW_NONE);
	ws_leave(&t->w, WEBSOCKET_NORMAL, VIEW_NONE);
}

static bool on_text(struct ws *w, struct view text, struct err *e)
{
	struct arena a = ARENA_INIT(4 * WS_MESSAGE);
	struct message m = { 0 };
	struct json *doc;

	bool ok = json_parse(&a, text, &doc, e) >= 0 &&
		  json_read(&a, doc, &message_schema, &m, false, e) >= 0 && obey(of(w), &m, e);
	if (ok && view_is(m.type, "close")) /* behind this call, which still needs the session */
		loop_timer_start(w->r->x->loop, &of(w)->leaving, 0, on_leaving);
	arena_done(&a);
	return ok;
}

static const struct ws_ops terminal_ops = {
	.on_input = ws_drop_input, .on_text = on_text, .on_sent = on_sent, .on_gone = on_gone
};

static void terminal(struct request *r)
{
	struct exec_wish w = typed_login_shell();
	struct terminal *t = ws_own(r, sizeof(*t), &terminal_ops, INPUT_HIGH);
	struct err e = { 0 };

	if (!t)
		return;
	typed_init(&t->typed, r, r->params[0], t->process, 2 * WS_MESSAGE);
	t->exec.on_begun = on_begun;
	t->exec.on_output = on_output;
	t->exec.done = on_done;
	if (!request_same_origin(r->x))
		err_set(&e, ERR_FORBIDDEN, "a page of another origin may not open a terminal");
	if (e.code || ws_check(&t->w, &e) < 0 ||
	    exec_start(r->core, &r->actor, r->params[0], &w, &t->exec, &e) < 0)
		ws_fail(&t->w, &e);
}

const struct route as_terminal_routes[] = {
	{ "POST", "/api/v1/terminal/sandbox/{name}", run_command, .body = ROUTE_JSON, .query = "api_key" },
	{ "GET", "/api/v1/terminal/sandbox/{name}/detect-shell", detect_shell, .query = "api_key" },
	{ "GET", "/api/v1/terminal/sandbox/{name}/ws", terminal, .query = "api_key cols rows" },
	{ 0 },
};
