/*
 * paddock code: interpreters that keep their variables between executions (code
 * contexts of the API).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "create.h"
#include "fd.h"
#include "text.h"

#include "poison.h"

#define CODE_MAX (16u << 20)
#define RUN_MS   (24 * 3600 * 1000ull)

struct code_flags {
	const char *language, *context, *user, *workdir;
	struct opt_list env;
	uint64_t timeout_ms;
};

#define AT(member) offsetof(struct code_flags, member)
static const struct opt START_OPTS[] = {
	{ "language", 'l', OPT_TEXT, AT(language), "LANGUAGE",
	  "python (the default), javascript, typescript, r, java or bash" },
	{ "user", 'u', OPT_TEXT, AT(user), "USER", "who runs it" },
	{ "workdir", 'w', OPT_TEXT, AT(workdir), "DIR", "the directory that it starts in" },
	{ "env", 'e', OPT_ENV, AT(env), "KEY[=VALUE]", "a variable; may be repeated" },
};
static const struct opt RUN_OPTS[] = {
	{ "language", 'l', OPT_TEXT, AT(language), "LANGUAGE",
	  "python (the default), javascript, typescript, r, java or bash" },
	{ "in", 0, OPT_TEXT, AT(context), "ID", "run it in this interpreter" },
	{ "env", 'e', OPT_ENV, AT(env), "KEY[=VALUE]", "a variable; may be repeated" },
	{ "timeout", 0, OPT_MS, AT(timeout_ms), "TIME", "interrupt it after this time" },
};
#undef AT

/* ---- run ---- */

static int read_code(const char *path, struct buf *out, struct err *e)
{
	int r = fd_slurp(AT_FDCWD, strcmp(path, "-") == 0 ? "/dev/stdin" : path, out);

	if (r < 0)
		return err_sys(e, ERR_INVALID, r, "cannot read %.120s", path);
	if (!text_is_utf8(buf_view(out)))
		return err_set(e, ERR_INVALID, "%.120s is not UTF-8", path);
	return 0;
}

static int put_channel(const struct json *answer, const char *key, int fd, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(256u << 20);
	struct view text = session_text(answer, key);

	if (!view_is(session_text(answer, "encoding"), "base64"))
		return show_bytes(fd, text, e);
	if (text_unbase64(&b, text) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has bad base64");
	return show_bytes(fd, buf_view(&b), e);
}

/* Output, the text of the results, the error: the exit code. */
static int print_outcome(const struct json *answer, struct err *e)
{
	const struct json *results = json_get(answer, "results"), *error = json_get(answer, "error");
	const struct json *late = json_get(answer, "timed_out");

	if (put_channel(answer, "stdout", STDOUT_FILENO, e) < 0 ||
	    put_channel(answer, "stderr", STDERR_FILENO, e) < 0)
		return -1;
	for (size_t i = 0; results && results->type == JSON_ARRAY && i < results->n; i++) {
		struct view text = session_text(&results->items[i], "text");

		if (text.n &&
		    (show_bytes(STDOUT_FILENO, text, e) < 0 || show_bytes(STDOUT_FILENO, VIEW("\n"), e) < 0))
			return -1;
	}
	if (late && late->type == JSON_BOOL && late->boolean) {
		fputs("paddock: the code ran out of time and was interrupted\n", stderr);
		return 124;
	}
	if (!error || error->type != JSON_OBJECT)
		return 0;
	struct view trace = session_text(error, "traceback");
	if (trace.n)
		fprintf(stderr, "%.*s\n", VIEW_ARG(trace));
	else
		fprintf(stderr, "%.*s: %.*s\n", VIEW_ARG(session_text(error, "name")),
			VIEW_ARG(session_text(error, "value")));
	return CMD_FAILED;
}

static int run_run(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf code = BUF_INIT(CODE_MAX), body = BUF_INIT(2 * CODE_MAX);
	const struct code_flags *f = flags;
	struct json *answer;
	struct json_out o;

	if (read_code(n > 1 ? operands[1] : "-", &code, e) < 0)
		return -1;
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kstr(&o, "code", buf_view(&code));
	if (f->context)
		json_out_kz(&o, "context", f->context);
	else
		json_out_kz(&o, "language", f->language ? f->language : "python");
	create_pairs(&o, "env", &f->env);
	if (f->timeout_ms)
		json_out_ku64(&o, "timeout_ms", f->timeout_ms);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "the code is too long");
	if (call_once(ctx,
		      &(struct cli_call){ "POST", "sandboxes", operands[0], "/execute", buf_view(&body),
					  RUN_MS },
		      &answer, e) < 0)
		return -1;
	if (!answer)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	return ctx->json ? show_json(answer, e) : print_outcome(answer, e);
}

/* ---- the others ---- */

static int run_create(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(1u << 20);
	const struct code_flags *f = flags;
	struct json *answer;
	struct json_out o;

	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kz(&o, "language", f->language ? f->language : "python");
	create_put_place(&o, f->user, f->workdir, &f->env);
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_TOO_LARGE, "too many options for one request");
	if (call_once(ctx,
		      &(struct cli_call){ "POST", "sandboxes", operands[0], "/contexts", buf_view(&body) },
		      &answer, e) < 0)
		return -1;
	return call_print(ctx, answer, "id", e);
}

const struct cmd cmd_code_run = {
	.name = "code run",
	.operands = "SANDBOX [FILE|-]",
	.summary = "execute code in an interpreter of a sandbox that keeps its variables",
	.help = "The code is a file's, or standard input's. The exit code is 1 when it raised an error,\n"
		"124 after --timeout.",
	.opts = RUN_OPTS,
	.n_opts = ELEMS(RUN_OPTS),
	.flags_size = sizeof(struct code_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 2,
	.client = true,
	.json = true,
	.failed = CMD_DAEMON_FAILED,
	.run = run_run,
};

const struct cmd cmd_code_create = {
	.name = "code create",
	.operands = "SANDBOX",
	.summary = "start an interpreter and print its id",
	.opts = START_OPTS,
	.n_opts = ELEMS(START_OPTS),
	.flags_size = sizeof(struct code_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_create,
};

static const char *const TITLES[] = { "ID", "LANGUAGE", "USER", "CWD", "PID", "BUSY", "QUEUED" };
static const char *const FIELDS[] = { "id", "language", "user", "cwd", "pid", "busy", "queued" };
static const struct cmd_things THINGS = { "contexts", true, TITLES, FIELDS, ELEMS(FIELDS) };

const struct cmd cmd_code_ls = {
	.name = "code ls",
	.summary = "list the interpreters of a sandbox",
	CALL_LS_OF(THINGS),
};

const struct cmd cmd_code_rm = {
	.name = "code rm",
	.summary = "end interpreters",
	CALL_RM_OF(THINGS),
};

const struct cmd cmd_code_show = {
	.name = "code show",
	.summary = "show an interpreter as JSON",
	CALL_SHOW_OF(THINGS),
};

const struct cmd cmd_code_restart = {
	.name = "code restart",
	.summary = "start an interpreter again, without its variables",
	CALL_VERB_OF(THINGS),
};

const struct cmd cmd_code_interrupt = {
	.name = "code interrupt",
	.summary = "interrupt what an interpreter executes; its variables stay",
	CALL_VERB_OF(THINGS),
};
