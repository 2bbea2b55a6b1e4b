/*
 * paddock inspect: all that the daemon says about a box.
 */
#include "cmd.h"
#include "show.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
	       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *box;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    session_get(&s, "/v1/sandboxes/", operands[0], &box, e) < 0)
		return -1;
	if (!box)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	return show_json(box, e);
}

const struct cmd cmd_inspect = {
	.name = "inspect",
	.operands = "SANDBOX",
	.summary = "show a sandbox as JSON",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run,
};
