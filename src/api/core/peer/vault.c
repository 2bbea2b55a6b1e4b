/*
 * The channel to paddock-vault: see vault.h.
 */
#include "vault.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "egress.h"
#include "fd.h"
#include "keeper.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 10000
#define CALL_MS   10000
#define AGAIN_MS  200
#define SYNC_MAX  (16u * 1024 * 1024)

static void open_channel(struct core *c);

static void on_again(struct loop_timer *t)
{
	open_channel(CONTAINER(t, struct vault_channel, again)->core);
}

static void again(struct core *c)
{
	if (!c->stopping)
		loop_timer_start(c->loop, &c->vault->again, AGAIN_MS, on_again);
}

/* ---- calls that wait ---- */

static void unqueue(struct call *c)
{
	c->queued = false;
	loop_timer_stop(&c->timer);
	list_del(&c->waiting);
	buf_done(&c->request);
}

static void on_patience(struct loop_timer *t)
{
	struct call *c = CONTAINER(t, struct call, timer);
	struct err e = { 0 };

	unqueue(c);
	err_set(&e, ERR_UNAVAILABLE, "the vault cannot be reached");
	c->ops->on_fail(c, &e);
}

static void flush(struct core *c)
{
	while (c->vault->open && !list_empty(&c->vault->pending)) {
		struct call *call = CONTAINER(c->vault->pending.next, struct call, waiting);
		struct buf request = call->request;
		struct err e = { 0 };
		call->request = BUF_INIT(0);
		unqueue(call);
		int r = mux_call_raw(&c->vault->mux, call, call->type, CALL_MS, CALL_MS, buf_view(&request));
		buf_done(&request);
		if (r < 0) {
			err_sys(&e, ERR_UNAVAILABLE, r, "the vault cannot be reached");
			call->ops->on_fail(call, &e);
		}
	}
}

int vault_call(struct core *c, struct call *call, uint16_t type, const struct pb_msg *pm, const void *msg,
	       struct err *e)
{
	if (c->stopping)
		return err_set(e, ERR_UNAVAILABLE, "the daemon is going down");
	int r;
	if (c->vault->open) {
		r = mux_call(&c->vault->mux, call, type, CALL_MS, CALL_MS, pm, msg);
	} else {
		call->request = (struct buf){ .max = FRAME_BODY_MAX, .secret = true };
		r = pb_encode(pm, msg, &call->request);
		if (r < 0) {
			buf_done(&call->request);
		} else {
			call->type = type;
			call->queued = true;
			list_init(&call->waiting);
			list_append(&c->vault->pending, &call->waiting);
			loop_timer_start(c->loop, &call->timer, CALL_MS, on_patience);
		}
	}
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "the vault cannot be reached") : 0;
}

/* ---- boxes ---- */

/* A grant for each secret of each rule: one host each. */
static int describe(struct arena *a, const struct box *b, const struct egress_policy *p,
		    struct wire_vault_box *ret)
{
	size_t n = 0;

	*ret = (struct wire_vault_box){ .id = view_of(b->id), .tenant = view_of(b->tenant->id) };
	for (size_t i = 0; i < p->n_rules; i++)
		n += p->rules[i].n_inject;
	if (!n)
		return 0;
	ret->grants.items = arena_array(a, n, sizeof(*ret->grants.items));
	if (!ret->grants.items)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t k = 0; k < p->rules[i].n_inject; k++) {
			if (!p->rules[i].inject[k].secret.n)
				continue;
			struct wire_vault_grant *g = &ret->grants.items[ret->grants.n++];
			g->secret = p->rules[i].inject[k].secret;
			g->hosts.items = (struct view *)&p->rules[i].host;
			g->hosts.n = 1;
		}
	return 0;
}

void vault_total(struct core *c, const struct wire_secret_total *t)
{
	const struct tenant *tenant = t ? keys_tenant(c, t->tenant) : NULL;

	if (!tenant)
		return;
	ledger_set(c, tenant, LEDGER_SECRETS, t->secrets);
	ledger_set(c, tenant, LEDGER_SECRETS_KB, (t->bytes + 1023) >> 10);
}

struct notice {
	struct call call;
	struct core *core;
};

