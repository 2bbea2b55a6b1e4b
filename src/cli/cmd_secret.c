/*
 * paddock secret, paddock vault: what boxes use and nobody reads. A value comes from
 * standard input or a file, never from the command line, which everybody on the machine
 * can see.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "cmd.h"
#include "create.h"
#include "fd.h"
#include "show.h"
#include "text.h"

#include "poison.h"

#define VALUE_MAX (64u * 1024)

struct secret_flags {
	const char *box, *file;
	bool keep_newline;
	struct opt_list metadata;
};

#define AT(member) offsetof(struct secret_flags, member)
static const struct opt SET_OPTS[] = {
	{ "sandbox", 's', OPT_TEXT, AT(box), "ID", "of this sandbox alone, and gone with it" },
	{ "file", 'f', OPT_TEXT, AT(file), "FILE",
	  "the value is this file's content (default: standard input)" },
	{ "metadata", 0, OPT_PAIRS, AT(metadata), "KEY=VALUE",
	  "what `secret ls --json` shows beside the name, instead of what was set before; may be repeated" },
	{ "keep-newline", 0, OPT_FLAG, AT(keep_newline), NULL, "keep a newline at the end of the value" },
};
static const struct opt BOX_OPTS[] = {
	{ "sandbox", 's', OPT_TEXT, AT(box), "ID", "of this sandbox alone" },
};
#undef AT

/* "/v1/secrets/NAME" or "/v1/sandboxes/ID/secrets/NAME"; without a name the collection. */
static int make_path(struct buf *path, const struct secret_flags *f, const char *name, struct err *e)
{
	if (f->box) {
		buf_puts(path, "/v1/sandboxes/");
		if (session_segment(path, f->box, e) < 0)
			return -1;
		buf_puts(path, "/secrets");
	} else {
		buf_puts(path, "/v1/secrets");
	}
	if (!name)
		return 0;
	buf_putc(path, '/');
	return session_segment(path, name, e);
}

static int read_fd(int fd, struct buf *value)
{
	for (;;) {
		char *p = buf_reserve(value, MIN((size_t)4096, buf_room(value) ? buf_room(value) : 1));
		if (!p)
			return value->bad;
		ssize_t n = read(fd, p, MIN((size_t)4096, buf_room(value)));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(value, (size_t)n);
	}
}

/* Typed at a terminal it is not shown. */
static int read_value(const struct secret_flags *f, struct buf *value, struct err *e)
{
	_cleanup_(closep) int fd =
		f->file ? open(f->file, O_RDONLY | O_CLOEXEC | O_NOCTTY) : dup(STDIN_FILENO);
	struct termios old, silent;

	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "%.100s", f->file ? f->file : "standard input");
	bool terminal = !f->file && tcgetattr(fd, &old) == 0;
	if (terminal) {
		fprintf(stderr, "value, then Ctrl-D: ");
		silent = old;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		(void)tcsetattr(fd, TCSAFLUSH, &silent);
	}
	int r = read_fd(fd, value);
	if (terminal) {
		(void)tcsetattr(fd, TCSAFLUSH, &old);
		fputc('\n', stderr);
	}
	if (r < 0)
		return r == -ENOBUFS ? err_set(e, ERR_TOO_LARGE, "a value has at most %u bytes", VALUE_MAX)
				     : err_sys(e, ERR_INVALID, r, "the value");
	if (!f->keep_newline && value->n && value->p[value->n - 1] == '\n')
		value->n--;
	return value->n ? 0 : err_set(e, ERR_INVALID, "the value is empty");
}

