/*
 * Adopting what runs. The keeper says which boxes it has. A row whose box is
 * there is a running or paused box (its link opens with the first call), also when
 * the row says that it is being made: its creation may have been answered. A row
 * without a box is a stopped one, or goes when it was never made. What the
 * keeper has and no row names is a leftover: it is told what to keep, and
 * removes the rest; so with snapshots and workspaces. Ready when that is done, images
 * and posture are known, and the gate has the boxes' policies.
 */
#include "adopt.h"

#include <errno.h>
#include <stdlib.h>

#include "agents.h"
#include "bridges.h"
#include "core_base.h"
#include "event.h"
#include "events.h"
#include "history.h"
#include "image.h"
#include "keeper.h"
#include "life.h"
#include "log.h"
#include "policies.h"
#include "pool.h"
#include "remove.h"
#include "signer.h"
#include "snapshots.h"
#include "spends.h"
#include "stats.h"
#include "templates.h"
#include "templates_kept.h"
#include "vault.h"
#include "walletconnect_impl.h"
#include "webhooks.h"
#include "wire_gen.h"
#include "workspaces.h"
#include "poison.h"

#define KEEPER_MS  60000
#define LIST_BYTES (64u * 1024 * 1024)

struct adoption {
	struct core *core;
	struct call list, reconcile, snapshots, workspaces;
	struct job *images, *posture;
	bool reconciled, imaged, postured, has_snapshots, has_workspaces, gated;
};

static void give_up(struct adoption *a, const struct err *e)
{
	log_error("cannot start: %s", e->msg);
	a->core->startup->on_lost(a->core->startup->arg);
}

static void ready_when_done(struct adoption *a)
{
	struct core *c = a->core;
	if (!a->reconciled || !a->imaged || !a->postured || !a->has_snapshots || !a->has_workspaces ||
	    !a->gated)
		return;
	c->startup->adoption = NULL;
	free(a);
	pool_start(c);
	webhooks_start(c);
	vault_start(c);
	signer_start(c);
	walletconnect_start(c);
	bridges_start(c);
	tied_sweep(c);
	remove_resume(c);
	templates_recover(c);
	agents_run_recover(c);
	spend_start(c);
	c->startup->on_ready(c->startup->arg);
}

/* ---- images and posture ---- */

static void on_gated(struct core *c);

/* Policies mean hosts when it is known which boxes there are, and what their images say. */
static void gate_when_known(struct adoption *a)
{
	if (a->reconciled && a->imaged)
		policies_gate_start(a->core, on_gated);
}

