/*
 * paddock rm: removes sandboxes; goes on after one that could not be removed.
 */
#include <stdio.h>

#include "call.h"
#include "ref.h"

#include "poison.h"

struct rm_flags {
	bool all;
};

static const struct opt OPTS[] = {
	{ "all", 'a', OPT_FLAG, offsetof(struct rm_flags, all), NULL, "remove all of them" },
};

static int names_of_all(struct cmd_ctx *ctx, char ***ret, size_t *ret_n, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct ref_page *pages = NULL;
	size_t n = 0, at = 0;
	char **names;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || ref_list(&s, "", &pages, &n, e) < 0)
		return -1;
	names = arena_array(&ctx->arena, n + 1, sizeof(*names));
	for (; names && pages; pages = pages->next)
		for (size_t i = 0; i < pages->boxes->n; i++)
			names[at++] = arena_str(&ctx->arena, session_text(&pages->boxes->items[i], "id"));
	*ret = names;
	*ret_n = n;
	return names ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	const struct rm_flags *f = flags;

	if (f->all == (n > 0))
		return err_set(e, ERR_INVALID,
			       f->all ? "--all and the names of sandboxes exclude each other"
				      : "rm wants the names of sandboxes, or --all");
	if (f->all && names_of_all(ctx, &operands, &n, e) < 0)
		return -1;
	return call_remove(ctx, "sandboxes", n, operands, e);
}

const struct cmd cmd_rm = {
	.name = "rm",
	.operands = "SANDBOX…",
	.summary = "remove sandboxes and what runs in them",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct rm_flags),
	.lead = OPTS_ANYWHERE,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run,
};
