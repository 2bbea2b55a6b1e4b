/*
 * The channel to paddock-ai: see carrier.h.
 */
#include "carrier.h"

#include <errno.h>

#include "core_base.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 10000
#define DIAL_MS   15000 /* paddock-ai itself gives up before */

static void unqueue(struct carrier_dial *d)
{
	d->waits = false;
	list_del(&d->link);
	buf_done(&d->request);
}

/* ---- a dial ---- */

static int on_dialled(struct call *call, const struct frame *f, int fd)
{
	struct carrier_dial *d = CONTAINER(call, struct carrier_dial, call);

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	d->done(d, fd, NULL);
	return 0;
}

static void on_dial_fail(struct call *call, const struct err *e)
{
	struct carrier_dial *d = CONTAINER(call, struct carrier_dial, call);
	struct err copy = *e;

	d->done(d, -1, &copy);
}

static const struct call_ops dial_ops = { .on_reply = on_dialled, .on_fail = on_dial_fail };

static void fail_pending(struct core *c, const struct err *e)
{
	while (!list_empty(&c->carrier->pending)) {
		struct carrier_dial *d = CONTAINER(c->carrier->pending.next, struct carrier_dial, link);
		unqueue(d);
		d->done(d, -1, e);
	}
}

static void flush(struct core *c)
{
	while (c->carrier->open && !list_empty(&c->carrier->pending)) {
		struct carrier_dial *d = CONTAINER(c->carrier->pending.next, struct carrier_dial, link);
		struct buf request = d->request;
		struct err e = { 0 };
		d->request = BUF_INIT(0);
		unqueue(d);
		int r = mux_call_raw(&c->carrier->mux, &d->call, WIRE_TYPE_AI_DIAL, DIAL_MS, DIAL_MS,
				     buf_view(&request));
		buf_done(&request);
		if (r < 0) {
			err_sys(&e, ERR_UNAVAILABLE, r, "paddock-ai cannot be reached");
			d->done(d, -1, &e);
		}
	}
}

/* ---- the channel ---- */

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct carrier, mux)->core;
	struct err e = { 0 };

	log_warn("paddock-ai is gone: %s", why->msg);
	err_set(&e, ERR_UNAVAILABLE, "paddock-ai is gone; try again");
	c->carrier->open = false;
	mux_stop(m, &e);
}

static const struct mux_ops mux_ops = { .on_closed = on_closed };

static int on_opened(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct carrier, opening)->core;
	struct err e = { 0 };

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	int r = mux_start(&c->carrier->mux, c->loop, fd, true, &mux_ops);
	if (r < 0) {
		err_sys(&e, ERR_UNAVAILABLE, r, "paddock-ai cannot be reached");
		fail_pending(c, &e);
		return 0;
	}
	c->carrier->open = true;
	flush(c);
	return 0;
}

static void on_open_fail(struct call *call, const struct err *e)
{
	struct core *c = CONTAINER(call, struct carrier, opening)->core;
	struct err copy = *e;

	log_warn("paddock-ai cannot be started: %s", copy.msg);
	copy.code = ERR_UNAVAILABLE;
	fail_pending(c, &copy);
}

static const struct call_ops open_ops = { .on_reply = on_opened, .on_fail = on_open_fail };

static int open_channel(struct core *c)
{
	struct wire_ai_open msg = { 0 };

	if (mux_is_open(&c->carrier->opening))
		return 0;
	c->carrier->opening.ops = &open_ops;
	return keeper_call(c, &c->carrier->opening, WIRE_TYPE_AI_OPEN, KEEPER_MS, &wire_ai_open_msg, &msg);
}

int carrier_start(struct core *c, struct carrier_dial *d, const struct carrier_target *t, struct err *e)
{
	struct wire_ai_dial msg = { .host = t->host,
				    .port = t->port,
				    .tls = t->tls,
				    .head = t->head,
				    .ticket = t->ticket,
				    .header = t->header,
				    .prefix = t->prefix };
	int r;

	if (c->stopping)
		return err_set(e, ERR_UNAVAILABLE, "the daemon is going down");
	d->core = c;
	d->call.ops = &dial_ops;
	if (c->carrier->open) {
		r = mux_call(&c->carrier->mux, &d->call, WIRE_TYPE_AI_DIAL, DIAL_MS, DIAL_MS,
			     &wire_ai_dial_msg, &msg);
	} else {
		d->request = BUF_INIT(FRAME_BODY_MAX);
		r = pb_encode(&wire_ai_dial_msg, &msg, &d->request);
		if (r >= 0)
			r = open_channel(c);
		if (r < 0) {
			buf_done(&d->request);
		} else {
			d->waits = true;
			list_init(&d->link);
			list_append(&c->carrier->pending, &d->link);
		}
	}
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "paddock-ai cannot be reached") : 0;
}

void carrier_cancel(struct carrier_dial *d)
{
	if (d->waits)
		unqueue(d);
	else
		mux_cancel(&d->call);
}

void carrier_init(struct core *c)
{
	list_init(&c->carrier->pending);
}

void carrier_stop(struct core *c)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	mux_cancel(&c->carrier->opening);
	c->carrier->open = false;
	mux_stop(&c->carrier->mux, &e);
	fail_pending(c, &e);
}
