/*
 * Pause, resume, stop, start: see life.h. A step is one call to the keeper. A request for the step in
 * progress waits with the others; a request for another step is refused.
 */
#include "life.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "create.h"
#include "event.h"
#include "events.h"
#include "farewell.h"
#include "fd.h"
#include "guest.h"
#include "keeper.h"
#include "log.h"
#include "mounts.h"
#include "policies.h"
#include "pool.h"
#include "quotas.h"
#include "remove.h"
#include "who.h"
#include "wire_gen.h"
#include "workspaces.h"
#include "poison.h"

#define KEEPER_MS 30000

struct waiter {
	struct job job;
	struct list link; /* of box->life.waiters */
	struct loop_task task;
	struct box *box;
};

static const char *const doing[] = {
	[LIFE_PAUSE] = "being paused",
	[LIFE_RESUME] = "being resumed",
	[LIFE_STOP] = "being stopped",
	[LIFE_START] = "being started",
};

static int begin(struct box *b, enum life_step step);

/* ---- the end of a step ---- */

/* Those that wait by now: one that is told may begin the next step, and wait for that. */
static void tell_waiters(struct box *b, const struct err *e)
{
	struct list told = LIST_INIT(told);

	LIST_EACH (it, &b->in->life->waiters) {
		list_del(it);
		list_append(&told, it);
	}
	while (!list_empty(&told)) {
		struct waiter *w = CONTAINER(told.next, struct waiter, link);
		list_del(&w->link);
		job_finish(&w->job, b, e);
		free(w);
	}
}

/* A step that was taken and is being stored. */
struct life_storing {
	struct box *box;     /* its row goes after this write: it is still there when that is done */
	struct list waiters; /* jobs */
};

static void end_storing(struct life_storing *st, const struct err *e)
{
	struct box *b = st->box;

	if (b->in->life->storing == st)
		b->in->life->storing = NULL;
	while (!list_empty(&st->waiters)) {
		struct waiter *w = CONTAINER(st->waiters.next, struct waiter, link);
		list_del(&w->link);
		job_finish(&w->job, b, e);
		free(w);
	}
	free(st);
}

static void on_stored(void *arg, const struct err *e)
{
	struct life_storing *st = arg;

	core_store_result(st->box->in->core, e);
	end_storing(st, e);
}

/* Who asked for a step is told when the store has it, its event and the new end of the box's time: an api
 * that dies then would take a stop for an exit, and end a box whose time began anew. */
static void tell_when_stored(struct box *b)
{
	struct life_storing *st = calloc(1, sizeof(*st));
	struct err e = { 0 };

	if (!st) {
		(void)boxes_store_status(b, core_store_done, b->in->core);
		err_sys(&e, ERR_INTERNAL, ENOMEM, "sandbox");
		tell_waiters(b, &e);
		return;
	}
	st->box = b;
	list_init(&st->waiters);
	LIST_EACH (it, &b->in->life->waiters) {
		list_del(it);
		list_append(&st->waiters, it);
	}
	b->in->life->storing = st;
	if (!boxes_store_status(b, on_stored, st))
		end_storing(st, NULL);
}

/* A box that is being removed is that, whatever else becomes of it meanwhile. The caller stores it. */
static void become(struct box *b, enum box_status s)
{
	if (b->state.status == BOX_DELETING)
		b->in->before = s;
	else
		boxes_set_status(b, s, false);
}

static void stop_guest(struct box *b)
{
	struct err e = { 0 };
	err_set(&e, ERR_STATE, "the sandbox has stopped");
	guest_stop(b->in->guest, &e);
}

