/*
 * Attachments: each reads the rings of a process at its own pace, from offsets
 * of its own, and ends with Exited when it has sent everything.
 *
 * Pumping one attachment may close that one and no other, and never reads from
 * the process (it only arms what is to be read): it is called while lists of
 * streams are walked.
 */
#include "proc_attach.h"

#include <stdlib.h>

#include "farewell.h"
#include "poison.h"

static struct attachment *attachment_of(struct stream *s)
{
	return CONTAINER(s, struct attachment, stream);
}

/* ---- output ----------------------------------------------------------- */

uint64_t proc_attach_floor(const struct attachment *a, unsigned channel)
{
	uint64_t at = a->at[channel];
	if (!a->proc->keep)
		return at;
	/* Which channel they were of is not known: as if all were of each. At most half of
	 * the ring, so that a small one is not blocked by a caller that gives credit in large steps. */
	size_t back = MIN(stream_unconsumed(&a->stream), a->proc->channels[channel].ring.size / 2);
	return at > back ? at - back : 0;
}

static struct view ready(struct attachment *a, unsigned channel)
{
	struct ring *r = &a->proc->channels[channel].ring;
	a->at[channel] = MAX(a->at[channel], r->begin); /* past a gap */
	struct view v = ring_peek(r, a->at[channel]);
	if (channel == PROC_CONTROL)
		v = view_head(v, (size_t)(proc_out_control_end(a->proc, a->at) - a->at[channel]));
	return v;
}

/* Control first, where it may go; stdout and stderr by turns. */
static struct view next_piece(struct attachment *a, unsigned *ret_channel)
{
	const unsigned order[] = { PROC_CONTROL, a->turn ? PROC_ERR : PROC_OUT,
				   a->turn ? PROC_OUT : PROC_ERR };
	for (size_t i = 0; i < ELEMS(order); i++) {
		struct view v = ready(a, order[i]);
		if (v.n) {
			*ret_channel = order[i];
			return v;
		}
	}
	return VIEW_NONE;
}

static bool sent_all(const struct attachment *a)
{
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		if (a->at[i] < a->proc->channels[i].ring.end)
			return false;
	return true;
}

static void pump(struct attachment *a)
{
	struct proc *p = a->proc;
	for (size_t room; (room = stream_room(&a->stream));) {
		unsigned channel = 0;
		struct view v = view_head(next_piece(a, &channel), room);
		if (v.n == 0)
			break;
		a->at[channel] += v.n;
		a->turn = channel == PROC_OUT;
		stream_data(&a->stream, (uint16_t)(channel + 1), v);
		if (!p->keep)
			ring_drop(&p->channels[channel].ring, a->at[channel]);
	}
	if (p->settled && sent_all(a)) {
		struct wire_exited msg;
		proc_exited(p, &msg);
		stream_finish(&a->stream, &wire_exited_msg, &msg);
	}
}

void proc_attach_pump(struct proc *p)
{
	do {
		LIST_EACH (it, &p->attachments)
			pump(CONTAINER(it, struct attachment, node));
	} while (proc_out_resume(p));
}

/* ---- the stream ------------------------------------------------------- */

static void on_data(struct stream *s, struct view data)
{
	proc_in_data(attachment_of(s)->proc, s, data);
}

static void on_end(struct stream *s)
{
	struct attachment *a = attachment_of(s);
	if (a->starter)
		proc_in_end(a->proc);
}

static void on_ready(struct stream *s)
{
	struct attachment *a = attachment_of(s);
	struct proc *p = a->proc;
	pump(a);
	if (proc_out_resume(p))
		proc_attach_pump(p);
}

/* One that has exited leaves its background in peace. */
static void on_cancel(struct stream *s, bool lost)
{
	struct attachment *a = attachment_of(s);
	if (a->kill && !a->proc->exited)
		farewell_begin(a->proc->init, a->proc->pid);
	if (!lost) {
		struct err e;
		err_set(&e, ERR_CANCELLED, "cancelled");
		stream_fail(s, &e);
	}
}

static void on_stop(struct stream *s)
{
	struct attachment *a = attachment_of(s);
	struct proc *p = a->proc;
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		p->hold_at[i] = proc_attach_floor(a, i);
	proc_in_forget(p, s);
	list_del(&a->node);
	p->n_attachments--;
	proc_detach(p);
}

static void on_free(struct stream *s)
{
	free(attachment_of(s));
}

static const struct stream_ops attachment_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_ready = on_ready,
	.on_cancel = on_cancel,
	.stop = on_stop,
	.free = on_free,
};

struct attachment *proc_attach_new(struct proc *p, struct err *e)
{
	if (p->n_attachments >= PROC_ATTACHMENTS) {
		err_set(e, ERR_UNAVAILABLE, "too many callers are attached to process %d", (int)p->pid);
		return NULL;
	}
	struct attachment *a = calloc(1, sizeof(*a));
	if (!a)
		err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	else
		a->proc = p;
	return a;
}

void proc_attach_open(struct attachment *a, const struct conn_call *call)
{
	struct proc *p = a->proc;
	stream_open(&a->stream, call, &attachment_ops);
	list_append(&p->attachments, &a->node);
	p->n_attachments++;
	p->held = false;
	loop_timer_stop(&p->hold);
}

static uint64_t offset_in(const struct ring *r, uint64_t wish, bool from_end)
{
	return from_end ? r->end : MIN(MAX(wish, r->begin), r->end);
}

int proc_attach(const struct conn_call *call, struct err *e)
{
	const struct wire_attach *msg = call->msg;
	struct proc *p = proc_find(call->conn->init, msg->process, e);
	struct attachment *a = p ? proc_attach_new(p, e) : NULL;
	if (!a)
		return -1;
	const uint64_t wishes[] = { msg->stdout_offset, msg->stderr_offset, msg->control_offset };
	for (unsigned i = 0; i < PROC_CHANNELS; i++)
		a->at[i] = offset_in(&p->channels[i].ring, wishes[i], msg->from_end);
	a->kill = msg->kill;
	proc_attach_open(a, call);
	struct wire_process_info info;
	struct wire_exited exited;
	proc_describe(p, &info, &exited);
	stream_reply(&a->stream, &wire_attached_msg,
		     &(struct wire_attached){ .info = &info,
					      .stdout_offset = a->at[PROC_OUT],
					      .stderr_offset = a->at[PROC_ERR],
					      .control_offset = a->at[PROC_CONTROL] });
	on_ready(&a->stream);
	return 0;
}
