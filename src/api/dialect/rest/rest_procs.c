/*
 * /v1/sandboxes/{id}/processes: processes that outlive the request. A process
 * is named by its pid or by its tag. What goes in and comes out is in rest_procs_io.c.
 */
#include "rest_procs.h"

#include <signal.h>

#include "rest_output.h"
#include "rest_variables.h"
#include "run.h"
#include "poison.h"

/* ---- as JSON ---- */

static void put_exit(struct json_out *o, const struct proc_exit *x)
{
	json_out_object(o);
	json_out_ku64(o, "exit_code", x->exit_code);
	json_out_kz(o, "signal", exec_signal_name(x->signal));
	json_out_kbool(o, "timed_out", x->timed_out);
	json_out_kbool(o, "oom_killed", x->oom_killed);
	if (x->oom_killed)
		json_out_ku64(o, "memory_limit_mb", x->memory_limit >> 20);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)x->duration_us / 1000);
	json_out_end(o, '}');
}

void rest_procs_put_info(struct json_out *o, const struct proc_info *p)
{
	json_out_ku64(o, "pid", p->pid);
	json_out_kstr_any(o, "tag", p->tag);
	json_out_key(o, "argv");
	json_out_array(o);
	/* How a shell or a context begins is of no interest, and of some length. */
	bool ours = view_starts(p->tag, "shell:") || view_starts(p->tag, "context:");
	for (size_t i = 0; i < (ours ? MIN(p->argv.n, 1u) : p->argv.n); i++)
		json_out_str(o, p->argv.items[i]);
	json_out_end(o, ']');
	json_out_kstr(o, "cwd", p->cwd);
	json_out_kstr(o, "user", p->user);
	json_out_kbool(o, "pty", p->pty);
	json_out_kbool(o, "running", p->running);
	answer_put_time(o, "started_at", p->started_ms);
	json_out_key(o, "exit");
	if (p->running || !p->has_exit)
		json_out_null(o);
	else
		put_exit(o, &p->exit);
	json_out_ku64(o, "stdout_bytes", p->stdout_end);
	json_out_ku64(o, "stderr_bytes", p->stderr_end);
}

/* ---- starting ---- */

struct start_body {
	struct exec_wish wish;
	struct rest_variables variables;
	bool has_pty;
	struct {
		uint64_t cols, rows;
	} pty;
};

