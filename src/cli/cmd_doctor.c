/*
 * paddock doctor: what this machine can give (paddockd says), and whether a
 * daemon answers. The exit code is about the machine: a daemon that is not
 * running is no illness.
 */
#include <stdio.h>

#include "cmd.h"
#include "program.h"

#include "poison.h"

static void print_daemon(struct cmd_ctx *ctx)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(64u << 10);
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct client_request rq = { .method = "GET", .path = VIEW("/health"), .timeout_ms = 5000 };
	struct err e = { 0 };
	struct response r;

	if (session_find(&s, &ctx->session, &ctx->arena, &e) < 0 || session_send(&s, &rq, &r, &e) < 0 ||
	    client_read_all(&s.client, &body, &e) < 0)
		printf("--    %-18s %s\n", "daemon", e.msg);
	else
		printf("ok    %-18s answers at http://%s\n", "daemon", s.client.url.authority);
}

static int run(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands _unused_,
	       struct err *e)
{
	char path[PROGRAM_PATH_MAX];
	char *const argv[] = { (char *)"paddockd", (char *)"doctor", NULL };
	int code;

	if (program_find("paddockd", path, e) < 0)
		return -1;
	code = program_run(path, argv, e);
	if (code >= 0)
		print_daemon(ctx);
	return code;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "show what walls this machine can give",
	.help = "One line for each part: ok, FAIL, or -- where it is not needed. The exit code\n"
		"is 1 if a sandbox could not be isolated on this machine. Run it as root: that is\n"
		"who makes the sandboxes.",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.run = run,
};
