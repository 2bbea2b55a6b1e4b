/*
 * One command, streamed: POST …/processes (or …/exec for a shell) answers with
 * lines of JSON as the output comes. Standard input goes by a second connection,
 * from a child of ours: reading it, sending it and waiting for the process each
 * take their own time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "create.h"
#include "exec.h"
#include "fd.h"
#include "num.h"
#include "ref.h"
#include "show.h"
#include "terminal.h"
#include "text.h"

#include "poison.h"

#define OUTPUT_MAX    (256u << 20)
#define LINE_MAX_SIZE (2u << 20) /* a piece of output, escaped or in base64 */
#define LINE_ARENA    (16u << 20)
#define START_MS      60000
#define INPUT_MAX     (64u << 20)

bool exec_has_input(void)
{
	return !isatty(STDIN_FILENO) && fcntl(STDIN_FILENO, F_GETFD) >= 0;
}

bool exec_can_read(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0;
}

int exec_check(const struct exec_spec *x, struct err *e)
{
	for (size_t i = 0; x->argv[i]; i++)
		if (create_check_text(x->argv[i], "the command", e) < 0)
			return -1;
	if (create_check_text(x->user, "--user", e) < 0 ||
	    create_check_text(x->workdir, "--workdir", e) < 0 ||
	    create_check_text(x->shell, "--shell", e) < 0 || create_check_text(x->tag, "--tag", e) < 0)
		return -1;
	for (size_t i = 0; x->env && i < x->env->n; i++)
		if (create_check_text(x->env->items[i], "--env", e) < 0)
			return -1;
	for (size_t i = 0; x->secret_env && i < x->secret_env->n; i++)
		if (create_check_text(x->secret_env->items[i], "--secret-env", e) < 0)
			return -1;
	if (x->shell && x->argv[1])
		return err_set(e, ERR_INVALID, "a shell takes one argument: the command, quoted");
	if (x->shell && (x->user || x->workdir || (x->env && x->env->n)))
		return err_set(e, ERR_INVALID, "--user, --workdir and --env are the shell's own affair");
	if (x->tty && x->shell)
		return err_set(e, ERR_INVALID, "--tty and --shell exclude each other");
	if (x->detach && (x->tty || x->shell))
		return err_set(e, ERR_INVALID, "--detach excludes --tty and --shell");
	if (x->tag && x->shell)
		return err_set(e, ERR_INVALID,
			       "--tag names a process; a command in a shell is none of its own");
	if (x->tty)
		return terminal_check(e);
	return 0;
}

/* ---- the request ---- */

static int read_text_input(struct buf *b, struct err *e)
{
	buf_init(b, INPUT_MAX);
	for (;;) {
		char *p = buf_reserve(b, MIN(64u << 10, buf_room(b)));
		ssize_t n;

		if (!p || buf_room(b) == 0)
			return err_set(e, ERR_TOO_LARGE, "standard input is larger than %u MiB",
				       INPUT_MAX >> 20);
		n = read(STDIN_FILENO, p, MIN(64u << 10, buf_room(b)));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_INTERNAL, errno, "cannot read standard input");
		if (n == 0)
			break;
		buf_commit(b, (size_t)n);
	}
	if (!text_is_utf8(buf_view(b)) || (buf_len(b) && memchr(buf_view(b).p, 0, buf_len(b))))
		return err_set(e, ERR_INVALID,
			       "standard input is not text, which is all that a shell's command takes");
	return 0;
}

static int put_shell_request(struct json_out *o, const struct exec_spec *x, struct err *e)
{
	_cleanup_(buf_done) struct buf input = { 0 };

	json_out_kz(o, "command", x->argv[0]);
	json_out_kz(o, "shell", x->shell);
	if (!x->input)
		return 0;
	if (read_text_input(&input, e) < 0)
		return -1;
	if (buf_len(&input))
		json_out_kstr(o, "stdin", buf_view(&input));
	return 0;
}

static void put_process_request(struct json_out *o, const struct exec_spec *x)
{
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
	if (x->tag)
		json_out_kz(o, "tag", x->tag);
	if (x->input && !x->tty)
		json_out_kbool(o, "stdin", true);
	if (x->tty)
		terminal_put_size(o, "pty");
}