static void succeeded(struct box *b, enum life_step step)
{
	enum box_status was = b->state.status == BOX_DELETING ? b->in->before : b->state.status;

	/* It may have ended by itself just then. */
	if (step == LIFE_PAUSE && was == BOX_RUNNING) {
		events_emit(b->in->core, EVENT_PAUSED, b);
		become(b, BOX_PAUSED);
	} else if (step == LIFE_RESUME && was == BOX_PAUSED) {
		events_emit(b->in->core, EVENT_RESUMED, b);
		become(b, BOX_RUNNING);
		lifetime_renew(b);
	} else if (step == LIFE_STOP) {
		stop_guest(b);
		events_emit(b->in->core, EVENT_STOPPED, b);
		become(b, BOX_STOPPED);
	} else if (step == LIFE_START) {
		events_emit(b->in->core, EVENT_STARTED, b);
		become(b, BOX_RUNNING);
		lifetime_renew(b);
	}
}

/* Where nobody waited it was the end of the box's time, which is not given up. */
static void failed_quietly(struct box *b, enum life_step step, const struct err *e)
{
	log_warn("sandbox %s: not %s: %s", b->id, doing[step] + strlen("being "), e->msg);
	if (step == LIFE_PAUSE && e->code == ERR_UNSUPPORTED && begin(b, LIFE_STOP) >= 0)
		return; /* the next best: its files stay */
	lifetime_retry(b);
}

static void settle(struct box *b, const struct err *e)
{
	enum life_step step = b->in->step;
	bool quiet = list_empty(&b->in->life->waiters), resume = b->in->life->resume_after && !e;
	struct err why = { 0 };

	b->in->step = LIFE_NONE;
	b->in->life->resume_after = false;
	if (e)
		why = *e;
	else
		succeeded(b, step);
	if (b->in->life->remove_after) {
		b->in->life->remove_after = false;
		err_set(&why, ERR_STATE, "the sandbox is being removed");
		tell_waiters(b, &why);
		remove_go_on(b);
		return;
	}
	if (e)
		tell_waiters(b, &why);
	else
		tell_when_stored(b);
	if (b->in->step != LIFE_NONE || b->in->core->stopping)
		return; /* somebody who was told began the next one */
	if (e && quiet)
		failed_quietly(b, step, &why);
	else
		lifetime_watch(b);
	if (step == LIFE_PAUSE && resume)
		life_begin(b, LIFE_RESUME);
}

/* ---- the keeper's answers ---- */

static int on_reply(struct call *c, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	settle(CONTAINER(c, struct life, call)->box, NULL);
	return 0;
}

static void on_fail(struct call *c, const struct err *said)
{
	struct box *b = CONTAINER(c, struct life, call)->box;
	struct err e = *said;

	if (e.code == ERR_NOT_FOUND) { /* it has ended by itself */
		err_set(&e, ERR_STATE, "the sandbox has stopped");
		settle(b, b->in->step == LIFE_STOP ? NULL : &e);
		return;
	}
	settle(b, &e);
}

static const struct call_ops plain_ops = { .on_reply = on_reply, .on_fail = on_fail };

/* ---- starting again ---- */

static int on_undone(struct call *c, const struct frame *f, int fd)
{
	struct box *b = CONTAINER(c, struct life, call)->box;
	struct err e = b->in->life->failed;
	fd_close(fd);
	settle(b, &e);
	return 0;
}

static void on_undo_fail(struct call *c, const struct err *said)
{
	struct box *b = CONTAINER(c, struct life, call)->box;
	struct err e = b->in->life->failed;
	settle(b, &e);
}

static const struct call_ops undo_ops = { .on_reply = on_undone, .on_fail = on_undo_fail };

/* It runs, but says nothing or lacks what it should have: it is ended again. */
static void on_mounted(struct box *b, const struct err *e)
{
	struct wire_box_stop msg = { .id = view_of(b->id) };

	if (!e) {
		settle(b, NULL);
		return;
	}
	b->in->life->failed = *e;
	guest_stop(b->in->guest, &b->in->life->failed);
	b->in->life->call.ops = &undo_ops;
	if (keeper_call_for(b->in->core, view_of(b->spec.backend), &b->in->life->call, WIRE_TYPE_BOX_STOP,
			    KEEPER_MS, &wire_box_stop_msg, &msg) < 0) {
		struct err why = b->in->life->failed;
		settle(b, &why);
	}
}

