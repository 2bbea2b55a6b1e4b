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

#include "agent_files.h"
#include "call.h"
#include "cmd_catalogue.h"
#include "create.h"
#include "fd.h"
#include "progress.h"
#include "source.h"
#include "text.h"

#include "poison.h"

#define MANIFEST     AGENT_FILES_MANIFEST
#define MANIFEST_MAX AGENT_FILES_MANIFEST_MAX
#define BUILD_MS     (30 * 60 * 1000)
#define POLL_MS      300
#define FOLLOW_MS    500
#define PAGE         500
#define PAGE_BYTES   (32u << 20)

/* ---- the files ---- */

/* What is to be installed: a directory, an archive, or one of a catalogue, which is open. */
struct files {
	const char *path;
	int fd; /* -1: it is at the path */
	struct buf manifest;
};

static void files_done(struct files *f)
{
	fd_close(f->fd);
	buf_done(&f->manifest);
}

static int read_given(const char *path, struct buf *out, struct err *e)
{
	int r = fd_slurp(AT_FDCWD, path, out);

	return r < 0 ? err_sys(e, ERR_INVALID, r, "%.120s", path) : 0;
}

/* The archive's manifest must be the one that was searched and signed. */
static int take_listed(struct cmd_ctx *ctx, const struct cmd_catalogue_choice *from, struct files *f,
		       struct err *e)
{
	_cleanup_(buf_done) struct buf listed = BUF_INIT(4 * MANIFEST_MAX), own = BUF_INIT(4 * MANIFEST_MAX);
	struct catalogue_agent a;
	struct json_out o;
	struct json *doc;
	char name[192];

	if (cmd_catalogue_get(ctx, from, f->path, &a, &f->fd, e) < 0)
		return -1;
	if (view_to_str(a.archive, name, sizeof(name)) < 0)
		return err_set(e, ERR_INVALID, "the archive's name is too long");
	f->path = arena_str(&ctx->arena, a.archive);
	if (!f->path || agent_files_manifest_fd(f->fd, name, &f->manifest, e) < 0 ||
	    json_parse(&ctx->arena, buf_view(&f->manifest), &doc, e) < 0)
		return err_wrap(e, "%.100s", name);
	json_out_init(&o, &listed);
	json_out_value(&o, a.manifest);
	json_out_init(&o, &own);
	json_out_value(&o, doc);
	return view_eq(buf_view(&listed), buf_view(&own))
		       ? 0
		       : err_set(e, ERR_FORBIDDEN, "%.100s has another manifest than the index", name);
}

static int take_files(struct cmd_ctx *ctx, const char *given, const struct cmd_catalogue_choice *from,
		      struct files *f, struct err *e)
{
	bool named = from->catalogue || from->key ||
		     (!strchr(f->path, '/') && strcmp(f->path, "-") != 0 && access(f->path, F_OK) < 0);

	if (named && given)
		return err_set(e, ERR_INVALID, "--manifest is for a directory or an archive");
	if (named)
		return take_listed(ctx, from, f, e);
	if (given)
		return read_given(given, &f->manifest, e);
	if (strcmp(f->path, "-") == 0)
		return err_set(e, ERR_INVALID,
			       "standard input is read once: name its manifest with --manifest FILE");
	return agent_files_manifest(f->path, &f->manifest, e);
}

static int open_files(const struct files *f, struct source *ret, struct err *e)
{
	int fd;

	if (f->fd < 0)
		return strcmp(f->path, "-") == 0 ? source_open(ret, "-", e)
						 : agent_files_open(ret, f->path, e);
	fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		fd_close(fd);
		return err_sys(e, ERR_INTERNAL, errno, "the archive");
	}
	return source_open_fd(ret, fd, f->path, e);
}

/* ---- what it asks for ---- */

static void put_text(struct view text)
{
	_cleanup_(buf_done) struct buf clean = BUF_INIT(64u << 10);

	show_clean(&clean, text);
	fprintf(stderr, "%.*s", VIEW_ARG(buf_view(&clean)));
}

static void put_list(const char *title, const struct json *list, const char *none)
{
	fprintf(stderr, "  %-10s", title);
	if (!list || list->n == 0)
		fprintf(stderr, " %s", none);
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		fputc(' ', stderr);
		put_text(list->items[i].text);
	}
	for (size_t i = 0; list && list->type == JSON_OBJECT && i < list->n; i++) {
		fputc(' ', stderr);
		put_text(list->members[i].key);
		fputc('=', stderr);
		put_text(list->members[i].value.text);
	}
	fputc('\n', stderr);
}

