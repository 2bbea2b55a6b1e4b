/*
 * paddock tenant, paddock quota: who uses the installation, and how much of it. For
 * administrators.
 */
#include <stdio.h>

#include "call.h"
#include "create.h"

#include "poison.h"

static int run_create(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	struct json *answer;
	struct json_out o;

	if (create_check_text(operands[0], "the name", e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "name", operands[0]);
	json_out_end(&o, '}');
	if (call_once(ctx, &(struct cli_call){ "POST", "tenants", .body = buf_view(&body) }, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "id", e);
}

static int run_ls(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		  char **operands _unused_, struct err *e)
{
	static const char *const titles[] = { "NAME", "ID", "CREATED" };
	static const char *const fields[] = { "name", "id", "created_at" };

	return call_list(ctx, &(struct cli_call){ "GET", "tenants" }, "tenants", titles, fields,
			 ELEMS(fields), e);
}

/* ---- quota ---- */

static int show_quota(struct cmd_ctx *ctx, const struct json *answer, struct err *e)
{
	static const char *const titles[] = { "WHAT", "USED", "QUOTA" };
	static const char *const rows[] = { "boxes", "cpu", "memory_mb", "disk_mb", "creates_per_minute" };
	static const char *const names[] = { "sandboxes", "cpu", "memory (MiB)", "disk (MiB)",
					     "creates per minute" };
	_cleanup_(show_table_done) struct show_table t = { 0 };
	const struct json *quota = answer ? json_get(answer, "quota") : NULL,
			  *used = answer ? json_get(answer, "used") : NULL;

	if (!quota || !used)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no quota");
	if (ctx->json)
		return show_json(answer, e);
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; i < ELEMS(rows); i++) {
		struct view most = show_cell(&t, quota, rows[i]);

		show_table_add(&t, (struct view[]){ view_of(names[i]), show_cell(&t, used, rows[i]),
						    view_is(most, "0") ? VIEW("no limit") : most });
	}
	return show_table_print(&t, e);
}

static int run_show(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		    struct err *e)
{
	struct json *answer;

	if (call_once(ctx, &(struct cli_call){ "GET", "tenants", operands[0], "/quota" }, &answer, e) < 0)
		return -1;
	return show_quota(ctx, answer, e);
}

struct quota_flags {
	uint64_t boxes, memory_mb, disk_mb, creates;
	double cpu;
	bool none;
};

#define AT(member) offsetof(struct quota_flags, member)
static const struct opt QUOTA_OPTS[] = {
	{ "sandboxes", 0, OPT_COUNT, AT(boxes), "N", "sandboxes at a time" },
	{ "cpu", 'c', OPT_CPU, AT(cpu), "CORES", "CPU of all of them together" },
	{ "memory", 'm', OPT_MIB, AT(memory_mb), "SIZE", "memory of all of them together" },
	{ "disk", 0, OPT_MIB, AT(disk_mb), "SIZE", "disk of all of them together" },
	{ "creates-per-minute", 0, OPT_COUNT, AT(creates), "N", "sandboxes made in a minute" },
	{ "none", 0, OPT_FLAG, AT(none), NULL, "take all limits away first" },
};
#undef AT

static void put_kept(struct json_out *o, const struct json *old, const char *key, uint64_t n)
{
	const struct json *was = old ? json_get(old, key) : NULL;

	json_out_key(o, key);
	if (n || !was || was->type != JSON_NUMBER)
		json_out_u64(o, n);
	else
		json_out_value(o, was);
}

static void put_quota(struct json_out *o, const struct json *old, const struct quota_flags *f)
{
	const struct json *cpu = old ? json_get(old, "cpu") : NULL;

	json_out_object(o);
	put_kept(o, old, "boxes", f->boxes);
	put_kept(o, old, "memory_mb", f->memory_mb);
	put_kept(o, old, "disk_mb", f->disk_mb);
	put_kept(o, old, "creates_per_minute", f->creates);
	json_out_key(o, "cpu");
	if (f->cpu > 0 || !cpu)
		json_out_double(o, f->cpu);
	else
		json_out_value(o, cpu);
	json_out_end(o, '}');
}

static int run_set(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf body = BUF_INIT(4096);
	const struct quota_flags *f = flags;
	struct json *answer;
	struct json_out o;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    call_with(&s, &(struct cli_call){ "GET", "tenants", operands[0], "/quota" }, &answer, e) < 0)
		return -1;
	json_out_init(&o, &body);
	put_quota(&o, f->none || !answer ? NULL : json_get(answer, "quota"), f);
	if (call_with(&s, &(struct cli_call){ "PUT", "tenants", operands[0], "/quota", buf_view(&body) },
		      &answer, e) < 0)
		return -1;
	return ctx->json ? show_json(answer, e) : 0;
}

#define ONE .operands = "TENANT", .lead = OPTS_ANYWHERE, .min = 1, .max = 1, .client = true, .json = true

const struct cmd cmd_tenant_create = {
	.name = "tenant create",
	.operands = "NAME",
	.summary = "make a tenant and print its id",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_create,
};

const struct cmd cmd_tenant_ls = {
	.name = "tenant ls",
	.operands = "",
	.summary = "list the tenants",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_quota_show = {
	.name = "quota show",
	.summary = "show what a tenant may use, and what it uses",
	ONE,
	.run = run_show,
};

const struct cmd cmd_quota_set = {
	.name = "quota set",
	.summary = "change what a tenant may use",
	.help = "What is not named stays as it is.",
	ONE,
	.opts = QUOTA_OPTS,
	.n_opts = ELEMS(QUOTA_OPTS),
	.flags_size = sizeof(struct quota_flags),
	.run = run_set,
};
