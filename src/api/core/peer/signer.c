/*
 * The channel to paddock-signer: see peer.h.
 *
 * An installation without wallets has no signer. At the start the api asks the keeper for a stream to the one
 * that runs; where there is none it asks again when the first call is made, and then has it started.
 */
#include "signer.h"

#include <errno.h>

#include "core_base.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "signer_gen.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 10000
#define CALL_MS   30000
#define AGAIN_MS  100
#define REPLY_MAX (32u * 1024 * 1024)

static void open_channel(struct core *c);

/* ---- calls ---- */

static void unqueue(struct signer_ask *a)
{
	a->call.queued = false;
	loop_timer_stop(&a->call.timer);
	list_del(&a->call.waiting);
	buf_done(&a->call.request);
}

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	struct signer_ask *a = CONTAINER(call, struct signer_ask, call);
	struct arena memory = ARENA_INIT(REPLY_MAX);
	void *reply = arena_alloc(&memory, a->reply_msg->size);

	fd_close(fd);
	int r = reply ? mux_reply(call, f, a->reply_msg, &memory, reply) : -ENOMEM;
	if (r >= 0)
		a->done(a, reply, NULL);
	arena_done(&memory);
	return r;
}

static void on_fail(struct call *call, const struct err *e)
{
	struct signer_ask *a = CONTAINER(call, struct signer_ask, call);
	a->done(a, NULL, e);
}

static const struct call_ops ask_ops = { .on_reply = on_reply, .on_fail = on_fail };

static void on_patience(struct loop_timer *t)
{
	struct signer_ask *a = CONTAINER(t, struct signer_ask, call.timer);
	struct err e = { 0 };

	unqueue(a);
	err_set(&e, ERR_UNAVAILABLE, "the signer cannot be reached; try again");
	a->done(a, NULL, &e);
}

static int enqueue(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *pm,
		   const void *msg, bool wake)
{
	struct call *call = &a->call;

	call->request = BUF_INIT(FRAME_BODY_MAX);
	int r = pb_encode(pm, msg, &call->request);
	if (r < 0) {
		buf_done(&call->request);
		return r;
	}
	call->type = type;
	call->queued = true;
	list_init(&call->waiting);
	list_append(&c->signer->pending, &call->waiting);
	loop_timer_start(c->loop, &call->timer, SIGNER_WAIT_MS, on_patience);
	if (!c->signer->wanted) {
		c->signer->wanted = wake;
		if (c->signer->started && !mux_is_open(&c->signer->opening))
			open_channel(c);
	}
	return 0;
}

static int call_signer(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *request_msg,
		       const void *msg, bool wake, struct err *e)
{
	if (c->stopping)
		return err_set(e, ERR_UNAVAILABLE, "the daemon is going down");
	int r = c->signer->open
			? mux_call(&c->signer->mux, &a->call, type, CALL_MS, CALL_MS, request_msg, msg)
			: enqueue(c, a, type, request_msg, msg, wake);
	return r < 0 ? err_sys(e, r == -EMSGSIZE ? ERR_TOO_LARGE : ERR_UNAVAILABLE, r, "the signer") : 0;
}

int signer_call(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *request_msg,
		const void *msg, const struct pb_msg *reply_msg,
		void (*done)(struct signer_ask *a, const void *reply, const struct err *e), struct err *e)
{
	assert(!signer_asking(a));
	*a = (struct signer_ask){
		.call = { .ops = &ask_ops }, .core = c, .reply_msg = reply_msg, .done = done
	};
	return call_signer(c, a, type, request_msg, msg, true, e);
}

int signer_call_known(struct core *c, struct signer_ask *a, uint16_t type, const struct pb_msg *request_msg,
		      const void *msg, const struct pb_msg *reply_msg,
		      void (*done)(struct signer_ask *a, const void *reply, const struct err *e),
		      struct err *e)
{
	assert(!signer_asking(a));
	*a = (struct signer_ask){
		.call = { .ops = &ask_ops }, .core = c, .reply_msg = reply_msg, .done = done
	};
	return call_signer(c, a, type, request_msg, msg, false, e);
}

void signer_cancel(struct signer_ask *a)
{
	if (mux_is_open(&a->call))
		mux_cancel(&a->call);
	else if (a->call.queued)
		unqueue(a);
}

