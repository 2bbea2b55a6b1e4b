/*
 * A program of the box's user that runs before the box is stopped or removed: see box.h. The step that waits
 * for it goes on when it has ended, when its time is over, and when the box does not even start it.
 */
#include "farewell.h"

#include <stdlib.h>

#include "core_base.h"
#include "exec.h"
#include "life.h"
#include "log.h"
#include "who.h"
#include "poison.h"

#define START_MS 3000 /* until PID 1 has started it: one that does not answer keeps nobody waiting */

struct farewell {
	struct exec exec;
	struct box *box;
	struct loop_timer guard;
	void (*then)(struct box *b);
};

static void end(struct farewell *f)
{
	struct box *b = f->box;
	void (*then)(struct box * b) = f->then;

	farewell_cancel(b);
	if (!b->in->core->stopping)
		then(b);
}

static void on_begun(struct exec *x, const struct exec_begun *begun)
{
	loop_timer_stop(&CONTAINER(x, struct farewell, exec)->guard);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct farewell *f = CONTAINER(x, struct farewell, exec);

	if (e || res->timed_out)
		log_warn("sandbox %s: its farewell: %s", f->box->id, e ? e->msg : "its time is over");
	end(f);
}

static void on_guard(struct loop_timer *t)
{
	struct farewell *f = CONTAINER(t, struct farewell, guard);

	log_warn("sandbox %s: its farewell was not started", f->box->id);
	end(f);
}

bool farewell_begin(struct box *b, enum box_status is, void (*then)(struct box *b))
{
	static const struct exec_wish wish = {
		.command = VIEW("f=~/" FAREWELL_PROGRAM "; [ -x \"$f\" ] && exec \"$f\""),
		.timeout_ms = FAREWELL_MS,
		.home = true,
	};
	struct err e = { 0 };
	struct farewell *f;

	if (!b->spec.farewell || is != BOX_RUNNING || b->in->farewell || b->in->core->stopping)
		return false;
	f = calloc(1, sizeof(*f));
	if (!f)
		return false;
	f->box = b;
	f->then = then;
	f->exec.on_begun = on_begun;
	f->exec.done = on_done;
	f->exec.call.background = true;
	if (exec_start_in(b, &wish, &f->exec, &e) < 0) {
		log_warn("sandbox %s: its farewell: %s", b->id, e.msg);
		free(f);
		return false;
	}
	b->in->farewell = f;
	loop_timer_start(b->in->core->loop, &f->guard, START_MS, on_guard);
	return true;
}

void farewell_cancel(struct box *b)
{
	struct farewell *f = b->in->farewell;

	if (!f)
		return;
	b->in->farewell = NULL;
	loop_timer_stop(&f->guard);
	exec_cancel(&f->exec);
	free(f);
}

struct job *farewell_wish(struct core *c, const struct actor *a, struct view id_or_name, job_done *done,
			  void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_EXEC, id_or_name, e);

	if (!b)
		return NULL;
	b->spec.farewell = true;
	return boxes_keep_change(b, done, arg,
				 e); /* also when it is set: that write may still be under way */
}
