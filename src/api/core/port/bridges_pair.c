/*
 * Two streams, joined: see bridges_pair.h. Credit is given back to one side when
 * the other has taken the bytes.
 */
#include "bridges_pair.h"

#include "poison.h"

static void end(struct bridges_pair *p)
{
	bridges_pair_close(p);
	p->on_end(p);
}

void bridges_pair_close(struct bridges_pair *p)
{
	ports_close(&p->near);
	ports_close(&p->far);
	buf_done(&p->to_near);
	buf_done(&p->to_far);
}

/* ---- bytes, the same for both directions ---- */

static void pass(struct port_stream *from, struct port_stream *to, struct buf *queue, struct view data)
{
	size_t n = buf_len(queue) ? 0 : ports_send(to, data);

	/* No more than a window can wait: only memory can be short, and then the bytes are lost with the
	 * stream. */
	if (buf_add(queue, view_skip(data, n)) < 0)
		return;
	ports_consumed(from, n);
}

static void flush(struct port_stream *from, struct port_stream *to, struct buf *queue)
{
	size_t n = ports_send(to, buf_view(queue));

	buf_consume(queue, n);
	buf_shrink(queue);
	ports_consumed(from, n);
	if (from->eof && buf_len(queue) == 0)
		ports_end(to);
}

/* ---- the near end ---- */

static void near_data(struct port_stream *s, struct view data)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, near);

	pass(s, &p->far, &p->to_far, data);
	if (p->to_far.bad)
		end(p);
}

static void near_eof(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, near);
	if (p->far.open)
		flush(s, &p->far, &p->to_far);
}

static void near_room(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, near);
	flush(&p->far, s, &p->to_near);
}

static void near_open(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, near);

	s->call.background = false; /* from here on it is a use */
	p->on_open(p);
}

static void near_done(struct port_stream *s, const struct err *e)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, near);

	p->near_done = true;
	if (e || p->far_done)
		end(p);
}

/* ---- the far end ---- */

static void far_open(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, far);
	flush(&p->near, s, &p->to_far);
}

static void far_data(struct port_stream *s, struct view data)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, far);

	pass(s, &p->near, &p->to_near, data);
	if (p->to_near.bad)
		end(p);
}

static void far_eof(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, far);
	flush(s, &p->near, &p->to_near);
}

static void far_room(struct port_stream *s)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, far);
	flush(&p->near, s, &p->to_far);
}

static void far_done(struct port_stream *s, const struct err *e)
{
	struct bridges_pair *p = CONTAINER(s, struct bridges_pair, far);

	p->far_done = true;
	if (e || p->near_done)
		end(p);
}

static const struct port_ops near_ops = { .on_open = near_open,
					  .on_data = near_data,
					  .on_eof = near_eof,
					  .on_room = near_room,
					  .done = near_done };
static const struct port_ops far_ops = {
	.on_open = far_open, .on_data = far_data, .on_eof = far_eof, .on_room = far_room, .done = far_done
};

int bridges_pair_accept(struct bridges_pair *p, struct box *from, uint16_t listen, struct err *e)
{
	p->to_near = p->to_far = BUF_INIT(FRAME_WINDOW);
	p->near.ops = &near_ops;
	p->near.call.background = true; /* waiting is no use of the box */
	return ports_accept(from, listen, &p->near, e);
}

int bridges_pair_connect(struct bridges_pair *p, struct core *c, const struct actor *a, struct view to,
			 uint16_t port, struct err *e)
{
	p->far.ops = &far_ops;
	return ports_open(c, a, to, port, &p->far, e);
}
