/*
 * paddock files: what is in a sandbox's file system, one request each. Whole trees and
 * progress are `paddock cp`.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "create.h"
#include "text.h"

#include "poison.h"

#define BODY_MAX  (16u << 20)
#define COPY_MS   (10 * 60 * 1000)
#define ROWS_MOST 1000

struct files_flags {
	const char *user, *mode, *owner, *include, *type, *method;
	bool recursive, parents, force, regex, ignore_case;
	uint64_t limit, ttl_ms;
};

#define AT(member) offsetof(struct files_flags, member)
#define USER                                                                                                 \
	{                                                                                                    \
		"user", 'u', OPT_TEXT, AT(user), "USER", "with the rights of this user of the sandbox"       \
	}
#define RECURSIVE(what)                                                                                      \
	{                                                                                                    \
		"recursive", 'r', OPT_FLAG, AT(recursive), NULL, what                                        \
	}
#define FORCE                                                                                                \
	{                                                                                                    \
		"force", 'f', OPT_FLAG, AT(force), NULL, "replace a target that is there"                    \
	}
#define LIMIT                                                                                                \
	{                                                                                                    \
		"limit", 0, OPT_COUNT, AT(limit), "N", "at most so many"                                     \
	}

static const struct opt ONLY_USER[] = { USER };
static const struct opt RM_OPTS[] = { USER, RECURSIVE("directories, too, with what is in them") };
static const struct opt MV_OPTS[] = { USER, FORCE };
static const struct opt CP_OPTS[] = { USER, FORCE, RECURSIVE("directories, too, with what is in them") };
static const struct opt MKDIR_OPTS[] = {
	USER,
	{ "parents", 'p', OPT_FLAG, AT(parents), NULL, "directories above it, too; no error if it is there" },
	{ "mode", 'm', OPT_TEXT, AT(mode), "MODE", "in octal, such as 0750" },
};
static const struct opt CHMOD_OPTS[] = {
	USER,
	RECURSIVE("what is in it, too"),
	{ "mode", 'm', OPT_TEXT, AT(mode), "MODE", "in octal, such as 0640" },
	{ "owner", 'o', OPT_TEXT, AT(owner), "USER[:GROUP]", "whom it belongs to from now on" },
};
static const struct opt FIND_OPTS[] = {
	USER,
	LIMIT,
	{ "type", 't', OPT_TEXT, AT(type), "TYPE", "file, directory or symlink" },
};
static const struct opt GREP_OPTS[] = {
	USER,
	LIMIT,
	{ "regex", 'E', OPT_FLAG, AT(regex), NULL, "TEXT is an extended regular expression" },
	{ "ignore-case", 'i', OPT_FLAG, AT(ignore_case), NULL, "letters of either case" },
	{ "include", 0, OPT_TEXT, AT(include), "PATTERN", "only in files with such a name, as '*.py'" },
};
static const struct opt SIGN_OPTS[] = {
	USER,
	{ "method", 0, OPT_TEXT, AT(method), "METHOD", "GET (the default) to read it, PUT to write it" },
	{ "ttl", 0, OPT_MS, AT(ttl_ms), "TIME", "how long the address works (default: an hour)" },
};
#undef AT

/* ---- requests ---- */

/* An operand of a request: its name in the document and its value; NULL: absent. */
struct text_member {
	const char *key, *value;
};

static void put_texts(struct json_out *o, const struct text_member *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].value)
			json_out_kz(o, m[i].key, m[i].value);
}

/* POST of fs/VERB with the members that are there, and what `more` adds. */
static int post(struct cmd_ctx *ctx, const char *box, const char *verb, const struct text_member *m, size_t n,
		const struct files_flags *f, void (*more)(struct json_out *o, const struct files_flags *f),
		struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	char rest[32];
	struct json_out o;

	for (size_t i = 0; i < n; i++)
		if (create_check_text(m[i].value, m[i].key, e) < 0)
			return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	put_texts(&o, m, n);
	if (f->user)
		json_out_kz(&o, "user", f->user);
	if (more)
		more(&o, f);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "the arguments are too long for one request");
	snprintf(rest, sizeof(rest), "/fs/%s", verb);
	return call_once(ctx, &(struct cli_call){ "POST", "sandboxes", box, rest, buf_view(&body), COPY_MS },
			 ret, e);
}

