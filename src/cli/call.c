/*
 * See call.h.
 */
#include <stdio.h>
#include <unistd.h>

#include "call.h"
#include "show.h"

#include "poison.h"

int call_with(struct session *s, const struct cli_call *c, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(64u << 10);
	struct session_call call = { .method = c->method,
				     .body = c->body,
				     .timeout_ms = c->timeout_ms ? c->timeout_ms : SESSION_CALL_MS };

	buf_printf(&path, "/v1/%s", c->prefix);
	if (c->name) {
		buf_putc(&path, '/');
		if (session_segment(&path, c->name, e) < 0)
			return -1;
	}
	if (c->rest)
		buf_puts(&path, c->rest);
	if (path.bad)
		return err_set(e, ERR_INVALID, "the name is too long");
	call.path = buf_view(&path);
	return session_call(s, &call, ret, e);
}

int call_once(struct cmd_ctx *ctx, const struct cli_call *c, struct json **ret, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	return call_with(&s, c, ret, e);
}

int call_list(struct cmd_ctx *ctx, const struct cli_call *c, const char *list, const char *const *titles,
	      const char *const *fields, size_t n_columns, struct err *e)
{
	const struct json *rows;
	struct json *answer;

	if (call_once(ctx, c, &answer, e) < 0)
		return -1;
	rows = answer ? json_get(answer, list) : NULL;
	if (ctx->json && rows)
		return show_json(rows, e);
	return show_list(answer, list, titles, fields, n_columns, e);
}

void call_complain(const char *name, const struct err *e)
{
	bool named = strstr(e->msg, name) != NULL;

	fprintf(stderr, "paddock: %s%s%s\n", named ? "" : name, named ? "" : ": ", e->msg);
}

int call_removed(char **names, const bool *gone, size_t n, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(16u << 20);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_key(&o, "removed");
	json_out_array(&o);
	for (size_t i = 0; i < n; i++)
		if (gone[i])
			json_out_str(&o, view_of(names[i]));
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	return b.bad ? err_set(e, ERR_INTERNAL, "out of memory") : show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

int call_remove(struct cmd_ctx *ctx, const char *prefix, size_t n, char **names, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	bool *gone = arena_array(&ctx->arena, n + 1, sizeof(bool));
	int code = 0;

	if (!gone)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };

		gone[i] = call_with(&s, &(struct cli_call){ "DELETE", prefix, names[i], NULL }, NULL, &one) >=
			  0;
		if (gone[i])
			continue;
		call_complain(names[i], &one);
		code = CMD_FAILED;
	}
	if (ctx->json && call_removed(names, gone, n, e) < 0)
		return -1;
	return code;
}

int call_print(struct cmd_ctx *ctx, const struct json *object, const char *member, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(64u << 10);

	if (!object)
		return err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
	if (ctx->json)
		return show_json(object, e);
	show_clean(&b, session_text(object, member));
	buf_putc(&b, '\n');
	return show_bytes(STDOUT_FILENO, buf_view(&b), e);
}

/* ---- whole commands ---- */

int call_ls(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_, char **operands,
	    struct err *e)
{
	const struct cmd_things *t = ctx->cmd->things;
	char below[64];
	struct cli_call c = { "GET", t->prefix };

	if (t->of_sandbox) {
		snprintf(below, sizeof(below), "/%s", t->prefix);
		c = (struct cli_call){ "GET", "sandboxes", operands[0], below };
	}
	return call_list(ctx, &c, t->prefix, t->titles, t->fields, t->n_columns, e);
}

/* "sandboxes/ID/THINGS" with a NUL at its end. */
static int put_prefix(struct buf *b, const struct cmd_things *t, const char *box, struct err *e)
{
	buf_puts(b, "sandboxes/");
	if (session_segment(b, box, e) < 0)
		return -1;
	buf_printf(b, "/%s", t->prefix);
	buf_putc(b, 0);
	return b->bad ? err_set(e, ERR_INVALID, "the name is too long") : 0;
}

int call_rm(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf prefix = BUF_INIT(8192);
	const struct cmd_things *t = ctx->cmd->things;

	if (!t->of_sandbox)
		return call_remove(ctx, t->prefix, n, operands, e);
	if (put_prefix(&prefix, t, operands[0], e) < 0)
		return -1;
	return call_remove(ctx, prefix.p, n - 1, operands + 1, e);
}

int call_show(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf prefix = BUF_INIT(8192);
	const struct cmd_things *t = ctx->cmd->things;
	struct json *answer;

	if (t->of_sandbox && put_prefix(&prefix, t, operands[0], e) < 0)
		return -1;
	if (call_once(ctx, &(struct cli_call){ "GET", t->of_sandbox ? prefix.p : t->prefix, operands[n - 1] },
		      &answer, e) < 0) {
		if (!strstr(e->msg, operands[n - 1]))
			err_wrap(e, "%.120s", operands[n - 1]);
		return -1;
	}
	return answer ? show_json(answer, e) : err_set(e, ERR_INTERNAL, "the daemon said nothing about it");
}

int call_verb(struct cmd_ctx *ctx, const void *flags _unused_, size_t n, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf prefix = BUF_INIT(8192);
	const struct cmd_things *t = ctx->cmd->things;
	struct json *answer;
	char verb[32];

	snprintf(verb, sizeof(verb), "/%s", strrchr(ctx->cmd->name, ' ') + 1);
	if (put_prefix(&prefix, t, operands[0], e) < 0 ||
	    call_once(ctx, &(struct cli_call){ "POST", prefix.p, operands[n - 1], verb }, &answer, e) < 0)
		return -1;
	return ctx->json && answer ? show_json(answer, e) : 0;
}
