/*
 * Removes a box: the keeper destroys it, then its row is deleted, then the waiting callers are told. A
 * crash in between leaves a row that says "deleting", never a box without a row, and the next start goes on
 * with it (remove_resume). If a client asked for the removal, a failure is its answer and the box stays as it
 * was. If the box has expired or its creation failed, the removal is repeated until it works.
 */
#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "event.h"
#include "events.h"
#include "farewell.h"
#include "guest.h"
#include "keeper.h"
#include "life.h"
#include "log.h"
#include "remove.h"
#include "vault.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 30000
#define RETRY_MS  5000

struct removal {
	struct job job;
	struct list link; /* of box->waiters */
};

static void destroy(struct box *b);

static void tell_waiters(struct box *b, const struct err *e)
{
	while (!list_empty(&b->in->life->removers)) {
		struct removal *r = CONTAINER(b->in->life->removers.next, struct removal, link);
		list_del(&r->link);
		job_finish(&r->job, NULL, e);
		free(r);
	}
}

static void on_retry(struct loop_timer *t)
{
	destroy(CONTAINER(t, struct life, expiry)->box);
}

/* Beside the removal, which does not wait for it. */
static void note(struct box *b)
{
	if (!b->in->hidden && !b->in->pooled)
		(void)boxes_store_status(b, core_store_done, b->in->core);
}

static void failed(struct box *b, const struct err *e)
{
	if (b->in->core->stopping || b->in->core->keeper->lost) { /* the next start sees to it */
		tell_waiters(b, e);
		if (b->in->hidden)
			boxes_free_later(b);
		return;
	}
	log_error("sandbox %s: cannot be removed: %s", b->id, e->msg);
	if (b->in->life->unwanted) {
		loop_timer_start(b->in->core->loop, &b->in->life->expiry, RETRY_MS, on_retry);
	} else {
		b->state.status = b->in->before;
		note(b);
		lifetime_watch(b);
	}
	tell_waiters(b, e);
}

static void on_row_deleted(void *arg, const struct err *e)
{
	struct box *b = arg;

	core_store_result(b->in->core, e);
	if (e) {
		b->in->before = BOX_STOPPED; /* the box itself is gone by now */
		failed(b, e);
		return;
	}
	tell_waiters(b, NULL);
	boxes_free_later(b);
}

static void destroyed(struct box *b)
{
	struct err e = { 0 };
	err_set(&e, ERR_STATE, "the sandbox was removed");
	guest_stop(b->in->guest, &e);
	events_emit(b->in->core, EVENT_DELETED, b);
	vault_box_removed(b);
	if (!b->in->hidden) {
		boxes_row_goes(b);
		store_box_delete(b->in->core->store, view_of(b->id), on_row_deleted, b);
		return;
	}
	tell_waiters(b, NULL);
	boxes_free_later(b);
}

static int on_destroy_reply(struct call *c, const struct frame *f, int fd)
{
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	destroyed(CONTAINER(c, struct life, destroy)->box);
	return 0;
}

static void on_destroy_fail(struct call *c, const struct err *e)
{
	struct box *b = CONTAINER(c, struct life, destroy)->box;
	if (e->code == ERR_NOT_FOUND)
		destroyed(b);
	else
		failed(b, e);
}

static const struct call_ops destroy_ops = { .on_reply = on_destroy_reply, .on_fail = on_destroy_fail };

static void destroy(struct box *b)
{
	struct wire_box_destroy msg = { .id = view_of(b->id) };

	b->in->life->destroy.ops = &destroy_ops;
	int r = keeper_call_for(b->in->core, view_of(b->spec.backend), &b->in->life->destroy,
				WIRE_TYPE_BOX_DESTROY, KEEPER_MS, &wire_box_destroy_msg, &msg);
	/* Told later in any case: whoever asked has not even returned yet. */
	if (r < 0)
		loop_timer_start(b->in->core->loop, &b->in->life->expiry, RETRY_MS, on_retry);
}

static void begin(struct box *b)
{
	if (b->state.status == BOX_DELETING)
		return;
	b->in->before = b->state.status;
	b->state.status = BOX_DELETING;
	note(b);
	if (!life_defers_removal(b) && !farewell_begin(b, b->in->before, remove_go_on))
		destroy(b);
}

void remove_go_on(struct box *b)
{
	destroy(b);
}

void remove_unwanted(struct box *b)
{
	b->in->life->unwanted = true;
	loop_timer_stop(&b->in->life->expiry);
	begin(b);
}

void remove_resume(struct core *c)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->in->life->unwanted && b->state.status != BOX_DELETING) {
			log_info("sandbox %s: its removal goes on", b->id);
			remove_unwanted(b);
		}
	}
}

void remove_gone(struct box *b)
{
	b->state.status = BOX_DELETING;
	destroyed(b);
}

static struct job *add_waiter(struct box *b, job_done *done, void *arg)
{
	struct removal *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->job = (struct job){ .done = done, .arg = arg };
	list_append(&b->in->life->removers, &r->link);
	return &r->job;
}

struct job *remove_unwanted_then(struct box *b, job_done *done, void *arg)
{
	struct job *j = add_waiter(b, done, arg);
	remove_unwanted(b);
	return j;
}

struct job *remove_box(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
		       struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_DELETE, ref, e);
	if (!b)
		return NULL;
	if (b->state.status == BOX_CREATING) {
		err_set(e, ERR_STATE, "the sandbox is still being made");
		return NULL;
	}
	struct job *j = add_waiter(b, done, arg);
	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	begin(b);
	return j;
}
