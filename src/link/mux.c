/*
 * Calls over a link: see mux.h.
 */
#include "mux.h"

#include <errno.h>

#include "fd.h"
#include "poison.h"

#define BACKLOG_MAX 1 /* of bytes queued on one link before DATA waits: it would only be copied */
#define CREDIT_MAX  (16u * 1024 * 1024) /* more than this from a peer is nonsense */

static struct view stream_key(const struct call *c)
{
	return (struct view){ (const char *)&c->stream, sizeof(c->stream) };
}

/* Takes the call out of every table; what it was owed is dropped. */
static void detach(struct call *c)
{
	map_del(&c->mux->calls, &c->node);
	list_del(&c->waiting);
	loop_timer_stop(&c->timer);
	c->mux = NULL;
}

static void fail(struct call *c, const struct err *e)
{
	detach(c);
	c->ops->on_fail(c, e);
}

/* ---- opening and ending ---- */

/* While it is our turn (we hold bytes, or have credit and more to send) silence
 * is nobody's fault; the HTTP side has limits of its own for that. */
static bool our_turn(const struct call *c)
{
	return c->held > 0 || (c->sends && !c->ended && c->credit > 0);
}

static void on_patience(struct loop_timer *t)
{
	struct call *c = CONTAINER(t, struct call, timer);
	uint64_t now = loop_now(c->mux->loop);
	uint64_t silent = now - MIN(now, c->heard_ms);

	if (our_turn(c))
		silent = 0;
	if (silent < c->patience_ms) {
		loop_timer_start(c->mux->loop, t, c->patience_ms - silent, on_patience);
		return;
	}
	struct err e = { 0 };
	err_set(&e, ERR_TIMEOUT, "no answer within %u ms", c->patience_ms);
	struct frame f = { .kind = FRAME_CANCEL, .type = c->type, .stream = c->stream };
	link_send(&c->mux->link, &f);
	fail(c, &e);
}

static int open_stream(struct mux *m, struct call *c, uint16_t type, uint32_t patience_ms)
{
	do
		c->stream = ++m->last_stream;
	while (c->stream == 0 || map_get(&m->calls, stream_key(c)));
	int r = map_put(&m->calls, &c->node, stream_key(c));
	if (r < 0)
		return r;
	c->mux = m;
	c->type = type;
	c->credit = c->window = FRAME_WINDOW;
	c->held = c->owed = 0;
	c->ended = false;
	c->decode_flags = m->decode_flags;
	c->patience_ms = patience_ms;
	c->heard_ms = loop_now(m->loop);
	list_init(&c->waiting);
	if (patience_ms)
		loop_timer_start(m->loop, &c->timer, patience_ms, on_patience);
	return 0;
}

int mux_call(struct mux *m, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
	     const struct pb_msg *pm, const void *msg)
{
	if (!m->open)
		return -ENOTCONN;
	int r = open_stream(m, c, type, patience_ms);
	if (r < 0)
		return r;
	r = link_send_msg(&m->link, type, FRAME_CALL, 0, c->stream, deadline_ms, pm, msg);
	if (r < 0)
		detach(c);
	return r;
}

int mux_call_raw(struct mux *m, struct call *c, uint16_t type, uint32_t deadline_ms, uint32_t patience_ms,
		 struct view body)
{
	if (!m->open)
		return -ENOTCONN;
	int r = open_stream(m, c, type, patience_ms);
	if (r < 0)
		return r;
	struct frame f = { .type = type,
			   .kind = FRAME_CALL,
			   .stream = c->stream,
			   .deadline_ms = deadline_ms,
			   .body = body };
	r = link_send(&m->link, &f);
	if (r < 0)
		detach(c);
	return r;
}

void mux_cancel(struct call *c)
{
	struct mux *m = c->mux;
	if (!m)
		return;
	struct frame f = { .kind = FRAME_CANCEL, .type = c->type, .stream = c->stream };
	detach(c);
	/* Its closing frame will find no stream and be dropped. */
	if (m->open)
		link_send(&m->link, &f);
}

