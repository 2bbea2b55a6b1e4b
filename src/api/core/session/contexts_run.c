/*
 * Executes code in a context, one piece after the other: its events, its output, its time limit.
 * contexts_stream.c has the process. Events come from the box and are hostile: they are bounded,
 * parsed strictly, and count only for the code that runs; invalid ones are skipped.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "contexts_impl.h"
#include "core_base.h"
#include "wire_gen.h"
#include "poison.h"

#define LINE_MAX    (16u * 1024 * 1024) /* of an event; the drivers keep below it */
#define EVENT_ARENA (64u * 1024 * 1024)
#define ENV_MAX     (32u * 1024 * 1024) /* of what a request's body can hold, with its quotes */
#define STRIKE_MS   1000
#define DEATH_MS    5000 /* for PID 1 to tell of the end */
#define AGAIN_MS    200
#define AGAIN_MAX   20

/* ---- executions ---- */

/* Never the same twice, also after a restart of the api: an older one's events are told by it. Below 2^53. */
static uint64_t next_id(void)
{
	static uint64_t last;
	uint64_t now = (uint64_t)clock_wall_ms() * 1000;
	last = MAX(last + 1, now);
	return last;
}

struct context_cell *contexts_cell_new(struct context *c, const struct context_code *w)
{
	struct context_cell *m = calloc(1, sizeof(*m));
	uint64_t longest = c->box->in->core->config->max.exec_timeout_ms;
	bool secret = w->secrets.n > 0;
	_cleanup_(buf_done) struct buf env = { .max = ENV_MAX, .secret = secret };

	if (!m)
		return NULL;
	if (w->env.n || secret)
		c->language->put_env(&env, w);
	list_init(&m->link);
	m->context = c;
	m->id = next_id();
	m->kill = w->kill;
	m->timeout_ms = w->timeout_ms ? w->timeout_ms : longest;
	m->text = (struct buf){ .max = w->code.n + buf_len(&env) + CONTEXT_HEAD_MAX, .secret = secret };
	buf_printf(&m->text, "%llu %zu %zu\n", (unsigned long long)m->id, w->code.n, buf_len(&env));
	buf_add(&m->text, buf_view(&env));
	buf_add(&m->text, w->code);
	if (m->text.bad || env.bad) {
		contexts_cell_free(m);
		return NULL;
	}
	return m;
}

void contexts_cell_free(struct context_cell *m)
{
	buf_done(&m->text);
	free(m);
}

static void fail_cell(struct context_cell *m, const struct err *e)
{
	struct context_run *x = m->run;

	contexts_cell_free(m);
	if (!x)
		return;
	x->core->stats.exec_failures++;
	x->cell = NULL;
	x->done(x, NULL, e);
}

/* All executions and operations of a context fail; it is not looked at once the first has been told. */
void contexts_run_fail_all(struct context *c, const struct err *e)
{
	struct err copy = *e;
	struct list cells = LIST_INIT(cells), ops = LIST_INIT(ops);

	if (c->current)
		list_append(&cells, &TAKE_PTR(c->current)->link);
	LIST_EACH (it, &c->queue) {
		list_del(it);
		list_append(&cells, it);
	}
	LIST_EACH (it, &c->ops) {
		list_del(it);
		list_append(&ops, it);
	}
	c->n_queue = 0;
	loop_timer_stop(&c->timer);
	loop_timer_stop(&c->again);
	while (!list_empty(&cells)) {
		struct context_cell *m = CONTAINER(cells.next, struct context_cell, link);
		list_del(&m->link);
		fail_cell(m, &copy);
	}
	while (!list_empty(&ops)) {
		struct context_op *op = CONTAINER(ops.next, struct context_op, link);
		list_del(&op->link);
		op->done(op, NULL, 0, &copy);
	}
}

/* Takes the code that runs away from the context; the rest is with contexts_run_deliver. */
struct context_cell *contexts_run_take(struct context *c)
{
	struct context_cell *m = TAKE_PTR(c->current);

