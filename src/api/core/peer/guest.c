/*
 * One link per box: see guest.h.
 */
#include "guest.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "fd.h"
#include "keeper.h"
#include "log.h"
#include "wire_gen.h"
#include "zones.h"
#include "poison.h"

#define HELLO_MS         5000
#define OPEN_MS          10000
#define PENDING_BODY_MAX FRAME_BODY_MAX

static void give_up(struct guest *g, enum guest_state next, const struct err *why);

static void init(struct box *b)
{
	struct guest *g = b->in->guest;

	*g = (struct guest){ .core = b->in->core,
			     .owner = b,
			     .box = b->id,
			     .backend = b->spec.backend,
			     .timezone = &b->spec.timezone };
	list_init(&g->pending);
}

static void forget(struct box *b, const struct err *why)
{
	guest_stop(b->in->guest, why);
}

const struct box_part guest_part = {
	.slot = offsetof(struct box_inside, guest),
	.size = sizeof(struct guest),
	.init = init,
	.forget = forget,
};

/* ---- waiting for the link ---- */

static void unqueue(struct call *c)
{
	c->queued = false;
	list_del(&c->waiting);
	buf_done(&c->request);
}

static void flush_pending(struct guest *g)
{
	struct list mine = LIST_INIT(mine);
	LIST_EACH (it, &g->pending) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct call *c = CONTAINER(mine.next, struct call, waiting);
		struct buf request = c->request;
		c->request = BUF_INIT(0);
		unqueue(c);
		int r = g->state == GUEST_READY ? mux_call_raw(&g->mux, c, c->type, c->deadline_ms,
							       c->patience_ms, buf_view(&request))
						: -ENOTCONN;
		buf_done(&request);
		struct err e = { 0 };
		if (r < 0) {
			err_sys(&e, ERR_UNAVAILABLE, r, "cannot reach the sandbox");
			c->ops->on_fail(c, &e);
		} else if (c->sends && c->ops->on_room) {
			c->ops->on_room(c);
		}
	}
}

static int enqueue(struct guest *g, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
		   const struct pb_msg *pm, const void *msg)
{
	c->request = (struct buf){ .max = PENDING_BODY_MAX, .secret = true }; /* it may hold one */
	int r = pb_encode(pm, msg, &c->request);
	if (r < 0) {
		buf_done(&c->request);
		return r;
	}
	c->type = type;
	c->deadline_ms = deadline_ms;
	c->patience_ms = patience_ms;
	c->queued = true;
	list_init(&c->waiting);
	list_append(&g->pending, &c->waiting);
	return 0;
}

/* ---- greeting ---- */

static int on_hello_reply(struct call *c, const struct frame *f, int fd)
{
	struct guest *g = CONTAINER(c, struct guest, hello);
	struct arena a = ARENA_INIT(4096);
	struct wire_hello_reply reply;
	int r = mux_decode(c, f->body, &wire_hello_reply_msg, &a, &reply);
	arena_done(&a);
	if (r < 0 || !(f->flags & FRAME_LAST) || reply.protocol != WIRE_PROTOCOL_CURRENT)
		return -EBADMSG;
	g->state = GUEST_READY;
	if (g->on_greeted)
		TAKE_PTR(g->on_greeted)(g, NULL);
	flush_pending(g);
	return 0;
}

static void on_hello_fail(struct call *c, const struct err *e)
{
	struct guest *g = CONTAINER(c, struct guest, hello);
	struct err why = *e;
	err_wrap(&why, "the sandbox's first process does not greet");
	if (why.code != ERR_STATE)
		why.code = ERR_UNAVAILABLE;
	if (g->state == GUEST_GREETING)
		give_up(g, GUEST_CLOSED, &why);
}

static const struct call_ops hello_ops = { .on_reply = on_hello_reply, .on_fail = on_hello_fail };

static void on_mux_closed(struct mux *m, const struct err *why)
{
	struct guest *g = CONTAINER(m, struct guest, mux);
	struct err e = *why;
	if (why->code == ERR_STATE)
		err_set(&e, ERR_STATE, "the sandbox has stopped");
	else
		log_warn("sandbox %s: %s", g->box, why->msg);
	give_up(g, GUEST_CLOSED, &e);
}

static const struct mux_ops mux_ops = { .on_closed = on_mux_closed };

static void greet(struct guest *g, int fd)
{
	struct wire_hello hello = { .protocol = WIRE_PROTOCOL_CURRENT,
				    .box = view_of(g->box),
				    .timezone = *g->timezone };
	const char *rule = zones_rule(hello.timezone);
	hello.timezone_rule = rule ? view_of(rule) : VIEW_NONE;
	g->mux.decode_flags = PB_SKIP_UNKNOWN; /* an adopted box may run an older PID 1 */
	int r = mux_start(&g->mux, g->core->loop, fd, false, &mux_ops);
	if (r >= 0) {
		g->mux.link.out.secret = g->secret;
		g->state = GUEST_GREETING;
		g->hello.ops = &hello_ops;
		r = mux_call(&g->mux, &g->hello, WIRE_TYPE_HELLO, HELLO_MS, HELLO_MS, &wire_hello_msg,
			     &hello);
	}
	if (r < 0) {
		struct err e = { 0 };
		err_sys(&e, ERR_UNAVAILABLE, r, "cannot reach the sandbox");
		give_up(g, GUEST_CLOSED, &e);
	}
}