static int put_request(struct buf *body, const struct exec_spec *x, struct err *e)
{
	struct json_out o;

	json_out_init(&o, body);
	json_out_object(&o);
	if (!x->shell)
		put_process_request(&o, x);
	else if (put_shell_request(&o, x, e) < 0)
		return -1;
	if (x->secret_env)
		create_secrets(&o, x->secret_env, NULL);
	if (x->timeout_ms)
		json_out_ku64(&o, "timeout_ms", x->timeout_ms);
	if (!x->tty && !x->detach)
		json_out_kbool(&o, "kill_on_disconnect", true);
	json_out_end(&o, '}');
	return 0;
}

/* ---- standard input ---- */

/* Sends ours to the process; that it wants no more of it is no failure. */
_noreturn_ static void feed(const struct session *s, const char *box, uint64_t pid)
{
	struct client c;
	struct buf path = BUF_INIT(8192);
	struct client_request rq = { .method = "POST",
				     .content_type = "application/octet-stream",
				     .streamed = true,
				     .body_fd = STDIN_FILENO,
				     .body_size = -1 };
	struct response r;
	struct err e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_init(&c, &s->client.url, s->client.key);
	c.ca = s->client.ca;
	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, ref_id(s, box), &e) < 0)
		_exit(1);
	buf_printf(&path, "/processes/%llu/stdin?close=1", (unsigned long long)pid);
	rq.path = buf_view(&path);
	_exit(path.bad || client_send(&c, &rq, &r, &e) < 0 ? 1 : 0);
}

/* ---- the answer ---- */

struct running {
	struct session *s;
	const struct exec_spec *x;
	pid_t feeder; /* 0: none */
	int code;     /* -1: not yet */
};

static bool is_true(const struct json *j, const char *key)
{
	const struct json *v = json_get(j, key);

	return v && v->type == JSON_BOOL && v->boolean;
}