static int get(struct session *s, const char *method, const char *box, const char *what, const char *path,
	       const char *query, const struct files_flags *f, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf rest = BUF_INIT(64u << 10);

	buf_puts(&rest, what);
	text_percent(&rest, view_of(path));
	buf_puts(&rest, query);
	if (f->user) {
		buf_puts(&rest, strchr(what, '?') || *query ? "&user=" : "?user=");
		text_percent_all(&rest, view_of(f->user));
	}
	buf_putc(&rest, 0);
	if (rest.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	return call_with(s, &(struct cli_call){ method, "sandboxes", box, rest.p }, ret, e);
}

/* What the daemon said, for --json only: people see that nothing went wrong. */
static int quiet(struct cmd_ctx *ctx, const struct json *answer, struct err *e)
{
	return ctx->json && answer ? show_json(answer, e) : 0;
}

/* ---- what is there ---- */

static const char *const TITLES[] = { "MODE", "UID", "GID", "BYTES", "MODIFIED", "NAME" };
static const char *const FIELDS[] = { "mode", "uid", "gid", "size", "modified_at", "name" };

static int add_page(struct show_table *t, struct json_out *all, const struct json *answer,
		    const char **ret_next, struct arena *a, struct err *e)
{
	const struct json *rows = answer ? json_get(answer, "entries") : NULL;
	struct view next = session_text(answer, "next");

	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of files");
	for (size_t i = 0; i < rows->n; i++) {
		show_table_object(t, &rows->items[i], FIELDS);
		json_out_value(all, &rows->items[i]);
	}
	*ret_next = next.n ? arena_str(a, next) : NULL;
	return 0;
}

static int run_ls(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(show_table_done) struct show_table t = { 0 };
	_cleanup_(buf_done) struct buf all = BUF_INIT(256u << 20), query = BUF_INIT(64u << 10);
	const char *next = NULL;
	struct json *answer, *whole;
	struct json_out o;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	show_table_init(&t, TITLES, ELEMS(TITLES));
	json_out_init(&o, &all);
	json_out_array(&o);
	do {
		buf_clear(&query);
		buf_printf(&query, "?list=1&limit=%d", ROWS_MOST);
		if (next) {
			buf_puts(&query, "&cursor=");
			text_percent_all(&query, view_of(next));
		}
		buf_putc(&query, 0);
		if (query.bad)
			return err_set(e, ERR_INVALID, "the path is too long");
		if (get(&s, "GET", operands[0], "/files", n > 1 ? operands[1] : "/workspace", query.p, flags,
			&answer, e) < 0 ||
		    add_page(&t, &o, answer, &next, &ctx->arena, e) < 0)
			return -1;
	} while (next);
	json_out_end(&o, ']');
	if (!ctx->json)
		return show_table_print(&t, e);
	if (all.bad || json_parse(&ctx->arena, buf_view(&all), &whole, e) < 0)
		return all.bad ? err_set(e, ERR_TOO_LARGE, "too many files") : -1;
	return show_json(whole, e);
}

static int run_stat(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct json *answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    get(&s, "GET", operands[0], "/fs/stat?path=", operands[1], "", flags, &answer, e) < 0)
		return -1;
	return answer ? show_json(answer, e) : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

/* The daemon's paths are relative to the directory that was searched; "": it is the file itself. */
static void put_below(struct buf *out, const char *searched, struct view path)
{
	struct view dir = view_of(searched);

	if (!path.n) {
		show_clean(out, dir);
		return;
	}
	while (dir.n && dir.p[dir.n - 1] == '/')
		dir.n--;
	show_clean(out, dir);
	buf_putc(out, '/');
	show_clean(out, path);
}

static void find_more(struct json_out *o, const struct files_flags *f)
{
	put_texts(o, &(struct text_member){ "type", f->type }, 1);
	if (f->limit)
		json_out_ku64(o, "limit", f->limit);
}

static int warn_cut(const struct json *answer)
{
	const struct json *cut = json_get(answer, "truncated");

	if (cut && cut->type == JSON_BOOL && cut->boolean)
		fprintf(stderr, "paddock: there is more; --limit N shows more of it\n");
	return 0;
}

static int run_find(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct text_member m[] = { { "path", operands[1] }, { "pattern", operands[2] } };
	_cleanup_(buf_done) struct buf out = BUF_INIT(256u << 20);
	const struct json *rows;
	struct json *answer;

	if (post(ctx, operands[0], "find", m, ELEMS(m), flags, find_more, &answer, e) < 0)
		return -1;
	if (ctx->json)
		return quiet(ctx, answer, e);
	rows = answer ? json_get(answer, "entries") : NULL;
	for (size_t i = 0; rows && i < rows->n; i++) {
		put_below(&out, operands[1], session_text(&rows->items[i], "path"));
		buf_putc(&out, '\n');
	}
	return show_bytes(STDOUT_FILENO, buf_view(&out), e) < 0 ? -1 : warn_cut(answer);
}

static void grep_more(struct json_out *o, const struct files_flags *f)
{
	json_out_kbool(o, "regex", f->regex);
	json_out_kbool(o, "ignore_case", f->ignore_case);
	put_texts(o, &(struct text_member){ "include", f->include }, 1);
	if (f->limit)
		json_out_ku64(o, "limit", f->limit);
}

/* PATH:LINE:TEXT, as grep -n has it; 1 when there is none, as grep's. */
static int run_grep(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	const struct text_member m[] = { { "pattern", operands[1] },
					 { "path", n > 2 ? operands[2] : "/workspace" } };
	_cleanup_(buf_done) struct buf out = BUF_INIT(256u << 20);
	const struct json *rows;
	struct json *answer;

	if (post(ctx, operands[0], "grep", m, ELEMS(m), flags, grep_more, &answer, e) < 0)
		return -1;
	rows = answer ? json_get(answer, "matches") : NULL;
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has no list of matches");
	for (size_t i = 0; !ctx->json && i < rows->n; i++) {
		const struct json *line = json_get(&rows->items[i], "line");
		put_below(&out, m[1].value, session_text(&rows->items[i], "path"));
		buf_putc(&out, ':');
		buf_add(&out, line && line->type == JSON_NUMBER ? line->text : VIEW("?"));
		buf_putc(&out, ':');
		show_clean(&out, session_text(&rows->items[i], "text"));
		buf_putc(&out, '\n');
	}
	if (ctx->json ? show_json(answer, e) < 0 : show_bytes(STDOUT_FILENO, buf_view(&out), e) < 0)
		return -1;
	(void)warn_cut(answer);
	return rows->n ? 0 : CMD_FAILED;
}

/* ---- changes ---- */

static int run_rm(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct files_flags *f = flags;
	bool *gone = arena_array(&ctx->arena, n, sizeof(bool));
	int code = 0;

	if (!gone)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 1; i < n; i++) {
		struct err one = { 0 };

		gone[i] = get(&s, "DELETE", operands[0], "/files", operands[i],
			      f->recursive ? "?recursive=1" : "", f, NULL, &one) >= 0;
		if (gone[i])
			continue;
		call_complain(operands[i], &one);
		code = CMD_FAILED;
	}
	if (ctx->json && call_removed(operands + 1, gone + 1, n - 1, e) < 0)
		return -1;
	return code;
}

