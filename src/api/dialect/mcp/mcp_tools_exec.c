/*
 * The tool exec: a command in a shell that keeps its state, or in a process of its own. While it runs, a
 * client that wants to know hears how long it has run and the last line of its output.
 */
#include "mcp_outputs.h"
#include "mcp_tools.h"
#include "run.h"
#include "text.h"
#include "poison.h"

#define PROGRESS_MS 500
#define LINE_MAX    200

/* The arguments, and then the command itself. */
struct running {
	struct mcp_args head;
	struct exec_wish wish;
	bool has_stateful, stateful;
	struct exec exec;
	struct mcp_call *call;
	uint64_t begun_ms;
};

#define AT(f) .offset = offsetof(struct running, wish.f)
static const struct json_field fields[] = {
	MCP_TOOLS_SANDBOX,
	{ "command", JSON_F_STRING, AT(command), .min = 1, .required = true },
	{ "stateful", JSON_F_BOOL, .offset = offsetof(struct running, stateful),
	  .has = offsetof(struct running, has_stateful), .nullable = true },
	{ "shell", JSON_F_STRING, AT(shell), .min = 1, .max = 63, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "stdin", JSON_F_STRING, AT(input), .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
};
#undef AT
const struct json_schema mcp_tools_exec_args = { fields, ELEMS(fields) };
const size_t mcp_tools_exec_size = sizeof(struct running);

/* ---- the result ---- */

static void put_result(struct json_out *o, const struct exec_result *res, struct view out, struct view err,
		       bool cut)
{
	json_out_kstr(o, "stdout", out);
	json_out_kstr(o, "stderr", err);
	json_out_ku64(o, "exit_code", res->exit_code);
	json_out_kz(o, "signal", res->signal);
	json_out_kbool(o, "timed_out", res->timed_out);
	json_out_kbool(o, "oom_killed", res->oom_killed);
	json_out_kbool(o, "truncated", res->truncated || cut);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)res->duration_us / 1000);
	mcp_tools_put_text(o, "shell", res->shell);
	mcp_tools_put_text(o, "cwd", res->cwd);
	json_out_kbool(o, "restarted", res->restarted);
}

/* What a person would see, and how it ended where that is worth a word. */
static void put_text(struct mcp_call *c, const struct exec_result *res, struct view out, struct view err)
{
	struct buf b = BUF_INIT(8 * MCP_TOOLS_INLINE);

	buf_add(&b, out);
	if (out.n && err.n && out.p[out.n - 1] != '\n')
		buf_putc(&b, '\n');
	buf_add(&b, err);
	if (buf_len(&b) && buf_view(&b).p[buf_len(&b) - 1] != '\n')
		buf_putc(&b, '\n');
	if (res->timed_out)
		buf_puts(&b, "[timed out]\n");
	if (res->oom_killed)
		buf_puts(&b, "[killed: the sandbox ran out of memory]\n");
	if (res->restarted)
		buf_puts(&b, "[the shell was started again]\n");
	if (res->signal)
		buf_printf(&b, "[ended by %s]\n", res->signal);
	else if (res->exit_code || !buf_len(&b))
		buf_printf(&b, "[exit code %u]\n", res->exit_code);
	mcp_call_text(c, buf_view(&b));
	buf_done(&b);
}

static void send_result(struct mcp_call *c, const struct exec_result *res, struct view sandbox)
{
	struct err gone = { 0 };
	const struct box *b = boxes_find(c->core, &c->actor, ACT_BOX_READ, sandbox, &gone);
	struct buf rooms[2] = { BUF_INIT(0), BUF_INIT(0) };
	bool cut[2];
	struct view out = mcp_tools_shorten(res->out, &rooms[0], &cut[0]),
		    err = mcp_tools_shorten(res->err, &rooms[1], &cut[1]);
	struct mcp_object x;

	struct json_out *o = mcp_tools_open(&x);
	put_result(o, res, out, err, cut[0] || cut[1]);
	json_out_end(o, '}');
	mcp_call_content(c);
	put_text(c, res, out, err);
	/* The views above lie in what is given away now. */
	const struct mcp_output *kept =
		cut[0] || cut[1] ? mcp_outputs_keep(c->mcp, &c->actor, b ? b->id : "", res->kept) : NULL;
	for (unsigned i = 0; kept && i < ELEMS(cut); i++)
		if (cut[i])
			mcp_outputs_link(c, kept, i);
	mcp_call_structured(c, buf_view(&x.text));
	buf_done(&x.text);
	buf_done(&rooms[0]);
	buf_done(&rooms[1]);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct running *run = CONTAINER(x, struct running, exec);
	struct mcp_call *c = run->call;

	c->cancel = NULL;
	loop_timer_stop(&c->timer);
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	if (res->oom_killed)
		mcp_call_log(c, MCP_LEVEL_WARNING,
			     VIEW("the sandbox ran out of memory, and a process was killed"));
	if (res->restarted)
		mcp_call_log(c, MCP_LEVEL_NOTICE, VIEW("the shell had ended and was started again"));
	send_result(c, res, run->head.sandbox);
}

/* ---- while it runs ---- */

static struct view last_line(struct view v)
{
	while (v.n && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r'))
		v.n--;
	const char *at = v.n ? memrchr(v.p, '\n', v.n) : NULL;
	if (at)
		v = view_skip(v, (size_t)(at - v.p) + 1);
	v = view_head(v, LINE_MAX);
	return view_head(v, text_utf8_prefix(v));
}

static void on_progress(struct loop_timer *t)
{
	struct mcp_call *c = CONTAINER(t, struct mcp_call, timer);
	struct running *run = c->own;
	uint64_t now = loop_now(c->mcp->loop);
	struct view line = last_line(buf_view(&run->exec.kept.bytes[0]));

	if (!line.n)
		line = last_line(buf_view(&run->exec.kept.bytes[1]));
	mcp_call_progress(c, (double)(now - run->begun_ms) / 1000, (double)run->wish.timeout_ms / 1000,
			  line.n ? line : VIEW("running"));
	loop_timer_start(c->mcp->loop, t, PROGRESS_MS, on_progress);
}

static void cancel(struct mcp_call *c)
{
	struct running *run = c->own;
	exec_cancel(&run->exec);
}

void mcp_tools_exec(struct mcp_call *c)
{
	struct running *run = c->own;
	struct err e = { 0 };
	bool stateful = !run->has_stateful || run->stateful;

	if (!stateful && run->wish.shell.p)
		err_set(&e, ERR_INVALID, "shell needs stateful");
	if (stateful && !run->wish.shell.p)
		run->wish.shell = VIEW("default");
	run->call = c;
	run->exec.done = on_done;
	run->wish.kill = true; /* a call that is cancelled ends its command */
	run->begun_ms = loop_now(c->mcp->loop);
	c->cancel = cancel;
	if (e.code || exec_start(c->core, &c->actor, run->head.sandbox, &run->wish, &run->exec, &e) < 0) {
		c->cancel = NULL;
		mcp_call_fail(c, &e);
	} else if (mcp_call_wants_progress(c)) {
		loop_timer_start(c->mcp->loop, &c->timer, PROGRESS_MS, on_progress);
	}
}
