/*
 * paddock rm: removes boxes; goes on after one that could not be removed.
 */
#include <stdio.h>

#include "cmd.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	int code = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };

		if (session_delete(&s, "/v1/sandboxes/", operands[i], &one) < 0) {
			fprintf(stderr, "paddock: %s: %s\n", operands[i], one.msg);
			code = CMD_FAILED;
		}
	}
	return code;
}

const struct cmd cmd_rm = {
	.name = "rm",
	.operands = "BOX…",
	.summary = "remove boxes and what runs in them",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = SIZE_MAX,
	.client = true,
	.run = run,
};
