/*
 * Kept processes: see run.h.
 */
#include "procs.h"

#include <errno.h>

#include "boxes.h"
#include "core_base.h"
#include "num.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS  30000
#define LIST_BYTES   (12u * 1024 * 1024)
#define TAG_MAX      128
#define TERMINAL_MAX 10000

struct box *procs_box(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_EXEC, ref, e);

	if (b && b->state.status == BOX_STOPPED) {
		err_set(e, ERR_STATE, "the sandbox has stopped");
		return NULL;
	}
	return b;
}

int procs_select(struct view process, struct wire_process_selector *ret, struct err *e)
{
	uint32_t pid = 0;

	if (process.n == 0 || process.n > TAG_MAX || memchr(process.p, 0, process.n))
		return err_set(e, ERR_NOT_FOUND, "no such process");
	bool number = num_u32(process, &pid) >= 0;
	if (number && pid == 0)
		return err_set(e, ERR_NOT_FOUND, "no such process");
	*ret = (struct wire_process_selector){ .pid = number ? pid : 0, .tag = number ? VIEW_NONE : process };
	return 0;
}

/* ---- answers ---- */

static void on_fail(struct call *c, const struct err *said)
{
	struct proc_op *op = CONTAINER(c, struct proc_op, call);
	struct err e;
	guest_read_fail(said, &e);
	op->done(op, NULL, 0, &e);
}

static int on_plain_reply(struct call *c, const struct frame *f, int fd)
{
	struct proc_op *op = CONTAINER(c, struct proc_op, call);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	op->done(op, NULL, 0, NULL);
	return 0;
}

void procs_take(const struct wire_process_info *w, struct proc_info *ret)
{
	*ret = (struct proc_info){
		.pid = w->pid,
		.tag = w->tag,
		.cwd = w->cwd,
		.user = w->user,
		.argv = { w->argv.items, w->argv.n },
		.pty = w->pty,
		.running = w->running,
		.started_ms = w->started_ms,
		.has_exit = w->exited != NULL,
		.stdout_end = w->stdout_end,
		.stderr_end = w->stderr_end,
	};
	if (w->exited)
		ret->exit = (struct proc_exit){
			.exit_code = w->exited->exit_code,
			.signal = w->exited->signal,
			.timed_out = w->exited->timed_out,
			.oom_killed = w->exited->oom_killed,
			.memory_limit = w->exited->memory_limit,
			.stdout_truncated = w->exited->stdout_truncated,
			.stderr_truncated = w->exited->stderr_truncated,
			.duration_us = w->exited->duration_us,
		};
}

/* By pid, or by tag; of several the living one, else the one that was started last. */
static const struct proc_info *pick(const struct proc_info *list, size_t n, struct view process)
{
	const struct proc_info *found = NULL;
	uint32_t pid = 0;
	bool number = num_u32(process, &pid) >= 0;

	for (size_t i = 0; i < n; i++) {
		const struct proc_info *p = &list[i];
		if (number ? p->pid != pid : !view_eq(p->tag, process))
			continue;
		if (!found || p->running || (!found->running && p->started_ms >= found->started_ms))
			found = p;
	}
	return found;
}

static int on_list_reply(struct call *c, const struct frame *f, int fd)
{
	struct proc_op *op = CONTAINER(c, struct proc_op, call);
	struct arena a = ARENA_INIT(LIST_BYTES);
	struct wire_processes_reply reply;
	struct proc_info *list = NULL;
	struct err e = { 0 };
	int r = mux_reply(c, f, &wire_processes_reply_msg, &a, &reply);

	if (r >= 0 && !(list = arena_array(&a, reply.processes.n, sizeof(*list))))
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < reply.processes.n; i++)
		procs_take(&reply.processes.items[i], &list[i]);
	if (r >= 0 && !op->process.p) {
		op->done(op, list, reply.processes.n, NULL);
	} else if (r >= 0) {
		const struct proc_info *one = pick(list, reply.processes.n, op->process);
		if (!one)
			err_set(&e, ERR_NOT_FOUND, "no such process");
		op->done(op, one, one ? 1 : 0, one ? NULL : &e);
	}
	arena_done(&a);
	return r;
}

static const struct call_ops plain_ops = { .on_reply = on_plain_reply, .on_fail = on_fail };
static const struct call_ops list_ops = { .on_reply = on_list_reply, .on_fail = on_fail };