	loop_timer_stop(&c->timer);
	loop_timer_stop(&c->again);
	c->strikes = 0;
	mux_consumed(&c->stream, c->owed);
	c->owed = 0;
	return m;
}

/* The last of an execution. The context is not looked at: it may be gone. */
void contexts_run_deliver(struct context_cell *m, uint64_t count, bool state_lost)
{
	struct context_run *x = m->run;
	struct context_end end = {
		.count = count,
		.timed_out = m->timed_out,
		.oom_mb = m->oom_mb,
		.truncated = m->truncated,
		.state_lost = state_lost,
		.duration_us = (clock_mono_ns() - m->started_ns) / 1000,
	};

	contexts_cell_free(m);
	if (!x)
		return;
	x->cell = NULL;
	x->done(x, &end, NULL);
}

/* An error that the interpreter cannot tell itself. */
void contexts_run_put_error(struct context_cell *m, const char *name, const char *value)
{
	struct buf b = BUF_INIT(4096);
	struct arena a = ARENA_INIT(16 * 1024);
	struct json_out o;
	struct json *doc;
	struct err e = { 0 };

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "name", name);
	json_out_kz(&o, "value", value);
	json_out_kz(&o, "traceback", "");
	json_out_end(&o, '}');
	if (m->run && !b.bad && json_parse(&a, buf_view(&b), &doc, &e) >= 0)
		m->run->on_event(m->run, "error", doc);
	arena_done(&a);
	buf_done(&b);
}

static void give_late(struct context *c, struct context_cell *m)
{
	for (unsigned channel = 1; channel <= EXEC_CHANNELS; channel++) {
		_cleanup_(buf_done) struct buf b = late_take(&c->late, channel);
		if (buf_len(&b) && m->run)
			m->run->on_output(m->run, channel, buf_view(&b));
	}
	m->truncated |= late_take_cut(&c->late);
}

/* ---- events ---- */

static void signal_process(struct context *c, enum wire_signal_scope scope, uint32_t signo);

static void on_event(struct context *c, const struct json *event)
{
	struct context_cell *m = c->current;
	const struct json *id = json_get(event, "id"), *type = json_get(event, "type");
	const struct json *n = json_get(event, "count");
	uint64_t number = 0, count = 0;

	if (!id || json_to_u64(id, &number) < 0 || number != m->id || !type || type->type != JSON_STRING)
		return;
	if (view_is(type->text, "end")) {
		if (n && json_to_u64(n, &count) < 0)
			count = 0;
		contexts_run_take(c);
		contexts_advance(c);
		contexts_run_deliver(m, count, false);
	} else if (view_is(type->text, "begin")) {
		m->begun = true;
		if (m->interrupt) {
			signal_process(c, WIRE_SIGNAL_SCOPE_GROUP, SIGINT);
			contexts_insist(c);
		}
	} else if (m->run && view_is(type->text, "result")) {
		m->run->on_event(m->run, "result", event);
	} else if (m->run && view_is(type->text, "error")) {
		m->run->on_event(m->run, "error", event);
	}
}

static void on_line(struct context *c)
{
	struct arena a = ARENA_INIT(EVENT_ARENA);
	struct err e = { 0 };
	struct json *event;

	if (c->phase == CONTEXT_GREETING) {
		bool valid = !c->line_cut && json_parse(&a, buf_view(&c->line), &event, &e) >= 0;
		c->line_cut = false;
		buf_clear(&c->line);
		if (valid)
			contexts_stream_greeting(c, event);
		arena_done(&a);
		return;
	}
	if (c->current && !c->line_cut && json_parse(&a, buf_view(&c->line), &event, &e) >= 0)
		on_event(c, event);
	else if (c->current && (c->line_cut || e.code == ERR_TOO_LARGE))
		c->current->truncated = true;
	arena_done(&a);
	c->line_cut = false;
	buf_clear(&c->line);
	buf_shrink(&c->line);
}

