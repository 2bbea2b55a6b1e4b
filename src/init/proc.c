/*
 * The table of processes, and how one ends: see proc.h.
 *
 * A process leaves the table of the living when it is reaped, and is settled when
 * the rest of its output has been read. A plain one then goes with its stream;
 * a kept one is remembered until PROC_ENDED others have ended after it. Its
 * output is given up after PROC_RETAIN_MS.
 */
#include "proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "clock.h"
#include "fd.h"
#include "spare.h"
#include "sudo.h"
#include "tree.h"
#include "poison.h"

#define ABOUT_MEMORY (32u * 1024)

/* ---- existence -------------------------------------------------------- */

struct proc *proc_new(struct init *in)
{
	struct proc *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->init = in;
	arena_init(&p->memory, ABOUT_MEMORY);
	list_init(&p->node);
	list_init(&p->attachments);
	list_init(&p->freeing.link);
	proc_in_init(p);
	return p;
}

void proc_free(struct proc *p)
{
	loop_timer_stop(&p->limit);
	loop_timer_stop(&p->hold);
	proc_in_close(p);
	proc_out_close(p, false);
	proc_out_forget(p);
	free(p->order);
	arena_done(&p->memory);
	free(p);
}

static void run_free(struct loop_task *task)
{
	proc_free(CONTAINER(task, struct proc, freeing));
}

/* Not at once: somebody further up the stack may hold it, and the loop may have news for it. */
static void dispose(struct proc *p)
{
	proc_in_close(p);
	proc_out_close(p, false);
	loop_timer_stop(&p->limit);
	loop_timer_stop(&p->hold);
	if (list_empty(&p->freeing.link))
		loop_defer(p->init->loop, &p->freeing, run_free);
}

static void unlist(struct proc *p)
{
	if (p->keep && p->exited)
		p->init->n_ended--;
	else if (p->keep)
		p->init->n_living--;
	list_del(&p->node);
	p->unlisted = true;
	if (p->n_attachments == 0)
		dispose(p);
}

int proc_admit(struct init *in, struct view tag, struct err *e)
{
	if (in->n_living >= PROC_LIVING)
		return err_set(e, ERR_UNAVAILABLE, "the sandbox has %d processes that are kept", PROC_LIVING);
	LIST_EACH (it, &in->procs) {
		struct proc *p = CONTAINER(it, struct proc, node);
		if (tag.n && p->keep && view_eq(p->about.tag, tag))
			return err_set(e, ERR_CONFLICT, "process %d has the tag '%.*s'", (int)p->pid,
				       VIEW_ARG(tag));
	}
	return 0;
}

static struct proc *find_in(struct list *list, const struct wire_process_selector *who)
{
	struct proc *found = NULL;
	LIST_EACH (it, list) { /* the latest counts: both names are used again */
		struct proc *p = CONTAINER(it, struct proc, node);
		bool is = who->pid ? (uint32_t)p->pid == who->pid : view_eq(p->about.tag, who->tag);
		if (p->keep && is)
			found = p;
	}
	return found;
}

struct proc *proc_find(struct init *in, const struct wire_process_selector *who, struct err *e)
{
	if (!who || (who->pid == 0 && who->tag.n == 0)) {
		err_set(e, ERR_INVALID, "neither a pid nor a tag names the process");
		return NULL;
	}
	struct proc *p = find_in(&in->procs, who);
	if (!p)
		p = find_in(&in->ended, who);
	if (!p && who->pid)
		err_set(e, ERR_NOT_FOUND, "there is no kept process %u", who->pid);
	else if (!p)
		err_set(e, ERR_NOT_FOUND, "there is no process with the tag '%.*s'",
			VIEW_ARG(view_head(who->tag, PROC_TAG)));
	return p;
}

/* ---- what is told of it ----------------------------------------------- */

