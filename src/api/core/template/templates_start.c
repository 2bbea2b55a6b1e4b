/*
 * Runs the commands of a template in its boxes: a start command that keeps running, and a ready
 * command whose exit status says whether the first is ready. See templates.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "exec.h"
#include "remove.h"
#include "spec_make.h"
#include "templates.h"
#include "who.h"
#include "poison.h"

#define POLL_MS  200
#define ASK_MS   10000 /* for one answer */
#define READY_MS 50000 /* clients wait a minute for a box */

struct start {
	struct job job;
	struct core *core;
	struct list link; /* of core->templates->starts */
	struct actor actor;
	char box[BOX_ID + 1];
	bool trial;
	struct arena arena;
	struct json_strmap env; /* of a trial: a box of the template has its own */
	struct view user, workdir, start, ready;
	struct exec exec;
	struct loop_task task;
	struct loop_timer timer;
	uint64_t until_ms;
};

static void start_free(struct start *s)
{
	loop_cancel(s->core->loop, &s->task);
	loop_timer_stop(&s->timer);
	list_del(&s->link);
	arena_done(&s->arena);
	free(s);
}

static void finish(struct start *s, const struct err *e)
{
	struct box *b = boxes_by_id(s->core, view_of(s->box));
	bool lost = e || job_abandoned(&s->job);
	struct err gone = { 0 };

	if (!b && !e) {
		boxes_unknown(&gone);
		e = &gone;
	}
	job_finish(&s->job, b, e);
	if (lost && b && !s->trial && !s->core->stopping)
		remove_unwanted(b);
	start_free(s);
}

static int run(struct start *s, struct view command, bool keep, struct err *e)
{
	struct view argv[] = { VIEW("/bin/bash"), VIEW("-l"), VIEW("-c"), command };
	const struct exec_wish w = { .argv = { argv, ELEMS(argv) },
				     .env = s->env,
				     .user = s->user,
				     .cwd = s->workdir,
				     .keep = keep,
				     .timeout_ms = keep ? 0 : ASK_MS };

	return exec_start(s->core, &s->actor, view_of(s->box), &w, &s->exec, e);
}

static void ask(struct loop_task *t);

static void on_time(struct loop_timer *t)
{
	ask(&CONTAINER(t, struct start, timer)->task);
}

static void on_answer(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct start *s = CONTAINER(x, struct start, exec);
	struct err late = { 0 };

	if (e || job_abandoned(&s->job) || r->exit_code == 0) {
		finish(s, e);
	} else if (clock_mono_ms() >= s->until_ms) {
		err_set(&late, ERR_TIMEOUT, "what the template starts was not ready within %d seconds",
			READY_MS / 1000);
		finish(s, &late);
	} else {
		loop_timer_start(s->core->loop, &s->timer, POLL_MS, on_time);
	}
}

static void ask(struct loop_task *t)
{
	struct start *s = CONTAINER(t, struct start, task);
	struct err e = { 0 };

	exec_cancel(&s->exec); /* what was started goes on without us */
	if (!s->ready.n) {
		finish(s, NULL);
		return;
	}
	s->exec = (struct exec){ .done = on_answer };
	if (run(s, s->ready, false, &e) < 0)
		finish(s, &e);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct start *s = CONTAINER(x, struct start, exec);
	loop_defer(s->core->loop, &s->task, ask);
}

/* Before it has begun: it could not. After: whether that is a failure the other command knows. */
static void on_ended(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct start *s = CONTAINER(x, struct start, exec);
	if (e)
		finish(s, e);
}

static void begin(struct loop_task *t)
{
	struct start *s = CONTAINER(t, struct start, task);
	struct err e = { 0 };

	if (!s->start.n) {
		ask(t);
		return;
	}
	s->exec = (struct exec){ .on_begun = on_begun, .done = on_ended };
	if (run(s, s->start, true, &e) < 0)
		finish(s, &e);
}

static int copy_map(struct arena *a, const struct json_strmap *from, struct json_strmap *to)
{
	to->keys = arena_array(a, from->n, sizeof(struct view));
	to->values = arena_array(a, from->n, sizeof(struct view));
	if (!to->keys || !to->values)
		return -ENOMEM;
	for (to->n = 0; to->n < from->n; to->n++) {
		to->keys[to->n] = arena_view(a, from->keys[to->n]);
		to->values[to->n] = arena_view(a, from->values[to->n]);
		if (!to->keys[to->n].p || !to->values[to->n].p)
			return -ENOMEM;
	}
	return 0;
}

struct job *templates_start(struct core *c, const struct actor *a, struct view box,
			    const struct template_build *b, bool trial, job_done *done, void *arg,
			    struct err *e)
{
	struct start *s = calloc(1, sizeof(*s));

	if (!s || view_to_str(box, s->box, sizeof(s->box)) < 0) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "template");
		free(s);
		return NULL;
	}
	s->job = (struct job){ .done = done, .arg = arg };
	s->core = c;
	s->actor = *a;
	s->trial = trial;
	s->until_ms = clock_mono_ms() + READY_MS;
	s->arena = ARENA_INIT(SPEC_ARENA_MAX);
	list_init(&s->task.link);
	list_append(&c->templates->starts, &s->link);
	s->start = arena_view(&s->arena, b->start);
	s->ready = arena_view(&s->arena, b->ready);
	s->user = arena_view(&s->arena, b->user);
	s->workdir = arena_view(&s->arena, b->workdir);
	if (!s->start.p || !s->ready.p || !s->user.p || !s->workdir.p ||
	    (trial && copy_map(&s->arena, &b->env, &s->env) < 0)) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "template");
		start_free(s);
		return NULL;
	}
	loop_defer(c->loop, &s->task, begin);
	return &s->job;
}

void templates_start_done(struct core *c)
{
	LIST_EACH (it, &c->templates->starts)
		start_free(CONTAINER(it, struct start, link));
}
