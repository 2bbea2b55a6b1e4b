/*
 * paddock shells: shells that remember directory and variables from one command to the
 * next; `exec --shell NAME` runs in them.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

struct shells_flags {
	const char *user, *workdir;
	struct opt_list env;
};

#define AT(member) offsetof(struct shells_flags, member)
static const struct opt OPTS[] = {
	{ "user", 'u', OPT_TEXT, AT(user), "USER", "whose shell it is" },
	{ "workdir", 'w', OPT_TEXT, AT(workdir), "DIR", "the directory that it starts in" },
	{ "env", 'e', OPT_ENV, AT(env), "KEY[=VALUE]", "a variable of the shell; may be repeated" },
};
#undef AT

static int run_create(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(1u << 20);
	const struct shells_flags *f = flags;
	struct json *answer;
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "name", operands[1]);
	create_put_place(&o, f->user, f->workdir, &f->env);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many options for one request");
	if (call_once(ctx, &(struct cli_call){ "POST", "sandboxes", operands[0], "/shells", buf_view(&body) },
		      &answer, e) < 0)
		return -1;
	return ctx->json ? call_print(ctx, answer, "name", e) : 0;
}

const struct cmd cmd_shells_create = {
	.name = "shells create",
	.operands = "SANDBOX NAME",
	.summary = "make a shell that remembers, for `exec --shell NAME`",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct shells_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_create,
};

static const char *const TITLES[] = { "NAME", "USER", "CWD", "RUNNING", "BUSY", "QUEUED", "STARTED" };
static const char *const FIELDS[] = { "name", "user", "cwd", "running", "busy", "queued", "started_at" };
static const struct cmd_things THINGS = { "shells", true, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_shells_ls = {
	.name = "shells ls",
	.summary = "list the shells of a sandbox",
	CALL_LS_OF(THINGS),
};

const struct cmd cmd_shells_rm = {
	.name = "shells rm",
	.summary = "end shells",
	CALL_RM_OF(THINGS),
};

const struct cmd cmd_shells_show = {
	.name = "shells show",
	.summary = "show a shell as JSON",
	CALL_SHOW_OF(THINGS),
};
