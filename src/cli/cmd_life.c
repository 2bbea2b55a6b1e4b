/*
 * paddock pause, resume, stop, start: the same for each box that is named; goes on
 * after one that could not be changed. paddock extend: a new end.
 */
#include <stdio.h>

#include "call.h"

#include "poison.h"

static int post(struct session *s, const char *box, const char *verb, struct view body, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct session_call c = { .method = "POST", .body = body, .timeout_ms = SESSION_CALL_MS };

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, box, e) < 0)
		return -1;
	buf_putc(&path, '/');
	buf_puts(&path, verb);
	c.path = buf_view(&path);
	return session_call(s, &c, NULL, e);
}

static int run_each(struct cmd_ctx *ctx, const char *verb, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	int code = 0;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };

		if (post(&s, operands[i], verb, VIEW_NONE, &one) < 0) {
			call_complain(operands[i], &one);
			code = CMD_FAILED;
		}
	}
	return code;
}

#define LIFE(verb, text)                                                                                     \
	static int run_##verb(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands,    \
			      struct err *e)                                                                 \
	{                                                                                                    \
		return run_each(ctx, #verb, n, operands, e);                                                 \
	}                                                                                                    \
	const struct cmd cmd_##verb = {                                                                      \
		.name = #verb,                                                                               \
		.operands = "SANDBOX…",                                                                      \
		.summary = text,                                                                             \
		.lead = OPTS_ANYWHERE,                                                                       \
		.min = 1,                                                                                    \
		.max = SIZE_MAX,                                                                             \
		.client = true,                                                                              \
		.run = run_##verb,                                                                           \
	}

LIFE(pause, "pause sandboxes; their memory stays");
LIFE(resume, "resume paused sandboxes");
LIFE(stop, "stop sandboxes and keep their files");
LIFE(start, "start stopped sandboxes again, with their files");

static int run_extend(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
		      struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	char body[64];
	uint64_t ms = 0;
	bool never = view_is(view_of(operands[1]), "never");

	if (!never && opts_read_ms(view_of(operands[1]), &ms) < 0)
		return err_set(e, ERR_INVALID, "\"%.40s\" is not a time, such as 90s, 10m, 2h, or never",
			       operands[1]);
	snprintf(body, sizeof(body), "{\"ttl_seconds\":%llu}", (unsigned long long)((ms + 999) / 1000));
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return post(&s, operands[0], "extend", view_of(body), e);
}

const struct cmd cmd_extend = {
	.name = "extend",
	.operands = "SANDBOX TIME|never",
	.summary = "reset the expiry of a sandbox, counted from now",
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.client = true,
	.run = run_extend,
};
