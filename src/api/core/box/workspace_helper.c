/*
 * The files of a workspace without a box: see workspaces.h. The host never resolves a path in a box,
 * so a hidden box does it. It has the workspace mounted and nothing else to write to, and is removed
 * when it has not been used for a while.
 */
#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "create.h"
#include "life.h"
#include "remove.h"
#include "who.h"
#include "workspaces.h"
#include "poison.h"

#define IDLE_SECONDS 10

struct waiter {
	struct job job;
	struct list link; /* of workspace->waiters */
	struct loop_task task;
	struct core *core;
	char helper[BOX_ID + 1];
};

static void on_made(void *arg, const void *result, const struct err *e)
{
	struct workspace *w = arg;
	struct box *b = (struct box *)result;

	w->making = false;
	w->helper = b;
	while (!list_empty(&w->waiters)) {
		struct waiter *one = CONTAINER(w->waiters.next, struct waiter, link);
		list_del(&one->link);
		job_finish(&one->job, b, e);
		free(one);
	}
}

static void finish_later(struct loop_task *t)
{
	struct waiter *one = CONTAINER(t, struct waiter, task);
	struct box *b = boxes_by_id(one->core, view_of(one->helper));
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the workspace cannot be reached at the moment");
	job_finish(&one->job, b, b ? NULL : &e);
	free(one);
}

static int make(struct core *c, struct workspace *w, struct err *e)
{
	struct box_wish wish = { .workspace = view_of(w->name),
				 .workspace_readonly = w->readonly,
				 .idle_seconds = IDLE_SECONDS,
				 .readonly_root = true };

	w->making = create_helper(c, w->tenant, &wish, on_made, w, e) != NULL;
	return w->making ? 0 : -1;
}

struct job *workspace_helper(struct core *c, const struct actor *a, int act, struct view ref, job_done *done,
			     void *arg, struct err *e)
{
	struct workspace *w = workspaces_find(c, a, act, ref, e);

	if (!w)
		return NULL;
	if (w->readonly && act == ACT_WORKSPACE_WRITE) {
		err_set(e, ERR_STATE, "the workspace \"%s\" is read-only", w->name);
		return NULL;
	}
	if (w->helper && w->helper->state.status != BOX_RUNNING) { /* it was ended, by whatever */
		struct box *old = TAKE_PTR(w->helper);
		old->in->workspaces[0] = NULL;
		remove_unwanted(old);
	}
	struct waiter *one = calloc(1, sizeof(*one));
	if (!one) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "workspace");
		return NULL;
	}
	one->job = (struct job){ .done = done, .arg = arg };
	one->core = c;
	list_init(&one->link);
	if (w->helper) {
		lifetime_touch(w->helper);
		memcpy(one->helper, w->helper->id, sizeof(one->helper));
		loop_defer(c->loop, &one->task, finish_later);
	} else if (w->making || make(c, w, e) >= 0) {
		list_append(&w->waiters, &one->link);
	} else {
		free(one);
		return NULL;
	}
	return &one->job;
}
