/*
 * The process behind a code context: its start, its end, and the next action for it. See contexts.h;
 * contexts_run.c executes code in it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "contexts_impl.h"
#include "core_base.h"
#include "wire_gen.h"
#include "poison.h"

#define RING_BYTES  (256u * 1024)
#define GREETING_MS 120000 /* for an interpreter to say that it can work: Java on a busy machine */

/* ---- the stream ---- */

static const struct call_ops stream_ops;

static void forget_stream(struct context *c)
{
	c->phase = CONTEXT_OFF;
	c->pid = 0;
	c->owed = 0; /* that window is gone */
	c->strikes = 0;
	loop_timer_stop(&c->timer);
	loop_timer_stop(&c->again);
	buf_done(&c->out);
	buf_done(&c->line);
	c->line_cut = false;
}

/* Nothing can be done for those who wait. A context that never ran never was. */
void contexts_stream_give_up(struct context *c, const struct err *why)
{
	struct err e = *why;

	c->restart = c->remove = false;
	if (!c->ran) {
		contexts_drop(c, &e);
		return;
	}
	forget_stream(c);
	contexts_run_fail_all(c, &e);
}

static void begin(struct context *c)
{
	struct view argv[ELEMS(c->language->argv)];
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_start start = { .argv = { argv, 0 },
				    .keep = true,
				    .control = true,
				    .wait_reader = true,
				    .stdin_ = c->language->by_stdin,
				    .ring_bytes = RING_BYTES,
				    .tag = view_of(c->tag),
				    .cwd = c->made.cwd.n ? c->made.cwd : c->box->spec.workdir };
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMS(argv) && c->language->argv[i]; i++)
		argv[start.argv.n++] = view_of(c->language->argv[i]);
	c->phase = CONTEXT_STARTING;
	c->stream.ops = &stream_ops;
	int r = exec_fill_env(&a, c->box, &c->made, &start);
	if (r < 0)
		err_sys(&e, ERR_INTERNAL, r, "context");
	else
		r = guest_call(c->box->in->guest, &c->stream, WIRE_TYPE_START, 0, 0, &wire_start_msg, &start,
			       &e);
	arena_done(&a);
	if (r < 0)
		contexts_stream_give_up(c, &e);
}

static void attach(struct context *c)
{
	struct wire_process_selector who = { .tag = view_of(c->tag) };
	struct wire_attach msg = { .process = &who, .from_end = true };
	struct err e = { 0 };

	c->phase = CONTEXT_ATTACHING;
	c->stream.ops = &stream_ops;
	if (guest_call(c->box->in->guest, &c->stream, WIRE_TYPE_ATTACH, 0, 0, &wire_attach_msg, &msg, &e) < 0)
		contexts_stream_give_up(c, &e);
}

static void came_up(struct context *c, uint32_t pid)
{
	c->phase = CONTEXT_UP;
	c->ran = true;
	c->pid = pid;
	if (!c->restart)
		contexts_tell(c);
	contexts_advance(c);
}

static void on_silence(struct loop_timer *t)
{
	struct context *c = CONTAINER(t, struct context, timer);

	c->strikes = CONTEXT_STRIKES;
	contexts_strike(c);
}

void contexts_stream_greeting(struct context *c, const struct json *event)
{
	const struct json *type = json_get(event, "type"), *value = json_get(event, "value");

	if (!type || type->type != JSON_STRING)
		return;
	if (view_is(type->text, "ready")) {
		loop_timer_stop(&c->timer);
		came_up(c, c->pid);
	} else if (view_is(type->text, "unsupported") && value && value->type == JSON_STRING) {
		/* It ends now: on_exited goes on. */
		struct view text = view_head(value->text, sizeof(c->refusal) - 1);
		memcpy(c->refusal, text.p, text.n);
		c->refusal[text.n] = 0;
		for (char *p = c->refusal; *p; p++)
			if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
				*p = '?';
	}
}