/* From the daemon's answer, which has checked every text; the daemon may be somebody else's. */
static void show_asks(const struct json *m)
{
	static const char *const head[] = { "name", "version", "runtime", "entrypoint" };
	static const char *const before[] = { "", " ", " (", ", " };
	const struct json *p = json_get(m, "permissions");

	for (size_t i = 0; i < ELEMS(head); i++) {
		fputs(before[i], stderr);
		put_text(session_text(m, head[i]));
	}
	fputs(") asks for:\n", stderr);
	put_list("chains", json_get(p, "chains"), "none");
	put_list("nodes", json_get(p, "rpcs"), "those of the configuration");
	put_list("models", json_get(p, "apis"), "none");
	put_list("contracts", json_get(p, "contracts"), "any");
	put_list("hosts", json_get(p, "hosts"), "none");
	put_list("resources", json_get(m, "resources"), "the defaults");
	put_list("spending", json_get(m, "spending_limits"), "no limits named: nothing may be spent");
}

static int ask_consent(bool yes, const char *verb, struct err *e)
{
	char answer[8] = "";

	if (yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID, "consent is needed: look at what it asks for, and add --yes");
	fprintf(stderr, "%s it? [y/N] ", verb);
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return err_set(e, ERR_CANCELLED, "nothing was changed");
	return 0;
}

/* ---- install ---- */

struct install_flags {
	const char *name, *manifest;
	struct cmd_catalogue_choice from;
	bool yes, start;
};

static const struct opt INSTALL_OPTS[] = {
	{ "name", 'n', OPT_TEXT, offsetof(struct install_flags, name), "NAME",
	  "what it is called here (default: made from the manifest's name)" },
	{ "manifest", 0, OPT_TEXT, offsetof(struct install_flags, manifest), "FILE",
	  "its manifest (default: assegai.json of the directory or archive)" },
	CMD_CATALOGUE_OPTS(struct install_flags, from),
	{ "yes", 'y', OPT_FLAG, offsetof(struct install_flags, yes), NULL,
	  "consent to what it asks for, without a question" },
	{ "start", 0, OPT_FLAG, offsetof(struct install_flags, start), NULL, "start it when it is built" },
};

/* To install it or, with `agent`, to upgrade that one. */
static int post_manifest(struct cmd_ctx *ctx, struct session *s, const char *agent, struct view manifest,
			 const char *name, bool consent, struct json **ret, struct err *e)
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
	return call_with(s,
			 &(struct cli_call){ "POST", "agents", agent, agent ? "/upgrade" : NULL,
					     .body = buf_view(&body) },
			 ret, e);
}

