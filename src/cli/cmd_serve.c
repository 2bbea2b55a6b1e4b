/*
 * paddock serve: reads the configuration with the user's eyes (YAML, variables,
 * flags), then becomes paddockd, which gets the result as JSON in a sealed memfd
 * and prints the ready line itself.
 */
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "local.h"
#include "program.h"
#include "settings.h"

#include "poison.h"

#define CONFIG_MAX (1u << 20)

/* Where commands on this machine find the daemon. That they cannot be told is no reason not to serve. */
static void announce(const struct config *c)
{
	struct local_daemon d = { 0 };
	const char *colon = c->listen.n ? memrchr(c->listen.p, ':', c->listen.n) : NULL;
	struct view host = { c->listen.p, colon ? (size_t)(colon - c->listen.p) : 0 };
	struct err e = { 0 };

	if (!colon || strcmp(colon, ":0") == 0)
		return; /* the port is not known yet */
	if (view_is(host, "0.0.0.0"))
		host = VIEW("127.0.0.1");
	else if (view_is(host, "[::]"))
		host = VIEW("[::1]");
	snprintf(d.url, sizeof(d.url), "%s://%.*s%.*s", c->tls.cert.n ? "https" : "http", VIEW_ARG(host),
		 (int)(c->listen.n - (size_t)(colon - c->listen.p)), colon);
	snprintf(d.key_file, sizeof(d.key_file), "%.*s/admin.key", VIEW_ARG(c->data_dir));
	snprintf(d.run_dir, sizeof(d.run_dir), "%.*s", VIEW_ARG(c->run_dir));
	if (local_announce(&d, &e) < 0)
		fprintf(stderr, "paddock: %s\n", e.msg);
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	char path[PROGRAM_PATH_MAX];
	char *const argv[] = { (char *)"paddockd", (char *)"serve", NULL };
	struct config config;

	if (settings_load(&ctx->arena, flags, &config, NULL, e) < 0)
		return -1;
	if (geteuid() != 0)
		return err_set(e, ERR_FORBIDDEN,
			       "serve must run as root: it makes namespaces, mounts and cgroups");
	if (config_to_json(&config, &text) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (program_find("paddockd", path, e) < 0)
		return -1;
	announce(&config);
	return program_become(path, argv, buf_view(&text), e);
}

const struct cmd cmd_serve = {
	.name = "serve",
	.operands = "",
	.summary = "run the daemon in the foreground (as root)",
	.opts = settings_opts,
	.n_opts = SETTINGS_OPTS,
	.flags_size = sizeof(struct settings_flags),
	.lead = OPTS_ANYWHERE,
	.run = run,
};
