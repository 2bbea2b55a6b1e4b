/*
 * paddock ps, logs, attach, kill: the processes of a sandbox that outlive a command.
 * A process is named by its pid or its tag.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "clock.h"
#include "exec.h"
#include "ref.h"
#include "terminal.h"

#include "poison.h"

/* ---- ps ---- */

static struct view command_of(struct arena *a, const struct json *p)
{
	const struct json *argv = json_get(p, "argv");
	struct buf b = BUF_INIT(64u << 10);
	struct view v;

	for (size_t i = 0; argv && argv->type == JSON_ARRAY && i < argv->n && buf_len(&b) < 200; i++) {
		if (i)
			buf_putc(&b, ' ');
		buf_add(&b, view_head(argv->items[i].text, 200));
	}
	v = arena_view(a, buf_view(&b));
	buf_done(&b);
	return v.n ? v : VIEW("-");
}

static struct view state_of(struct arena *a, const struct json *p)
{
	const struct json *running = json_get(p, "running"), *end = json_get(p, "exit"), *code;
	char text[48];

	if (running && running->type == JSON_BOOL && running->boolean)
		return VIEW("running");
	code = end ? json_get(end, "exit_code") : NULL;
	if (!code)
		return VIEW("ended");
	snprintf(text, sizeof(text), "exit %.*s", VIEW_ARG(view_head(code->text, 20)));
	return arena_view(a, view_of(text));
}

static int run_ps(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		  struct err *e)
{
	static const char *const titles[] = { "PID", "TAG", "USER", "STATE", "STARTED", "COMMAND" };
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct json *answer;
	const struct json *rows;

	if (call_once(ctx, &(struct cli_call){ "GET", "sandboxes", operands[0], "/processes" }, &answer, e) <
	    0)
		return -1;
	rows = answer ? json_get(answer, "processes") : NULL;
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of processes");
	if (ctx->json)
		return show_json(rows, e);
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *p = &rows->items[i];

		show_table_add(&t,
			       (struct view[]){ show_cell(&t, p, "pid"), show_cell(&t, p, "tag"),
						show_cell(&t, p, "user"), state_of(&ctx->arena, p),
						show_cell(&t, p, "started_at"), command_of(&ctx->arena, p) });
	}
	return show_table_print(&t, e);
}

/* ---- logs ---- */

struct logs_flags {
	bool follow;
};

static const struct opt LOGS_OPTS[] = {
	{ "follow", 'f', OPT_FLAG, offsetof(struct logs_flags, follow), NULL,
	  "go on with what comes, until the process ends" },
};

static int process_path(struct buf *rest, const char *process, const char *what, struct err *e)
{
	buf_puts(rest, "/processes/");
	if (session_segment(rest, process, e) < 0)
		return -1;
	buf_puts(rest, what);
	buf_putc(rest, 0);
	return rest->bad ? err_set(e, ERR_INVALID, "the name is too long") : 0;
}

static int run_logs(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf rest = BUF_INIT(8192);
	const struct logs_flags *f = flags;
	struct json *answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	if (f->follow)
		return exec_follow(&s, operands[0], operands[1], false, e) < 0 ? -1 : 0;
	if (process_path(&rest, operands[1], "/output", e) < 0 ||
	    call_with(&s, &(struct cli_call){ "GET", "sandboxes", operands[0], rest.p }, &answer, e) < 0)
		return -1;
	if (!answer)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	if (ctx->json)
		return show_json(answer, e);
	if (exec_put_output(json_get(answer, "stdout"), STDOUT_FILENO, e) < 0 ||
	    exec_put_output(json_get(answer, "stderr"), STDERR_FILENO, e) < 0)
		return -1;
	return 0;
}

/* ---- attach ---- */