/* ---- data ---- */

static void wait_for_room(struct call *c)
{
	if (list_empty(&c->waiting))
		list_append(&c->mux->waiting, &c->waiting);
}

size_t mux_send_on(struct call *c, uint16_t channel, struct view data)
{
	struct mux *m = c->mux;
	size_t sent = 0;

	assert(!c->ended);
	if (!m)
		return 0;
	while (sent < data.n && c->credit > 0 && link_backlog(&m->link) < BACKLOG_MAX) {
		size_t n = MIN(MIN(data.n - sent, (size_t)c->credit), (size_t)FRAME_DATA_MAX);
		struct frame f = {
			.kind = FRAME_DATA, .type = channel, .stream = c->stream, .body = { data.p + sent, n }
		};
		if (link_send(&m->link, &f) < 0)
			break; /* on_closed is on its way */
		c->credit -= (uint32_t)n;
		sent += n;
	}
	if (sent < data.n)
		wait_for_room(c);
	return sent;
}

size_t mux_send(struct call *c, struct view data)
{
	return mux_send_on(c, 0, data);
}

void mux_end(struct call *c)
{
	if (!c->mux || c->ended)
		return;
	c->ended = true;
	c->heard_ms = loop_now(c->mux->loop); /* the peer's turn begins now */
	struct frame f = { .kind = FRAME_END, .type = c->type, .stream = c->stream };
	link_send(&c->mux->link, &f);
}

void mux_consumed(struct call *c, size_t n)
{
	if (!c->mux)
		return;
	assert(n <= c->held);
	c->held -= (uint32_t)n;
	c->owed += (uint32_t)n;
	c->heard_ms = loop_now(c->mux->loop);
	/* In halves of a window: few frames, and the peer never runs dry. */
	if (c->owed < FRAME_WINDOW / 2)
		return;
	unsigned char body[4] = { c->owed & 255, c->owed >> 8 & 255, c->owed >> 16 & 255, c->owed >> 24 };
	struct frame f = { .kind = FRAME_WINDOW_ADD,
			   .type = c->type,
			   .stream = c->stream,
			   .body = { (const char *)body, sizeof(body) } };
	c->window += c->owed;
	c->owed = 0;
	link_send(&c->mux->link, &f);
}

/* ---- what comes in ---- */

static const char broken[] = "the peer broke the protocol";

void mux_violation(struct mux *m, const char *what)
{
	if (!m->open)
		return;
	struct err e = { 0 };
	err_set(&e, ERR_UNAVAILABLE, "%s: %s", broken, what);
	m->ops->on_closed(m, &e);
}

static void on_reply(struct mux *m, struct call *c, const struct frame *f, int fd)
{
	bool last = f->flags & FRAME_LAST;

	if (f->type != c->type) {
		fd_close(fd);
		mux_violation(m, "a reply of another type");
		return;
	}
	if (last)
		detach(c);
	if (c->ops->on_reply(c, f, fd) >= 0)
		return;
	if (last) {
		struct err e = { 0 };
		err_set(&e, ERR_UNAVAILABLE, "%s", broken);
		c->ops->on_fail(c, &e);
	}
	mux_violation(m, "a malformed reply");
}

static void on_data(struct mux *m, struct call *c, const struct frame *f)
{
	if (!c->ops->on_data || f->body.n > c->window) {
		mux_violation(m,
			      c->ops->on_data ? "more data than its window" : "data that nobody asked for");
		return;
	}
	c->window -= (uint32_t)f->body.n;
	c->held += (uint32_t)f->body.n;
	if (c->ops->on_data(c, f->type, f->body) < 0)
		mux_violation(m, "malformed data");
}

