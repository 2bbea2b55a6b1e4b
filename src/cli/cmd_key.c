/*
 * paddock key: the API keys. A key is shown once, when it is made.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "create.h"

#include "poison.h"

struct create_key_flags {
	const char *name, *role, *tenant;
	bool create_tenant;
};

#define AT(member) offsetof(struct create_key_flags, member)

static const struct opt CREATE_KEY_OPTS[] = {
	{ "name", 'n', OPT_TEXT, AT(name), "NAME", "what the key is for" },
	{ "role", 'r', OPT_TEXT, AT(role), "ROLE", "admin or user (default: user)" },
	{ "tenant", 0, OPT_TEXT, AT(tenant), "TENANT", "whose sandboxes it works on" },
	{ "create-tenant", 0, OPT_FLAG, AT(create_tenant), NULL, "make the tenant if there is none" },
};

static const char *const TITLES[] = { "ID", "NAME", "ROLE", "TENANT", "CREATED" };
static const char *const FIELDS[] = { "id", "name", "role", "tenant", "created_at" };
static_assert(ELEMS(TITLES) == ELEMS(FIELDS) && ELEMS(TITLES) <= SHOW_COLUMNS, "a field for each title");

static int run_create(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(64u << 10);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct session_call call = { .method = "POST",
				     .path = VIEW("/v1/keys"),
				     .timeout_ms = SESSION_CALL_MS };
	const struct create_key_flags *f = flags;
	struct json *key;
	struct json_out o;

	if (create_check_text(f->name, "--name", e) < 0 || create_check_text(f->role, "--role", e) < 0 ||
	    create_check_text(f->tenant, "--tenant", e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	json_out_init(&o, &b);
	json_out_object(&o);
	if (f->name)
		json_out_kz(&o, "name", f->name);
	if (f->role)
		json_out_kz(&o, "role", f->role);
	if (f->tenant)
		json_out_kz(&o, "tenant", f->tenant);
	if (f->create_tenant)
		json_out_kbool(&o, "create_tenant", true);
	json_out_end(&o, '}');
	if (b.bad)
		return err_set(e, ERR_TOO_LARGE, "the options are too long");
	call.body = buf_view(&b);
	if (session_call(&s, &call, &key, e) < 0) {
		if (e->code == ERR_NOT_FOUND && f->tenant)
			err_set(e, ERR_NOT_FOUND,
				"there is no tenant \"%.60s\"; `paddock tenant ls` lists them, "
				"--create-tenant makes it",
				f->tenant);
		return -1;
	}
	if (!key || session_text(key, "key").n == 0)
		return err_set(e, ERR_INTERNAL, "the daemon made a key but did not show it");
	return call_print(ctx, key, "key", e);
}

static int run_ls(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		  char **operands _unused_, struct err *e)
{
	return call_list(ctx, &(struct cli_call){ "GET", "keys" }, "keys", TITLES, FIELDS, ELEMS(FIELDS), e);
}

static int run_rm(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	return call_remove(ctx, "keys", n, operands, e);
}

const struct cmd cmd_key_create = {
	.name = "key create",
	.operands = "",
	.summary = "make an API key and print it, once",
	.opts = CREATE_KEY_OPTS,
	.n_opts = ELEMS(CREATE_KEY_OPTS),
	.flags_size = sizeof(struct create_key_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_create,
};

const struct cmd cmd_key_ls = {
	.name = "key ls",
	.operands = "",
	.summary = "list the API keys",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_key_rm = {
	.name = "key rm",
	.operands = "ID…",
	.summary = "revoke API keys",
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run_rm,
};