static int run_attach(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf rest = BUF_INIT(8192);
	struct terminal_wish w = { .box = operands[0] };
	const struct json *pid, *pty;
	struct json *answer;

	if (process_path(&rest, operands[1], "", e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    call_with(&s, &(struct cli_call){ "GET", "sandboxes", operands[0], rest.p }, &answer, e) < 0)
		return -1;
	pid = answer ? json_get(answer, "pid") : NULL;
	pty = answer ? json_get(answer, "pty") : NULL;
	if (!pid || json_to_u64(pid, &w.process) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon did not say what it is");
	w.box = ref_id(&s, w.box);
	if (pty && pty->type == JSON_BOOL && pty->boolean)
		return terminal_check(e) < 0 ? -1 : terminal_run(&s, &w, e);
	return exec_follow(&s, operands[0], operands[1], exec_has_input(), e);
}

/* ---- kill ---- */

struct kill_flags {
	const char *signal;
};

static const struct opt KILL_OPTS[] = {
	{ "signal", 's', OPT_TEXT, offsetof(struct kill_flags, signal), "SIGNAL",
	  "a name such as SIGTERM, or a number (default: SIGKILL)" },
};

static int run_kill(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf rest = BUF_INIT(8192), body = BUF_INIT(1024);
	const struct kill_flags *f = flags;
	struct json_out o;

	if (process_path(&rest, operands[1], f->signal ? "/signal" : "", e) < 0)
		return -1;
	if (!f->signal)
		return call_once(ctx, &(struct cli_call){ "DELETE", "sandboxes", operands[0], rest.p }, NULL,
				 e);
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "signal", f->signal);
	json_out_end(&o, '}');
	return call_once(ctx, &(struct cli_call){ "POST", "sandboxes", operands[0], rest.p, buf_view(&body) },
			 NULL, e);
}

/* ---- wait ---- */

struct wait_flags {
	uint64_t timeout_ms;
};

static const struct opt WAIT_OPTS[] = {
	{ "timeout", 0, OPT_MS, offsetof(struct wait_flags, timeout_ms), "TIME",
	  "give up after this time, with 124 (default: never)" },
};

/* Asks again and again, since one request waits an hour at most. */
static int run_wait(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf rest = BUF_INIT(8192);
	const struct wait_flags *f = flags;
	uint64_t end = f->timeout_ms ? clock_mono_ms() + f->timeout_ms : UINT64_MAX;
	const struct json *running, *code;
	struct json *answer;
	uint64_t status = 0;
	char what[48];

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (;;) {
		uint64_t now = clock_mono_ms(), slice = MIN(end - MIN(end, now), UINT64_C(60000));

		snprintf(what, sizeof(what), "/wait?timeout_ms=%llu", (unsigned long long)slice);
		buf_clear(&rest);
		if (process_path(&rest, operands[1], what, e) < 0 ||
		    call_with(&s,
			      &(struct cli_call){ "GET", "sandboxes", operands[0], rest.p,
						  .timeout_ms = slice + SESSION_CALL_MS },
			      &answer, e) < 0)
			return -1;
		running = answer ? json_get(answer, "running") : NULL;
		if (!running || running->type != JSON_BOOL)
			return err_set(e, ERR_INTERNAL, "the daemon did not say whether it runs");
		if (!running->boolean)
			break;
		if (clock_mono_ms() >= end)
			return 124;
	}
	if (ctx->json)
		return show_json(answer, e);
	code = json_get(answer, "exit_code");
	return code && json_to_u64(code, &status) == 0 ? (int)(status & 255) : CMD_DAEMON_FAILED;
}

#define PROCESS .operands = "SANDBOX PROCESS", .lead = OPTS_ANYWHERE, .min = 2, .max = 2, .client = true

const struct cmd cmd_ps = {
	.name = "ps",
	.operands = "SANDBOX",
	.summary = "list the processes of a sandbox that outlive a command",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_ps,
};

const struct cmd cmd_logs = {
	.name = "logs",
	.summary = "show what a process has written",
	PROCESS,
	.opts = LOGS_OPTS,
	.n_opts = ELEMS(LOGS_OPTS),
	.flags_size = sizeof(struct logs_flags),
	.json = true,
	.run = run_logs,
};

const struct cmd cmd_attach = {
	.name = "attach",
	.summary = "join a process: its output from the beginning, and our input",
	.help = "The exit code is the process's. It goes on when this ends.",
	PROCESS,
	.failed = CMD_DAEMON_FAILED,
	.run = run_attach,
};

const struct cmd cmd_wait = {
	.name = "wait",
	.summary = "wait for the end of a process",
	.help = "The exit code is the process's; with --json it is 0, and the result is printed.",
	PROCESS,
	.opts = WAIT_OPTS,
	.n_opts = ELEMS(WAIT_OPTS),
	.flags_size = sizeof(struct wait_flags),
	.json = true,
	.failed = CMD_DAEMON_FAILED,
	.run = run_wait,
};

const struct cmd cmd_kill = {
	.name = "kill",
	.summary = "end a process, or send it a signal",
	PROCESS,
	.opts = KILL_OPTS,
	.n_opts = ELEMS(KILL_OPTS),
	.flags_size = sizeof(struct kill_flags),
	.run = run_kill,
};
