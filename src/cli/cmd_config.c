/*
 * paddock config: the configuration as `serve` would see it.
 */
#include <stdio.h>

#include "cmd.h"
#include "config_load.h"
#include "settings.h"
#include "show.h"

#include "poison.h"

#define CONFIG_MAX (1u << 20)

static int run_check(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		     struct err *e)
{
	struct config config;
	const char *path;

	if (settings_load(&ctx->arena, flags, &config, &path, e) < 0)
		return -1;
	if (path)
		printf("%s: ok\n", path);
	else
		printf("no %s; the defaults are ok\n", CONFIG_LOAD_DEFAULT);
	return 0;
}

static int run_show(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		    struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct config config;
	struct json *doc;

	if (settings_load(&ctx->arena, flags, &config, NULL, e) < 0)
		return -1;
	config.origins = NULL; /* of the settings alone */
	if (config_to_json(&config, &text) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (json_parse(&ctx->arena, buf_view(&text), &doc, e) < 0)
		return -1;
	return show_json(doc, e);
}

const struct cmd cmd_config_check = {
	.name = "config check",
	.operands = "",
	.summary = "validate the configuration",
	.opts = settings_opts,
	.n_opts = SETTINGS_OPTS,
	.flags_size = sizeof(struct settings_flags),
	.lead = OPTS_ANYWHERE,
	.run = run_check,
};

const struct cmd cmd_config_show = {
	.name = "config show",
	.operands = "",
	.summary = "show the effective configuration as JSON (which is YAML, too)",
	.opts = settings_opts,
	.n_opts = SETTINGS_OPTS,
	.flags_size = sizeof(struct settings_flags),
	.lead = OPTS_ANYWHERE,
	.run = run_show,
};
