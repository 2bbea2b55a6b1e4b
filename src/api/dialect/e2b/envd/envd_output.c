/*
 * Start and Connect: a process's start, its output as it arrives, its end. The process continues when
 * its client disconnects, but ends at its deadline.
 */
#include "envd_output.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "envd_gen.h"
#include "run.h"
#include "poison.h"

#define COLS 80
#define ROWS 24

#define AHEAD_S 60         /* a new box's first command mostly comes at once */
#define POOL_S  UINT32_MAX /* as long as nobody has the box */

struct run {
	struct exec exec;
	struct request *c;
	char ref[ENVD_REF_MAX];
	bool pty;
	size_t held; /* bytes that the client has not taken yet */
};

static void release(struct request *c)
{
	exec_cancel(&((struct run *)c->own)->exec);
}

/* ---- events ---- */

static const struct envd_process_event keepalive = { .keepalive =
							     &(struct envd_process_event_keep_alive){ 0 } };
static const struct envd_start_response ping = { .event =
							 (struct envd_process_event *)(uintptr_t)&keepalive };

static void send_event(struct run *r, struct envd_process_event *ev)
{
	rpc_send(r->c, &(struct envd_start_response){ .event = ev });
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct run *r = CONTAINER(x, struct run, exec);
	struct envd_process_event_start_event start = { .pid = b->pid };

	if (b->info)
		r->pty = b->info->pty;
	rpc_begin(r->c, &ping);
	send_event(r, &(struct envd_process_event){ .start = &start });
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct run *r = CONTAINER(x, struct run, exec);
	struct envd_process_event_data_event ev = { 0 };

	if (r->pty) {
		ev.has_pty = true;
		ev.pty = data;
	} else if (channel == 1) {
		ev.has_stdout = true;
		ev.stdout_ = data;
	} else {
		ev.has_stderr = true;
		ev.stderr_ = data;
	}
	send_event(r, &(struct envd_process_event){ .data = &ev });
	if (rpc_of(r->c)->full)
		r->held += data.n;
	else
		exec_consumed(x, data.n);
}

static void on_writable(struct request *c)
{
	struct run *r = c->own;
	size_t n = r->held;

	r->held = 0;
	exec_consumed(&r->exec, n);
}

/* ---- the end ---- */

/* As the original's language calls them. */
static const char *signal_text(const char *name)
{
	static const struct {
		const char *name, *text;
	} known[] = {
		{ "SIGHUP", "hangup" },
		{ "SIGINT", "interrupt" },
		{ "SIGQUIT", "quit" },
		{ "SIGILL", "illegal instruction" },
		{ "SIGABRT", "aborted" },
		{ "SIGBUS", "bus error" },
		{ "SIGFPE", "floating point exception" },
		{ "SIGKILL", "killed" },
		{ "SIGSEGV", "segmentation fault" },
		{ "SIGPIPE", "broken pipe" },
		{ "SIGALRM", "alarm clock" },
		{ "SIGTERM", "terminated" },
	};
	for (size_t i = 0; i < ELEMS(known); i++)
		if (view_is(view_of(name), known[i].name))
			return known[i].text;
	return name;
}

static void send_end(struct run *r, const struct exec_result *res)
{
	char status[64];
	struct envd_process_event_end_event end = { .exited = !res->signal };

	end.exit_code = res->signal ? -1 : (int32_t)res->exit_code;
	if (res->signal)
		snprintf(status, sizeof(status), "signal: %s", signal_text(res->signal));
	else
		snprintf(status, sizeof(status), "exit status %u", res->exit_code);
	end.status = view_of(status);
	end.has_error = end.exit_code != 0;
	end.error = end.has_error ? end.status : VIEW_NONE;
	send_event(r, &(struct envd_process_event){ .end = &end });
	rpc_end(r->c);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *said)
{
	struct run *r = CONTAINER(x, struct run, exec);
	struct err e = { 0 };

	if (said && said->code == ERR_NOT_FOUND && r->ref[0])
		envd_no_process(r->ref, &e);
	else if (said)
		e = *said;
	else if (res->timed_out && rpc_of(r->c)->timeout_ms)
		err_set(&e, ERR_TIMEOUT, "the deadline has passed, and the process was killed");
	if (e.code)
		answer_fail(r->c, &e);
	else
		send_end(r, res);
}

static struct run *run_new(struct request *c)
{
	struct run *r = envd_own(c, sizeof(*r), release);

	if (!r)
		return NULL;
	r->c = c;
	r->exec.on_begun = on_begun;
	r->exec.on_output = on_output;
	r->exec.done = on_done;
	rpc_of(c)->on_writable = on_writable;
	return r;
}

/* ---- Connect ---- */

void envd_connect(struct request *c, const void *request)
{
	const struct envd_connect_request *q = request;
	struct exec_place place = { .from_end = true };
	struct err e = { 0 };
	struct run *r = run_new(c);

	if (!r)
		return;
	if (envd_ref(q->process, r->ref, &e) < 0) {
		answer_fail(c, &e);
		return;
	}
	place.process = view_of(r->ref);
	if (exec_attach(c->core, &c->actor, view_of(c->box), &place, &r->exec, &e) < 0)
		answer_fail(c, &e);
}

/* ---- Start ---- */