static int on_notice_reply(struct call *call, const struct frame *f, int fd)
{
	struct notice *n = CONTAINER(call, struct notice, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_vault_box_removed removed;
	int r = f->flags & FRAME_LAST ? 0 : -EBADMSG;

	fd_close(fd);
	if (r == 0 && f->type == WIRE_TYPE_VAULT_BOX_REMOVE)
		r = mux_decode(call, f->body, &wire_vault_box_removed_msg, &a, &removed);
	if (r >= 0 && f->type == WIRE_TYPE_VAULT_BOX_REMOVE)
		vault_total(n->core, removed.total);
	arena_done(&a);
	if (r >= 0)
		free(n);
	return r;
}

static void on_notice_fail(struct call *call, const struct err *e)
{
	/* When the channel is lost the next one begins with all of it. */
	if (e->code != ERR_UNAVAILABLE)
		log_warn("the vault was not told of a sandbox: %s", e->msg);
	free(CONTAINER(call, struct notice, call));
}

static const struct call_ops notice_ops = { .on_reply = on_notice_reply, .on_fail = on_notice_fail };

static void notify(struct core *c, uint16_t type, const struct pb_msg *pm, const void *msg)
{
	struct notice *n = c->vault->open ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return;
	n->call.ops = &notice_ops;
	n->core = c;
	if (mux_call(&c->vault->mux, &n->call, type, CALL_MS, CALL_MS, pm, msg) < 0)
		free(n);
}

static void tell(struct box *b, const struct egress_policy *p)
{
	struct arena a = ARENA_INIT(SYNC_MAX);
	struct wire_vault_box box;

	if (!b->in->hidden && describe(&a, b, p, &box) == 0) {
		b->in->in_vault = true;
		b->in->granted = box.grants.n > 0;
		notify(b->in->core, WIRE_TYPE_VAULT_BOX, &wire_vault_box_put_msg,
		       &(struct wire_vault_box_put){ .box = &box });
	}
	arena_done(&a);
}

void vault_box_changed(struct box *b)
{
	tell(b, b->in->core->vault->policy_of(b));
}

void vault_box_policy(struct box *b, const struct egress_policy *p)
{
	if (b->in->granted || egress_injects(p))
		tell(b, p);
}

void vault_box_removed(struct box *b)
{
	if (b->in->in_vault)
		notify(b->in->core, WIRE_TYPE_VAULT_BOX_REMOVE, &wire_vault_box_remove_msg,
		       &(struct wire_vault_box_remove){ .id = view_of(b->id) });
	b->in->in_vault = false;
}

static int on_synced(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct vault_channel, syncing)->core;
	struct arena a = ARENA_INIT(SYNC_MAX);
	struct wire_vault_synced reply;
	int r = mux_reply(call, f, &wire_vault_synced_msg, &a, &reply);

	fd_close(fd);
	for (size_t i = 0; r >= 0 && i < reply.totals.n; i++)
		vault_total(c, &reply.totals.items[i]);
	arena_done(&a);
	return r;
}

static void on_sync_fail(struct call *call, const struct err *e)
{
	if (e->code != ERR_UNAVAILABLE || !CONTAINER(call, struct vault_channel, syncing)->core->stopping)
		log_warn("the vault: %s", e->msg);
}

static const struct call_ops sync_ops = { .on_reply = on_synced, .on_fail = on_sync_fail };

static int sync_boxes(struct core *c)
{
	struct arena a = ARENA_INIT(SYNC_MAX);
	struct wire_vault_sync msg = { 0 };
	size_t n = 0;
	int r = 0;

	LIST_EACH (it, &c->boxes->all)
		n++;
	msg.boxes.items = arena_array(&a, n, sizeof(*msg.boxes.items));
	if (!msg.boxes.items)
		r = -ENOMEM;
	if (r == 0)
		LIST_EACH (it, &c->boxes->all) {
			struct box *b = BOX_OF(it, order);
			if (b->in->hidden || r < 0)
				continue;
			b->in->in_vault = true;
			r = describe(&a, b, c->vault->policy_of(b), &msg.boxes.items[msg.boxes.n++]);
			b->in->granted = msg.boxes.items[msg.boxes.n - 1].grants.n > 0;
		}
	c->vault->syncing.ops = &sync_ops;
	if (r == 0)
		r = mux_call(&c->vault->mux, &c->vault->syncing, WIRE_TYPE_VAULT_SYNC, CALL_MS, CALL_MS,
			     &wire_vault_sync_msg, &msg);
	arena_done(&a);
	return r;
}

/* ---- the channel ---- */

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct vault_channel, mux)->core;
	struct err e = { 0 };

	(void)why; /* the keeper says it */
	err_set(&e, ERR_UNAVAILABLE, "the vault was lost; try again");
	c->vault->open = false;
	mux_stop(m, &e);
	again(c);
}

static const struct mux_ops mux_ops = { .on_closed = on_closed };

static int on_opened(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct vault_channel, opening)->core;
	struct err e = { 0 };

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	int r = mux_start(&c->vault->mux, c->loop, fd, false, &mux_ops);
	if (r == 0) {
		mux_keep_secret(&c->vault->mux);
		r = sync_boxes(c);
		if (r < 0)
			mux_stop(&c->vault->mux, &e);
	}
	if (r < 0) {
		log_error("paddock-vault cannot be used: %s", strerror(-r));
		again(c);
		return 0;
	}
	c->vault->open = true;
	flush(c);
	c->vault->on_open(c);
	return 0;
}

static void on_open_fail(struct call *call, const struct err *e)
{
	(void)e;
	again(CONTAINER(call, struct vault_channel, opening)->core);
}

static const struct call_ops open_ops = { .on_reply = on_opened, .on_fail = on_open_fail };

static void open_channel(struct core *c)
{
	struct wire_vault_open msg = { 0 };

	c->vault->opening.ops = &open_ops;
	if (keeper_call(c, &c->vault->opening, WIRE_TYPE_VAULT_OPEN, KEEPER_MS, &wire_vault_open_msg, &msg) <
	    0)
		again(c);
}

void vault_init(struct core *c)
{
	list_init(&c->vault->pending);
}

void vault_start(struct core *c)
{
	c->vault->started = true;
	open_channel(c);
}

void vault_stop(struct core *c)
{
	struct err e = { 0 };

	if (!c->vault->started)
		return;
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	loop_timer_stop(&c->vault->again);
	mux_cancel(&c->vault->opening);
	c->vault->open = false;
	mux_stop(&c->vault->mux, &e);
	while (!list_empty(&c->vault->pending)) {
		struct call *call = CONTAINER(c->vault->pending.next, struct call, waiting);
		unqueue(call);
		call->ops->on_fail(call, &e);
	}
}
