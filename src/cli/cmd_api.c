/*
 * What the daemon says about itself (paddock info, metrics, vault ca), and any request
 * to it (paddock api).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "call.h"
#include "fd.h"

#include "poison.h"

#define BODY_MAX (64u << 20)

/* Sends what was asked for and prints the body of the answer as it comes. */
static int print_answer(struct cmd_ctx *ctx, struct client_request *rq, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct response answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || session_send(&s, rq, &answer, e) < 0)
		return -1;
	return client_read_to_fd(&s.client, STDOUT_FILENO, e);
}

static int print_path(struct cmd_ctx *ctx, const char *path, struct err *e)
{
	struct client_request rq = { .method = "GET", .path = view_of(path), .timeout_ms = SESSION_CALL_MS };

	return print_answer(ctx, &rq, e);
}

static int run_metrics(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		       char **operands _unused_, struct err *e)
{
	return print_path(ctx, "/metrics", e);
}

static int run_ca(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		  char **operands _unused_, struct err *e)
{
	return print_path(ctx, "/v1/vault/ca.pem", e);
}

static int run_info(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	struct cli_call c = { "GET", "capabilities" };
	struct json *answer;

	if (n)
		c = (struct cli_call){ "GET", "sandboxes", operands[0], "/posture" };
	if (call_once(ctx, &c, &answer, e) < 0)
		return -1;
	return answer ? show_json(answer, e) : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

/* ---- any request ---- */

struct api_flags {
	const char *method, *data, *type;
};

#define AT(member) offsetof(struct api_flags, member)
static const struct opt API_OPTS[] = {
	{ "method", 'X', OPT_TEXT, AT(method), "METHOD", "GET, or POST when there is a body" },
	{ "data", 'd', OPT_TEXT, AT(data), "BODY",
	  "the body; @FILE: a file's content, @-: standard input's" },
	{ "type", 0, OPT_TEXT, AT(type), "TYPE", "of the body (default: application/json)" },
};
#undef AT

static bool is_token(const char *text)
{
	for (size_t i = 0; text[i]; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return *text;
}

static int read_body(const char *data, struct buf *out, struct err *e)
{
	if (data[0] != '@') {
		buf_puts(out, data);
		return out->bad ? err_set(e, ERR_TOO_LARGE, "the body is too long") : 0;
	}
	const char *path = strcmp(data, "@-") == 0 ? "/dev/stdin" : data + 1;
	int r = fd_slurp(AT_FDCWD, path, out);
	return r < 0 ? err_sys(e, ERR_INVALID, r, "cannot read %.120s", path) : 0;
}

static int run_api(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	const struct api_flags *f = flags;
	const char *method = f->method ? f->method : f->data ? "POST" : "GET";
	struct client_request rq = { .method = method, .path = view_of(operands[0]) };

	if (operands[0][0] != '/' || !is_token(operands[0]))
		return err_set(e, ERR_INVALID,
			       "\"%.80s\" is not a path such as /v1/sandboxes, with other characters as %%XX",
			       operands[0]);
	if (!is_token(method) || (f->type && !is_token(f->type)))
		return err_set(e, ERR_INVALID, "--method and --type are words");
	if (f->data) {
		if (read_body(f->data, &body, e) < 0)
			return -1;
		rq.content_type = f->type ? f->type : "application/json";
		rq.body = body.n ? buf_view(&body) : VIEW("");
	}
	return print_answer(ctx, &rq, e);
}

const struct cmd cmd_info = {
	.name = "info",
	.operands = "[SANDBOX]",
	.summary = "show what the daemon can and its limits, or the walls of a sandbox, as JSON",
	.lead = OPTS_ANYWHERE,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_info,
};

const struct cmd cmd_metrics = {
	.name = "metrics",
	.operands = "",
	.summary = "print the daemon's metrics in the text format of Prometheus",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run_metrics,
};

const struct cmd cmd_vault_ca = {
	.name = "vault ca",
	.operands = "",
	.summary = "print the certificate of the authority that sandboxes trust, as PEM",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run_ca,
};

const struct cmd cmd_api = {
	.name = "api",
	.operands = "PATH",
	.summary = "send any request to the API and print the answer as it is",
	.help = "`paddock api /openapi.json` describes all of them.",
	.opts = API_OPTS,
	.n_opts = ELEMS(API_OPTS),
	.flags_size = sizeof(struct api_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.run = run_api,
};
