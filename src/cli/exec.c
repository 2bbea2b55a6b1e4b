/*
 * POST /v1/sandboxes/{id}/exec. The answer is read whole before anything is
 * written, so output is exact and in the order stdout, stderr.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "create.h"
#include "exec.h"
#include "fd.h"
#include "show.h"
#include "text.h"

#include "poison.h"

#define INPUT_MAX  (64u << 20)
#define OUTPUT_MAX (512u << 20)
#define GRACE_MS   30000 /* for the answer, after the command's own time is up */

int exec_read_input(struct buf *b, struct view *ret, struct err *e)
{
	*ret = VIEW_NONE;
	if (isatty(STDIN_FILENO))
		return 0;
	buf_init(b, INPUT_MAX);
	for (;;) {
		char *p = buf_reserve(b, MIN(64u << 10, buf_room(b)));
		ssize_t n;

		if (!p || buf_room(b) == 0)
			return err_set(e, ERR_TOO_LARGE,
				       "standard input is larger than %u MiB; copy a file in instead",
				       INPUT_MAX >> 20);
		n = read(STDIN_FILENO, p, MIN(64u << 10, buf_room(b)));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EBADF)
			return err_sys(e, ERR_INTERNAL, errno, "cannot read standard input");
		if (n <= 0)
			break;
		buf_commit(b, (size_t)n);
	}
	if (buf_len(b) > 0)
		*ret = buf_view(b);
	return 0;
}

int exec_check(const struct exec_spec *x, struct err *e)
{
	for (size_t i = 0; x->argv[i]; i++)
		if (create_check_text(x->argv[i], "the command", e) < 0)
			return -1;
	if (create_check_text(x->user, "--user", e) < 0 || create_check_text(x->workdir, "--workdir", e) < 0)
		return -1;
	for (size_t i = 0; x->env && i < x->env->n; i++)
		if (create_check_text(x->env->items[i], "--env", e) < 0)
			return -1;
	if (x->input.p && (!text_is_utf8(x->input) || memchr(x->input.p, '\0', x->input.n)))
		return err_set(e, ERR_INVALID,
			       "standard input is not text; copy it in with `paddock cp - ID:PATH`");
	return 0;
}

static void put_request(struct json_out *o, const struct exec_spec *x)
{
	json_out_object(o);
	json_out_key(o, "argv");
	json_out_array(o);
	for (size_t i = 0; x->argv[i]; i++)
		json_out_str(o, view_of(x->argv[i]));
	json_out_end(o, ']');
	if (x->user)
		json_out_kz(o, "user", x->user);
	if (x->workdir)
		json_out_kz(o, "cwd", x->workdir);
	if (x->env)
		create_pairs(o, "env", x->env);
	if (x->timeout_ms)
		json_out_ku64(o, "timeout_ms", x->timeout_ms);
	if (x->input.p)
		json_out_kstr(o, "stdin", x->input);
	json_out_end(o, '}');
}

static int write_output(const struct json *answer, const char *key, int fd, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(OUTPUT_MAX);
	struct view text = session_text(answer, key);

	if (!view_is(session_text(answer, "encoding"), "base64"))
		return show_bytes(fd, text, e);
	if (text_unbase64(&b, text) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has bad base64 in %s", key);
	return show_bytes(fd, buf_view(&b), e);
}

static bool is_true(const struct json *answer, const char *key)
{
	const struct json *j = json_get(answer, key);

	return j && j->type == JSON_BOOL && j->boolean;
}

/* A signal's number; it may be given as such or by name ("SIGKILL", "KILL"). */
static int signal_number(const struct json *j)
{
	int64_t n;

	if (!j)
		return 0;
	if (json_to_i64(j, &n) == 0)
		return n > 0 && n < 128 ? (int)n : 0;
	if (j->type != JSON_STRING)
		return 0;
	for (int i = 1; i < NSIG; i++) {
		const char *name = sigabbrev_np(i);

		if (name && view_is(view_starts(j->text, "SIG") ? view_skip(j->text, 3) : j->text, name))
			return i;
	}
	return 0;
}

static int exit_code(const struct json *answer, struct err *e)
{
	const struct json *code = json_get(answer, "exit_code");
	int sig = signal_number(json_get(answer, "signal"));
	int64_t n;

	if (is_true(answer, "timed_out")) {
		fputs("paddock: the command ran out of time and was killed\n", stderr);
		return EXEC_TIMED_OUT;
	}
	if (sig)
		return 128 + sig;
	if (!code || json_to_i64(code, &n) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon did not say how the command ended");
	return (int)(n & 0xff);
}

int exec_run(struct session *s, const struct exec_spec *x, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	_cleanup_(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
	struct session_call call = { .method = "POST",
				     .timeout_ms = x->timeout_ms ? x->timeout_ms + GRACE_MS : 0 };
	struct json *answer;
	struct json_out o;

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, x->box, e) < 0)
		return -1;
	buf_puts(&path, "/exec");
	json_out_init(&o, &body);
	put_request(&o, x);
	if (body.bad || path.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	call.path = buf_view(&path);
	call.body = buf_view(&body);
	if (session_call(s, &call, &answer, e) < 0)
		return -1;
	if (!answer || answer->type != JSON_OBJECT)
		return err_set(e, ERR_INTERNAL, "the daemon did not say how the command ended");
	if (write_output(answer, "stdout", STDOUT_FILENO, e) < 0 ||
	    write_output(answer, "stderr", STDERR_FILENO, e) < 0)
		return -1;
	if (is_true(answer, "truncated"))
		fputs("paddock: the output was too long and is cut\n", stderr);
	return exit_code(answer, e);
}
