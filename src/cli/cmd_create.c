/*
 * paddock create: a box that stays, its id on standard output.
 */
#include "cmd.h"
#include "create.h"
#include "show.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1024);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *box;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || create_box(&s, flags, &box, e) < 0)
		return -1;
	show_clean(&b, session_text(box, "id"));
	buf_putc(&b, '\n');
	return show_bytes(1, buf_view(&b), e);
}

const struct cmd cmd_create = {
	.name = "create",
	.operands = "",
	.summary = "make a box and print its id",
	.opts = create_opts,
	.n_opts = CREATE_OPTS,
	.flags_size = sizeof(struct create_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run,
};
