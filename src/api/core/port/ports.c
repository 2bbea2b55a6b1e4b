/*
 * Ports of boxes: see port.h.
 */
#include "ports.h"

#include <errno.h>
#include <stdio.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "netns.h"
#include "num.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define CONNECT_MS    10000
#define LIST_MS       10000
#define FOR_EVER      0
#define LISTENERS_MAX 4096
#define TEXT_MAX      64

/* ---- streams ---- */

/* The first reply says that it is open, the second that the box has ended, the last that both have. */
static int on_reply(struct call *c, const struct frame *f, int fd)
{
	struct port_stream *s = CONTAINER(c, struct port_stream, call);

	if (f->flags & FRAME_LAST) {
		if (!s->open)
			return -EBADMSG;
		s->ops->done(s, NULL);
		return 0;
	}
	if (s->eof)
		return -EBADMSG;
	if (!s->open) {
		s->open = true;
		s->ops->on_open(s);
	} else {
		s->eof = true;
		s->ops->on_eof(s);
	}
	return 0;
}

static int on_data(struct call *c, unsigned channel, struct view data)
{
	struct port_stream *s = CONTAINER(c, struct port_stream, call);

	if (!s->open || s->eof)
		return -EBADMSG;
	s->ops->on_data(s, data);
	return 0;
}

static void on_room(struct call *c)
{
	struct port_stream *s = CONTAINER(c, struct port_stream, call);

	if (s->want_end)
		mux_end(c);
	else
		s->ops->on_room(s);
}

static void on_fail(struct call *c, const struct err *said)
{
	struct port_stream *s = CONTAINER(c, struct port_stream, call);
	struct err e;

	guest_read_fail(said, &e);
	s->ops->done(s, &e);
}

static const struct call_ops stream_ops = {
	.on_reply = on_reply, .on_data = on_data, .on_room = on_room, .on_fail = on_fail
};

static void prepare(struct port_stream *s)
{
	s->call.ops = &stream_ops;
	s->call.sends = true;
}

int ports_open(struct core *c, const struct actor *a, struct view ref, uint16_t port, struct port_stream *s,
	       struct err *e)
{
	struct wire_connect msg = { .port = port };
	struct box *b = boxes_find(c, a, ACT_BOX_PORTS, ref, e);

	if (!b)
		return -1;
	/* Whoever came by it would go out as if from within the box. */
	if (port == NETNS_PROXY_PORT)
		return err_set(e, ERR_FORBIDDEN, "port %u is the sandbox's own way out", port);
	prepare(s);
	return guest_call(b->in->guest, &s->call, WIRE_TYPE_CONNECT, CONNECT_MS, FOR_EVER, &wire_connect_msg,
			  &msg, e);
}

int ports_accept(struct box *b, uint16_t port, struct port_stream *s, struct err *e)
{
	struct wire_accept msg = { .port = port };

	prepare(s);
	return guest_call(b->in->guest, &s->call, WIRE_TYPE_ACCEPT, 0, FOR_EVER, &wire_accept_msg, &msg, e);
}

size_t ports_send(struct port_stream *s, struct view data)
{
	return s->want_end ? 0 : mux_send(&s->call, data);
}

void ports_end(struct port_stream *s)
{
	if (s->want_end)
		return;
	s->want_end = true;
	mux_end(&s->call); /* one that is not open yet does so when it has room */
}

void ports_consumed(struct port_stream *s, size_t n)
{
	mux_consumed(&s->call, n);
}

void ports_close(struct port_stream *s)
{
	guest_cancel(&s->call);
}

/* ---- what listens ---- */

