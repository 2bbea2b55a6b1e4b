/*
 * paddock shell: an interactive login shell in a box.
 */
#include "cmd.h"
#include "terminal.h"

#include "poison.h"

struct shell_flags {
	const char *user, *workdir;
};

static const struct opt OPTS[] = {
	{ "user", 'u', OPT_TEXT, offsetof(struct shell_flags, user), "NAME", "be this user of the sandbox" },
	{ "workdir", 'w', OPT_TEXT, offsetof(struct shell_flags, workdir), "DIR", "start in this directory" },
};

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct shell_flags *f = flags;
	struct terminal_wish w = { .box = operands[0], .user = f->user, .workdir = f->workdir };

	if (terminal_check(e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return terminal_run(&s, &w, e);
}

const struct cmd cmd_shell = {
	.name = "shell",
	.operands = "SANDBOX",
	.summary = "open an interactive shell in a sandbox",
	.help = "The exit code is the shell's, or 125 when the daemon could not do its part.\n"
		"A connection that is lost is taken up again where it broke off.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct shell_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.failed = CMD_DAEMON_FAILED,
	.run = run,
};