static void flush(struct core *c)
{
	while (c->signer->open && !list_empty(&c->signer->pending)) {
		struct signer_ask *a = CONTAINER(c->signer->pending.next, struct signer_ask, call.waiting);
		struct buf request = a->call.request;
		struct err e = { 0 };

		a->call.request = BUF_INIT(0);
		unqueue(a);
		int r = mux_call_raw(&c->signer->mux, &a->call, a->call.type, CALL_MS, CALL_MS,
				     buf_view(&request));
		buf_done(&request);
		if (r < 0) {
			err_sys(&e, ERR_UNAVAILABLE, r, "the signer cannot be reached");
			a->done(a, NULL, &e);
		}
	}
}

static void fail_pending(struct core *c, const struct err *e)
{
	while (!list_empty(&c->signer->pending)) {
		struct signer_ask *a = CONTAINER(c->signer->pending.next, struct signer_ask, call.waiting);
		unqueue(a);
		a->done(a, NULL, e);
	}
}

/* ---- those who watch ---- */

bool signer_is_open(const struct core *c)
{
	return c->signer->open;
}

void signer_watch(struct core *c, struct signer_watch *w)
{
	list_append(&c->signer->watchers, &w->node);
}

void signer_unwatch(struct signer_watch *w)
{
	if (w->node.next)
		list_del(&w->node);
}

static void tell(struct core *c)
{
	LIST_EACH (it, &c->signer->watchers) {
		struct signer_watch *w = CONTAINER(it, struct signer_watch, node);
		w->changed(w, c->signer->open);
	}
}

static void on_event(struct mux *m, const struct frame *f)
{
	struct core *c = CONTAINER(m, struct signer_channel, mux)->core;
	struct arena a = ARENA_INIT(4096);
	struct sgn_changed msg;

	if (f->type != SGN_SIGNER_TYPE_CHANGED || pb_decode(&sgn_changed_msg, f->body, 0, &a, &msg) < 0) {
		arena_done(&a);
		mux_violation(m, "an event that makes no sense");
		return;
	}
	LIST_EACH (it, &c->signer->watchers) {
		struct signer_watch *w = CONTAINER(it, struct signer_watch, node);
		if (w->told)
			w->told(w, msg.id);
	}
	arena_done(&a);
}

/* ---- the channel ---- */

static void on_again(struct loop_timer *t)
{
	open_channel(CONTAINER(t, struct signer_channel, again)->core);
}

static void again(struct core *c)
{
	if (!c->stopping)
		loop_timer_start(c->loop, &c->signer->again, AGAIN_MS, on_again);
}

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct signer_channel, mux)->core;
	struct err e = { 0 };

	(void)why; /* the keeper says it */
	err_set(&e, ERR_UNAVAILABLE, "the signer was lost; try again");
	c->signer->open = false;
	mux_stop(m, &e);
	tell(c);
	again(c);
}

static const struct mux_ops mux_ops = { .on_event = on_event, .on_closed = on_closed };

static int on_opened(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct signer_channel, opening)->core;

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	int r = mux_start(&c->signer->mux, c->loop, fd, false, &mux_ops);
	if (r < 0) {
		log_error("paddock-signer cannot be used: %s", strerror(-r));
		again(c);
		return 0;
	}
	c->signer->open = true;
	c->signer->wanted = true; /* from now on it is opened again whenever it is lost */
	flush(c);
	tell(c);
	return 0;
}

static void on_open_fail(struct call *call, const struct err *e)
{
	struct core *c = CONTAINER(call, struct signer_channel, opening)->core;
	if (e->code != ERR_NOT_FOUND)
		again(c);
	else if (c->signer->wanted) /* since we asked: the next time it is started */
		open_channel(c);
	else
		fail_pending(c, e); /* they want none to be started */
}

static const struct call_ops open_ops = { .on_reply = on_opened, .on_fail = on_open_fail };

static void open_channel(struct core *c)
{
	struct wire_signer_open msg = { .start = c->signer->wanted };

	c->signer->opening.ops = &open_ops;
	if (keeper_call(c, &c->signer->opening, WIRE_TYPE_SIGNER_OPEN, KEEPER_MS, &wire_signer_open_msg,
			&msg) < 0)
		again(c);
}

void signer_init(struct core *c)
{
	list_init(&c->signer->pending);
	list_init(&c->signer->watchers);
}

void signer_start(struct core *c)
{
	c->signer->started = true;
	open_channel(c);
}

void signer_stop(struct core *c)
{
	struct err e = { 0 };

	if (!c->signer->pending.next)
		return;
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	loop_timer_stop(&c->signer->again);
	mux_cancel(&c->signer->opening);
	c->signer->open = false;
	mux_stop(&c->signer->mux, &e);
	fail_pending(c, &e);
}