static void on_greeted(struct guest *g, const struct err *e)
{
	struct box *b = g->owner;

	if (e)
		on_mounted(b, e);
	else
		mounts_apply(b, on_mounted);
}

static int on_start_reply(struct call *c, const struct frame *f, int fd)
{
	struct box *b = CONTAINER(c, struct life, call)->box;

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	(void)!policies_push(b, policies_of(b, NULL), false, NULL, NULL);
	guest_revive(b->in->guest);
	guest_adopt(b->in->guest, fd, on_greeted);
	return 0;
}

static void on_start_fail(struct call *c, const struct err *e)
{
	settle(CONTAINER(c, struct life, call)->box, e);
}

static const struct call_ops start_ops = { .on_reply = on_start_reply, .on_fail = on_start_fail };

/* ---- beginning ---- */

static int ask(struct box *b, enum life_step step)
{
	struct wire_box_pause pause = { .id = view_of(b->id) };
	struct wire_box_resume resume = { .id = view_of(b->id) };
	struct wire_box_stop stop = { .id = view_of(b->id) };
	struct call *call = &b->in->life->call;

	call->ops = step == LIFE_START ? &start_ops : &plain_ops;
	switch (step) {
	case LIFE_PAUSE:
		return keeper_call_for(b->in->core, view_of(b->spec.backend), call, WIRE_TYPE_BOX_PAUSE,
				       KEEPER_MS, &wire_box_pause_msg, &pause);
	case LIFE_RESUME:
		return keeper_call_for(b->in->core, view_of(b->spec.backend), call, WIRE_TYPE_BOX_RESUME,
				       KEEPER_MS, &wire_box_resume_msg, &resume);
	case LIFE_STOP:
		return keeper_call_for(b->in->core, view_of(b->spec.backend), call, WIRE_TYPE_BOX_STOP,
				       KEEPER_MS, &wire_box_stop_msg, &stop);
	case LIFE_START:
		return create_ask_keeper(b, call, NULL, true);
	case LIFE_NONE:
		break;
	}
	return -EINVAL;
}

/* The box's farewell is over. */
static void ask_to_stop(struct box *b)
{
	struct err e = { 0 };

	if (ask(b, LIFE_STOP) >= 0)
		return;
	err_set(&e, ERR_UNAVAILABLE, "the keeper cannot be reached");
	settle(b, &e);
}

static int begin(struct box *b, enum life_step step)
{
	int r = step == LIFE_STOP && farewell_begin(b, b->state.status, ask_to_stop) ? 0 : ask(b, step);

	if (r >= 0)
		b->in->step = step;
	return r;
}

void life_begin(struct box *b, enum life_step step)
{
	if (b->in->step == LIFE_NONE && begin(b, step) < 0)
		lifetime_retry(b);
}

bool life_defers_removal(struct box *b)
{
	return b->in->life->remove_after = b->in->step != LIFE_NONE;
}

static void forget(struct box *b, const struct err *e)
{
	loop_timer_stop(&b->in->life->expiry);
	mux_cancel(&b->in->life->destroy);
	farewell_cancel(b);
	mux_cancel(&b->in->life->call);
	b->in->step = LIFE_NONE;
	tell_waiters(b, e);
}

static int use(struct box *b, struct err *e)
{
	bool paused = b->state.status == BOX_PAUSED, pausing = b->in->step == LIFE_PAUSE;

	lifetime_touch(b);
	if (!paused && !pausing)
		return 0;
	if (!b->spec.auto_resume && b->in->step != LIFE_RESUME)
		return err_set(e, ERR_STATE, "the sandbox is %s", pausing ? doing[LIFE_PAUSE] : "paused");
	if (pausing)
		b->in->life->resume_after = true;
	else if (b->in->step == LIFE_NONE && begin(b, LIFE_RESUME) < 0)
		return err_set(e, ERR_UNAVAILABLE, "the keeper cannot be reached");
	return 0;
}

/* ---- what clients ask for ---- */