static void on_images(void *arg, const void *result, const struct err *e)
{
	struct adoption *a = arg;
	a->images = NULL;
	a->imaged = true;
	if (e)
		give_up(a, e);
	else
		gate_when_known(a); /* and what waits for the gate waits for this */
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

/* Boxes have their policies, or there is no gate, which lets nobody through. */
static void on_gated(struct core *c)
{
	if (!c->startup->adoption)
		return;
	c->startup->adoption->gated = true;
	ready_when_done(c->startup->adoption);
}

static int on_reconciled(struct call *call, const struct frame *f, int fd)
{
	struct adoption *a = CONTAINER(call, struct adoption, reconcile);
	struct arena tmp = ARENA_INIT(4096);
	struct wire_reconcile_reply reply;
	int r = mux_reply(call, f, &wire_reconcile_reply_msg, &tmp, &reply);

	arena_done(&tmp);
	if (r < 0)
		return r;
	if (reply.removed)
		log_info("the keeper removed %u leftovers", reply.removed);
	a->reconciled = true;
	gate_when_known(a);
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

	msg.keep.items = calloc(c->boxes->n + 1, sizeof(*msg.keep.items));
	if (!msg.keep.items)
		return -ENOMEM;
	LIST_EACH (it, &c->boxes->all)
		msg.keep.items[msg.keep.n++] = view_of(BOX_OF(it, order)->id);
	a->reconcile.ops = &reconcile_ops;
	int r = keeper_call(c, &a->reconcile, WIRE_TYPE_RECONCILE, KEEPER_MS, &wire_reconcile_msg, &msg);
	free(msg.keep.items);
	return r;
}

static void adopt_box(struct box *b, bool runs, bool paused)
{
	enum box_status status = !runs ? BOX_STOPPED : paused ? BOX_PAUSED : BOX_RUNNING;
	struct err stopped = { 0 };

	if (b->state.status == BOX_DELETING) { /* as soon as we are ready */
		b->state.status = status;
		b->in->life->unwanted = true;
		return;
	}

	if (b->in->pooled) {
		pool_adopt(b, runs);
		return;
	}
	if (b->state.status == BOX_CREATING && !runs) {
		store_box_delete(b->in->core->store, view_of(b->id), core_store_done, b->in->core);
		boxes_free_later(b);
		return;
	}
	if (!runs) {
		err_set(&stopped, ERR_STATE, "the sandbox has stopped");
		guest_stop(b->in->guest, &stopped);
	}
	/* What happened while nobody looked, or was not yet told. */
	if (b->state.status == BOX_CREATING)
		events_emit(b->in->core, EVENT_CREATED, b);
	else if (!runs && b->state.status != BOX_STOPPED)
		events_exited(b->in->core, b, 0, 0, false);
	if (b->state.status != status)
		boxes_set_status(b, status, true);
	if (status == BOX_RUNNING)
		history_follow(b);
	lifetime_watch(b);
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
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		const struct map_node *n = map_get(&alive, view_of(b->id));
		adopt_box(b, n, n && have->boxes.items[n - nodes].paused);
	}
	log_info("%u sandboxes in the store, %zu with the keeper", c->boxes->n, have->boxes.n);
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
	int r = mux_reply(call, f, &wire_box_list_reply_msg, &tmp, &reply);

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

/* ---- snapshots and workspaces ---- */

static int on_snapshots(struct call *call, const struct frame *f, int fd)
{
	struct adoption *a = CONTAINER(call, struct adoption, snapshots);
	struct arena tmp = ARENA_INIT(LIST_BYTES);
	struct wire_snapshot_list_reply reply;
	int r = mux_reply(call, f, &wire_snapshot_list_reply_msg, &tmp, &reply);

	for (size_t i = 0; r >= 0 && i < reply.ids.n; i++)
		if (!snapshots_by_id(a->core, reply.ids.items[i]) &&
		    !templates_kept_has(a->core, reply.ids.items[i]))
			snapshots_drop(a->core, VIEW(""), reply.ids.items[i]);
	if (r >= 0)
		templates_kept_verify(a->core, reply.ids.items, reply.ids.n);
	arena_done(&tmp);
	if (r < 0)
		return r;
	a->has_snapshots = true;
	ready_when_done(a);
	return 0;
}

static void on_snapshots_fail(struct call *call, const struct err *e)
{
	give_up(CONTAINER(call, struct adoption, snapshots), e);
}

static const struct call_ops snapshots_ops = { .on_reply = on_snapshots, .on_fail = on_snapshots_fail };

static int on_workspaces(struct call *call, const struct frame *f, int fd)
{
	struct adoption *a = CONTAINER(call, struct adoption, workspaces);
	struct arena tmp = ARENA_INIT(LIST_BYTES);
	struct wire_workspace_list_reply reply;
	int r = f->flags & FRAME_LAST
			? mux_decode(call, f->body, &wire_workspace_list_reply_msg, &tmp, &reply)
			: -EBADMSG;

	for (size_t i = 0; r >= 0 && i < reply.workspaces.n; i++)
		if (!workspaces_by_id(a->core, reply.workspaces.items[i].id))
			workspaces_drop(a->core, reply.workspaces.items[i].id);
	arena_done(&tmp);
	if (r < 0)
		return r;
	a->has_workspaces = true;
	ready_when_done(a);
	return 0;
}

static void on_workspaces_fail(struct call *call, const struct err *e)
{
	give_up(CONTAINER(call, struct adoption, workspaces), e);
}

static const struct call_ops workspaces_ops = { .on_reply = on_workspaces, .on_fail = on_workspaces_fail };

/* ---- */

static int ask_lists(struct adoption *a)
{
	struct core *c = a->core;
	struct wire_box_list boxes = { 0 };
	struct wire_snapshot_list snapshots = { 0 };
	struct wire_workspace_list workspaces = { 0 };

	a->list.ops = &list_ops;
	a->snapshots.ops = &snapshots_ops;
	a->workspaces.ops = &workspaces_ops;
	int r = keeper_call(c, &a->list, WIRE_TYPE_BOX_LIST, KEEPER_MS, &wire_box_list_msg, &boxes);
	if (r >= 0)
		r = keeper_call(c, &a->snapshots, WIRE_TYPE_SNAPSHOT_LIST, KEEPER_MS, &wire_snapshot_list_msg,
				&snapshots);
	if (r >= 0)
		r = keeper_call(c, &a->workspaces, WIRE_TYPE_WORKSPACE_LIST, KEEPER_MS,
				&wire_workspace_list_msg, &workspaces);
	return r;
}

int adopt_begin(struct core *c, struct err *e)
{
	struct adoption *a = calloc(1, sizeof(*a));

	if (!a)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "start");
	a->core = c;
	c->startup->adoption = a;
	int r = ask_lists(a);
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
	struct adoption *a = c->startup->adoption;
	if (!a)
		return;
	job_abandon(a->images);
	job_abandon(a->posture);
	mux_cancel(&a->list);
	mux_cancel(&a->reconcile);
	mux_cancel(&a->snapshots);
	mux_cancel(&a->workspaces);
	c->startup->adoption = NULL;
	free(a);
}