#define AT(f) .offset = offsetof(struct start_body, wish.f)
static const struct json_field pty_fields[] = {
	{ "cols", JSON_F_U64, .offset = 0, .min = 1, .max = 10000, .required = true },
	{ "rows", JSON_F_U64, .offset = sizeof(uint64_t), .min = 1, .max = 10000, .required = true },
};
static const struct json_schema pty_schema = { pty_fields, ELEMS(pty_fields) };
static const struct json_field start_fields[] = {
	{ "command", JSON_F_STRING, AT(command), .min = 1, .nullable = true },
	{ "argv", JSON_F_STRLIST, AT(argv), .min = 1, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "tag", JSON_F_STRING, AT(tag), .min = 1, .nullable = true },
	{ "stdin", JSON_F_BOOL, AT(open_stdin), .nullable = true },
	{ "pty", JSON_F_OBJECT, .offset = offsetof(struct start_body, pty),
	  .has = offsetof(struct start_body, has_pty), .sub = &pty_schema, .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
	{ "kill_on_disconnect", JSON_F_BOOL, AT(kill), .nullable = true },
	{ "secrets", JSON_F_ANY, .offset = offsetof(struct start_body, variables.wish), .nullable = true },
};
#undef AT
static const struct json_schema start_schema = { start_fields, ELEMS(start_fields) };

struct starting {
	struct exec exec;
	struct request *r;
	struct view tag;
	bool pty;
};

static void on_started(struct exec *x, const struct exec_begun *b)
{
	struct starting *s = CONTAINER(x, struct starting, exec);
	struct request *r = s->r;
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_ku64(o, "pid", b->pid);
	json_out_key(o, "tag");
	if (s->tag.n)
		json_out_str(o, s->tag);
	else
		json_out_null(o);
	json_out_kbool(o, "pty", s->pty);
	json_out_kbool(o, "running", true);
	json_out_end(o, '}');
	exec_cancel(x); /* it goes on without us */
	answer_send(r, 201);
}

static void on_start_over(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct err mine = { 0 };

	if (!e)
		err_set(&mine, ERR_INTERNAL, "the process ended before it began");
	answer_fail(CONTAINER(x, struct starting, exec)->r, e ? e : &mine);
}

static void on_start_gone(struct request *r)
{
	struct starting *s = r->own;
	exec_cancel(&s->exec);
}

static void start_detached(struct request *r, const struct exec_wish *w)
{
	struct err e = { 0 };
	struct starting *s;

	if (w->kill) {
		err_set(&e, ERR_INVALID,
			"kill_on_disconnect needs a streamed answer (Accept: text/event-stream)");
		answer_fail(r, &e);
		return;
	}
	s = request_own(r, sizeof(*s));
	if (!s)
		return;
	s->r = r;
	s->tag = w->tag;
	s->pty = w->pty;
	s->exec.on_begun = on_started;
	s->exec.done = on_start_over;
	r->on_gone = on_start_gone;
	if (exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		answer_fail(r, &e);
}

static void start_any(struct request *r, void *body)
{
	enum stream_form form = stream_form(r);
	struct start_body *b = body;
	struct exec_wish *w = &b->wish;
	struct err e = { 0 };

	w->keep = true;
	w->pty = b->has_pty;
	w->cols = b->pty.cols;
	w->rows = b->pty.rows;
	if (form == STREAM_NONE) {
		start_detached(r, w);
		return;
	}
	struct rest_output *s = rest_output_new(r, form);
	if (!s)
		return;
	s->tag = w->tag.n ? arena_str(&r->arena, w->tag) : NULL;
	if (exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		answer_fail(r, &e);
}

static void start(struct request *r)
{
	struct start_body *b = rest_variables_body(r, sizeof(*b));

	if (b && request_read(r, &start_schema, b) >= 0)
		rest_variables_fetch(r, &b->variables, &b->wish.secrets, start_any, b);
}

/* ---- requests with a short answer ---- */

struct asking {
	struct proc_op op;
	struct request *r;
};

static void on_asking_gone(struct request *r)
{
	struct asking *k = r->own;
	procs_cancel(&k->op);
}

static struct asking *asking(struct request *r, void (*done)(struct proc_op *, const struct proc_info *,
							     size_t, const struct err *))
{
	struct asking *k = request_own(r, sizeof(*k));

	if (!k)
		return NULL;
	k->r = r;
	k->op.done = done;
	r->on_gone = on_asking_gone;
	return k;
}

static void on_list(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = answer_result_list(r, e, "processes");

	if (!o)
		return;
	for (size_t i = 0; i < n; i++) {
		json_out_object(o);
		rest_procs_put_info(o, &list[i]);
		json_out_end(o, '}');
	}
	answer_send_list(r);
}

static void on_one(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	rest_procs_put_info(o, list);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void on_nothing(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;

	if (e)
		answer_fail(r, e);
	else
		answer_no_content(r);
}

static void list(struct request *r)
{
	struct asking *k = asking(r, on_list);
	struct err e = { 0 };

	if (k && procs_list(r->core, &r->actor, r->params[0], &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void get(struct request *r)
{
	struct asking *k = asking(r, on_one);
	struct err e = { 0 };

	if (k && procs_get(r->core, &r->actor, r->params[0], r->params[1], &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void end(struct request *r)
{
	struct asking *k = asking(r, on_nothing);
	struct err e = { 0 };

	if (k && procs_signal(r->core, &r->actor, r->params[0], r->params[1], SIGKILL, true, &k->op, &e) < 0)
		answer_fail(r, &e);
}

struct signal_body {
	const struct json *signal;
};

static const struct json_field signal_fields[] = {
	{ "signal", JSON_F_ANY, .offset = offsetof(struct signal_body, signal), .required = true },
};
static const struct json_schema signal_schema = { signal_fields, ELEMS(signal_fields) };

static void send_signal(struct request *r)
{
	struct signal_body b = { 0 };
	struct err e = { 0 };

	if (request_read(r, &signal_schema, &b) < 0)
		return;
	bool spelled = b.signal && (b.signal->type == JSON_STRING || b.signal->type == JSON_NUMBER);
	uint32_t signo = spelled ? exec_signal(b.signal->text) : 0;
	if (!signo) {
		err_set(&e, ERR_INVALID, "signal must be a name (\"SIGTERM\") or a number from 1 to 64");
		answer_fail(r, &e);
		return;
	}
	struct asking *k = asking(r, on_nothing);
	if (k && procs_signal(r->core, &r->actor, r->params[0], r->params[1], signo, false, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void resize(struct request *r)
{
	uint64_t size[2] = { 0 };
	struct err e = { 0 };

	if (request_read(r, &pty_schema, size) < 0)
		return;
	struct asking *k = asking(r, on_nothing);
	if (k &&
	    procs_resize(r->core, &r->actor, r->params[0], r->params[1], size[0], size[1], &k->op, &e) < 0)
		answer_fail(r, &e);
}

#define PROCESS "/v1/sandboxes/{id}/processes/{process}"
const struct route rest_procs_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/processes", start, .body = ROUTE_JSON },
	{ "GET", "/v1/sandboxes/{id}/processes", list },
	{ "GET", PROCESS, get },
	{ "DELETE", PROCESS, end },
	{ "POST", PROCESS "/signal", send_signal, .body = ROUTE_JSON },
	{ "POST", PROCESS "/resize", resize, .body = ROUTE_JSON },
	{ 0 },
};
