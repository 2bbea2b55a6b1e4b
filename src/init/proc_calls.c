/*
 * Requests about processes that need no stream: Signal, Resize, Processes.
 */
#include "proc.h"

#include <errno.h>
#include <signal.h>

#include "pty.h"
#include "tree.h"
#include "poison.h"

static unsigned send_signal(const struct proc *p, const struct wire_signal *msg)
{
	switch ((enum wire_signal_scope)msg->scope) {
	case WIRE_SIGNAL_SCOPE_TREE:
		return tree_signal(p->pid, (int)msg->signo);
	case WIRE_SIGNAL_SCOPE_BELOW:
		return tree_signal_below(p->pid, (int)msg->signo, msg->since_ms);
	case WIRE_SIGNAL_SCOPE_PROCESS:
		return kill(p->pid, (int)msg->signo) < 0 ? 0 : 1;
	case WIRE_SIGNAL_SCOPE_GROUP:
		break;
	}
	return kill(-p->pid, (int)msg->signo) < 0 ? 0 : 1;
}

/* Plain ones, too; only the living. */
int proc_signal(const struct conn_call *call, struct err *e)
{
	const struct wire_signal *msg = call->msg;
	if (msg->signo < 1 || msg->signo > 64)
		return err_set(e, ERR_INVALID, "there is no signal %u", msg->signo);
	if (msg->scope < 0 || msg->scope > WIRE_SIGNAL_SCOPE_PROCESS)
		return err_set(e, ERR_INVALID, "there is no scope %d", msg->scope);
	LIST_EACH (it, &call->conn->init->procs) {
		struct proc *p = CONTAINER(it, struct proc, node);
		bool is = msg->pid ? (uint32_t)p->pid == msg->pid
				   : msg->tag.n && p->keep && view_eq(p->about.tag, msg->tag);
		if (!is)
			continue;
		conn_reply(call, &wire_signal_reply_msg,
			   &(struct wire_signal_reply){ .signalled = send_signal(p, msg) });
		return 0;
	}
	if (msg->pid == 0)
		return err_set(e, ERR_NOT_FOUND, "no process with the tag '%.*s' is running",
			       VIEW_ARG(view_head(msg->tag, PROC_TAG)));
	return err_set(e, ERR_NOT_FOUND, "process %u is not running", msg->pid);
}

int proc_resize(const struct conn_call *call, struct err *e)
{
	const struct wire_resize *msg = call->msg;
	struct proc *p = proc_find(call->conn->init, msg->process, e);
	if (!p)
		return -1;
	if (!p->pty)
		return err_set(e, ERR_STATE, "process %d has no terminal", (int)p->pid);
	if (p->exited)
		return err_set(e, ERR_STATE, "process %d has ended", (int)p->pid);
	if (pty_resize(p->channels[PROC_OUT].fd, msg->cols, msg->rows, e) < 0)
		return -1;
	conn_reply(call, &wire_resize_reply_msg, &(struct wire_resize_reply){ 0 });
	return 0;
}

int proc_list(const struct conn_call *call, struct err *e)
{
	struct init *in = call->conn->init;
	struct list *lists[] = { &in->ended, &in->procs };
	size_t most = in->n_living + in->n_ended;
	struct wire_processes_reply r = {
		.processes.items = arena_array(call->arena, most, sizeof(struct wire_process_info)),
	};
	struct wire_exited *exits = arena_array(call->arena, most, sizeof(*exits));
	if (most && (!r.processes.items || !exits))
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	for (size_t i = 0; i < ELEMS(lists); i++)
		LIST_EACH (it, lists[i]) {
			const struct proc *p = CONTAINER(it, struct proc, node);
			if (!p->keep)
				continue;
			proc_describe(p, &r.processes.items[r.processes.n], &exits[r.processes.n]);
			r.processes.n++;
		}
	conn_reply(call, &wire_processes_reply_msg, &r);
	return 0;
}
