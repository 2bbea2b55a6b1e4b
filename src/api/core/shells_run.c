/*
 * The process behind a shell: see shells.h. Whatever it says is the box's and
 * hostile: records are bounded, and count for the command that runs only.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_state.h"
#include "log.h"
#include "num.h"
#include "rnd.h"
#include "text.h"
#include "shells_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define RING_BYTES     (256u * 1024)
#define FIELD_MAX      (1024u * 1024) /* of a record: cwd, or all exported variables */
#define COMMAND_EXTRA  256            /* header */
#define WRAPPED_MAX    (64u * 1024 * 1024)
#define SIGNAL_ABANDON 64             /* SIGRTMAX: the trap of shells_loop.c */
#define STRIKE_MS      50
#define STRIKES        10   /* that a command gets before the shell is killed */
#define DEATH_MS       5000 /* for PID 1 to tell of the end */
#define ATTEMPTS       3 /* to start a shell that runs no command to its end */

static void begin(struct shell *s);
static void next(struct shell *s);

/* ---- commands ---- */

/* A='…' builtin command eval '…': of all forms the one whose variables are in the environment of what the
 * command starts, end with it however it ends, and do not stay after `export` either. */
static void wrap(struct buf *out, struct view text, const struct json_strmap *secrets)
{
	for (size_t i = 0; i < secrets->n; i++) {
		buf_add(out, secrets->keys[i]);
		buf_putc(out, '=');
		text_quote_word(out, secrets->values[i]);
		buf_putc(out, ' ');
	}
	buf_puts(out, "builtin command eval ");
	text_quote_word(out, text);
}

struct shell_command *shells_command_new(struct shell *s, struct view text, struct view input,
					 const struct json_strmap *secrets)
{
	struct shell_command *m = calloc(1, sizeof(*m));
	_cleanup_(buf_done) struct buf with = { .max = WRAPPED_MAX, .secret = true };
	uint8_t id[SHELL_ID / 2];
	char path[SHELL_PATH];

	if (!m)
		return NULL;
	m->secret = secrets->n > 0;
	if (m->secret) {
		wrap(&with, text, secrets);
		text = buf_view(&with);
	}
	rnd_bytes(id, sizeof(id));
	text_hex(id, sizeof(id), m->id);
	list_init(&m->link);
	m->shell = s;
	m->has_file = input.n > 0;
	m->text = (struct buf){ .max = text.n + COMMAND_EXTRA, .secret = m->secret };
	m->input = BUF_INIT(input.n + 1);
	buf_printf(&m->text, "%s %zu %s", m->id, text.n, m->has_file ? shells_input_path(m, path) : "/dev/null");
	buf_putc(&m->text, 0);
	buf_add(&m->text, text);
	buf_add(&m->input, input);
	if (m->text.bad || m->input.bad || with.bad) {
		shells_command_free(m);
		return NULL;
	}
	return m;
}

void shells_command_free(struct shell_command *m)
{
	guest_cancel(&m->file);
	buf_done(&m->text);
	buf_done(&m->input);
	free(m);
}

/* x is done with this command; what it has not given back is given back for it. */
static struct exec *part(struct shell_command *m)
{
	struct exec *x = TAKE_PTR(m->x);

	if (x)
		x->command = NULL;
	if (m->held)
		mux_consumed(&m->shell->stream, m->held);
	m->held = m->gift = 0;
	return x;
}

static void fail_command(struct shell_command *m, const struct err *e)
{
	struct err copy = *e;
	struct exec *x = part(m);

	shells_command_free(m);
	if (!x)
		return;
	x->core->stats.exec_failures++;
	buf_done(&x->out);
	buf_done(&x->err);
	x->done(x, NULL, &copy);
}

static void fail_all(struct shell *s, const struct err *e)
{
	struct list mine = LIST_INIT(mine);
	struct shell_command *current = TAKE_PTR(s->current);

	loop_timer_stop(&s->timer);
	LIST_EACH (it, &s->queue) {
		list_del(it);
		list_append(&mine, it);
	}
	s->n_queue = 0;
	if (current)
		fail_command(current, e);
	while (!list_empty(&mine)) {
		struct shell_command *m = CONTAINER(mine.next, struct shell_command, link);
		list_del(&m->link);
		fail_command(m, e);
	}
}

void shells_run(struct shell *s, struct shell_command *m)
{
	list_append(&s->queue, &m->link);
	s->n_queue++;
	if (s->phase == SHELL_NONE)
		begin(s);
	else
		next(s);
}

/* Our own go before those that wait. */
static int run_own(struct shell *s, struct view text)
{
	struct shell_command *m = shells_command_new(s, text, VIEW_NONE, &(struct json_strmap){ 0 });

	if (!m)
		return -ENOMEM;
	m->own = true;
	m->timeout_ms = s->box->core->config->max.exec_timeout_ms;
	list_append(s->queue.next, &m->link); /* before the first */
	s->n_queue++;
	return 0;
}