void guest_adopt(struct guest *g, int fd, void (*on_greeted)(struct guest *, const struct err *))
{
	g->on_greeted = on_greeted;
	if (g->state != GUEST_DEAD) {
		greet(g, fd);
		return;
	}
	struct err e = { 0 };
	err_set(&e, ERR_STATE, "the sandbox has stopped");
	fd_close(fd);
	give_up(g, GUEST_DEAD, &e);
}

/* ---- opening on demand ---- */

static int on_open_reply(struct call *c, const struct frame *f, int fd)
{
	struct guest *g = CONTAINER(c, struct guest, open);
	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	greet(g, fd);
	return 0;
}

static void on_open_fail(struct call *c, const struct err *e)
{
	struct guest *g = CONTAINER(c, struct guest, open);
	struct err why = *e;
	if (why.code == ERR_NOT_FOUND || why.code == ERR_STATE)
		err_set(&why, ERR_STATE, "the sandbox has stopped");
	else
		err_wrap(&why, "cannot reach the sandbox");
	if (g->state == GUEST_OPENING)
		give_up(g, GUEST_CLOSED, &why);
}

static const struct call_ops open_ops = { .on_reply = on_open_reply, .on_fail = on_open_fail };

static int open_link(struct guest *g)
{
	struct wire_box_open open = { .id = view_of(g->box) };
	g->open.ops = &open_ops;
	int r = keeper_call_for(g->core, view_of(g->backend), &g->open, WIRE_TYPE_BOX_OPEN, OPEN_MS,
				&wire_box_open_msg, &open);
	if (r >= 0)
		g->state = GUEST_OPENING;
	return r;
}

void guest_is_secret(struct guest *g)
{
	g->secret = g->mux.link.out.secret = true;
}

int guest_call(struct guest *g, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
	       const struct pb_msg *pm, const void *msg, struct err *e)
{
	int r;

	if (g->state == GUEST_DEAD)
		return err_set(e, ERR_STATE, "the sandbox has stopped");
	if (g->state == GUEST_READY) {
		r = mux_call(&g->mux, c, type, deadline_ms, patience_ms, pm, msg);
	} else {
		r = enqueue(g, c, type, deadline_ms, patience_ms, pm, msg);
		if (r >= 0 && g->state == GUEST_CLOSED) {
			r = open_link(g);
			if (r < 0)
				unqueue(c);
		}
	}
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "cannot reach the sandbox") : 0;
}

int guest_call_early(struct guest *g, struct call *c, uint16_t type, uint32_t patience_ms,
		     const struct pb_msg *pm, const void *msg, struct err *e)
{
	if (g->state != GUEST_GREETING)
		return guest_call(g, c, type, 0, patience_ms, pm, msg, e);
	int r = mux_call(&g->mux, c, type, 0, patience_ms, pm, msg);
	return r < 0 ? err_sys(e, ERR_UNAVAILABLE, r, "cannot reach the sandbox") : 0;
}

void guest_cancel(struct call *c)
{
	if (mux_is_open(c))
		mux_cancel(c);
	else if (c->queued)
		unqueue(c);
}

/* ---- the end ---- */

static void give_up(struct guest *g, enum guest_state next, const struct err *why)
{
	struct err e = *why; /* the original may belong to a call that fails now */

	g->state = next;
	mux_cancel(&g->open);
	mux_stop(&g->mux, &e);
	if (g->on_greeted)
		TAKE_PTR(g->on_greeted)(g, &e);
	struct list mine = LIST_INIT(mine);
	LIST_EACH (it, &g->pending) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct call *c = CONTAINER(mine.next, struct call, waiting);
		unqueue(c);
		c->ops->on_fail(c, &e);
	}
}

void guest_stop(struct guest *g, const struct err *why)
{
	if (g->state != GUEST_DEAD)
		give_up(g, GUEST_DEAD, why);
}

void guest_revive(struct guest *g)
{
	if (g->state == GUEST_DEAD)
		g->state = GUEST_CLOSED;
}

void guest_read_fail(const struct err *said, struct err *ret)
{
	static const bool allowed[ERR_CODES] = {
		[ERR_INVALID] = true,     [ERR_FORBIDDEN] = true,   [ERR_NOT_FOUND] = true,
		[ERR_CONFLICT] = true,    [ERR_STATE] = true,       [ERR_TOO_LARGE] = true,
		[ERR_RANGE] = true,       [ERR_CANCELLED] = true,   [ERR_TIMEOUT] = true,
		[ERR_UNSUPPORTED] = true, [ERR_UNAVAILABLE] = true, [ERR_STORAGE] = true,
	};
	*ret = *said;
	if (said->code >= ERR_CODES || !allowed[said->code])
		ret->code = ERR_INTERNAL;
}