static int upload(struct session *s, const char *id, const struct files *f, struct err *e)
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
	if (session_segment(&where, id, e) < 0 || open_files(f, &source, e) < 0)
		return -1;
	buf_puts(&where, "/code");
	rq.path = buf_view(&where);
	rq.body_fd = source.fd;
	rq.body_size = source.size;
	progress_begin(&p, &s->client, f->path, source.size > 0 ? (uint64_t)source.size : 0);
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
	_cleanup_(files_done) struct files files = { operands[0], -1, BUF_INIT(MANIFEST_MAX) };
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct install_flags *f = flags;
	struct json *answer;
	char id[64];

	if (create_check_text(f->name, "--name", e) < 0 ||
	    take_files(ctx, f->manifest, &f->from, &files, e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    post_manifest(ctx, &s, NULL, buf_view(&files.manifest), f->name, false, &answer, e) < 0)
		return -1;
	show_asks(json_get(answer, "manifest"));
	if (ask_consent(f->yes, "Install", e) < 0 ||
	    post_manifest(ctx, &s, NULL, buf_view(&files.manifest), f->name, true, &answer, e) < 0)
		return -1;
	if (view_to_str(session_text(answer, "id"), id, sizeof(id)) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no id");
	if (upload(&s, id, &files, e) < 0 || await_build(&s, id, &answer, e) < 0)
		return err_wrap(e, "agent %s", id);
	if (f->start && call_with(&s, &(struct cli_call){ "POST", "agents", id, "/start" }, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "name", e);
}

const struct cmd cmd_agent_install = {
	.name = "agent install",
	.operands = "DIR|TAR|NAME@VERSION",
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

/* ---- upgrade ---- */

struct upgrade_flags {
	const char *manifest;
	struct cmd_catalogue_choice from;
	bool yes;
};

static const struct opt UPGRADE_OPTS[] = {
	{ "manifest", 0, OPT_TEXT, offsetof(struct upgrade_flags, manifest), "FILE",
	  "its manifest (default: assegai.json of the directory or archive)" },
	CMD_CATALOGUE_OPTS(struct upgrade_flags, from),
	{ "yes", 'y', OPT_FLAG, offsetof(struct upgrade_flags, yes), NULL,
	  "consent to what it asks for, without a question" },
};

/* The upgrade is over when there is none any more. */
static int await_upgrade(struct session *s, const char *id, struct json **ret, struct err *e)
{
	for (uint64_t waited = 0; waited < BUILD_MS; waited += POLL_MS) {
		if (session_get(s, "/v1/agents/", id, ret, e) < 0)
			return -1;
		const struct json *u = json_get(*ret, "upgrade");
		if (!u || u->type != JSON_OBJECT)
			return 0;
		if (view_is(session_text(u, "status"), "failed"))
			return err_set(e, ERR_STATE,
				       "the new version was not built, the old one goes on: %.*s",
				       VIEW_ARG(view_head(session_text(u, "reason"), 120)));
		(void)poll(NULL, 0, POLL_MS);
	}
	return err_set(e, ERR_TIMEOUT, "the image is still being built: see paddock agent show");
}

static int run_upgrade(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	_cleanup_(files_done) struct files files = { operands[1], -1, BUF_INIT(MANIFEST_MAX) };
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct upgrade_flags *f = flags;
	const char *id = operands[0];
	struct json *answer;

	if (take_files(ctx, f->manifest, &f->from, &files, e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    post_manifest(ctx, &s, id, buf_view(&files.manifest), NULL, false, &answer, e) < 0)
		return -1;
	const struct json *more = json_get(answer, "asks_more");
	show_asks(json_get(answer, "manifest"));
	for (size_t i = 0; more && more->type == JSON_ARRAY && i < more->n; i++) {
		fputs("  new        ", stderr);
		put_text(more->items[i].text);
		fputc('\n', stderr);
	}
	if ((!more || more->type != JSON_ARRAY || more->n) && ask_consent(f->yes, "Upgrade", e) < 0)
		return -1;
	if (post_manifest(ctx, &s, id, buf_view(&files.manifest), NULL, true, &answer, e) < 0 ||
	    upload(&s, id, &files, e) < 0 || await_upgrade(&s, id, &answer, e) < 0)
		return err_wrap(e, "agent %.60s", id);
	return call_print(ctx, answer, "name", e);
}

const struct cmd cmd_agent_upgrade = {
	.name = "agent upgrade",
	.operands = "AGENT DIR|TAR|NAME@VERSION",
	.summary = "build a new version of an agent and switch to it; its workspace stays",
	.opts = UPGRADE_OPTS,
	.n_opts = ELEMS(UPGRADE_OPTS),
	.flags_size = sizeof(struct upgrade_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.json = true,
	.run = run_upgrade,
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
static void put_quoted(struct buf *out, struct view text)
{
	while (text.n) {
		const size_t n = text.p[0] == '\t' ? 0 : show_steers(text);

		for (size_t i = 0; i < n; i++)
			buf_printf(out, "\\x%02x", (unsigned char)text.p[i]);
		if (!n)
			buf_putc(out, text.p[0]);
		text = view_skip(text, n ? n : 1);
	}
}

static int print_entry(const struct json *v, struct err *e)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT(1u << 20), text = BUF_INIT(256u << 10);
	const struct json *data = json_get(v, "data");

	buf_printf(&line, "%.*s %-7.*s %-6.*s ", VIEW_ARG(session_text(v, "at")),
		   VIEW_ARG(session_text(v, "level")), VIEW_ARG(session_text(v, "source")));
	put_quoted(&line, session_text(v, "message"));
	if (data && data->type != JSON_NULL) {
		struct json_out o;
		buf_putc(&line, ' ');
		json_out_init(&o, &text);
		json_out_value(&o, data);
		put_quoted(&line, buf_view(&text));
	}
	buf_putc(&line, '\n');
	return line.bad || text.bad ? err_set(e, ERR_TOO_LARGE, "the entry is too large")
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