/* ---- operations ---- */

int procs_call(struct box *b, struct proc_op *op, uint16_t type, const struct pb_msg *pm, const void *msg,
	       struct err *e)
{
	op->call.ops = &plain_ops;
	return guest_call(b->in->guest, &op->call, type, 0, PATIENCE_MS, pm, msg, e);
}

static int ask(struct core *c, const struct actor *a, struct view box, struct view process,
	       struct proc_op *op, struct err *e)
{
	struct wire_processes msg = { 0 };
	struct box *b = procs_box(c, a, box, e);

	if (!b)
		return -1;
	op->call.ops = &list_ops;
	op->process = process;
	return guest_call(b->in->guest, &op->call, WIRE_TYPE_PROCESSES, 0, PATIENCE_MS, &wire_processes_msg,
			  &msg, e);
}

int procs_list(struct core *c, const struct actor *a, struct view box, struct proc_op *op, struct err *e)
{
	return ask(c, a, box, VIEW_NONE, op, e);
}

int procs_get(struct core *c, const struct actor *a, struct view box, struct view process, struct proc_op *op,
	      struct err *e)
{
	struct wire_process_selector who;
	return procs_select(process, &who, e) < 0 ? -1 : ask(c, a, box, process, op, e);
}

int procs_input(struct core *c, const struct actor *a, struct view box, struct view process, struct view data,
		bool close, struct proc_op *op, struct err *e)
{
	struct wire_process_selector who;
	struct wire_input msg = { .process = &who, .data = data, .close = close };
	struct box *b = procs_box(c, a, box, e);

	if (!b || procs_select(process, &who, e) < 0)
		return -1;
	op->call.ops = &plain_ops;
	/* No patience: the program reads when it likes. */
	return guest_call(b->in->guest, &op->call, WIRE_TYPE_INPUT, 0, 0, &wire_input_msg, &msg, e);
}

int procs_signal(struct core *c, const struct actor *a, struct view box, struct view process, uint32_t signo,
		 bool tree, struct proc_op *op, struct err *e)
{
	struct wire_process_selector who;
	struct box *b = procs_box(c, a, box, e);

	if (!b || procs_select(process, &who, e) < 0)
		return -1;
	if (signo < 1 || signo > 64)
		return err_set(e, ERR_INVALID, "no such signal");
	struct wire_signal msg = { .pid = who.pid,
				   .tag = who.tag,
				   .signo = signo,
				   .scope = tree ? WIRE_SIGNAL_SCOPE_TREE : WIRE_SIGNAL_SCOPE_GROUP };
	return procs_call(b, op, WIRE_TYPE_SIGNAL, &wire_signal_msg, &msg, e);
}

int procs_resize(struct core *c, const struct actor *a, struct view box, struct view process, uint64_t cols,
		 uint64_t rows, struct proc_op *op, struct err *e)
{
	struct wire_process_selector who;
	struct wire_resize msg = { .process = &who, .cols = (uint32_t)cols, .rows = (uint32_t)rows };
	struct box *b = procs_box(c, a, box, e);

	if (!b || procs_select(process, &who, e) < 0)
		return -1;
	if (!cols || !rows || cols > TERMINAL_MAX || rows > TERMINAL_MAX)
		return err_set(e, ERR_INVALID, "cols and rows must be between 1 and %d", TERMINAL_MAX);
	return procs_call(b, op, WIRE_TYPE_RESIZE, &wire_resize_msg, &msg, e);
}

static int on_told(struct call *c, const struct frame *f, int fd)
{
	return f->flags & FRAME_LAST ? 0 : -EBADMSG;
}

static void on_not_told(struct call *c, const struct err *e)
{
}

static const struct call_ops told_ops = { .on_reply = on_told, .on_fail = on_not_told };

void procs_tell(struct box *b, struct call *c, const struct wire_signal *msg, uint32_t timeout_ms)
{
	struct err e = { 0 };

	c->ops = &told_ops;
	(void)!guest_call(b->in->guest, c, WIRE_TYPE_SIGNAL, 0, timeout_ms, &wire_signal_msg, msg, &e);
}

void procs_cancel(struct proc_op *op)
{
	guest_cancel(&op->call);
}