static void move_more(struct json_out *o, const struct files_flags *f)
{
	json_out_kbool(o, "overwrite", f->force);
}

static int run_mv(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct text_member m[] = { { "from", operands[1] }, { "to", operands[2] } };
	struct json *answer;

	if (post(ctx, operands[0], "move", m, ELEMS(m), flags, move_more, &answer, e) < 0)
		return -1;
	return quiet(ctx, answer, e);
}

static void copy_more(struct json_out *o, const struct files_flags *f)
{
	move_more(o, f);
	json_out_kbool(o, "recursive", f->recursive);
}

static int run_cp(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct text_member m[] = { { "from", operands[1] }, { "to", operands[2] } };
	struct json *answer;

	if (post(ctx, operands[0], "copy", m, ELEMS(m), flags, copy_more, &answer, e) < 0)
		return -1;
	return quiet(ctx, answer, e);
}

static void mkdir_more(struct json_out *o, const struct files_flags *f)
{
	put_texts(o, &(struct text_member){ "mode", f->mode }, 1);
	json_out_kbool(o, "parents", f->parents);
}

static int run_mkdir(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	const struct text_member m[] = { { "path", operands[1] } };
	struct json *answer;

	if (post(ctx, operands[0], "mkdir", m, ELEMS(m), flags, mkdir_more, &answer, e) < 0)
		return -1;
	return quiet(ctx, answer, e);
}

