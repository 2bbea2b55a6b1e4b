/*
 * paddock mcp: the daemon's MCP server for clients that start a program and speak over its pipes.
 */
#include <unistd.h>

#include "bridge.h"
#include "cmd.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf path = BUF_INIT(1024);

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	if (n > 0) {
		buf_puts(&path, "/sandbox/");
		if (session_segment(&path, operands[0], e) < 0)
			return -1;
	}
	buf_puts(&path, "/mcp");
	return bridge_run(&s, buf_view(&path), STDIN_FILENO, STDOUT_FILENO, e);
}

const struct cmd cmd_mcp = {
	.name = "mcp",
	.operands = "[SANDBOX]",
	.summary = "serve MCP on standard input and output",
	.help = "For clients of the Model Context Protocol that start a program: passes their messages to "
		"the\n"
		"daemon. With SANDBOX the tools are about that one; without, about all of yours.",
	.lead = OPTS_ANYWHERE,
	.max = 1,
	.client = true,
	.run = run,
};
