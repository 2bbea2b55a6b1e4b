/*
 * /api/v1/terminal: a command and its output, which shell there is, and a terminal over a WebSocket. Its
 * messages are JSON, both ways:
 *
 *   to us    {"type":"init","cols","rows"}, {"type":"resize","cols","rows"}, {"type":"input","data"},
 * {"type":"close"} from us  {"type":"ready"}, {"type":"output","data"}, {"type":"error","message"},
 * {"type":"exit","code"}, {"type":"closed"}
 */
#include "answer_long.h"
#include "as_impl.h"
#include "clock.h"
#include "json_terminal.h"
#include "poison.h"

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
	answer_keep(r, res->kept);
	json_out_object(o);
	json_out_kstr(o, "sandbox", r->params[0]);
	json_out_kstr(o, "pod", r->params[0]);
	json_out_kz(o, "container", "sandbox");
	json_out_kstr(o, "command", run->command);
	answer_put_long(r, "output", ANSWER_STRING, res->out);
	answer_put_long(r, "errorOutput", ANSWER_STRING, res->err);
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

static void begun(struct json_terminal *t)
{
	json_terminal_say(t, "ready", NULL, VIEW_NONE);
}

static void ended(struct json_terminal *t, const struct exec_result *res, const struct err *e)
{
	struct buf json = BUF_INIT(1024);
	struct json_out o;

	if (e) {
		json_terminal_say(t, "error", "message", view_of(e->msg));
	} else {
		json_out_init(&o, &json);
		json_out_object(&o);
		json_out_kz(&o, "type", "exit");
		json_out_ku64(&o, "code", res->exit_code);
		json_out_end(&o, '}');
		ws_text(&t->w, buf_view(&json));
		buf_done(&json);
	}
	json_terminal_say(t, "closed", NULL, VIEW_NONE);
}

static void on_leaving(struct loop_timer *timer)
{
	struct json_terminal *t = CONTAINER(timer, struct json_terminal, timer);

	json_terminal_say(t, "closed", NULL, VIEW_NONE);
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

static bool message(struct json_terminal *t, const struct json *doc, struct arena *a, struct err *e)
{
	struct message m = { 0 };

	if (json_read(a, doc, &message_schema, &m, false, e) < 0)
		return false;
	if (view_is(m.type, "input"))
		return json_terminal_input(t, m.data, e);
	if ((view_is(m.type, "init") || view_is(m.type, "resize")) && m.cols && m.rows)
		json_terminal_resize(t, m.cols, m.rows);
	else if (view_is(m.type, "close")) /* behind this call, which still needs the session */
		loop_timer_start(t->w.r->x->loop, &t->timer, 0, on_leaving);
	else
		return err_set(e, ERR_INVALID, "the messages are init, resize, input and close") >= 0;
	return true;
}

static void terminal(struct request *r)
{
	static const struct json_terminal_ops ops = { .begun = begun, .ended = ended, .message = message };

	json_terminal_start(r, sizeof(struct json_terminal), r->params[0], &ops);
}

const struct route as_terminal_routes[] = {
	{ "POST", "/api/v1/terminal/sandbox/{name}", run_command, .body = ROUTE_JSON, .query = "api_key" },
	{ "GET", "/api/v1/terminal/sandbox/{name}/detect-shell", detect_shell, .query = "api_key" },
	{ "GET", "/api/v1/terminal/sandbox/{name}/ws", terminal, .query = "api_key cols rows" },
	{ 0 },
};