static void on_credit(struct mux *m, struct call *c, struct view body)
{
	if (body.n != 4) {
		mux_violation(m, "a malformed window");
		return;
	}
	const unsigned char *b = (const unsigned char *)body.p;
	uint32_t n = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	if (n > CREDIT_MAX - c->credit) {
		mux_violation(m, "an endless window");
		return;
	}
	c->credit += n;
	if (!list_empty(&c->waiting) && link_backlog(&m->link) < BACKLOG_MAX) {
		list_del(&c->waiting);
		c->ops->on_room(c);
	}
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct mux *m = CONTAINER(l, struct mux, link);

	if (f->kind == FRAME_EVENT && m->ops->on_event_fd) {
		m->ops->on_event_fd(m, f, fd);
		return;
	}
	if (f->kind == FRAME_EVENT) {
		fd_close(fd);
		if (m->ops->on_event)
			m->ops->on_event(m, f);
		else
			mux_violation(m, "an event");
		return;
	}
	struct map_node *node =
		map_get(&m->calls, (struct view){ (const char *)&f->stream, sizeof(f->stream) });
	if (!node) { /* closed or cancelled while this was under way */
		fd_close(fd);
		return;
	}
	struct call *c = CONTAINER(node, struct call, node);
	c->heard_ms = loop_now(m->loop);
	if (f->kind == FRAME_REPLY) {
		on_reply(m, c, f, fd);
		return;
	}
	fd_close(fd);
	if (f->kind == FRAME_DATA) {
		on_data(m, c, f);
	} else if (f->kind == FRAME_WINDOW_ADD) {
		on_credit(m, c, f->body);
	} else if (f->kind == FRAME_FAIL) {
		struct err e = { 0 };
		link_read_fail(f, &e);
		fail(c, &e);
	} else if (f->kind != FRAME_END) {
		mux_violation(m, "a frame of a caller");
	}
}

static void on_drained(struct link *l)
{
	struct mux *m = CONTAINER(l, struct mux, link);
	struct list mine = LIST_INIT(mine);

	LIST_EACH (it, &m->waiting) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct call *c = CONTAINER(mine.next, struct call, waiting);
		list_del(&c->waiting);
		if (c->credit > 0)
			c->ops->on_room(c);
		else
			wait_for_room(c);
	}
}

static void on_link_closed(struct link *l, int error)
{
	struct mux *m = CONTAINER(l, struct mux, link);
	struct err e = { 0 };

	if (error == -EBADMSG || error == -ENOBUFS)
		err_sys(&e, ERR_UNAVAILABLE, error, "%s", broken);
	else
		err_set(&e, ERR_STATE, "the peer has gone");
	m->ops->on_closed(m, &e);
}

static const struct link_ops link_ops = {
	.on_frame = on_frame,
	.on_closed = on_link_closed,
	.on_drained = on_drained,
};

int mux_start(struct mux *m, struct loop *l, int fd, bool pass_fds, const struct mux_ops *ops)
{
	map_done(&m->calls);
	map_init(&m->calls);
	list_init(&m->waiting);
	m->loop = l;
	m->ops = ops;
	m->last_stream = 0;
	int r = link_start(&m->link, l, fd, pass_fds, &link_ops);
	m->open = r >= 0;
	return r;
}

void mux_keep_secret(struct mux *m)
{
	m->link.in.secret = m->link.out.secret = true;
}

void mux_stop(struct mux *m, const struct err *why)
{
	if (!m->open)
		return;
	m->open = false;
	link_stop(&m->link);
	for (struct map_node *n; (n = map_first(&m->calls));)
		fail(CONTAINER(n, struct call, node), why);
	map_done(&m->calls);
}

int mux_reply(const struct call *c, const struct frame *f, const struct pb_msg *pm, struct arena *a,
	      void *out)
{
	return f->flags & FRAME_LAST ? mux_decode(c, f->body, pm, a, out) : -EBADMSG;
}

int mux_decode(const struct call *c, struct view body, const struct pb_msg *pm, struct arena *a, void *out)
{
	return pb_decode(pm, body, c->decode_flags, a, out);
}