static int fill_argv(struct request *c, const struct envd_process_config *p, struct json_strlist *ret,
		     struct err *e)
{
	ret->items = arena_array(&c->arena, p->args.n + 1, sizeof(*ret->items));
	if (!ret->items)
		return err_set(e, ERR_TOO_LARGE, "the message is too large");
	ret->items[0] = p->cmd;
	ret->n = p->args.n + 1;
	for (size_t i = 0; i < p->args.n; i++)
		ret->items[i + 1] = p->args.items[i];
	return 0;
}

/* The call's over the box's; what tells the box who it is cannot be overridden. */
static int fill_env(struct request *c, const struct box *b, const struct envd_process_config *p,
		    struct json_strmap *ret, struct err *e)
{
	size_t n = p->envs.n + ENVD_VARS;

	ret->keys = arena_array(&c->arena, n, sizeof(struct view));
	ret->values = arena_array(&c->arena, n, sizeof(struct view));
	if (!ret->keys || !ret->values)
		return err_set(e, ERR_TOO_LARGE, "the message is too large");
	for (size_t i = 0; i < p->envs.n; i++) {
		ret->keys[i] = p->envs.items[i].key;
		ret->values[i] = p->envs.items[i].value;
	}
	ret->n = p->envs.n + envd_vars(c->core, b, ret->keys + p->envs.n, ret->values + p->envs.n);
	return 0;
}

/* What the box was made with, where that was chosen, else the home. */
static struct view usual_cwd(struct core *core, const struct box *b)
{
	return view_eq(b->spec.workdir, core_config(core)->defaults.workdir) ? VIEW_NONE : b->spec.workdir;
}

/* Relative to the home. */
static int fill_cwd(struct request *c, const struct box *b, const struct envd_process_config *p,
		    struct view *ret, struct err *e)
{
	*ret = usual_cwd(c->core, b);
	return p->has_cwd && p->cwd.n ? envd_path(&c->arena, p->cwd, ret, e) : 0;
}

static int fill(struct run *r, const struct envd_start_request *q, struct exec_wish *w, struct err *e)
{
	struct request *c = r->c;
	const struct box *b = envd_box(c);

	if (!b)
		return boxes_unknown(e);
	if (!q->process || !q->process->cmd.n)
		return err_set(e, ERR_INVALID, "process must name a command");
	*w = (struct exec_wish){
		.user = c->user,
		.timeout_ms = rpc_of(c)->timeout_ms,
		.keep = true,
		.home = true,
		.ready = true,
		.open_stdin = !q->has_stdin || q->stdin_,
		.pty = q->pty != NULL,
		.tag = q->has_tag ? q->tag : VIEW_NONE,
	};
	if (w->pty) {
		w->cols = q->pty->size && q->pty->size->cols ? q->pty->size->cols : COLS;
		w->rows = q->pty->size && q->pty->size->rows ? q->pty->size->rows : ROWS;
	}
	r->pty = w->pty;
	return fill_argv(c, q->process, &w->argv, e) < 0 || fill_env(c, b, q->process, &w->env, e) < 0 ||
			       fill_cwd(c, b, q->process, &w->cwd, e) < 0
		       ? -1
		       : 0;
}

void envd_start(struct request *c, const void *request)
{
	struct exec_wish w;
	struct err e = { 0 };
	struct run *r = run_new(c);

	if (r && (fill(r, request, &w, &e) < 0 ||
		  exec_start(c->core, &c->actor, view_of(c->box), &w, &r->exec, &e) < 0))
		answer_fail(c, &e);
}

/* ---- ahead ---- */

/* As clients run commands that name no user, directory or variables. */
static void ahead(struct core *core, const struct box *b, uint32_t seconds)
{
	struct view argv[] = { VIEW("/bin/bash"), VIEW("-l"), VIEW("-c"), VIEW("") };
	struct view names[ENVD_VARS], values[ENVD_VARS];
	const struct exec_wish w = {
		.argv = { argv, ELEMS(argv) },
		.env = { names, values, envd_vars(core, b, names, values) },
		.cwd = usual_cwd(core, b),
		.keep = true,
		.home = true,
		.ready = true,
	};
	exec_ahead(core, b, &w, seconds);
}

static void ahead_in_pool(struct core *core, const struct box *b)
{
	ahead(core, b, POOL_S);
}

void envd_early(struct core *core, const struct box *b)
{
	ahead(core, b, AHEAD_S);
}

struct later {
	struct loop_task task;
	struct core *core;
	char box[BOX_ID + 1];
};

static void on_later(struct loop_task *t)
{
	struct later *l = CONTAINER(t, struct later, task);
	const struct box *b = boxes_by_id(l->core, view_of(l->box));
	if (b)
		ahead(l->core, b, AHEAD_S);
	free(l);
}

/* In the order of tasks the answer is sent first: PID 1 would take the processor from it. */
void envd_ahead(struct core *core, struct loop *loop, const struct box *b)
{
	struct later *l = calloc(1, sizeof(*l));
	if (l) {
		l->core = core;
		memcpy(l->box, b->id, sizeof(l->box));
		list_init(&l->task.link);
		loop_defer(loop, &l->task, on_later);
	}
	pool_ready(core, ahead_in_pool);
}