static void chmod_more(struct json_out *o, const struct files_flags *f)
{
	const struct text_member m[] = { { "mode", f->mode }, { "owner", f->owner } };

	put_texts(o, m, ELEMS(m));
	json_out_kbool(o, "recursive", f->recursive);
}

static int run_chmod(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		     struct err *e)
{
	const struct text_member m[] = { { "path", operands[1] } };
	const struct files_flags *f = flags;
	struct json *answer;

	if (!f->mode && !f->owner)
		return err_set(e, ERR_INVALID, "say what is to change: --mode or --owner");
	if (post(ctx, operands[0], "chmod", m, ELEMS(m), f, chmod_more, &answer, e) < 0)
		return -1;
	return quiet(ctx, answer, e);
}

static int run_replace(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		       struct err *e)
{
	const struct text_member m[] = { { "path", operands[1] },
					 { "old", operands[2] },
					 { "new", operands[3] } };
	struct json *answer;

	if (post(ctx, operands[0], "replace", m, ELEMS(m), flags, NULL, &answer, e) < 0)
		return -1;
	return quiet(ctx, answer, e);
}

static void sign_more(struct json_out *o, const struct files_flags *f)
{
	json_out_kz(o, "method", f->method ? f->method : "GET");
	json_out_ku64(o, "expires_seconds", f->ttl_ms ? MAX((f->ttl_ms + 999) / 1000, 1u) : 3600);
}

static int run_sign(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	const struct text_member m[] = { { "path", operands[1] } };
	struct json *answer;

	if (post(ctx, operands[0], "sign", m, ELEMS(m), flags, sign_more, &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "url", e);
}

/* ---- the table ---- */

#define FILES(word, ops, least, most, options, text)                                                         \
	const struct cmd cmd_files_##word = {                                                                \
		.name = "files " #word,                                                                      \
		.operands = ops,                                                                             \
		.summary = text,                                                                             \
		.opts = options,                                                                             \
		.n_opts = ELEMS(options),                                                                    \
		.flags_size = sizeof(struct files_flags),                                                    \
		.lead = OPTS_ANYWHERE,                                                                       \
		.min = least,                                                                                \
		.max = most,                                                                                 \
		.client = true,                                                                              \
		.json = true,                                                                                \
		.run = run_##word,                                                                           \
	}

FILES(ls, "SANDBOX [PATH]", 1, 2, ONLY_USER, "list a directory of a sandbox; /workspace when absent");
FILES(stat, "SANDBOX PATH", 2, 2, ONLY_USER, "show what is at a path of a sandbox, as JSON");
FILES(find, "SANDBOX DIR PATTERN", 3, 3, FIND_OPTS, "find files of a sandbox by name");
FILES(grep, "SANDBOX TEXT [PATH]", 2, 3, GREP_OPTS, "search text in files of a sandbox");
FILES(mkdir, "SANDBOX PATH", 2, 2, MKDIR_OPTS, "make a directory in a sandbox");
FILES(mv, "SANDBOX FROM TO", 3, 3, MV_OPTS, "move or rename a file within a sandbox");
FILES(cp, "SANDBOX FROM TO", 3, 3, CP_OPTS, "copy a file within a sandbox");
FILES(chmod, "SANDBOX PATH", 2, 2, CHMOD_OPTS, "change the mode or the owner of a file in a sandbox");
FILES(replace, "SANDBOX PATH OLD NEW", 4, 4, ONLY_USER, "replace text in a file of a sandbox");
FILES(rm, "SANDBOX PATH…", 2, SIZE_MAX, RM_OPTS, "remove files of a sandbox");
FILES(sign, "SANDBOX PATH", 2, 2, SIGN_OPTS, "print an address of a file that works without a key");
