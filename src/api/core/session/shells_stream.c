/*
 * The process behind a shell: its start, its reports, its end. See shells.h. Its reports come from the
 * box and are hostile: records are bounded, and count only for the command that runs.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "num.h"
#include "shells_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define RING_BYTES (256u * 1024)
#define OOM_MARK   1000 /* added to a status: the kernel killed something for memory meanwhile */
#define ATTEMPTS   3    /* to start a shell that runs no command to its end */
#define PROGRAM    "eval \"$__paddock\"" /* shells_loop.c */

/* ---- records ---- */

/* "RID STATUS CWD"; false when it is none of the running command. */
static bool read_header(struct shell *s, struct view v)
{
	struct view status, cwd;
	uint32_t code;

	if (!s->current || v.n < 1 + SHELL_ID || (v.p[0] != 'R' && v.p[0] != 'X') ||
	    !view_is((struct view){ v.p + 1, SHELL_ID }, s->current->id))
		return false;
	(void)view_split(v, ' ', &status);
	status = view_split(status.p ? status : VIEW(""), ' ', &cwd);
	if (!cwd.p || num_u32(status, &code) < 0 || code % OOM_MARK > 255 || code >= 2 * OOM_MARK)
		return false;
	s->kind = v.p[0];
	s->code = code % OOM_MARK;
	s->oom = code >= OOM_MARK;
	s->attempts = 0;
	buf_clear(&s->cwd);
	s->cwd.max = SHELL_FIELD_MAX;
	buf_add(&s->cwd, cwd);
	s->cwd_gone = false;
	return true;
}

/* Neither a record of this command nor a late one of another. */
static bool is_garbage(struct view v)
{
	return v.n < 2 + SHELL_ID || (v.p[0] != 'R' && v.p[0] != 'X') || v.p[1 + SHELL_ID] != ' ';
}

static void on_field(struct shell *s)
{
	struct view v = buf_view(&s->field);
	bool cut = s->field_cut, state = s->wants_state;

	s->field_cut = s->wants_state = false;
	if (s->skips_state) {
		s->skips_state = false;
	} else if (!state && s->current && !s->joined && (cut || is_garbage(v))) {
		shells_break(s);
	} else if (!state) {
		s->wants_state = !cut && !(s->current && s->current->broken) && read_header(s, v);
		s->skips_state =
			!s->wants_state && !cut && !is_garbage(v); /* of a command that was given up */
		s->joined = s->joined && is_garbage(v);
	} else if (!cut && !(s->kind == 'X' && s->current && s->current->secret)) {
		/* (A shell that exits within a command with secrets has them in its environment still.) */
		struct buf old = s->state;
		s->state = s->field; /* nothing is copied */
		s->field = old;
	}
	buf_clear(&s->field);
	buf_shrink(&s->field);
	if (state && s->kind == 'R' && s->current)
		shells_run_finish(s, &(struct shell_ending){ .code = s->code, .oom_killed = s->oom });
}

static int on_control(struct shell *s, struct view data)
{
	mux_consumed(&s->stream, data.n);
	while (data.n && s->phase == SHELL_READY) {
		const char *end = memchr(data.p, 0, data.n);
		size_t n = end ? (size_t)(end - data.p) : data.n;
		s->field.max = SHELL_FIELD_MAX;
		if (s->field_cut || n > buf_room(&s->field) || buf_append(&s->field, data.p, n) < 0)
			s->field_cut = true;
		if (end)
			on_field(s);
		data = view_skip(data, end ? n + 1 : n);
	}
	return 0;
}

/* ---- the stream ---- */

void shells_stream_forget(struct shell *s)
{
	s->phase = SHELL_NONE;
	s->pid = 0;
	if (s->current)
		s->current->held = 0; /* that window is gone */
	buf_clear(&s->field);
	s->field_cut = s->wants_state = s->skips_state = s->joined = false;
}

/* The process has ended: with it ends the running command, and another shell takes its place. */
static void on_exited(struct shell *s, const struct wire_exited *x)
{
	struct shell_command *m = s->current;
	bool own = m && m->own;

	shells_stream_forget(s);
	if (!m) {
		s->lost = true; /* somebody killed it */
		if (!list_empty(&s->queue))
			shells_stream_begin(s);
		return;
	}
	if (own) { /* what we ran killed it: once more without that */
		buf_clear(&s->state);
		s->lost = true;
	}
	bool broken = m->broken;
	shells_stream_begin(s);
	if (s->current == m && broken) {
		struct err e = { 0 };
		err_set(&e, ERR_STATE,
			"the shell was broken: a program wrote to its control channel. The exit code of the "
			"command is unknown, and the shell was started again");
		s->lost = true;
		shells_lose(s, m, &e);
	} else if (s->current == m) {
		shells_run_finish(s, &(struct shell_ending){ .code = x->exit_code,
							     .signal = x->signal,
							     .restarted = true,
							     .oom_killed = x->oom_killed });
	}
}

