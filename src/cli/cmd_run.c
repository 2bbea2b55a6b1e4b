/*
 * paddock run: a fresh sandbox, one command in it, and the sandbox is gone, however
 * the command ended. The sandbox is tied to a connection of ours: when this process
 * dies, by whatever signal, the daemon removes it. From the moment that there is a
 * sandbox, SIGINT, SIGTERM and SIGHUP come as a readable fd (interrupt.h): they end
 * the copying of volumes, or go to the command; then we remove the sandbox.
 */
#include <stdio.h>

#include "cmd.h"
#include "create.h"
#include "exec.h"
#include "volume.h"

#include "poison.h"

struct run_flags {
	struct create_flags create; /* first: create_opts has offsets into it */
	uint64_t timeout_ms;
	bool interactive, tty;
};

static const struct opt OPTS[] = {
	{ "timeout", 0, OPT_MS, offsetof(struct run_flags, timeout_ms), "TIME",
	  "kill the command after this time" },
	{ "interactive", 'i', OPT_FLAG, offsetof(struct run_flags, interactive), NULL,
	  "pass standard input on to the command" },
	{ "tty", 't', OPT_FLAG, offsetof(struct run_flags, tty), NULL, "give the command a terminal: ours" },
};

static int run_in(struct session *s, const struct run_flags *f, const struct json *box,
		  const struct exec_spec *x, struct interrupt *in, struct err *e)
{
	struct err gone = { 0 };
	int code;

	s->client.cancel_fd = in->fd;
	code = volume_copy_all(s, box, &f->create.volumes, e);
	if (code >= 0)
		code = exec_run(s, x, e);
	s->client.cancel_fd = -1;
	if (code < 0)
		client_close(&s->client); /* it may be in the middle of an answer */
	if (session_delete(s, "/v1/sandboxes/", x->box, &gone) < 0 && gone.code != ERR_NOT_FOUND)
		fprintf(stderr, "paddock: the sandbox %s could not be removed: %s\n", x->box, gone.msg);
	return code < 0 && interrupt_code(in) ? interrupt_code(in) : code;
}

/* ---- the image's own command ---- */

static size_t add_words(struct arena *a, const struct json *list, char **to, size_t n)
{
	for (size_t i = 0; list && i < list->n; i++, n++)
		to[n] = arena_str(a, list->items[i].text);
	return n;
}

/* Entry point and arguments of the image that the sandbox was made from, as docker runs it. */
static int image_command(struct session *s, const struct json *box, char ***ret, struct err *e)
{
	const struct session_call call = { .method = "GET",
					   .path = VIEW("/v1/images"),
					   .timeout_ms = SESSION_CALL_MS };
	struct view digest = session_text(box, "image_digest");
	const struct json *list, *image = NULL, *words[2];
	struct json *answer;
	size_t n = 0;

	if (session_call(s, &call, &answer, e) < 0)
		return -1;
	list = answer ? json_get(answer, "images") : NULL;
	for (size_t i = 0; list && i < list->n; i++)
		if (view_eq(session_text(&list->items[i], "digest"), digest))
			image = &list->items[i];
	words[0] = image ? json_get(image, "entrypoint") : NULL;
	words[1] = image ? json_get(image, "cmd") : NULL;
	for (size_t i = 0; i < ELEMS(words); i++)
		n += words[i] ? words[i]->n : 0;
	if (!n)
		return err_set(e, ERR_INVALID,
			       "the image %.*s says no command: give one, as in paddock run -- ls",
			       VIEW_ARG(view_head(session_text(box, "image"), 60)));
	*ret = arena_array(s->arena, n + 1, sizeof(**ret));
	if (!*ret)
		return err_set(e, ERR_INTERNAL, "out of memory");
	n = add_words(s->arena, words[0], *ret, 0);
	n = add_words(s->arena, words[1], *ret, n);
	(*ret)[n] = NULL;
	return 0;
}

static int run(struct cmd_ctx *ctx, const void *flags, size_t n _unused_, char **operands, struct err *e)
{
	_cleanup_(session_done) struct session s = SESSION_INIT, holder = SESSION_INIT;
	_cleanup_(interrupt_done) struct interrupt in = INTERRUPT_INIT;
	const struct run_flags *f = flags;
	struct exec_spec x = { .argv = operands,
			       .timeout_ms = f->timeout_ms,
			       .input = f->interactive && exec_can_read(),
			       .tty = f->tty };
	struct json *box;

	if (exec_check(&x, e) < 0 || volume_check_all(&f->create.volumes, e) < 0 ||
	    session_open(&s, &ctx->session, &ctx->arena, e) < 0 ||
	    session_open(&holder, &ctx->session, &ctx->arena, e) < 0)
		return -1;
	if (interrupt_catch(&in, e) < 0)
		return -1;
	x.interrupt = x.tty ? NULL : &in;
	/* Not to be interrupted: the box goes by its name, which is more than by our death. */
	if (create_tied(&holder, &f->create, &box, e) < 0)
		return -1;
	x.box = arena_str(&ctx->arena, session_text(box, "id"));
	if (!x.box)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (!operands[0]) {
		char **argv;

		if (image_command(&s, box, &argv, e) < 0)
			return -1;
		x.argv = argv;
	}
	return run_in(&s, f, box, &x, &in, e);
}

const struct cmd cmd_run = {
	.name = "run",
	.operands = "[--] [COMMAND [ARGUMENT…]]",
	.summary = "run one command in a fresh sandbox, then remove the sandbox",
	.help = "Without a command it runs the entry point and arguments that an imported Docker or\n"
		"OCI image has. The exit code is the command's: 128 and the signal's number if a signal "
		"ended\n"
		"it, 124 after --timeout, 125 when the daemon could not do its part, 126 when the\n"
		"command cannot be executed, 127 when there is none. Standard input is left alone\n"
		"without -i. Ctrl-C, SIGTERM and SIGHUP go to the command, which is killed if it has\n"
		"not ended five seconds later; a second Ctrl-C kills it at once. When this process\n"
		"dies, the sandbox goes, too.",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.more = create_opts,
	.n_more = CREATE_RUN_OPTS,
	.flags_size = sizeof(struct run_flags),
	.min = 0,
	.max = SIZE_MAX,
	.client = true,
	.failed = CMD_DAEMON_FAILED,
	.run = run,
};
