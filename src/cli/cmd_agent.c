/*
 * paddock agent: agents that are installed from manifests.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "create.h"
#include "fd.h"
#include "progress.h"
#include "source.h"
#include "text.h"

#include "poison.h"

#define MANIFEST     "assegai.json"
#define MANIFEST_MAX (64u << 10)
#define BUILD_MS     (30 * 60 * 1000)
#define POLL_MS      300
#define FOLLOW_MS    500
#define PAGE         500
#define PAGE_BYTES   (32u << 20)

/* ---- the manifest ---- */

static int read_fd(int fd, struct buf *out, struct err *e)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_append(out, piece, (size_t)n) < 0)
			return err_set(e, ERR_TOO_LARGE, MANIFEST " has more than %u bytes", MANIFEST_MAX);
	return n < 0 ? err_sys(e, ERR_INTERNAL, errno, MANIFEST) : 0;
}

/* Of a directory. An archive is not looked into here: its manifest lies beside it, or is given. */
static int read_manifest(const char *path, const char *given, struct buf *out, struct err *e)
{
	_cleanup_(closep) int dir = -EBADF, fd = -EBADF;
	struct stat st;

	if (given) {
		fd = open(given, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? err_sys(e, ERR_INVALID, errno, "%s", given) : read_fd(fd, out, e);
	}
	if (stat(path, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is an archive: name its manifest with --manifest FILE",
			       path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && faccessat(dir, "Dockerfile", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(
			e, ERR_UNSUPPORTED,
			"a Dockerfile of its own is not supported: remove it. The image is made from the "
			"runtime and the lock file");
	fd = dir >= 0 ? openat(dir, MANIFEST, O_RDONLY | O_CLOEXEC) : -1;
	return fd < 0 ? err_sys(e, ERR_INVALID, errno, "%s/" MANIFEST, path) : read_fd(fd, out, e);
}

/* ---- what it asks for ---- */

static void put_list(const char *title, const struct json *list, const char *none)
{
	fprintf(stderr, "  %-10s", title);
	if (!list || list->n == 0)
		fprintf(stderr, " %s", none);
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++)
		fprintf(stderr, " %.*s", VIEW_ARG(list->items[i].text));
	for (size_t i = 0; list && list->type == JSON_OBJECT && i < list->n; i++)
		fprintf(stderr, " %.*s=%.*s", VIEW_ARG(list->members[i].key),
			VIEW_ARG(list->members[i].value.text));
	fputc('\n', stderr);
}

/* From the daemon's answer, which has checked every text: no control characters reach the terminal. */
static void show_asks(const struct json *m)
{
	const struct json *p = json_get(m, "permissions");

	fprintf(stderr, "%.*s %.*s (%.*s, %.*s) asks for:\n", VIEW_ARG(session_text(m, "name")),
		VIEW_ARG(session_text(m, "version")), VIEW_ARG(session_text(m, "runtime")),
		VIEW_ARG(session_text(m, "entrypoint")));
	put_list("chains", json_get(p, "chains"), "none");
	put_list("nodes", json_get(p, "rpcs"), "those of the configuration");
	put_list("models", json_get(p, "apis"), "none");
	put_list("contracts", json_get(p, "contracts"), "any");
	put_list("hosts", json_get(p, "hosts"), "none");
	put_list("resources", json_get(m, "resources"), "the defaults");
	put_list("spending", json_get(m, "spending_limits"), "no limits named: nothing may be spent");
}

static int ask_consent(bool yes, struct err *e)
{
	char answer[8] = "";

	if (yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID, "consent is needed: look at what it asks for, and add --yes");
	fputs("Install it? [y/N] ", stderr);
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return err_set(e, ERR_CANCELLED, "nothing was installed");
	return 0;
}

/* ---- install ---- */

struct install_flags {
	const char *name, *manifest;
	bool yes, start;
};

static const struct opt INSTALL_OPTS[] = {
	{ "name", 'n', OPT_TEXT, offsetof(struct install_flags, name), "NAME",
	  "what it is called here (default: made from the manifest's name)" },
	{ "manifest", 0, OPT_TEXT, offsetof(struct install_flags, manifest), "FILE",
	  "its manifest (default: assegai.json of the directory)" },
	{ "yes", 'y', OPT_FLAG, offsetof(struct install_flags, yes), NULL,
	  "consent to what it asks for, without a question" },
	{ "start", 0, OPT_FLAG, offsetof(struct install_flags, start), NULL, "start it when it is built" },
};

static int post_manifest(struct cmd_ctx *ctx, struct session *s, struct view manifest, const char *name,
			 bool consent, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(4 * MANIFEST_MAX);
	struct json_out o;
	struct json *doc;

	if (json_parse(&ctx->arena, manifest, &doc, e) < 0)
		return err_wrap(e, MANIFEST);
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_key(&o, "manifest");
	json_out_value(&o, doc);
	if (name)
		json_out_kz(&o, "name", name);
	json_out_kbool(&o, "consent", consent);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, MANIFEST " is too large");
	return call_with(s, &(struct cli_call){ "POST", "agents", .body = buf_view(&body) }, ret, e);
}

static int upload(struct session *s, const char *id, const char *path, struct err *e)
{
	_cleanup_(buf_done) struct buf where = BUF_INIT(8192);
	_cleanup_(buf_done) struct buf answer = BUF_INIT(256u << 10);
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	struct client_request rq = { .method = "PUT",
				     .content_type = "application/x-tar",
				     .streamed = true,
				     .at_end = source_check,
				     .ctx = &source,
				     .timeout_ms = SESSION_CALL_MS };
	struct response r;
	struct progress p;

	buf_puts(&where, "/v1/agents/");
	if (session_segment(&where, id, e) < 0 || source_open(&source, path, e) < 0)
		return -1;
	buf_puts(&where, "/code");
	rq.path = buf_view(&where);
	rq.body_fd = source.fd;
	rq.body_size = source.size;
	progress_begin(&p, &s->client, path, source.size > 0 ? (uint64_t)source.size : 0);
	int sent = session_send(s, &rq, &r, e);
	progress_end(&p, &s->client);
	return sent < 0 ? -1 : client_read_all(&s->client, &answer, e);
}

/* Until it is built, or is not. */
static int await_build(struct session *s, const char *id, struct json **ret, struct err *e)
{
	for (uint64_t waited = 0; waited < BUILD_MS; waited += POLL_MS) {
		if (session_get(s, "/v1/agents/", id, ret, e) < 0)
			return -1;
		struct view status = session_text(*ret, "status");
		if (view_is(status, "failed"))
			return err_set(e, ERR_STATE, "the image was not built: %.*s",
				       VIEW_ARG(view_head(session_text(*ret, "reason"), 150)));
		if (!view_is(status, "building"))
			return 0;
		(void)poll(NULL, 0, POLL_MS);
	}
	return err_set(e, ERR_TIMEOUT, "the image is still being built: see paddock agent show");
}

static int run_install(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	_cleanup_(buf_done) struct buf manifest = BUF_INIT(MANIFEST_MAX);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct install_flags *f = flags;
	struct json *answer;
	char id[64];

	if (create_check_text(f->name, "--name", e) < 0 ||
	    read_manifest(operands[0], f->manifest, &manifest, e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    post_manifest(ctx, &s, buf_view(&manifest), f->name, false, &answer, e) < 0)
		return -1;
	show_asks(json_get(answer, "manifest"));
	if (ask_consent(f->yes, e) < 0 ||
	    post_manifest(ctx, &s, buf_view(&manifest), f->name, true, &answer, e) < 0)
		return -1;
	if (view_to_str(session_text(answer, "id"), id, sizeof(id)) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no id");
	if (upload(&s, id, operands[0], e) < 0 || await_build(&s, id, &answer, e) < 0)
		return err_wrap(e, "agent %s", id);
	if (f->start && call_with(&s, &(struct cli_call){ "POST", "agents", id, "/start" }, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "name", e);
}

const struct cmd cmd_agent_install = {
	.name = "agent install",
	.operands = "DIR|TAR",
	.summary = "install an agent: show what it asks for, ask for consent, build its image",
	.opts = INSTALL_OPTS,
	.n_opts = ELEMS(INSTALL_OPTS),
	.flags_size = sizeof(struct install_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_install,
};

/* ---- list, show, remove ---- */

static const char *const TITLES[] = { "ID", "NAME", "STATUS", "SANDBOX", "CRASHES", "REASON" };
static const char *const FIELDS[] = { "id", "name", "status", "sandbox", "crashes", "reason" };
static const struct cmd_things THINGS = { "agents", false, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_agent_ls = {
	.name = "agent ls",
	.operands = "",
	.summary = "list the agents",
	CALL_LS(THINGS),
};

const struct cmd cmd_agent_show = {
	.name = "agent show",
	.operands = "AGENT",
	.summary = "show an agent as JSON, with its manifest",
	CALL_SHOW(THINGS),
};

const struct cmd cmd_agent_rm = {
	.name = "agent rm",
	.operands = "AGENT…",
	.summary = "stop and remove agents, with their images and workspaces",
	CALL_RM(THINGS),
};

/* ---- start, stop, restart ---- */

static int change(struct cmd_ctx *ctx, const char *verb, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	int code = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };

		if (call_with(&s, &(struct cli_call){ "POST", "agents", operands[i], verb }, NULL, &one) <
		    0) {
			call_complain(operands[i], &one);
			code = CMD_FAILED;
		}
	}
	return code;
}

#define CHANGE(verb, text)                                                                                   \
	static int run_##verb(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands,    \
			      struct err *e)                                                                 \
	{                                                                                                    \
		return change(ctx, "/" #verb, n, operands, e);                                               \
	}                                                                                                    \
	const struct cmd cmd_agent_##verb = {                                                                \
		.name = "agent " #verb,                                                                      \
		.operands = "AGENT…",                                                                        \
		.summary = text,                                                                             \
		.lead = OPTS_ANYWHERE,                                                                       \
		.min = 1,                                                                                    \
		.max = SIZE_MAX,                                                                             \
		.client = true,                                                                              \
		.run = run_##verb,                                                                           \
	}

CHANGE(start, "start agents");
CHANGE(stop, "stop agents; their workspaces stay");
CHANGE(restart, "restart agents, each in a new sandbox");

/* ---- logs ---- */

struct logs_flags {
	const char *level;
	uint64_t after, lines;
	bool follow;
};

static const struct opt LOGS_OPTS[] = {
	{ "level", 0, OPT_TEXT, offsetof(struct logs_flags, level), "LEVEL",
	  "only this level and above: debug, info, success, warn, error" },
	{ "after", 0, OPT_COUNT, offsetof(struct logs_flags, after), "ID", "only what came behind this one" },
	{ "lines", 0, OPT_COUNT, offsetof(struct logs_flags, lines), "N",
	  "the newest so many (default: 100)" },
	{ "follow", 'f', OPT_FLAG, offsetof(struct logs_flags, follow), NULL,
	  "go on with what comes, until it is interrupted" },
};

/* An agent's words: what could steer a terminal is quoted. */
static int print_entry(const struct json *v, struct err *e)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT(256u << 10);
	struct view message = session_text(v, "message");
	const struct json *data = json_get(v, "data");

	buf_printf(&line, "%.*s %-7.*s %-6.*s ", VIEW_ARG(session_text(v, "at")),
		   VIEW_ARG(session_text(v, "level")), VIEW_ARG(session_text(v, "source")));
	for (size_t i = 0; i < message.n; i++) {
		unsigned char c = (unsigned char)message.p[i];
		bool control = (c < ' ' && c != '\t') || c == 0x7f ||
			       (c == 0xc2 && i + 1 < message.n && (unsigned char)message.p[i + 1] < 0xa0);
		if (control)
			buf_printf(&line, "\\x%02x", c);
		else
			buf_putc(&line, (char)c);
	}
	if (data && data->type != JSON_NULL) {
		struct json_out o;
		buf_putc(&line, ' ');
		json_out_init(&o, &line);
		json_out_value(&o, data);
	}
	buf_putc(&line, '\n');
	return line.bad ? err_set(e, ERR_TOO_LARGE, "the entry is too large")
			: show_bytes(STDOUT_FILENO, buf_view(&line), e);
}

static int show_page(struct cmd_ctx *ctx, const char *agent, const struct logs_flags *f, bool first,
		     uint64_t *after, size_t *ret_n, struct err *e)
{
	struct json *answer = NULL;
	char rest[192];
	uint64_t lines = f->lines ? MIN(f->lines, 1000u) : 100;

	if (first && !f->after)
		snprintf(rest, sizeof(rest), "/logs?limit=%llu%s%.16s", (unsigned long long)lines,
			 f->level ? "&level=" : "", f->level ? f->level : "");
	else
		snprintf(rest, sizeof(rest), "/logs?limit=%d&after=%llu%s%.16s", PAGE,
			 (unsigned long long)*after, f->level ? "&level=" : "", f->level ? f->level : "");
	if (call_once(ctx, &(struct cli_call){ "GET", "agents", agent, rest }, &answer, e) < 0)
		return -1;
	const struct json *rows = answer ? json_get(answer, "entries") : NULL,
			  *next = answer ? json_get(answer, "next") : NULL;
	if (!rows || rows->type != JSON_ARRAY || !next || json_to_u64(next, after) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of entries");
	*ret_n = rows->n;
	if (ctx->json)
		return show_json(rows, e);
	for (size_t i = 0; i < rows->n; i++)
		if (print_entry(&rows->items[i], e) < 0)
			return -1;
	return 0;
}

static int run_logs(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct logs_flags *f = flags;
	uint64_t after = f->after;
	bool first = true;
	size_t shown = 0;
	int r;

	for (const char *p = f->level; p && *p; p++)
		if (*p < 'a' || *p > 'z')
			return err_set(e, ERR_INVALID, "--level must be debug, info, success, warn or error");
	do {
		/* Each page in memory of its own: this may go on for days. */
		struct cmd_ctx page = { .arena = ARENA_INIT(PAGE_BYTES),
					.session = ctx->session,
					.json = ctx->json };

		r = show_page(&page, operands[0], f, first, &after, &shown, e);
		arena_done(&page.arena);
		first = false;
		if (r >= 0 && f->follow && shown < PAGE)
			(void)poll(NULL, 0, FOLLOW_MS);
	} while (r >= 0 && f->follow);
	return r;
}

const struct cmd cmd_agent_logs = {
	.name = "agent logs",
	.operands = "AGENT",
	.summary = "show what an agent has logged",
	.opts = LOGS_OPTS,
	.n_opts = ELEMS(LOGS_OPTS),
	.flags_size = sizeof(struct logs_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_logs,
};