/* ---- output ---- */

static void collect(struct shell_command *m, unsigned channel, struct view data)
{
	struct buf *b = channel == 1 ? &m->x->out : &m->x->err;
	struct view fits = view_head(data, buf_room(b));

	if (buf_add(b, fits) < 0 || fits.n < data.n)
		m->truncated = true;
}

static int on_output(struct shell *s, unsigned channel, struct view data)
{
	struct shell_command *m = s->current;

	if (m && m->x && m->x->on_output && !m->own) {
		m->held += data.n;
		m->x->on_output(m->x, channel, data);
		return 0;
	}
	mux_consumed(&s->stream, data.n);
	if (!m || m->own)
		late_keep(&s->late, channel, data);
	else if (m->x)
		collect(m, channel, data);
	return 0;
}

static void give_late(struct shell *s, struct shell_command *m)
{
	for (unsigned channel = 1; channel <= EXEC_CHANNELS; channel++) {
		_cleanup_(buf_done) struct buf b = late_take(&s->late, channel);
		if (buf_len(&b) && m->x && m->x->on_output) {
			m->gift += buf_len(&b);
			m->x->on_output(m->x, channel, buf_view(&b));
		} else if (buf_len(&b) && m->x) {
			collect(m, channel, buf_view(&b));
		}
	}
	m->truncated |= late_take_cut(&s->late);
}

void shells_consumed(struct exec *x, size_t n)
{
	struct shell_command *m = x->command;
	size_t gift = MIN(n, m->gift);

	m->gift -= gift;
	n = MIN(n - gift, m->held);
	m->held -= n;
	mux_consumed(&m->shell->stream, n);
}

/* ---- running one ---- */

static void on_timer(struct loop_timer *t);

static void push(struct shell *s)
{
	struct buf *b = &s->current->text;
	buf_consume(b, mux_send_on(&s->stream, 3, buf_view(b)));
}

void shells_send(struct shell *s, struct shell_command *m)
{
	m->started_ns = clock_mono_ns();
	m->started_ms = clock_wall_ms();
	s->strikes = 0;
	if (m->secret) { /* also what it reports, if it exits within */
		guest_is_secret(&s->box->guest);
		s->box->guest.mux.link.in.secret = s->field.secret = true;
	}
	loop_timer_start(s->box->core->loop, &s->timer, m->timeout_ms, on_timer);
	push(s);
	if (m->own)
		return;
	if (m->x && m->x->on_begun)
		m->x->on_begun(m->x, &(struct exec_begun){ .pid = s->pid });
	if (s->current == m)
		give_late(s, m);
}

static void next(struct shell *s)
{
	struct shell_command *m;

	if (s->phase == SHELL_READY && !s->current && !list_empty(&s->queue)) {
		m = CONTAINER(s->queue.next, struct shell_command, link);
		list_del(&m->link);
		s->n_queue--;
		s->current = m;
		s->stream.background = false;
		if (m->has_file)
			shells_input_write(s, m);
		else
			shells_send(s, m);
	} else if (!s->current) {
		s->stream.background = true; /* a shell that waits does not keep its box from being idle */
	}
}

void shells_lose(struct shell *s, struct shell_command *m, const struct err *e)
{
	s->current = NULL;
	next(s);
	fail_command(m, e);
}

struct ending {
	uint32_t code, signal;
	bool restarted;
};

static void finish(struct shell *s, const struct ending *how)
{
	struct shell_command *m = TAKE_PTR(s->current);
	struct exec *x = part(m);
	bool restarted = how->restarted || (!m->own && s->lost);
	struct exec_result r = {
		.exit_code = m->timed_out ? 128 + SIGKILL : how->code,
		.signal = exec_signal_name(m->timed_out ? SIGKILL : how->signal),
		.truncated = m->truncated,
		.timed_out = m->timed_out,
		.duration_us = (clock_mono_ns() - m->started_ns) / 1000,
		.shell = view_of(s->name),
		.restarted = restarted,
	};
	struct buf cwd = BUF_INIT(FIELD_MAX);

	loop_timer_stop(&s->timer);
	if (!m->own)
		s->lost = false;
	if (m->has_file)
		shells_input_remove(s, m);
	shells_command_free(m);
	if (!x) {
		next(s);
		return;
	}
	buf_add(&cwd, buf_view(&s->cwd)); /* the next one may change it before this is read */
	struct buf out = x->out, err = x->err;
	x->out = x->err = BUF_INIT(0);
	r.cwd = buf_view(&cwd);
	r.out = buf_view(&out);
	r.err = buf_view(&err);
	next(s);
	x->done(x, &r, NULL);
	buf_done(&out);
	buf_done(&err);
	buf_done(&cwd);
}