/* State that a new process gets: cwd by Start, exported variables by this. */
static void restore(struct shell *s)
{
	struct buf text = BUF_INIT(SHELL_FIELD_MAX + 64);

	if (buf_len(&s->state) == 0)
		return;
	buf_puts(&text, "{ ");
	buf_add(&text, buf_view(&s->state));
	buf_puts(&text, "} 2>/dev/null");
	if (text.bad || shells_run_own(s, buf_view(&text)) < 0)
		log_warn("sandbox %s: the state of shell %s is lost", s->box->id, s->name);
	buf_done(&text);
}

static int on_started(struct shell *s, const struct frame *f)
{
	struct arena a = ARENA_INIT(4096);
	struct wire_started m;
	int r = mux_decode(&s->stream, f->body, &wire_started_msg, &a, &m);

	arena_done(&a);
	if (r < 0 || s->phase != SHELL_STARTING)
		return -EBADMSG;
	/* Much smaller than the window, which is untouched. bash reads no more of a pipe than it runs. */
	if (!s->made.pty && mux_send_on(&s->stream, 0, VIEW(PROGRAM "\n")) != sizeof(PROGRAM))
		return -EBADMSG;
	s->pid = m.pid;
	s->made_new = false;
	s->started_ms = clock_wall_ms();
	s->phase = SHELL_READY;
	restore(s);
	shells_run_next(s);
	return 0;
}

/* A shell from before our time. What it is doing it may finish; its state comes with an answer of our own. */
static int on_attached(struct shell *s, const struct frame *f)
{
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_attached m;
	int r = mux_decode(&s->stream, f->body, &wire_attached_msg, &a, &m);

	if (r >= 0)
		r = m.info && s->phase == SHELL_STARTING ? 0 : -EBADMSG;
	if (r >= 0) {
		s->pid = m.info->pid;
		s->started_ms = m.info->started_ms;
		s->phase = SHELL_READY;
		s->joined = true; /* perhaps in the middle of a record */
		s->made.user = arena_view(&s->arena, m.info->user);
		if (shells_run_own(s, VIEW(":")) < 0)
			log_warn("sandbox %s: the state of shell %s is not known", s->box->id, s->name);
		shells_run_next(s);
	}
	arena_done(&a);
	return r;
}

static int on_reply(struct call *c, const struct frame *f, int fd)
{
	struct shell *s = CONTAINER(c, struct shell, stream);
	struct arena a = ARENA_INIT(4096);
	struct wire_exited exited;

	if (!(f->flags & FRAME_LAST))
		return f->type == WIRE_TYPE_ATTACH ? on_attached(s, f) : on_started(s, f);
	int r = mux_decode(c, f->body, &wire_exited_msg, &a, &exited);
	arena_done(&a);
	if (r >= 0)
		on_exited(s, &exited);
	return r;
}

static int on_data(struct call *c, unsigned channel, struct view data)
{
	struct shell *s = CONTAINER(c, struct shell, stream);

	if (s->phase != SHELL_READY || channel < 1 || channel > 3)
		return -EBADMSG;
	return channel == 3 ? on_control(s, data) : shells_run_output(s, channel, data);
}

static void on_room(struct call *c)
{
	struct shell *s = CONTAINER(c, struct shell, stream);
	if (s->current && s->phase == SHELL_READY && !mux_is_open(&s->current->file))
		shells_run_push(s);
}

static void attach(struct shell *s);