static int run_set(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(buf_done) struct buf value = { .max = VALUE_MAX + 1, .secret = true };
	_cleanup_(buf_done) struct buf coded = { .max = 2 * VALUE_MAX, .secret = true },
				       path = BUF_INIT(4096);
	_cleanup_(buf_done) struct buf body = { .max = 3 * VALUE_MAX, .secret = true };
	_cleanup_(session_done) struct session s = SESSION_INIT;
	const struct secret_flags *f = flags;
	struct session_call call = { .method = "PUT", .timeout_ms = SESSION_CALL_MS };
	struct json_out o;

	if (make_path(&path, f, operands[0], e) < 0 || read_value(f, &value, e) < 0)
		return -1;
	if (text_base64(&coded, buf_view(&value)) < 0)
		return err_set(e, ERR_TOO_LARGE, "a value has at most %u bytes", VALUE_MAX);
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kstr(&o, "value", buf_view(&coded));
	json_out_kz(&o, "encoding", "base64");
	if (f->metadata.n)
		create_pairs(&o, "metadata", &f->metadata);
	json_out_end(&o, '}');
	call.path = buf_view(&path);
	call.body = buf_view(&body);
	return session_open(&s, &ctx->session, &ctx->arena, e) < 0 ? -1 : session_call(&s, &call, NULL, e);
}

static int run_ls(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands _unused_,
		  struct err *e)
{
	static const char *const titles[] = { "NAME", "VERSION", "UPDATED" };
	_cleanup_(session_done) struct session s = SESSION_INIT;
	_cleanup_(buf_done) struct buf path = BUF_INIT(4096);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	struct json *answer;
	struct show_table t;

	if (make_path(&path, flags, NULL, e) < 0)
		return -1;
	call.path = buf_view(&path);
	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || session_call(&s, &call, &answer, e) < 0)
		return -1;
	const struct json *list = answer ? json_get(answer, "secrets") : NULL;
	if (ctx->json && list)
		return show_json(list, e);
	show_table_init(&t, titles, ELEMS(titles));
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++) {
		const struct json *x = &list->items[i];
		show_table_add(&t, (struct view[]){ show_cell(&t, x, "name"), show_cell(&t, x, "version"),
						    show_cell(&t, x, "updated_at") });
	}
	int r = show_table_print(&t, e);
	show_table_done(&t);
	return r;
}

static int run_rm(struct cmd_ctx *ctx, const void *flags, size_t n, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		_cleanup_(buf_done) struct buf path = BUF_INIT(4096);
		struct session_call call = { .method = "DELETE", .timeout_ms = SESSION_CALL_MS };
		if (make_path(&path, flags, operands[i], e) < 0)
			return -1;
		call.path = buf_view(&path);
		if (session_call(&s, &call, NULL, e) < 0)
			return err_wrap(e, "%.60s", operands[i]);
	}
	return 0;
}

static int run_rotate(struct cmd_ctx *ctx, const void *flags _unused_, size_t n _unused_,
		      char **operands _unused_, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT;
	struct session_call call = { .method = "POST",
				     .path = VIEW("/v1/vault/rotate"),
				     .timeout_ms = SESSION_CALL_MS };
	struct json *answer;

	if (session_open(&s, &ctx->session, &ctx->arena, e) < 0 || session_call(&s, &call, &answer, e) < 0)
		return -1;
	return answer ? show_json(answer, e) : 0;
}

const struct cmd cmd_secret_set = {
	.name = "secret set",
	.operands = "NAME",
	.summary = "set a secret; its value comes from standard input or a file",
	.opts = SET_OPTS,
	.n_opts = ELEMS(SET_OPTS),
	.flags_size = sizeof(struct secret_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = 1,
	.client = true,
	.json = true,
	.run = run_set,
};

const struct cmd cmd_secret_ls = {
	.name = "secret ls",
	.operands = "",
	.summary = "list the names of secrets",
	.opts = BOX_OPTS,
	.n_opts = ELEMS(BOX_OPTS),
	.flags_size = sizeof(struct secret_flags),
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_ls,
};

const struct cmd cmd_secret_rm = {
	.name = "secret rm",
	.operands = "NAME…",
	.summary = "remove secrets, with all their versions",
	.opts = BOX_OPTS,
	.n_opts = ELEMS(BOX_OPTS),
	.flags_size = sizeof(struct secret_flags),
	.lead = OPTS_ANYWHERE,
	.min = 1,
	.max = SIZE_MAX,
	.client = true,
	.json = true,
	.run = run_rm,
};

const struct cmd cmd_vault_rotate = {
	.name = "vault rotate",
	.operands = "",
	.summary = "make a new master key and seal every secret again with it",
	.lead = OPTS_ANYWHERE,
	.client = true,
	.json = true,
	.run = run_rotate,
};
