/*
 * paddock create: a sandbox that stays, its id on standard output.
 */
#include <stdio.h>

#include "call.h"
#include "create.h"
#include "volume.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct create_flags *f = flags;
	struct json *box;

	if (volume_check_all(&f->volumes, e) < 0 || session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    create_box(&s, f, &box, e) < 0)
		return -1;
	if (volume_copy_all(&s, box, &f->volumes, e) < 0) {
		const char *id = arena_str(&ctx->arena, session_text(box, "id"));
		struct err gone = { 0 };

		/* Not what was asked for: it does not stay. */
		client_close(&s.client);
		if (!id || session_delete(&s, "/v1/sandboxes/", id, &gone) < 0)
			fprintf(stderr, "paddock: the sandbox %s could not be removed: %s\n", id ? id : "?",
				gone.msg);
		return -1;
	}
	return call_print(ctx, box, "id", e);
}

const struct cmd cmd_create = {
	.name = "create",
	.operands = "",
	.summary = "make a sandbox and print its id",
	.opts = create_opts,
	.n_opts = CREATE_OPTS,
	.flags_size = sizeof(struct create_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run,
};
