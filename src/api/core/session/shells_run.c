/*
 * The commands of a shell, one after the other: their queue, their output, their time limits.
 * shells_stream.c has the process that runs them. See shells.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "events.h"
#include "outputs.h"
#include "rnd.h"
#include "shells_impl.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define COMMAND_EXTRA  256 /* header */
#define WRAPPED_MAX    (64u * 1024 * 1024)
#define SIGNAL_ABANDON 64 /* SIGRTMAX: the trap of shells_loop.c */
#define STRIKE_MS      50
#define STRIKES        10   /* that a command gets before the shell is killed */
#define GRACE_MS       3000 /* from SIGINT to the first strike, for a command whose client has left */
#define DEATH_MS       5000 /* for PID 1 to tell of the end */

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

static void shells_command_free(struct shell_command *m)
{
	guest_cancel(&m->file);
	buf_done(&m->text);
	buf_done(&m->input);
	free(m);
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
	buf_printf(&m->text, "%s %zu %s", m->id, text.n,
		   m->has_file ? shells_input_path(m, path) : "/dev/null");
	buf_putc(&m->text, 0);
	buf_add(&m->text, text);
	buf_add(&m->input, input);
	if (m->text.bad || m->input.bad || with.bad) {
		shells_command_free(m);
		return NULL;
	}
	return m;
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
	outputs_done(&x->kept);
	x->done(x, NULL, &copy);
}

void shells_run_fail_all(struct shell *s, const struct err *e)
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
		shells_stream_begin(s);
	else
		shells_run_next(s);
}

/* Our own go before those that wait. */
int shells_run_own(struct shell *s, struct view text)
{
	struct shell_command *m = shells_command_new(s, text, VIEW_NONE, &(struct json_strmap){ 0 });

	if (!m)
		return -ENOMEM;
	m->own = true;
	m->timeout_ms = s->box->in->core->config->max.exec_timeout_ms;
	list_append(s->queue.next, &m->link); /* before the first */
	s->n_queue++;
	return 0;
}

/* ---- output ---- */

static void collect(struct shell_command *m, unsigned channel, struct view data)
{
	if (!outputs_add(&m->x->kept, m->merged ? 1 : channel, data))
		m->truncated = true;
	if (m->x->on_kept)
		m->x->on_kept(m->x);
}

int shells_run_output(struct shell *s, unsigned channel, struct view data)
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

void shells_run_consumed(struct exec *x, size_t n)
{
	struct shell_command *m = x->command;

	if (!m)
		return;
	size_t gift = MIN(n, m->gift);
	m->gift -= gift;
	n = MIN(n - gift, m->held);
	m->held -= n;
	mux_consumed(&m->shell->stream, n);
}

/* ---- running one ---- */

static void on_timer(struct loop_timer *t);

void shells_run_push(struct shell *s)
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
		guest_is_secret(s->box->in->guest);
		s->box->in->guest->mux.link.in.secret = s->field.secret = true;
	}
	loop_timer_start(s->box->in->core->loop, &s->timer, m->timeout_ms, on_timer);
	shells_run_push(s);
	if (m->own)
		return;
	if (m->x && m->x->on_begun)
		m->x->on_begun(m->x, &(struct exec_begun){ .pid = s->pid });
	if (s->current == m)
		give_late(s, m);
}

void shells_run_next(struct shell *s)
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
	shells_run_next(s);
	fail_command(m, e);
}

void shells_run_finish(struct shell *s, const struct shell_ending *how)
{
	struct shell_command *m = TAKE_PTR(s->current);
	struct exec *x = part(m);
	bool restarted = how->restarted || (!m->own && s->lost);
	struct exec_result r = {
		.exit_code = m->timed_out ? 128 + SIGKILL : how->code,
		.signal = exec_signal_name(m->timed_out ? SIGKILL : how->signal),
		.truncated = m->truncated,
		.timed_out = m->timed_out,
		.oom_killed = how->oom_killed,
		.memory_mb = s->box->spec.limits.memory_mb,
		.duration_us = (clock_mono_ns() - m->started_ns) / 1000,
		.shell = view_of(s->name),
		.restarted = restarted,
	};
	struct buf cwd = BUF_INIT(SHELL_FIELD_MAX);

	if (how->oom_killed)
		events_oom(s->box->in->core, s->box);
	loop_timer_stop(&s->timer);
	if (!m->own)
		s->lost = false;
	if (m->has_file)
		shells_input_remove(s, m);
	shells_command_free(m);
	if (!x) {
		shells_run_next(s);
		return;
	}
	buf_add(&cwd, buf_view(&s->cwd)); /* the next one may change it before this is read */
	struct output kept = x->kept;
	x->kept = (struct output){ 0 };
	r.cwd = buf_view(&cwd);
	r.out = buf_view(&kept.bytes[0]);
	r.err = buf_view(&kept.bytes[1]);
	r.kept = &kept;
	shells_run_next(s);
	x->done(x, &r, NULL);
	outputs_done(&kept);
	buf_done(&cwd);
}

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

/* Ends what `m`, the running command, is doing; the shell itself when that does not help. */
static void shells_interrupt(struct shell *s)
{
	if (s->strikes || mux_is_open(&s->current->file))
		return;
	/* As Ctrl-C does: to the command and to the shell, which gives it up. What is not over then is
	 * killed. */
	signal_shell(s, &s->poke, WIRE_SIGNAL_SCOPE_GROUP, SIGINT);
	loop_timer_start(s->box->in->core->loop, &s->timer, GRACE_MS, on_timer);
}

void shells_run_abandon(struct exec *x)
{
	struct shell_command *m = x->command;

	if (!m)
		return;
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

/* ---- time ---- */

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
		err_set(&e, ERR_TIMEOUT, "the sandbox did not end the shell in time");
		mux_cancel(&s->stream);
		shells_stream_forget(s);
		shells_run_fail_all(s, &e);
		return;
	}
	s->strikes++;
	loop_timer_start(s->box->in->core->loop, &s->timer, again, on_timer);
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

void shells_break(struct shell *s)
{
	if (s->current->broken)
		return;
	s->current->broken = true;
	s->strikes = STRIKES;
	strike(s);
}
