/*
 * Flags into config_load. Directories may be given relative to where the user
 * stands; the daemon only takes absolute ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config_load.h"
#include "settings.h"

#include "poison.h"

extern char **environ;

#define AT(member) offsetof(struct settings_flags, member)

const struct opt settings_opts[SETTINGS_OPTS] = {
	{ "listen", 0, OPT_TEXT, AT(listen), "ADDR:PORT", "where to listen (default: 127.0.0.1:7080)" },
	{ "data-dir", 0, OPT_TEXT, AT(data_dir), "DIR", "what must last (default: /var/lib/paddock)" },
	{ "run-dir", 0, OPT_TEXT, AT(run_dir), "DIR", "what lasts until a reboot (default: /run/paddock)" },
	{ "config", 0, OPT_TEXT, AT(config), "FILE",
	  "the configuration (default: " CONFIG_LOAD_DEFAULT ", if it exists)" },
	{ "agentbox-env", 0, OPT_FLAG, AT(agentbox_env), NULL,
	  "serve agentbox's clients as its variables say (GRPC_PORT, SESSION_TIMEOUT, …)" },
};

static const char *absolute(struct arena *a, const char *path, struct err *e)
{
	struct buf b = BUF_INIT(8192);
	char cwd[4096];
	const char *ret;

	if (path[0] == '/' || !*path)
		return path;
	if (!getcwd(cwd, sizeof(cwd))) {
		err_sys(e, ERR_INTERNAL, errno, "the current directory");
		return NULL;
	}
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	buf_printf(&b, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
	ret = b.bad ? NULL : arena_str(a, buf_view(&b));
	buf_done(&b);
	if (!ret)
		err_set(e, ERR_INVALID, "the path is too long");
	return ret;
}

/* What a file of another system asks for and does not get. */
static void tell(const char *file, struct view notes)
{
	while (notes.n) {
		struct view line = view_split(notes, '\n', &notes);
		if (line.n)
			fprintf(stderr, "paddock: %s: %.*s\n", file, VIEW_ARG(line));
	}
}

/* ---- agentbox's variables ---- */

#define AGENTBOX_FLAGS 3
#define AGENTBOX_PORT  "50051"
#define AGENTBOX_IMAGE "agentbox-sandbox:latest" /* which everybody has there, and nobody here */

static const struct {
	const char *variable, *why;
} not_honoured[] = {
	{ "SANDBOX_RUNTIME", "sandboxes have Paddock's own isolation" },
	{ "STORAGE_PATH", "the storage of a tenant_id is a workspace: `paddock workspace ls`" },
	{ "PROXY_HOST", "there is no way past the gate, so no proxy is needed" },
	{ "PROXY_PORT", "there is no way past the gate, so no proxy is needed" },
	{ "SIGNING_KEY", "identity comes from the connection, not from a token" },
};

/* Its clients have no keys: on loopback they need none here either. */
static size_t agentbox_flags(struct arena *a, struct config_flag flags[AGENTBOX_FLAGS])
{
	const char *port = getenv("GRPC_PORT"), *timeout = getenv("SESSION_TIMEOUT"),
		   *image = getenv("SANDBOX_IMAGE");
	struct buf b = BUF_INIT(512);
	size_t n = 0;

	buf_printf(&b, "[{\"address\":\"127.0.0.1:%s\",\"dialect\":\"agentbox\",\"anonymous\":true}]",
		   port ? port : AGENTBOX_PORT);
	flags[n++] = (struct config_flag){ "LISTENERS", arena_str(a, buf_view(&b)) };
	buf_done(&b);
	if (timeout)
		flags[n++] = (struct config_flag){ "AGENTBOX_SESSION_TIMEOUT", timeout };
	if (image && strcmp(image, AGENTBOX_IMAGE) != 0)
		flags[n++] = (struct config_flag){ "DEFAULTS_IMAGE", image };
	for (size_t i = 0; i < ELEMS(not_honoured); i++)
		if (getenv(not_honoured[i].variable))
			fprintf(stderr, "paddock: %s is not honoured: %s\n", not_honoured[i].variable,
				not_honoured[i].why);
	return n;
}

int settings_load(struct arena *a, const struct settings_flags *f, struct config *ret, const char **ret_path,
		  struct err *e)
{
	struct config_flag flags[3 + AGENTBOX_FLAGS];
	size_t n = f->agentbox_env ? agentbox_flags(a, flags) : 0;

	if (f->listen)
		flags[n++] = (struct config_flag){ "LISTEN", f->listen };
	if (f->data_dir)
		flags[n++] = (struct config_flag){ "DATA_DIR", absolute(a, f->data_dir, e) };
	if (f->run_dir)
		flags[n++] = (struct config_flag){ "RUN_DIR", absolute(a, f->run_dir, e) };
	for (size_t i = 0; i < n; i++)
		if (!flags[i].value)
			return -1;
	if (config_load(a, f->config, environ, flags, n, ret, ret_path, e) < 0)
		return -1;
	tell(f->config, ret->notes);
	return 0;
}