void shells_abandon(struct exec *x)
{
	struct shell_command *m = x->command;
	struct shell *s = m->shell;

	part(m);
	if (s->current != m) {
		list_del(&m->link);
		s->n_queue--;
		shells_command_free(m);
	} else if (m->kill) {
		shells_interrupt(s);
	}
}

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
	if (!cwd.p || num_u32(status, &code) < 0 || code > 255)
		return false;
	s->kind = v.p[0];
	s->code = code;
	s->attempts = 0;
	buf_clear(&s->cwd);
	s->cwd.max = FIELD_MAX;
	buf_add(&s->cwd, cwd);
	s->cwd_gone = false;
	return true;
}

static void on_field(struct shell *s)
{
	struct view v = buf_view(&s->field);
	bool cut = s->field_cut, state = s->wants_state;

	s->field_cut = s->wants_state = false;
	if (!state) {
		s->wants_state = !cut && read_header(s, v);
	} else if (!cut && !(s->kind == 'X' && s->current && s->current->secret)) {
		/* (A shell that exits within a command with secrets has them in its environment still.) */
		struct buf old = s->state;
		s->state = s->field; /* nothing is copied */
		s->field = old;
	}
	buf_clear(&s->field);
	buf_shrink(&s->field);
	if (state && s->kind == 'R' && s->current)
		finish(s, &(struct ending){ .code = s->code });
}

static int on_control(struct shell *s, struct view data)
{
	mux_consumed(&s->stream, data.n);
	while (data.n && s->phase == SHELL_READY) {
		const char *end = memchr(data.p, 0, data.n);
		size_t n = end ? (size_t)(end - data.p) : data.n;
		s->field.max = FIELD_MAX;
		if (s->field_cut || n > buf_room(&s->field) || buf_append(&s->field, data.p, n) < 0)
			s->field_cut = true;
		if (end)
			on_field(s);
		data = view_skip(data, end ? n + 1 : n);
	}
	return 0;
}

/* ---- the stream ---- */

static void forget_stream(struct shell *s)
{
	s->phase = SHELL_NONE;
	s->pid = 0;
	if (s->current)
		s->current->held = 0; /* that window is gone */
	buf_clear(&s->field);
	s->field_cut = s->wants_state = false;
}

/* The process has ended: with it ends the running command, and another shell takes its place. */
static void on_exited(struct shell *s, const struct wire_exited *x)
{
	struct shell_command *m = s->current;
	bool own = m && m->own;

	forget_stream(s);
	if (!m) {
		s->lost = true; /* somebody killed it */
		if (!list_empty(&s->queue))
			begin(s);
		return;
	}
	if (own) { /* what we ran killed it: once more without that */
		buf_clear(&s->state);
		s->lost = true;
	}
	begin(s);
	if (s->current == m)
		finish(s, &(struct ending){ .code = x->exit_code, .signal = x->signal, .restarted = true });
}

/* State that a new process gets: cwd by Start, exported variables by this. */
static void restore(struct shell *s)
{
	struct buf text = BUF_INIT(FIELD_MAX + 64);

	if (buf_len(&s->state) == 0)
		return;
	buf_puts(&text, "{ ");
	buf_add(&text, buf_view(&s->state));
	buf_puts(&text, "} 2>/dev/null");
	if (text.bad || run_own(s, buf_view(&text)) < 0)
		log_warn("box %s: the state of shell %s is lost", s->box->id, s->name);
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
	s->pid = m.pid;
	s->made_new = false;
	s->started_ms = clock_wall_ms();
	s->phase = SHELL_READY;
	restore(s);
	next(s);
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
		s->made.user = arena_view(&s->arena, m.info->user);
		if (run_own(s, VIEW(":")) < 0)
			log_warn("box %s: the state of shell %s is not known", s->box->id, s->name);
		next(s);
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
	return channel == 3 ? on_control(s, data) : on_output(s, channel, data);
}

static void on_room(struct call *c)
{
	struct shell *s = CONTAINER(c, struct shell, stream);
	if (s->current && s->phase == SHELL_READY && !mux_is_open(&s->current->file))
		push(s);
}

static void attach(struct shell *s);