static void finish_later(struct loop_task *t)
{
	struct waiter *w = CONTAINER(t, struct waiter, task);
	job_finish(&w->job, w->box, NULL);
	free(w);
}

/* 1: it is so already; 0: the step can be taken. */
static int check_step(const struct box *b, enum life_step step, struct err *e)
{
	static const enum box_status goal[] = {
		[LIFE_PAUSE] = BOX_PAUSED,
		[LIFE_RESUME] = BOX_RUNNING,
		[LIFE_STOP] = BOX_STOPPED,
		[LIFE_START] = BOX_RUNNING,
	};
	enum box_status is = b->state.status;
	bool fits = step == LIFE_PAUSE    ? is == BOX_RUNNING
		    : step == LIFE_RESUME ? is == BOX_PAUSED
		    : step == LIFE_START  ? is == BOX_STOPPED
					  : is == BOX_RUNNING || is == BOX_PAUSED;

	if (b->in->step == step)
		return 0;
	if (b->in->step != LIFE_NONE)
		return err_set(e, ERR_STATE, "the sandbox is %s", doing[b->in->step]);
	if (is == goal[step])
		return 1;
	if (!fits)
		return err_set(e, ERR_STATE, "the sandbox is %s", boxes_status_name(is));
	return 0;
}

struct job *life_change(struct core *c, const struct actor *a, struct view ref, enum life_step step,
			job_done *done, void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_CHANGE, ref, e);
	int so = b ? check_step(b, step, e) : -1;

	if (so < 0)
		return NULL;
	if (step == LIFE_START && !so && b->in->step == LIFE_NONE &&
	    (quotas_admit_start(c, b, e) < 0 || boxes_start(b, e) < 0))
		return NULL;
	struct waiter *w = calloc(1, sizeof(*w));
	if (!w) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	w->job = (struct job){ .done = done, .arg = arg };
	w->box = b;
	list_init(&w->link);
	if (so && b->in->life->storing) {
		list_append(&b->in->life->storing->waiters, &w->link);
		return &w->job;
	}
	if (so) {
		loop_defer(c->loop, &w->task, finish_later);
		return &w->job;
	}
	int r = b->in->step == step ? 0 : begin(b, step);
	if (r < 0) {
		err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		free(w);
		return NULL;
	}
	list_append(&b->in->life->waiters, &w->link);
	return &w->job;
}

/* ---- what comes of itself ---- */

void life_exited(struct core *c, struct view id, unsigned signo, bool oom)
{
	struct box *b = boxes_by_id(c, id);
	struct err e = { 0 };

	if (!b)
		return;
	if (b->state.status == BOX_DELETING) {
		b->in->before = BOX_STOPPED;
		return;
	}
	if (b->in->pooled) {
		pool_exited(b);
		return;
	}
	err_set(&e, ERR_STATE, "the sandbox has stopped%s", oom ? " (out of memory)" : "");
	log_info("sandbox %s: its first process has ended (signal %u%s)", b->id, signo,
		 oom ? ", out of memory" : "");
	guest_stop(b->in->guest, &e);
	/* A creation that is under way fails by its guest and cleans up itself. */
	if (b->state.status == BOX_RUNNING || b->state.status == BOX_PAUSED) {
		events_exited(c, b, 0, signo, oom);
		boxes_set_status(b, BOX_STOPPED, true);
	}
}

void life_stop_all(struct core *c)
{
	struct err e = { 0 };
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	for (struct map_node *n = map_first(&c->boxes->by_id), *next; n; n = next) {
		next = map_next(&c->boxes->by_id, n);
		guest_stop(BOX_OF(n, by_id)->in->guest, &e);
	}
}

static void init(struct box *b)
{
	b->in->life->box = b;
	list_init(&b->in->life->waiters);
	list_init(&b->in->life->removers);
}

const struct box_part life_part = {
	.slot = offsetof(struct box_inside, life),
	.size = sizeof(struct life),
	.init = init,
	.use = use,
	.forget = forget,
};