static int on_started(struct context *c, const struct frame *f)
{
	struct arena a = ARENA_INIT(4096);
	struct wire_started m;
	int r = mux_decode(&c->stream, f->body, &wire_started_msg, &a, &m);

	arena_done(&a);
	if (r < 0 || c->phase != CONTEXT_STARTING || m.pid == 0)
		return -EBADMSG;
	if (c->language->by_stdin) {
		struct view driver = { c->language->driver, *c->language->driver_size };

		/* Much smaller than the window, which is untouched. */
		if (mux_send_on(&c->stream, 0, driver) != driver.n)
			return -EBADMSG;
		came_up(c, m.pid);
		return 0;
	}
	c->out = BUF_INIT(*c->language->driver_size + CONTEXT_HEAD_MAX);
	buf_printf(&c->out, "%zu\n", *c->language->driver_size);
	buf_append(&c->out, c->language->driver, *c->language->driver_size);
	if (c->out.bad)
		return -EBADMSG; /* no memory: as good as a broken link */
	contexts_run_push(c);
	if (!c->language->greets) {
		came_up(c, m.pid);
		return 0;
	}
	c->phase = CONTEXT_GREETING;
	c->pid = m.pid;
	c->refusal[0] = 0;
	loop_timer_start(c->box->in->core->loop, &c->timer, GREETING_MS, on_silence);
	return 0;
}

static int on_attached(struct context *c, const struct frame *f)
{
	struct arena a = ARENA_INIT(256 * 1024);
	struct wire_attached m;
	int r = mux_decode(&c->stream, f->body, &wire_attached_msg, &a, &m);
	bool running = r >= 0 && m.info && m.info->running;
	uint32_t pid = running ? m.info->pid : 0;

	r = r >= 0 && m.info && c->phase == CONTEXT_ATTACHING && (!running || pid) ? 0 : -EBADMSG;
	arena_done(&a);
	if (r >= 0 && running)
		came_up(c, pid);
	return r; /* of one that has ended, the end comes next */
}

/* Before it could work: nothing is better the next time. */
static void on_never_worked(struct context *c)
{
	struct err e = { 0 };

	if (c->refusal[0])
		err_set(&e, ERR_UNSUPPORTED, "%s", c->refusal);
	else
		err_set(&e, ERR_UNSUPPORTED, "the interpreter of %s does not start; it needs %s",
			c->language->name, c->language->needs);
	forget_stream(c);
	c->maybe = false;
	if (c->restart)
		contexts_advance(c);
	else
		contexts_stream_give_up(c, &e);
}

/* With the process ends the code that runs; what waits gets another process. */
static void on_exited(struct context *c, const struct wire_exited *x)
{
	struct context_cell *m = c->phase == CONTEXT_UP && c->current ? contexts_run_take(c) : NULL;
	char value[128];

	if (c->phase == CONTEXT_GREETING) {
		on_never_worked(c);
		return;
	}
	forget_stream(c);
	c->maybe = false;
	if (m && m->timed_out)
		contexts_run_put_error(m, "Timeout",
				       "the code did not stop when it was interrupted; its interpreter was "
				       "killed, and what it knew is lost");
	else if (m && c->restart)
		contexts_run_put_error(m, "Restarted", "the interpreter was ended while the code ran");
	if (m && !m->timed_out && !c->restart) {
		m->oom_mb = x->oom_killed ? x->memory_limit >> 20 : 0;
		if (x->oom_killed)
			snprintf(value, sizeof(value),
				 "the interpreter was killed: the sandbox's memory limit of %llu MiB is "
				 "reached",
				 (unsigned long long)m->oom_mb);
		else if (x->signal)
			snprintf(value, sizeof(value), "the interpreter died: %s",
				 exec_signal_name(x->signal));
		else
			snprintf(value, sizeof(value), "the interpreter died: it exited with status %u",
				 x->exit_code);
		contexts_run_put_error(m, "InterpreterDied", value);
	}
	contexts_advance(c);
	if (m)
		contexts_run_deliver(m, 0, true);
}

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	struct context *c = CONTAINER(call, struct context, stream);
	struct arena a = ARENA_INIT(4096);
	struct wire_exited exited;

	if (!(f->flags & FRAME_LAST))
		return f->type == WIRE_TYPE_ATTACH ? on_attached(c, f) : on_started(c, f);
	int r = mux_decode(call, f->body, &wire_exited_msg, &a, &exited);
	arena_done(&a);
	if (r >= 0)
		on_exited(c, &exited);
	return r;
}

