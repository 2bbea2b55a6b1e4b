/*
 * paddock exec: one command in a box that exists.
 */
#include "cmd.h"
#include "create.h"
#include "exec.h"

#include "poison.h"

struct exec_flags {
	const char *user, *workdir;
	struct opt_list env, env_file, secret_env;
	const char *shell;
	uint64_t timeout_ms;
	bool interactive, tty, detach;
	const char *tag;
};

#define AT(member) offsetof(struct exec_flags, member)

static const struct opt OPTS[] = {
	{ "user", 'u', OPT_TEXT, AT(user), "NAME", "run as this user of the sandbox" },
	{ "env", 'e', OPT_ENV, AT(env), "KEY[=VALUE]",
	  "a variable; without a value ours of that name; may be repeated" },
	{ "env-file", 0, OPT_LIST, AT(env_file), "FILE",
	  "variables from the lines of a file; may be repeated" },
	{ "secret-env", 0, OPT_PAIRS, AT(secret_env), "KEY=NAME",
	  "a variable with the value of the secret NAME; may be repeated" },
	{ "workdir", 'w', OPT_TEXT, AT(workdir), "DIR", "start in this directory" },
	{ "timeout", 0, OPT_MS, AT(timeout_ms), "TIME", "kill the command after this time" },
	{ "interactive", 'i', OPT_FLAG, AT(interactive), NULL, "pass standard input on to the command" },
	{ "tty", 't', OPT_FLAG, AT(tty), NULL, "give the command a terminal: ours" },
	{ "detach", 'd', OPT_FLAG, AT(detach), NULL, "start it, print its pid and leave it running" },
	{ "tag", 0, OPT_TEXT, AT(tag), "NAME", "a name to use instead of the pid" },
	{ "shell", 's', OPT_TEXT, AT(shell), "NAME",
	  "run it in this shell, which remembers; COMMAND is one argument" },
};

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(interrupt_done) struct interrupt in = INTERRUPT_INIT;
	const struct exec_flags *f = flags;
	struct opt_list env = f->env;
	int code;
	struct exec_spec x = {
		.box = operands[0],
		.argv = operands + 1,
		.user = f->user,
		.workdir = f->workdir,
		.env = &env,
		.secret_env = &f->secret_env,
		.timeout_ms = f->timeout_ms,
		.shell = f->shell,
		.input = f->interactive && exec_can_read(),
		.tty = f->tty,
		.detach = f->detach,
		.tag = f->tag,
	};

	if (create_env_files(&ctx->arena, &f->env_file, &env, e) < 0 || exec_check(&x, e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	/* A terminal sends its own signals, and a command that goes on alone gets none. */
	if (!x.tty && !x.detach) {
		if (interrupt_catch(&in, e) < 0)
			return -1;
		x.interrupt = &in;
	}
	code = exec_run(&s, &x, e);
	return code < 0 && e->code == ERR_CANCELLED && x.interrupt && interrupt_code(&in)
		       ? interrupt_code(&in)
		       : code;
}

const struct cmd cmd_exec = {
	.name = "exec",
	.operands = "SANDBOX [--] COMMAND [ARGUMENT…]",
	.summary = "run a command in a sandbox",
	.help = "The exit code is the command's: 128 and the signal's number if a signal ended\n"
		"it, 124 after --timeout, 125 when the daemon could not do its part, 126 when the\n"
		"command cannot be executed, 127 when there is none. Standard input is left alone\n"
		"without -i. Ctrl-C, SIGTERM and SIGHUP go to the command, which is killed if it has\n"
		"not ended five seconds later; a second Ctrl-C kills it at once. Whoever ends this\n"
		"ends the command, unless --detach is given: see ps, logs, attach and kill.",
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