void proc_exited(const struct proc *p, struct wire_exited *ret)
{
	bool killed = WIFSIGNALED(p->status);
	*ret = (struct wire_exited){
		.exit_code = killed ? 128 + (uint32_t)WTERMSIG(p->status) : (uint32_t)WEXITSTATUS(p->status),
		.signal = killed ? (uint32_t)WTERMSIG(p->status) : 0,
		.timed_out = p->timed_out,
		.stdout_truncated = p->channels[PROC_OUT].truncated,
		.stderr_truncated = p->channels[PROC_ERR].truncated,
		.duration_us = (p->ended_ns - p->started_ns) / 1000,
		.oom_killed = p->oom_killed,
		.memory_limit = p->oom_killed ? oom_memory() : 0,
	};
}

void proc_describe(const struct proc *p, struct wire_process_info *ret, struct wire_exited *ret_exited)
{
	*ret = p->about;
	ret->running = !p->exited;
	if (p->exited) {
		proc_exited(p, ret_exited);
		ret->exited = ret_exited;
	}
	ret->stdout_end = p->channels[PROC_OUT].ring.end;
	ret->stderr_end = p->channels[PROC_ERR].ring.end;
	ret->control_end = p->channels[PROC_CONTROL].ring.end;
}

/* ---- the end ---------------------------------------------------------- */

static void on_deadline(struct loop_timer *t)
{
	struct proc *p = CONTAINER(t, struct proc, limit);
	p->timed_out = true;
	tree_kill(p->pid);
}

static void on_old(struct loop_timer *t)
{
	struct proc *p = CONTAINER(t, struct proc, limit);
	if (p->n_attachments || !p->settled)
		loop_timer_start(p->init->loop, t, PROC_RETAIN_MS, on_old);
	else
		proc_out_forget(p);
}

static void on_hold_over(struct loop_timer *t)
{
	struct proc *p = CONTAINER(t, struct proc, hold);
	p->held = false;
	(void)proc_out_resume(p); /* nobody is there to pass it on to */
}

void proc_detach(struct proc *p)
{
	if (p->n_attachments)
		; /* the others go on */
	else if (!p->keep && !p->unlisted)
		unlist(p); /* whatever becomes of the process, it is reaped as anybody's child */
	else if (p->unlisted)
		dispose(p);
	else if (p->wait_reader && !p->settled) {
		p->held = true;
		loop_timer_start(p->init->loop, &p->hold, PROC_HOLD_MS, on_hold_over);
	}
	if (!p->unlisted)
		(void)proc_out_resume(p); /* nobody is there to pass it on to */
}

void proc_settle(struct proc *p)
{
	p->settled = true;
	proc_out_close(p, true);
}

static void on_exit_of(struct proc *p, int status)
{
	struct init *in = p->init;
	p->exited = true;
	p->status = status;
	p->ended_ns = clock_mono_ns();
	p->oom_killed = status != 0 && oom_kills() != p->oom_before;
	list_del(&p->node);
	loop_timer_stop(&p->limit);
	proc_in_close(p);
	if (p->keep) {
		in->n_living--;
		in->n_ended++;
		list_append(&in->ended, &p->node);
		loop_timer_start(in->loop, &p->limit, PROC_RETAIN_MS, on_old);
	}
	proc_out_exited(p);
	if (in->n_ended > PROC_ENDED)
		unlist(CONTAINER(in->ended.next, struct proc, node));
}

void proc_reap(struct init *in)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		LIST_EACH (it, &in->procs) {
			struct proc *p = CONTAINER(it, struct proc, node);
			if (p->pid == pid) {
				on_exit_of(p, status);
				spare_ended(in);
				break;
			}
		}
		spare_reaped(in, pid);
		sudo_reaped(in, pid, status);
	}
}

void proc_add(struct proc *p, uint32_t deadline_ms)
{
	list_append(&p->init->procs, &p->node);
	oom_watch(p->init);
	if (p->keep)
		p->init->n_living++;
	if (deadline_ms)
		loop_timer_start(p->init->loop, &p->limit, deadline_ms, on_deadline);
}

void proc_stop(struct init *in)
{
	LIST_EACH (it, &in->procs)
		unlist(CONTAINER(it, struct proc, node));
	LIST_EACH (it, &in->ended)
		unlist(CONTAINER(it, struct proc, node));
	proc_out_stop_drains(in);
}
