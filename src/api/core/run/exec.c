/*
 * Commands in boxes: see run.h.
 */
#include "exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "core_base.h"
#include "events.h"
#include "netns.h"
#include "num.h"
#include "outputs.h"
#include "procs.h"
#include "spec.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define ARGV_MAX      4096
#define ARGV_BYTES    (1024u * 1024)
#define STANDARD_VARS 15
/* PID 1 keeps the time limit; this is for a PID 1 that does not. */
#define GRACE_MS     5000
#define TERMINAL_MAX 10000 /* columns or rows */
#define REST_MS      300   /* before the next login shell, while many boxes are created */
#define AHEAD_MS     30000 /* until PID 1 has started a shell ahead */

/* ---- the request ---- */

static void set_var(struct wire_env_var *vars, size_t *n, struct view name, struct view value)
{
	for (size_t i = 0; i < *n; i++)
		if (view_eq(vars[i].name, name)) {
			vars[i].value = value;
			return;
		}
	vars[(*n)++] = (struct wire_env_var){ .name = name, .value = value };
}

static struct view home_of(struct arena *a, struct view user)
{
	if (view_is(user, "root") || view_is(user, "0"))
		return VIEW("/root");
	if (user.p[0] >= '0' && user.p[0] <= '9')
		return VIEW("/");
	char *p = arena_alloc(a, 6 + user.n);
	if (!p)
		return VIEW("/");
	memcpy(p, "/home/", 6);
	memcpy(p + 6, user.p, user.n);
	return (struct view){ p, 6 + user.n };
}

/* What a user installs (pip, npm) is found; root installs for everybody. */
static struct view path_of(struct arena *a, struct view home)
{
	static const char own[] = "/.local/bin:",
			  path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *p = view_starts(home, "/home/") ? arena_alloc(a, home.n + sizeof(own) + sizeof(path)) : NULL;

