/*
 * paddock exec: one command in a box that exists.
 */
#include "cmd.h"
#include "exec.h"

#include "poison.h"

struct exec_flags {
	const char *user, *workdir;
	struct opt_list env, secret_env;
	const char *shell;
	uint64_t timeout_ms;
	bool no_input, tty;
};

#define AT(member) offsetof(struct exec_flags, member)

static const struct opt OPTS[] = {
	{ "user", 'u', OPT_TEXT, AT(user), "NAME", "run as this user of the box" },
	{ "env", 'e', OPT_PAIRS, AT(env), "KEY=VALUE", "a variable; may be repeated" },
	{ "secret-env", 0, OPT_PAIRS, AT(secret_env), "KEY=NAME",
	  "a variable with the value of the secret NAME; may be repeated" },
	{ "workdir", 'w', OPT_TEXT, AT(workdir), "DIR", "start in this directory" },
	{ "timeout", 0, OPT_MS, AT(timeout_ms), "TIME", "kill the command after this time" },
	{ "tty", 't', OPT_FLAG, AT(tty), NULL, "give the command a terminal: ours" },
	{ "shell", 's', OPT_TEXT, AT(shell), "NAME",
	  "run it in this shell, which remembers; COMMAND is one argument" },
	{ "no-stdin", 0, OPT_FLAG, AT(no_input), NULL, "do not read standard input" },
};

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct exec_flags *f = flags;
	struct exec_spec x = {
		.box = operands[0],
		.argv = operands + 1,
		.user = f->user,
		.workdir = f->workdir,
		.env = &f->env,
		.secret_env = &f->secret_env,
		.timeout_ms = f->timeout_ms,
		.shell = f->shell,
		.input = !f->no_input && exec_has_input(),
		.tty = f->tty,
	};

	if (exec_check(&x, e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return exec_run(&s, &x, e);
}

const struct cmd cmd_exec = {
	.name = "exec",
	.operands = "BOX [--] COMMAND [ARGUMENT…]",
	.summary = "run a command in a box",
	.help = "The exit code is the command's: 128 and the signal's number if a signal ended\n"
		"it, 124 after --timeout, 125 when the daemon could not do its part. Standard\n"
		"input is passed on when it is not a terminal. Whoever ends this ends the command.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct exec_flags),
	.lead = 1,
	.min = 2,
	.max = SIZE_MAX,
	.client = true,
	.failed = CMD_DAEMON_FAILED,
	.run = run,
};
