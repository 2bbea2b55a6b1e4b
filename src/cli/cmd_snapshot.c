/*
 * paddock snapshot and paddock fork: the files of a box as a thing of their own, and
 * boxes with the same files.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

#define BODY_MAX (16u << 20)
#define FORK_MS  (5 * 60 * 1000)

static const char *const TITLES[] = { "ID", "NAME", "IMAGE", "BYTES", "CREATED" };
static const char *const FIELDS[] = { "id", "name", "image", "bytes", "created_at" };
static_assert(ELEMS(TITLES) == ELEMS(FIELDS) && ELEMS(TITLES) <= SHOW_COLUMNS, "a field for each title");

static int post(struct cmd_ctx *ctx, const char *box, const char *what, const struct buf *body,
		uint64_t timeout_ms, struct json **ret, struct err *e)
{
	if (body->bad)
		return err_set(e, ERR_TOO_LARGE, "too many options for one request");
	return call_once(ctx,
			 &(struct cli_call){ "POST", "sandboxes", box, what, buf_view(body), timeout_ms },
			 ret, e);
}

static int run_create(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	struct json_out o;
	struct json *answer;

	if (n > 1 && create_check_text(operands[1], "the name", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	if (n > 1)
		json_out_kz(&o, "name", operands[1]);
	json_out_end(&o, '}');
	if (post(ctx, operands[0], "/snapshots", &body, 0, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "id", e);
}

const struct cmd cmd_snapshot_create = {
	.name = "snapshot create",
	.operands = "SANDBOX [NAME]",
	.summary = "keep the files of a sandbox and print the snapshot's id",
	.help = "`paddock create --snapshot NAME` makes a sandbox of it.",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_create,
};

static const struct cmd_things THINGS = { "snapshots", false, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_snapshot_ls = {
	.name = "snapshot ls",
	.operands = "",
	.summary = "list the snapshots",
	CALL_LS(THINGS),
};

const struct cmd cmd_snapshot_show = {
	.name = "snapshot show",
	.operands = "NAME",
	.summary = "show a snapshot as JSON",
	CALL_SHOW(THINGS),
};

const struct cmd cmd_snapshot_rm = {
	.name = "snapshot rm",
	.operands = "NAME…",
	.summary = "remove snapshots",
	CALL_RM(THINGS),
};

/* ---- fork ---- */

struct fork_flags {
	uint64_t count;
	const char *prefix;
	struct opt_list metadata;
};

static const struct opt FORK_OPTS[] = {
	{ "count", 'n', OPT_COUNT, offsetof(struct fork_flags, count), "N", "how many; 1 when absent" },
	{ "name-prefix", 0, OPT_TEXT, offsetof(struct fork_flags, prefix), "NAME",
	  "call them NAME-1, NAME-2, …" },
	{ "metadata", 0, OPT_PAIRS, offsetof(struct fork_flags, metadata), "KEY=VALUE",
	  "a label instead of those of the original; may be repeated" },
};

static int run_fork(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	const struct fork_flags *f = flags;
	struct json_out o;
	struct json *answer;

	if (create_check_text(f->prefix, "--name-prefix", e) < 0)
		return -1;
	for (size_t i = 0; i < f->metadata.n; i++)
		if (create_check_text(f->metadata.items[i], "--metadata", e) < 0)
			return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_ku64(&o, "count", f->count ? f->count : 1);
	if (f->prefix)
		json_out_kz(&o, "name_prefix", f->prefix);
	create_pairs(&o, "metadata", &f->metadata);
	json_out_end(&o, '}');
	if (post(ctx, operands[0], "/fork", &body, FORK_MS, &answer, e) < 0)
		return -1;
	const struct json *boxes = answer ? json_get(answer, "sandboxes") : NULL;
	if (!boxes || boxes->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of sandboxes");
	if (ctx->json)
		return show_json(boxes, e);
	for (size_t i = 0; i < boxes->n; i++)
		if (call_print(ctx, &boxes->items[i], "id", e) < 0)
			return -1;
	return 0;
}

const struct cmd cmd_fork = {
	.name = "fork",
	.operands = "SANDBOX",
	.summary = "make sandboxes with the same files and print their ids",
	.opts = FORK_OPTS,
	.n_opts = ELEMS(FORK_OPTS),
	.flags_size = sizeof(struct fork_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_fork,
};