static void on_fail(struct call *c, const struct err *said)
{
	struct shell *s = CONTAINER(c, struct shell, stream);
	bool starting = s->phase == SHELL_STARTING && c->type == WIRE_TYPE_START;
	struct err e;

	guest_read_fail(said, &e);
	shells_stream_forget(s);
	if (starting && e.code == ERR_CONFLICT && !s->made_new) {
		attach(s);
		return;
	}
	if (starting && e.code == ERR_INVALID && buf_len(&s->cwd) && !s->cwd_gone) {
		s->cwd_gone = true;
		shells_stream_begin(s);
		return;
	}
	if (starting && e.code == ERR_NOT_FOUND)
		err_set(&e, ERR_UNSUPPORTED, "a shell needs bash, which this sandbox does not have");
	else if (e.code == ERR_NOT_FOUND || e.code == ERR_FORBIDDEN)
		e.code = ERR_INVALID;
	if (starting && e.code == ERR_CONFLICT)
		err_set(&e, ERR_CONFLICT, "there is a shell named \"%s\" already", s->name);
	if (s->made_new)
		shells_drop(s, &e); /* it never was */
	else
		shells_run_fail_all(s, &e);
}

static const struct call_ops stream_ops = {
	.on_reply = on_reply, .on_data = on_data, .on_room = on_room, .on_fail = on_fail
};

static void attach(struct shell *s)
{
	struct wire_process_selector who = { .tag = view_of(s->tag) };
	struct wire_attach msg = { .process = &who, .from_end = true };
	struct err e = { 0 };

	s->phase = SHELL_STARTING;
	s->stream.ops = &stream_ops;
	if (guest_call(s->box->in->guest, &s->stream, WIRE_TYPE_ATTACH, 0, 0, &wire_attach_msg, &msg, &e) <
	    0) {
		shells_stream_forget(s);
		shells_run_fail_all(s, &e);
	}
}

static int add_loop(struct arena *a, struct wire_start *start)
{
	struct wire_env_var *env = arena_array(a, start->env.n + 1, sizeof(*env));

	if (!env)
		return -ENOMEM;
	memcpy(env, start->env.items, start->env.n * sizeof(*env));
	env[start->env.n++] = (struct wire_env_var){ VIEW("__paddock"), view_of(shells_loop) };
	start->env.items = env;
	return 0;
}

void shells_stream_begin(struct shell *s)
{
	/* One that reads its program from stdin is plain `bash` for who types ps. If that were a terminal, it
	 * would be an interactive one: so with a terminal, another one takes its place that gets the terminal
	 * as 252. */
	struct view argv[] = { VIEW("bash"), VIEW("--norc"), VIEW("--noprofile"), VIEW("-c"),
			       VIEW("exec bash 252<&0 <<<'" PROGRAM "'") };
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_start start = { .argv = { argv, s->made.pty ? ELEMS(argv) : 1 },
				    .stdin_ = !s->made.pty,
				    .keep = true,
				    .control = true,
				    .wait_reader = true,
				    .ring_bytes = RING_BYTES,
				    .tag = view_of(s->tag) };
	struct wire_pty size = { .cols = (uint32_t)s->made.cols, .rows = (uint32_t)s->made.rows };
	struct err e = { 0 };

	if (s->made.pty)
		start.pty = &size;
	if (s->attempts++ == ATTEMPTS) {
		s->attempts = 0;
		shells_stream_forget(s);
		err_set(&e, ERR_UNAVAILABLE, "the shell ends as soon as it has started");
		shells_run_fail_all(s, &e);
		return;
	}
	start.cwd = buf_len(&s->cwd) && !s->cwd_gone ? buf_view(&s->cwd)
		    : s->made.cwd.n                  ? s->made.cwd
						     : s->box->spec.workdir;
	s->phase = SHELL_STARTING;
	s->stream.ops = &stream_ops;
	int r = exec_fill_env(&a, s->box, &s->made, &start);
	if (r == 0)
		r = add_loop(&a, &start);
	if (r < 0)
		err_sys(&e, ERR_INTERNAL, r, "shell");
	else
		r = guest_call(s->box->in->guest, &s->stream, WIRE_TYPE_START, 0, 0, &wire_start_msg, &start,
			       &e);
	arena_done(&a);
	if (r < 0) {
		shells_stream_forget(s);
		shells_run_fail_all(s, &e);
	}
}

/* ---- the end ---- */

void shells_drop(struct shell *s, const struct err *why)
{
	list_del(&s->link);
	s->phase = SHELL_NONE;
	guest_cancel(&s->stream);
	guest_cancel(&s->poke);
	guest_cancel(&s->reap);
	shells_run_fail_all(s, why);
	loop_timer_stop(&s->timer);
	buf_done(&s->cwd);
	buf_done(&s->state);
	buf_done(&s->field);
	late_done(&s->late);
	arena_done(&s->arena);
	free(s);
}