static int on_data(struct call *call, unsigned channel, struct view data)
{
	struct context *c = CONTAINER(call, struct context, stream);
	struct context_cell *m = c->current;

	if (channel < 1 || channel > 3)
		return -EBADMSG;
	if (m && m->paused)
		c->owed += data.n;
	else
		mux_consumed(call, data.n);
	if (channel == 3) {
		contexts_run_events(c, data);
		return 0;
	}
	if (c->phase != CONTEXT_UP)
		return 0;
	if (!m)
		late_keep(&c->late, channel, data);
	else if (m->run)
		m->run->on_output(m->run, channel, data);
	return 0;
}

static void on_room(struct call *call)
{
	contexts_run_push(CONTAINER(call, struct context, stream));
}

static void on_fail(struct call *call, const struct err *said)
{
	struct context *c = CONTAINER(call, struct context, stream);
	enum context_phase phase = c->phase;
	struct err e;

	guest_read_fail(said, &e);
	if (phase == CONTEXT_ATTACHING && e.code == ERR_NOT_FOUND) {
		forget_stream(c);
		c->maybe = false;
		contexts_advance(c);
		return;
	}
	if (phase == CONTEXT_STARTING && e.code == ERR_CONFLICT) {
		attach(c);
		return;
	}
	if (phase == CONTEXT_STARTING && e.code == ERR_NOT_FOUND)
		err_set(&e, ERR_UNSUPPORTED, "%s needs %s, which this sandbox does not have: install %s",
			c->language->name, c->language->argv[0], c->language->needs);
	else if (e.code == ERR_NOT_FOUND || e.code == ERR_FORBIDDEN)
		e.code = ERR_INVALID;
	c->maybe = phase == CONTEXT_UP || phase == CONTEXT_ATTACHING;
	contexts_stream_give_up(c, &e);
}

static const struct call_ops stream_ops = {
	.on_reply = on_reply, .on_data = on_data, .on_room = on_room, .on_fail = on_fail
};

/* ---- the whole ---- */

static void unlink_and_free(struct context *c)
{
	loop_timer_stop(&c->timer);
	loop_timer_stop(&c->again);
	guest_cancel(&c->stream);
	guest_cancel(&c->poke);
	buf_done(&c->out);
	buf_done(&c->line);
	late_done(&c->late);
	arena_done(&c->arena);
	free(c);
}

static void leave_set(struct context *c)
{
	if (c->box->in->contexts)
		c->box->in->contexts->n--;
	list_del(&c->link);
}

/* Removed, as it was wished. */
static void gone(struct context *c)
{
	struct list ops = LIST_INIT(ops);
	struct err e = { 0 };

	LIST_EACH (it, &c->ops) {
		list_del(it);
		list_append(&ops, it);
	}
	err_set(&e, ERR_GONE, "the context was removed");
	contexts_drop(c, &e);
	while (!list_empty(&ops)) {
		struct context_op *op = CONTAINER(ops.next, struct context_op, link);
		list_del(&op->link);
		op->done(op, NULL, 0, op->kind == CONTEXT_REMOVE ? NULL : &e);
	}
}

void contexts_drop(struct context *c, const struct err *why)
{
	leave_set(c);
	c->phase = CONTEXT_OFF;
	guest_cancel(&c->stream);
	contexts_run_fail_all(c, why); /* nobody finds it any more, so nobody frees it before we do */
	unlink_and_free(c);
}

void contexts_advance(struct context *c)
{
	if (c->phase == CONTEXT_UP) {
		if (!c->restart) {
			contexts_run_next(c);
		} else if (c->strikes <= CONTEXT_STRIKES) {
			c->strikes = CONTEXT_STRIKES;
			contexts_strike(c);
		}
		return;
	}
	if (c->phase != CONTEXT_OFF)
		return;
	if (c->restart && !c->maybe) { /* what had to go is gone */
		c->restart = false;
		if (c->remove) {
			gone(c);
			return;
		}
	}
	if (list_empty(&c->ops) && list_empty(&c->queue))
		return;
	if (c->maybe)
		attach(c);
	else
		begin(c);
}