	if (!p)
		return VIEW("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	memcpy(p, home.p, home.n);
	memcpy(p + home.n, own, sizeof(own) - 1);
	memcpy(p + home.n + sizeof(own) - 1, path, sizeof(path));
	return (struct view){ p, home.n + sizeof(own) + sizeof(path) - 2 };
}

/* The proxy that the gate has on the box's loopback. */
static void set_proxy(struct wire_env_var *vars, size_t *n)
{
	const struct view http = VIEW("http://" NETNS_PROXY_HOST),
			  socks = VIEW("socks5h://" NETNS_PROXY_HOST), none = VIEW("localhost,127.0.0.1,::1");

	set_var(vars, n, VIEW("HTTP_PROXY"), http);
	set_var(vars, n, VIEW("http_proxy"), http);
	set_var(vars, n, VIEW("HTTPS_PROXY"), http);
	set_var(vars, n, VIEW("https_proxy"), http);
	set_var(vars, n, VIEW("ALL_PROXY"), socks);
	set_var(vars, n, VIEW("all_proxy"), socks);
	set_var(vars, n, VIEW("NO_PROXY"), none);
	set_var(vars, n, VIEW("no_proxy"), none);
}

/* The standard variables, the box's over them, the command's over those. */
int exec_fill_env(struct arena *a, const struct box *b, const struct exec_wish *w, struct wire_start *ret)
{
	const struct box_spec *s = &b->spec;
	struct view user = w->user.n ? w->user : s->user;
	size_t n = 0, max = STANDARD_VARS + s->env.n + w->env.n + w->secrets.n;
	struct wire_env_var *vars = arena_array(a, max, sizeof(*vars));

	if (!vars)
		return -ENOMEM;
	struct view home = home_of(a, user);
	set_var(vars, &n, VIEW("PATH"), path_of(a, home));
	set_var(vars, &n, VIEW("HOME"), home);
	set_var(vars, &n, VIEW("USER"), user);
	set_var(vars, &n, VIEW("LOGNAME"), user);
	set_var(vars, &n, VIEW("LANG"), VIEW("C.UTF-8"));
	/* PID 1 could not write /etc/localtime there. */
	if (s->readonly_root && s->timezone.n)
		set_var(vars, &n, VIEW("TZ"), s->timezone);
	if (b->in->core->config->gate.proxy_variables)
		set_proxy(vars, &n);
	if (w->pty)
		set_var(vars, &n, VIEW("TERM"), VIEW("xterm-256color"));
	for (size_t i = 0; i < s->env.n; i++)
		set_var(vars, &n, s->env.keys[i], s->env.values[i]);
	for (size_t i = 0; i < w->env.n; i++)
		set_var(vars, &n, w->env.keys[i], w->env.values[i]);
	for (size_t i = 0; i < w->secrets.n; i++)
		set_var(vars, &n, w->secrets.keys[i], w->secrets.values[i]);
	ret->env.items = vars;
	ret->env.n = n;
	ret->user = user;
	return 0;
}

static int check_argv(const struct json_strlist *argv, struct err *e)
{
	size_t bytes = 0;

	if (argv->n > ARGV_MAX)
		return err_set(e, ERR_INVALID, "argv has more than %d arguments", ARGV_MAX);
	if (argv->n == 0 || argv->items[0].n == 0)
		return err_set(e, ERR_INVALID, "argv must name a program");
	for (size_t i = 0; i < argv->n; i++) {
		if (argv->items[i].n && memchr(argv->items[i].p, 0, argv->items[i].n))
			return err_set(e, ERR_INVALID, "argv[%zu] holds a NUL", i);
		bytes += argv->items[i].n + 1;
	}
	if (bytes > ARGV_BYTES)
		return err_set(e, ERR_TOO_LARGE, "argv is larger than %u bytes", ARGV_BYTES);
	return 0;
}

static int check_kept(const struct exec_wish *w, struct err *e)
{
	uint64_t number;

	if (w->tag.n && (!spec_is_name(w->tag) || num_u64(w->tag, &number) >= 0))
		return err_set(e, ERR_INVALID,
			       "tag must be 1 to 63 characters of [A-Za-z0-9._-], not all of them digits");
	if (w->pty && (!w->cols || !w->rows || w->cols > TERMINAL_MAX || w->rows > TERMINAL_MAX))
		return err_set(e, ERR_INVALID, "cols and rows must be between 1 and %d", TERMINAL_MAX);
	return 0;
}

int exec_check(const struct config *cfg, const struct exec_wish *w, struct err *e)
{
	if ((w->command.p != NULL) == (w->argv.n > 0))
		return err_set(e, ERR_INVALID, "exactly one of command and argv must be given");
	if (w->command.p && w->command.n == 0)
		return err_set(e, ERR_INVALID, "command must not be empty");
	if ((!w->command.p && check_argv(&w->argv, e) < 0) || spec_check_env(&w->env, "env", e) < 0 ||
	    spec_check_env(&w->secrets, "secrets", e) < 0 ||
	    (w->user.n && spec_check_user(w->user, "user", e) < 0) ||
	    (w->cwd.n && !w->home && spec_check_workdir(w->cwd, "cwd", e) < 0))
		return -1;
	if (w->cwd.n >= SPEC_PATH_MAX || (w->cwd.n && memchr(w->cwd.p, 0, w->cwd.n)))
		return err_set(e, ERR_INVALID, "cwd must have at most %d bytes and no NUL",
			       SPEC_PATH_MAX - 1);
	if (w->timeout_ms > cfg->max.exec_timeout_ms && !w->keep) /* one that is kept may have none at all */
		return err_set(e, ERR_INVALID, "timeout_ms must be between 1 and %llu",
			       (unsigned long long)cfg->max.exec_timeout_ms);
	return check_kept(w, e);
}

static int fill(struct arena *a, const struct box *b, const struct exec_wish *w, bool live,
		struct wire_start *ret)
{
	const struct core *c = b->in->core;
	const struct box_spec *s = &b->spec;
	const struct view bash[] = { VIEW("/bin/bash"), VIEW("-c"), w->command };