static int on_list(struct call *c, const struct frame *f, int fd)
{
	struct port_query *q = CONTAINER(c, struct port_query, call);
	struct arena a = ARENA_INIT(FRAME_BODY_MAX * 2);
	struct wire_listeners_reply reply;
	int r = mux_reply(c, f, &wire_listeners_reply_msg, &a, &reply);
	struct port_listener *list = NULL;

	if (r >= 0 && reply.listeners.n > LISTENERS_MAX)
		r = -EBADMSG;
	if (r >= 0 && !(list = arena_array(&a, reply.listeners.n, sizeof(*list))))
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < reply.listeners.n; i++) {
		const struct wire_listener *l = &reply.listeners.items[i];
		if (l->port < 1 || l->port > UINT16_MAX || l->address.n > TEXT_MAX || l->process.n > TEXT_MAX)
			r = -EBADMSG;
		else
			list[i] = (struct port_listener){ (uint16_t)l->port, l->address, l->process, l->pid };
	}
	if (r >= 0)
		q->done(q, list, reply.listeners.n, NULL);
	arena_done(&a);
	return r;
}

static void on_list_fail(struct call *c, const struct err *said)
{
	struct port_query *q = CONTAINER(c, struct port_query, call);
	struct err e;

	guest_read_fail(said, &e);
	q->done(q, NULL, 0, &e);
}

static const struct call_ops list_ops = { .on_reply = on_list, .on_fail = on_list_fail };

int ports_list(struct core *c, const struct actor *a, struct view ref, struct port_query *q, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_PORTS, ref, e);

	if (!b)
		return -1;
	q->call.ops = &list_ops;
	return guest_call(b->in->guest, &q->call, WIRE_TYPE_LISTENERS, LIST_MS, LIST_MS, &wire_listeners_msg,
			  &(struct wire_listeners){ 0 }, e);
}

void ports_cancel(struct port_query *q)
{
	guest_cancel(&q->call);
}

struct box *ports_box(struct core *c, struct view id)
{
	struct box *b = boxes_by_id(c, id);

	return b && !b->in->hidden && !b->in->pooled && b->state.status != BOX_DELETING ? b : NULL;
}

/* ---- tickets ---- */

static void make_ticket(const struct core *c, const struct box *b, uint16_t port, int64_t until,
			char ret[PORTS_TICKET_SIZE])
{
	char number[8], time[24], mac[SIGN_SIZE];

	snprintf(number, sizeof(number), "%u", port);
	snprintf(time, sizeof(time), "%lld", (long long)until);
	const struct view parts[] = { VIEW("paddock port 1"), view_of(b->id), view_of(number),
				      view_of(time) };
	sign_parts(c, parts, ELEMS(parts), mac);
	snprintf(ret, PORTS_TICKET_SIZE, "%lld-%s", (long long)until, mac);
}

int ports_ticket(struct core *c, const struct actor *a, struct view ref, uint16_t port, uint32_t seconds,
		 char ret[PORTS_TICKET_SIZE], const struct box **ret_box, int64_t *ret_expires_s,
		 struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_SHARE, ref, e);

	if (!b)
		return -1;
	if (seconds == 0 || seconds > SIGN_SECONDS_MAX)
		return err_set(e, ERR_INVALID, "expires_seconds must be between 1 and %d", SIGN_SECONDS_MAX);
	*ret_expires_s = clock_wall_ms() / 1000 + seconds;
	*ret_box = b;
	make_ticket(c, b, port, *ret_expires_s, ret);
	return 0;
}

static bool is_genuine(const struct core *c, const struct box *b, uint16_t port, struct view ticket,
		       int64_t *ret_until)
{
	char want[PORTS_TICKET_SIZE];
	struct view rest;

	if (num_i64(view_split(ticket, '-', &rest), ret_until) < 0)
		return false;
	make_ticket(c, b, port, *ret_until, want);
	return view_eq_secret(ticket, view_of(want));
}

bool ports_ticket_genuine(const struct core *c, const struct box *b, uint16_t port, struct view ticket)
{
	int64_t until;

	return is_genuine(c, b, port, ticket, &until);
}

bool ports_ticket_fits(const struct core *c, const struct box *b, uint16_t port, struct view ticket)
{
	int64_t until;

	return is_genuine(c, b, port, ticket, &until) && until > clock_wall_ms() / 1000;
}