void contexts_run_events(struct context *c, struct view data)
{
	while (data.n && (c->phase == CONTEXT_UP || c->phase == CONTEXT_GREETING)) {
		const char *end = memchr(data.p, '\n', data.n);
		size_t n = end ? (size_t)(end - data.p) : data.n;
		c->line.max = LINE_MAX;
		if (c->line_cut || n > buf_room(&c->line) || buf_append(&c->line, data.p, n) < 0)
			c->line_cut = true;
		if (end)
			on_line(c);
		data = view_skip(data, end ? n + 1 : n);
	}
}

/* ---- running one ---- */

static void on_timer(struct loop_timer *t);

void contexts_run_push(struct context *c)
{
	buf_consume(&c->out, mux_send_on(&c->stream, 3, buf_view(&c->out)));
	if (buf_len(&c->out) == 0)
		buf_done(&c->out);
}

void contexts_run_next(struct context *c)
{
	struct context_info info;

	if (c->current || list_empty(&c->queue)) {
		/* An interpreter that waits does not keep its box from being idle. */
		c->stream.background = !c->current;
		return;
	}
	struct context_cell *m = CONTAINER(c->queue.next, struct context_cell, link);
	list_del(&m->link);
	c->n_queue--;
	c->current = m;
	c->stream.background = false;
	m->started_ns = clock_mono_ns();
	if (m->text.secret) {
		c->out.secret = true;
		guest_is_secret(c->box->in->guest);
	}
	c->out.max = buf_len(&c->out) + buf_len(&m->text);
	buf_add(&c->out, buf_view(&m->text));
	buf_done(&m->text);
	loop_timer_start(c->box->in->core->loop, &c->timer, m->timeout_ms, on_timer);
	contexts_run_push(c);
	contexts_describe(c, &info);
	if (m->run && m->run->on_begun)
		m->run->on_begun(m->run, &info);
	if (c->current == m)
		give_late(c, m);
}

/* ---- ending what runs ---- */

static void signal_process(struct context *c, enum wire_signal_scope scope, uint32_t signo)
{
	struct wire_signal msg = { .pid = c->pid, .signo = signo, .scope = scope };

	guest_cancel(&c->poke); /* the one before is with PID 1 already */
	/* When it cannot be sent the next strike, or the end of the link, does it. */
	procs_tell(c->box, &c->poke, &msg, DEATH_MS);
}

static void on_again(struct loop_timer *t)
{
	struct context *c = CONTAINER(t, struct context, again);

	signal_process(c, WIRE_SIGNAL_SCOPE_GROUP, SIGINT);
	contexts_insist(c);
}

void contexts_insist(struct context *c)
{
	if (c->language->insist && c->current && c->current->interrupts++ < AGAIN_MAX)
		loop_timer_start(c->box->in->core->loop, &c->again, AGAIN_MS, on_again);
}

void contexts_strike(struct context *c)
{
	unsigned n = c->strikes++;
	struct err e = { 0 };

	if (n < CONTEXT_STRIKES) {
		signal_process(c, WIRE_SIGNAL_SCOPE_GROUP, SIGINT);
	} else if (n == CONTEXT_STRIKES) {
		signal_process(c, WIRE_SIGNAL_SCOPE_TREE, SIGKILL);
	} else {
		err_set(&e, ERR_TIMEOUT, "the sandbox did not end the interpreter in time");
		guest_cancel(&c->stream);
		c->maybe = true;
		contexts_stream_give_up(c, &e);
		return;
	}
	loop_timer_start(c->box->in->core->loop, &c->timer, n < CONTEXT_STRIKES ? STRIKE_MS : DEATH_MS,
			 on_timer);
}

static void on_timer(struct loop_timer *t)
{
	struct context *c = CONTAINER(t, struct context, timer);

	if (c->strikes == 0 && c->current)
		c->current->timed_out = true;
	contexts_strike(c);
}
