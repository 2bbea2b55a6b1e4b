/*
 * paddock workspace: files that outlive boxes.
 */
#include "call.h"
#include "create.h"

#include "poison.h"

struct create_ws_flags {
	uint64_t disk_mb;
	const char *clone_of;
	bool readonly;
};

static const struct opt OPTS[] = {
	{ "disk", 0, OPT_MIB, offsetof(struct create_ws_flags, disk_mb), "SIZE",
	  "quota: MiB, or with m or g" },
	{ "clone", 0, OPT_TEXT, offsetof(struct create_ws_flags, clone_of), "NAME",
	  "begin with the files of this workspace" },
	{ "readonly", 0, OPT_FLAG, offsetof(struct create_ws_flags, readonly), NULL,
	  "with --clone: a snapshot, which never changes" },
};

static int run_create(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	const struct create_ws_flags *f = flags;
	struct session_call call = { .method = "POST",
				     .path = VIEW("/v1/workspaces"),
				     .timeout_ms = SESSION_CALL_MS };
	struct json_out o;

	if (create_check_text(operands[0], "the name", e) < 0 ||
	    create_check_text(f->clone_of, "--clone", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "name", operands[0]);
	if (f->disk_mb)
		json_out_ku64(&o, "disk_mb", f->disk_mb);
	if (f->clone_of)
		json_out_kz(&o, "clone_of", f->clone_of);
	if (f->readonly)
		json_out_kbool(&o, "readonly", true);
	json_out_end(&o, '}');
	call.body = buf_view(&body);
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	struct json *answer;
	if (session_call(&s, &call, &answer, e) < 0)
		return -1;
	return ctx->json && answer ? show_json(answer, e) : 0;
}

static int run_ls(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		  char **operands _unused_, struct err *e)
{
	static const char *const titles[] = { "NAME", "USED", "LIMIT_MB", "USED_BY", "CREATED" };
	_cleanup_(show_table_done) struct show_table t = { 0 };
	struct json *answer;

	show_table_init(&t, titles, ELEMS(titles));
	if (call_once(ctx, &(struct cli_call){ "GET", "workspaces" }, &answer, e) < 0)
		return -1;
	const struct json *rows = answer ? json_get(answer, "workspaces") : NULL;
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of workspaces");
	if (ctx->json)
		return show_json(rows, e);
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *w = &rows->items[i], *disk = json_get(w, "disk"),
				  *users = json_get(w, "used_by");
		struct view cells[] = {
			show_cell(&t, w, "name"),
			show_cell(&t, disk, "used_bytes"),
			show_cell(&t, disk, "limit_mb"),
			users && users->type == JSON_ARRAY && users->n ? show_cell(&t, &users->items[0], "id")
								       : VIEW("-"),
			show_cell(&t, w, "created_at"),
		};
		show_table_add(&t, cells);
	}
	return show_table_print(&t, e);
}

const struct cmd cmd_workspace_create = {
	.name = "workspace create",
	.operands = "NAME",
	.summary = "make a workspace",
	.help = "`paddock create --workspace NAME` mounts it at /workspace, `--workspace NAME:PATH` "
		"elsewhere.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct create_ws_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_create,
};

const struct cmd cmd_workspace_ls = {
	.name = "workspace ls",
	.operands = "",
	.summary = "list the workspaces, what they use and who uses them",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_ls,
};

static const struct cmd_things THINGS = { .prefix = "workspaces" };

const struct cmd cmd_workspace_rm = {
	.name = "workspace rm",
	.operands = "NAME…",
	.summary = "remove workspaces and their files",
	CALL_RM(THINGS),
};

const struct cmd cmd_workspace_show = {
	.name = "workspace show",
	.operands = "NAME",
	.summary = "show a workspace as JSON",
	CALL_SHOW(THINGS),
};