static void on_fail(struct call *c, const struct err *said)
{
	struct shell *s = CONTAINER(c, struct shell, stream);
	bool starting = s->phase == SHELL_STARTING && c->type == WIRE_TYPE_START;
	struct err e;

	guest_read_fail(said, &e);
	forget_stream(s);
	if (starting && e.code == ERR_CONFLICT && !s->made_new) {
		attach(s);
		return;
	}
	if (starting && e.code == ERR_INVALID && buf_len(&s->cwd) && !s->cwd_gone) {
		s->cwd_gone = true;
		begin(s);
		return;
	}
	if (starting && e.code == ERR_NOT_FOUND)
		err_set(&e, ERR_UNSUPPORTED, "a shell needs bash, which this box does not have");
	else if (e.code == ERR_NOT_FOUND || e.code == ERR_FORBIDDEN)
		e.code = ERR_INVALID;
	if (starting && e.code == ERR_CONFLICT)
		err_set(&e, ERR_CONFLICT, "there is a shell named \"%s\" already", s->name);
	if (s->made_new)
		shells_drop(s, &e); /* it never was */
	else
		fail_all(s, &e);
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
	if (guest_call(&s->box->guest, &s->stream, WIRE_TYPE_ATTACH, 0, 0, &wire_attach_msg, &msg, &e) < 0) {
		forget_stream(s);
		fail_all(s, &e);
	}
}

static void begin(struct shell *s)
{
	struct view argv[] = { VIEW("bash"), VIEW("--norc"),       VIEW("--noprofile"),
			       VIEW("-c"),   view_of(shells_loop), VIEW("bash") };
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_start start = { .argv = { argv, ELEMS(argv) },
				    .keep = true,
				    .control = true,
				    .wait_reader = true,
				    .ring_bytes = RING_BYTES,
				    .tag = view_of(s->tag) };
	struct err e = { 0 };

	if (s->attempts++ == ATTEMPTS) {
		s->attempts = 0;
		forget_stream(s);
		err_set(&e, ERR_UNAVAILABLE, "the shell ends as soon as it has started");
		fail_all(s, &e);
		return;
	}
	start.cwd = buf_len(&s->cwd) && !s->cwd_gone ? buf_view(&s->cwd)
		    : s->made.cwd.n                  ? s->made.cwd
						     : s->box->spec.workdir;
	s->phase = SHELL_STARTING;
	s->stream.ops = &stream_ops;
	int r = exec_fill_env(&a, s->box, &s->made, &start);
	if (r < 0)
		err_sys(&e, ERR_INTERNAL, r, "shell");
	else
		r = guest_call(&s->box->guest, &s->stream, WIRE_TYPE_START, 0, 0, &wire_start_msg, &start,
			       &e);
	arena_done(&a);
	if (r < 0) {
		forget_stream(s);
		fail_all(s, &e);
	}
}

/* ---- time ---- */

static void signal_shell(struct shell *s, struct call *c, enum wire_signal_scope scope, uint32_t signo)
{
	struct wire_signal msg = { .pid = s->pid,
				   .signo = signo,
				   .scope = scope,
				   .since_ms = s->current ? s->current->started_ms : 0 };

	/* When it cannot be sent the next strike, or the end of the link, does it. */
	if (!mux_is_open(c) && !c->queued && s->pid)
		procs_tell(s->box, c, &msg, DEATH_MS);
}

/* First the shell is told to give the command up, then what it waits for is killed; again, for what it
 * had started in between. In the end the shell itself. */
static void strike(struct shell *s)
{
	uint64_t again = STRIKE_MS;

	if (s->strikes < STRIKES) {
		signal_shell(s, &s->poke, WIRE_SIGNAL_SCOPE_PROCESS, SIGNAL_ABANDON);
		signal_shell(s, &s->reap, WIRE_SIGNAL_SCOPE_BELOW, SIGKILL);
	} else if (s->strikes == STRIKES) {
		signal_shell(s, &s->reap, WIRE_SIGNAL_SCOPE_TREE, SIGKILL);
		again = DEATH_MS;
	} else {
		struct err e = { 0 };
		err_set(&e, ERR_TIMEOUT, "the box did not end the shell in time");
		mux_cancel(&s->stream);
		forget_stream(s);
		fail_all(s, &e);
		return;
	}
	s->strikes++;
	loop_timer_start(s->box->core->loop, &s->timer, again, on_timer);
}

static void on_timer(struct loop_timer *t)
{
	struct shell *s = CONTAINER(t, struct shell, timer);

	if (!s->current)
		return;
	if (s->strikes == 0)
		s->current->timed_out = true;
	strike(s);
}

void shells_interrupt(struct shell *s)
{
	if (s->strikes == 0 && !mux_is_open(&s->current->file))
		strike(s);
}

/* ---- the end ---- */

void shells_drop(struct shell *s, const struct err *why)
{
	list_del(&s->link);
	s->phase = SHELL_NONE;
	guest_cancel(&s->stream);
	guest_cancel(&s->poke);
	guest_cancel(&s->reap);
	fail_all(s, why);
	loop_timer_stop(&s->timer);
	buf_done(&s->cwd);
	buf_done(&s->state);
	buf_done(&s->field);
	late_done(&s->late);
	arena_done(&s->arena);
	free(s);
}