static int on_start(struct running *run, const struct json *event, struct err *e)
{
	const struct json *j = json_get(event, "pid");
	uint64_t pid;

	if (!j || json_to_u64(j, &pid) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon did not say what it started");
	if (run->x->interrupt) {
		run->x->interrupt->pid = pid;
		run->x->interrupt->shell = run->x->shell;
	}
	if (!run->x->input || run->x->shell)
		return 0;
	run->feeder = fork();
	if (run->feeder < 0)
		return err_sys(e, ERR_INTERNAL, errno, "fork");
	if (run->feeder == 0)
		feed(run->s, run->x->box, pid);
	return 0;
}

int exec_put_output(const struct json *event, int fd, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(OUTPUT_MAX);
	struct view text = session_text(event, "data");

	if (!view_is(session_text(event, "encoding"), "base64"))
		return show_bytes(fd, text, e);
	if (text_unbase64(&b, text) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon's answer has bad base64");
	return show_bytes(fd, buf_view(&b), e);
}

static int on_exit_event(struct running *run, const struct json *event, struct err *e)
{
	const struct json *code = json_get(event, "exit_code");
	int64_t n;

	if (is_true(event, "timed_out")) {
		fputs("paddock: the command ran out of time and was killed\n", stderr);
		run->code = EXEC_TIMED_OUT;
		return 0;
	}
	if (!code || json_to_i64(code, &n) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon did not say how the command ended");
	if (is_true(event, "oom_killed")) {
		const struct json *limit = json_get(event, "memory_limit_mb");
		uint64_t mb = 0;
		if (limit && json_to_u64(limit, &mb) == 0)
			fprintf(stderr,
				"paddock: out of memory: the sandbox's limit is %llu MiB (--memory)\n",
				(unsigned long long)mb);
	}
	if (is_true(event, "restarted"))
		fputs("paddock: the shell has ended; the next command gets a new one\n", stderr);
	run->code = run->x->interrupt && run->x->interrupt->killed ? interrupt_code(run->x->interrupt)
								   : (int)(n & 0xff);
	return 0;
}

static int on_event(struct running *run, struct view line, struct err *e)
{
	struct arena a = ARENA_INIT(LINE_ARENA);
	struct json *event;
	int r = json_parse(&a, line, &event, e);
	struct view type = r < 0 ? VIEW("") : session_text(event, "type");

	if (r < 0)
		err_wrap(e, "the daemon's answer");
	else if (view_is(type, "start"))
		r = on_start(run, event, e);
	else if (view_is(type, "stdout"))
		r = exec_put_output(event, STDOUT_FILENO, e);
	else if (view_is(type, "stderr"))
		r = exec_put_output(event, STDERR_FILENO, e);
	else if (view_is(type, "exit"))
		r = on_exit_event(run, event, e);
	else if (view_is(type, "error"))
		r = err_set(e, ERR_UNAVAILABLE, "%.*s", (int)MIN(session_text(event, "message").n, 180u),
			    session_text(event, "message").p);
	arena_done(&a);
	return r;
}

/* Whole lines of what has come; what is left of it stays. */
static int take_lines(struct running *run, struct buf *b, struct err *e)
{
	struct view all = buf_view(b);
	size_t used = 0;
	const char *end;

	while (used < all.n && (end = memchr(all.p + used, '\n', all.n - used))) {
		struct view line = { all.p + used, (size_t)(end - all.p) - used };

		if (line.n && on_event(run, line, e) < 0)
			return -1;
		used += line.n + 1;
	}
	buf_consume(b, used);
	return 0;
}

static int read_answer(struct running *run, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(LINE_MAX_SIZE);
	struct view data;
	int r;

	while ((r = client_read(&run->s->client, &data, e)) > 0)
		if (buf_add(&b, data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the daemon's answer has a line that is too long");
		else if (take_lines(run, &b, e) < 0)
			return -1;
	if (r < 0)
		return -1;
	return run->code >= 0 ? 0 : err_set(e, ERR_UNAVAILABLE, "the daemon's answer broke off");
}

static int run_streamed(struct session *s, const struct exec_spec *x, struct client_request *rq,
			struct err *e)
{
	struct running run = { .s = s, .x = x, .code = -1 };
	struct response answer;
	int r;

	rq->accept = "application/x-ndjson";
	if (x->interrupt)
		interrupt_watch(x->interrupt, s, x->box);
	r = session_send(s, rq, &answer, e);
	if (r >= 0)
		r = read_answer(&run, e);
	if (x->interrupt)
		interrupt_leave(x->interrupt);
	if (run.feeder > 0) {
		(void)kill(run.feeder, SIGKILL);
		while (waitpid(run.feeder, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r < 0 ? -1 : run.code;
}

/* Starts what goes on without this connection. */
static int start(struct session *s, const struct client_request *rq, uint64_t *ret_pid, struct err *e)
{
	const struct session_call call = {
		.method = "POST", .path = rq->path, .body = rq->body, .timeout_ms = START_MS
	};
	const struct json *pid;
	struct json *answer;

	if (session_call(s, &call, &answer, e) < 0)
		return -1;
	pid = answer ? json_get(answer, "pid") : NULL;
	if (!pid || json_to_u64(pid, ret_pid) < 0)
		return err_set(e, ERR_INTERNAL, "the daemon did not say what it started");
	return 0;
}

static int run_tty(struct session *s, const struct exec_spec *x, const struct client_request *rq,
		   struct err *e)
{
	struct terminal_wish w = { .box = x->box, .kill = true };

	return start(s, rq, &w.process, e) < 0 ? -1 : terminal_run(s, &w, e);
}

static int run_detached(struct session *s, const struct client_request *rq, struct err *e)
{
	uint64_t pid;

	if (start(s, rq, &pid, e) < 0)
		return -1;
	printf("%llu\n", (unsigned long long)pid);
	return 0;
}

int exec_follow(struct session *s, const char *box, const char *process, bool input, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct client_request rq = { .method = "GET", .timeout_ms = START_MS };
	const struct exec_spec x = { .box = box, .input = input };

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, box, e) < 0)
		return -1;
	buf_puts(&path, "/processes/");
	if (session_segment(&path, process, e) < 0)
		return -1;
	buf_puts(&path, "/output?follow=1");
	if (path.bad)
		return err_set(e, ERR_INVALID, "the name is too long");
	rq.path = buf_view(&path);
	return run_streamed(s, &x, &rq, e);
}

int exec_run(struct session *s, const struct exec_spec *x, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	_cleanup_(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
	struct client_request rq = { .method = "POST",
				     .content_type = "application/json",
				     .timeout_ms = START_MS };

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, x->box, e) < 0 || put_request(&body, x, e) < 0)
		return -1;
	buf_puts(&path, x->shell ? "/exec" : "/processes");
	if (body.bad || path.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	rq.path = buf_view(&path);
	rq.body = buf_view(&body);
	/* A command that waits in a shell's queue answers when its turn comes. */
	if (x->shell)
		rq.timeout_ms = 0;
	if (x->detach)
		return run_detached(s, &rq, e);
	return x->tty ? run_tty(s, x, &rq, e) : run_streamed(s, x, &rq, e);
}
