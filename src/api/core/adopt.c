/*
 * Adopting what runs. The keeper says which boxes it has. A row whose box is
 * there is a running box (its link opens with the first call), also when the
 * row says that it is being made: its creation may have been answered. A row
 * without a box is a stopped one, or goes when it was never made. What the
 * keeper has and no row names is a leftover: it is told what to keep, and
 * removes the rest. Ready when that is done, and images and posture are known.
 */
#include "adopt.h"

#include <errno.h>
#include <stdlib.h>

#include "core_state.h"
#include "log.h"
#include "stats.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS  60000
#define LIST_BYTES (64u * 1024 * 1024)

struct adoption {
	struct core *core;
	struct call list, reconcile;
	struct job *images, *posture;
	bool reconciled, imaged, postured;
};

static void give_up(struct adoption *a, const struct err *e)
{
	log_error("cannot start: %s", e->msg);
	a->core->on_lost(a->core);
}

static void ready_when_done(struct adoption *a)
{
	struct core *c = a->core;
	if (!a->reconciled || !a->imaged || !a->postured)
		return;
	c->adoption = NULL;
	free(a);
	c->on_ready(c->arg);
}

/* ---- images and posture ---- */

static void on_images(void *arg, const void *result, const struct err *e)
{
	struct adoption *a = arg;
	a->images = NULL;
	a->imaged = true;
	if (e)
		give_up(a, e);
	else
		ready_when_done(a);
}

static void on_posture(void *arg, const void *result, const struct err *e)
{
	struct adoption *a = arg;
	a->posture = NULL;
	a->postured = true;
	if (e)
		give_up(a, e);
	else
		ready_when_done(a);
}

/* ---- boxes ---- */

static int on_reconciled(struct call *call, const struct frame *f, int fd)
{
	struct adoption *a = CONTAINER(call, struct adoption, reconcile);
	struct arena tmp = ARENA_INIT(4096);
	struct wire_reconcile_reply reply;
	int r = f->flags & FRAME_LAST ? mux_decode(call, f->body, &wire_reconcile_reply_msg, &tmp, &reply)
				      : -EBADMSG;

	arena_done(&tmp);
	if (r < 0)
		return r;
	if (reply.removed)
		log_info("the keeper removed %u leftovers", reply.removed);
	a->reconciled = true;
	ready_when_done(a);
	return 0;
}

static void on_reconcile_fail(struct call *call, const struct err *e)
{
	give_up(CONTAINER(call, struct adoption, reconcile), e);
}

static const struct call_ops reconcile_ops = { .on_reply = on_reconciled, .on_fail = on_reconcile_fail };

static int reconcile(struct adoption *a)
{
	struct core *c = a->core;
	struct wire_reconcile msg = { 0 };

	msg.keep.items = calloc(c->n_boxes + 1, sizeof(*msg.keep.items));
	if (!msg.keep.items)
		return -ENOMEM;
	LIST_EACH (it, &c->boxes)
		msg.keep.items[msg.keep.n++] = view_of(CONTAINER(it, struct box, order)->id);
	a->reconcile.ops = &reconcile_ops;
	int r = keeper_call(c, &a->reconcile, WIRE_TYPE_RECONCILE, KEEPER_MS, &wire_reconcile_msg, &msg);
	free(msg.keep.items);
	return r;
}

static void adopt_box(struct box *b, bool runs)
{
	struct err stopped = { 0 };

	if (b->state.status == BOX_CREATING && !runs) {
		store_box_delete(b->core->store, view_of(b->id), core_store_done, b->core);
		boxes_free_later(b);
		return;
	}
	if (runs) {
		if (b->state.status != BOX_RUNNING)
			boxes_set_status(b, BOX_RUNNING, true);
	} else {
		err_set(&stopped, ERR_STATE, "the box has stopped");
		guest_stop(&b->guest, &stopped);
		if (b->state.status != BOX_STOPPED)
			boxes_set_status(b, BOX_STOPPED, true);
	}
	boxes_watch_expiry(b);
}

static int adopt_all(struct core *c, const struct wire_box_list_reply *have)
{
	struct map alive;
	struct map_node *nodes = calloc(have->boxes.n + 1, sizeof(*nodes));
	int r = nodes ? 0 : -ENOMEM;

	map_init(&alive);
	for (size_t i = 0; r >= 0 && i < have->boxes.n; i++)
		r = map_put(&alive, &nodes[i], have->boxes.items[i].id);
	if (r < 0)
		goto out;
	LIST_EACH (it, &c->boxes) {
		struct box *b = CONTAINER(it, struct box, order);
		adopt_box(b, map_get(&alive, view_of(b->id)) != NULL);
	}
	log_info("%u boxes in the store, %zu with the keeper", c->n_boxes, have->boxes.n);
out:
	map_done(&alive);
	free(nodes);
	return r;
}

static int on_list(struct call *call, const struct frame *f, int fd)
{
	struct adoption *a = CONTAINER(call, struct adoption, list);
	struct arena tmp = ARENA_INIT(LIST_BYTES);
	struct wire_box_list_reply reply;
	int r = f->flags & FRAME_LAST ? mux_decode(call, f->body, &wire_box_list_reply_msg, &tmp, &reply)
				      : -EBADMSG;

	if (r >= 0)
		r = adopt_all(a->core, &reply);
	arena_done(&tmp);
	if (r < 0)
		return r;
	r = reconcile(a);
	if (r < 0) {
		struct err e = { 0 };
		err_sys(&e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		give_up(a, &e);
	}
	return 0;
}

static void on_list_fail(struct call *call, const struct err *e)
{
	give_up(CONTAINER(call, struct adoption, list), e);
}

static const struct call_ops list_ops = { .on_reply = on_list, .on_fail = on_list_fail };

/* ---- */

int adopt_begin(struct core *c, struct err *e)
{
	struct wire_box_list msg = { 0 };
	struct adoption *a = calloc(1, sizeof(*a));

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "start");
	a->core = c;
	c->adoption = a;
	a->list.ops = &list_ops;
	int r = keeper_call(c, &a->list, WIRE_TYPE_BOX_LIST, KEEPER_MS, &wire_box_list_msg, &msg);
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
	a->images = images_refresh(c, on_images, a, e);
	if (!a->images)
		return -1;
	a->posture = stats_posture_unchecked(c, on_posture, a, e);
	return a->posture ? 0 : -1;
}

void adopt_stop(struct core *c)
{
	struct adoption *a = c->adoption;
	if (!a)
		return;
	job_abandon(a->images);
	job_abandon(a->posture);
	mux_cancel(&a->list);
	mux_cancel(&a->reconcile);
	c->adoption = NULL;
	free(a);
}