	*ret = (struct wire_start){
		.cwd = w->cwd.n || w->home ? w->cwd : s->workdir,
		.stdin_ = w->streams || w->open_stdin || w->input.n > 0,
		.stdout_limit = live ? UINT64_MAX : c->config->max.exec_output_bytes,
		.stderr_limit = live ? UINT64_MAX : c->config->max.exec_output_bytes,
		.keep = w->keep,
		.tag = w->tag,
		.ready = w->keep && w->ready && !w->secrets.n,
		.rest_ms = loop_now(c->loop) < c->rush->until_ms ? REST_MS : 0,
		.kill = w->keep && w->kill,
		.secret = w->secrets.n > 0,
		.ring_bytes = w->keep ? w->ring_bytes : 0,
	};
	if (w->pty) {
		ret->pty = arena_alloc(a, sizeof(*ret->pty));
		if (!ret->pty)
			return -ENOMEM;
		*ret->pty = (struct wire_pty){ .cols = (uint32_t)w->cols, .rows = (uint32_t)w->rows };
	}
	ret->argv.n = w->command.p ? ELEMS(bash) : w->argv.n;
	ret->argv.items = w->argv.items;
	if (w->command.p) {
		ret->argv.items = arena_array(a, ELEMS(bash), sizeof(bash[0]));
		if (!ret->argv.items)
			return -ENOMEM;
		memcpy(ret->argv.items, bash, sizeof(bash));
	}
	return exec_fill_env(a, b, w, ret);
}

/* ---- the answer ---- */

static void release(struct exec *x)
{
	loop_timer_stop(&x->guard);
	outputs_done(&x->kept);
}

static void fail(struct exec *x, const struct err *e)
{
	struct err copy = *e;
	x->core->stats.exec_failures++;
	release(x);
	x->done(x, NULL, &copy);
}

static const char *const signal_names[] = {
	[SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",       [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL",
	[SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",     [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",
	[SIGKILL] = "SIGKILL", [SIGUSR1] = "SIGUSR1",     [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
	[SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM", [SIGSTKFLT] = "SIGSTKFLT",
	[SIGCHLD] = "SIGCHLD", [SIGCONT] = "SIGCONT",     [SIGSTOP] = "SIGSTOP", [SIGTSTP] = "SIGTSTP",
	[SIGTTIN] = "SIGTTIN", [SIGTTOU] = "SIGTTOU",     [SIGURG] = "SIGURG",   [SIGXCPU] = "SIGXCPU",
	[SIGXFSZ] = "SIGXFSZ", [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF", [SIGWINCH] = "SIGWINCH",
	[SIGPOLL] = "SIGPOLL", [SIGPWR] = "SIGPWR",       [SIGSYS] = "SIGSYS",
};

const char *exec_signal_name(uint32_t signo)
{
	if (signo == 0)
		return NULL;
	return signo < ELEMS(signal_names) && signal_names[signo] ? signal_names[signo] : "SIGUNKNOWN";
}

uint32_t exec_signal(struct view name)
{
	uint32_t signo;

	if (num_u32(name, &signo) >= 0)
		return signo <= 64 ? signo : 0;
	for (signo = 1; signo < ELEMS(signal_names); signo++)
		if (signal_names[signo] &&
		    (view_is(name, signal_names[signo]) || view_is(name, signal_names[signo] + 3)))
			return signo;
	return 0;
}

static int on_begun(struct exec *x, const struct frame *f)
{
	struct arena a = ARENA_INIT(64 * 1024);
	struct wire_started started;
	int r = mux_decode(&x->call, f->body, &wire_started_msg, &a, &started);

	arena_done(&a);
	if (r >= 0 && x->on_begun)
		x->on_begun(x, &(struct exec_begun){ .pid = started.pid });
	return r;
}

static int on_attached(struct exec *x, const struct frame *f)
{
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_attached m;
	int r = mux_decode(&x->call, f->body, &wire_attached_msg, &a, &m);

	if (r >= 0)
		r = m.info ? 0 : -EBADMSG;
	if (r >= 0 && x->on_begun) {
		struct proc_info info;
		procs_take(m.info, &info);
		x->on_begun(x, &(struct exec_begun){ .pid = info.pid,
						     .offsets = { m.stdout_offset, m.stderr_offset },
						     .info = &info });
	}
	arena_done(&a);
	return r;
}

static int on_reply(struct call *c, const struct frame *f, int fd)
{
	struct exec *x = CONTAINER(c, struct exec, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_exited exited;

	if (!(f->flags & FRAME_LAST))
		return f->type == WIRE_TYPE_ATTACH ? on_attached(x, f) : on_begun(x, f);
	int r = mux_decode(c, f->body, &wire_exited_msg, &a, &exited);
	arena_done(&a);
	if (r < 0)
		return r;
	struct exec_result result = {
		.exit_code = exited.exit_code,
		.signal = exec_signal_name(exited.signal),
		.truncated = exited.stdout_truncated || exited.stderr_truncated || x->truncated,
		.timed_out = exited.timed_out,
		.oom_killed = exited.oom_killed,
		.memory_mb = exited.memory_limit >> 20,
		.duration_us = exited.duration_us,
	};
	struct box *b = exited.oom_killed ? boxes_by_id(x->core, view_of(x->box)) : NULL;
	if (b && x->call.type == WIRE_TYPE_START)
		events_oom(x->core, b);
	struct output kept = x->kept;
	x->kept = (struct output){ 0 };
	result.out = buf_view(&kept.bytes[0]);
	result.err = buf_view(&kept.bytes[1]);
	result.kept = &kept;
	release(x);
	x->done(x, &result, NULL);
	outputs_done(&kept);
	return 0;
}

static int on_data(struct call *c, unsigned channel, struct view data)
{
	struct exec *x = CONTAINER(c, struct exec, call);

	if (channel == 3) { /* of a shell, to which somebody has attached as a process */
		mux_consumed(c, data.n);
		return 0;
	}
	if (channel < 1 || channel > EXEC_CHANNELS)
		return -EBADMSG;
	if (x->on_output) {
		x->on_output(x, channel, data);
		return 0;
	}
	/* Past the limit that it was given: a PID 1 of another mind. A kept process has none. */
	if (data.n > outputs_room(&x->kept, channel) && !x->keep)
		return -EBADMSG;
	x->truncated |= !outputs_add(&x->kept, channel, data);
	mux_consumed(c, data.n);
	if (x->on_kept)
		x->on_kept(x);
	return 0;
}

static void push_input(struct exec *x)
{
	x->input = view_skip(x->input, mux_send(&x->call, x->input));
	if (x->input.n == 0)
		mux_end(&x->call);
}

static void on_room(struct call *c)
{
	struct exec *x = CONTAINER(c, struct exec, call);

	if (!x->streams)
		push_input(x);
	else if (x->want_end)
		mux_end(c);
	else if (x->on_room)
		x->on_room(x);
}

static void on_attach_fail(struct call *c, const struct err *said)
{
	struct err e;
	guest_read_fail(said, &e);
	fail(CONTAINER(c, struct exec, call), &e);
}

static void on_fail(struct call *c, const struct err *said)
{
	struct err e;
	guest_read_fail(said, &e);
	/* The box is there and the key is good: what cannot be run is what the request named. */
	if (e.code == ERR_NOT_FOUND)
		e.code = ERR_COMMAND;
	else if (e.code == ERR_FORBIDDEN)
		e.code = ERR_EXECUTABLE;
	fail(CONTAINER(c, struct exec, call), &e);
}

static const struct call_ops ops = {
	.on_reply = on_reply,
	.on_data = on_data,
	.on_room = on_room,
	.on_fail = on_fail,
};
static const struct call_ops attach_ops = { .on_reply = on_reply,
					    .on_data = on_data,
					    .on_fail = on_attach_fail };

static void on_guard(struct loop_timer *t)
{
	struct exec *x = CONTAINER(t, struct exec, guard);
	struct err e = { 0 };
	err_set(&e, ERR_TIMEOUT, "the sandbox did not end the command in time");
	guest_cancel(&x->call);
	fail(x, &e);
}

/* ---- operations ---- */

static void consumed(struct exec *x, size_t n)
{
	mux_consumed(&x->call, n);
}

static void abandon(struct exec *x)
{
	guest_cancel(&x->call);
}

static const struct exec_way by_process = { .start = exec_start_in,
					    .consumed = consumed,
					    .abandon = abandon };

static void prepare(struct exec *x, const struct box *b, const struct call_ops *with)
{
	x->core = b->in->core;
	x->way = &by_process;
	x->command = NULL;
	outputs_start(&x->kept, x->core, b->tenant);
	x->want_end = x->keep = x->truncated = false;
	x->call.ops = with;
	x->call.sends = false;
}

/* 0: none, which only a kept process may have. */
static uint64_t time_limit(const struct core *c, const struct exec_wish *w)
{
	return w->timeout_ms || w->keep ? w->timeout_ms : c->config->max.exec_timeout_ms;
}

int exec_start_in(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e)
{
	struct core *c = b->in->core;
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_start start;
	a.secret = w->secrets.n > 0;
	uint64_t timeout = time_limit(c, w);

	if (exec_check(c->config, w, e) < 0 || (!x->on_output && outputs_admit(c, b->tenant, e) < 0))
		return -1;
	prepare(x, b, &ops);
	snprintf(x->box, sizeof(x->box), "%s", b->id);
	x->input = w->input;
	x->streams = w->streams || w->open_stdin;
	x->keep = w->keep;
	int r = fill(&a, b, w, x->on_output != NULL, &start);
	if (r < 0) {
		err_sys(e, ERR_INTERNAL, r, "exec");
	} else {
		x->call.sends = w->streams || w->input.n > 0;
		if (w->secrets.n)
			guest_is_secret(b->in->guest);
		r = guest_call(b->in->guest, &x->call, WIRE_TYPE_START, (uint32_t)MIN(timeout, UINT32_MAX), 0,
			       &wire_start_msg, &start, e);
	}
	arena_done(&a);
	if (r < 0)
		return -1;
	c->stats.execs++;
	if (timeout && !w->keep)
		loop_timer_start(c->loop, &x->guard, timeout + GRACE_MS, on_guard);
	if (mux_is_open(&x->call) && x->call.sends && !x->streams)
		push_input(x);
	return 0;
}

int exec_start(struct core *c, const struct actor *a, struct view ref, const struct exec_wish *w,
	       struct exec *x, struct err *e)
{
	struct box *b = procs_box(c, a, ref, e);
	if (!b)
		return -1;
	const struct exec_way *way = w->shell.p ? c->outputs->by_shell : &by_process;
	return way->start(b, w, x, e);
}

static int on_ahead_reply(struct call *call, const struct frame *f, int fd)
{
	(void)fd;
	if (f->flags & FRAME_LAST)
		free(call);
	return 0;
}

static void on_ahead_fail(struct call *call, const struct err *e)
{
	(void)e;
	free(call);
}

void exec_ahead(struct core *c, const struct box *box, const struct exec_wish *w, uint32_t seconds)
{
	static const struct call_ops ahead_ops = { .on_reply = on_ahead_reply, .on_fail = on_ahead_fail };
	struct box *b = boxes_by_id(c, view_of(box->id));
	struct arena a = ARENA_INIT(256 * 1024);
	struct call *call = b ? calloc(1, sizeof(*call)) : NULL;
	struct wire_start start;
	struct err e;

	if (!call)
		return;
	call->ops = &ahead_ops;
	int r = b->in->early ? -EALREADY : fill(&a, b, w, true, &start);
	start.ahead = seconds;
	b->in->early = r >= 0 && b->in->creation;
	if (r >= 0)
		r = b->in->early ? guest_call_early(b->in->guest, call, WIRE_TYPE_START, AHEAD_MS,
						    &wire_start_msg, &start, &e)
				 : guest_call(b->in->guest, call, WIRE_TYPE_START, 0, AHEAD_MS,
					      &wire_start_msg, &start, &e);
	if (r < 0)
		free(call);
	arena_done(&a);
}

int exec_attach(struct core *c, const struct actor *a, struct view ref, const struct exec_place *p,
		struct exec *x, struct err *e)
{
	struct wire_process_selector who;
	struct wire_attach msg = { .process = &who,
				   .stdout_offset = p->offsets[0],
				   .stderr_offset = p->offsets[1],
				   .from_end = p->from_end,
				   .kill = p->kill };
	struct box *b = procs_box(c, a, ref, e);

	if (!b || procs_select(p->process, &who, e) < 0)
		return -1;
	prepare(x, b, &attach_ops);
	snprintf(x->box, sizeof(x->box), "%s", b->id);
	return guest_call(b->in->guest, &x->call, WIRE_TYPE_ATTACH, 0, 0, &wire_attach_msg, &msg, e);
}

void exec_consumed(struct exec *x, size_t n)
{
	x->way->consumed(x, n);
}

size_t exec_send(struct exec *x, struct view data)
{
	return x->want_end ? 0 : mux_send(&x->call, data);
}

void exec_end(struct exec *x)
{
	x->want_end = true;
	if (mux_is_open(&x->call))
		mux_end(&x->call);
}

void exec_cancel(struct exec *x)
{
	if (!x->core)
		return;
	x->way->abandon(x);
	release(x);
}
