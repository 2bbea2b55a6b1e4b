/*
 * Streams: see stream.h.
 */
#include "stream.h"

#include <errno.h>

#include "scratch.h"
#include "poison.h"

#define CREDIT_STEP (FRAME_WINDOW / 4) /* credit is given back in pieces of at least this */

void stream_open(struct stream *s, const struct conn_call *call, const struct stream_ops *ops)
{
	s->conn = call->conn;
	s->init = call->conn->init;
	s->ops = ops;
	s->id = call->stream;
	s->type = call->type;
	s->window = s->credit = FRAME_WINDOW;
	list_init(&s->task.link);
	list_append(&s->conn->streams, &s->node);
	s->conn->n_streams++;
	s->init->n_streams++;
}

static void run_free(struct loop_task *task)
{
	struct stream *s = CONTAINER(task, struct stream, task);
	if (--s->init->n_streams == 0)
		scratch_release();
	s->ops->free(s);
}

void stream_close(struct stream *s)
{
	if (s->ops->stop)
		s->ops->stop(s);
	list_del(&s->node);
	s->conn->n_streams--;
	list_del(&s->task.link);
	loop_defer(s->init->loop, &s->task, run_free);
	s->conn = NULL; /* nothing can be sent any more, and the connection may go first */
}

size_t stream_room(const struct stream *s)
{
	if (!s->conn || link_backlog(&s->conn->link) > CONN_BACKLOG)
		return 0;
	return MIN(s->window, FRAME_DATA_MAX);
}

void stream_data(struct stream *s, uint16_t channel, struct view v)
{
	assert(v.n <= s->window);
	s->window -= (uint32_t)v.n;
	/* A link that fails tells its connection by itself. */
	(void)link_send(&s->conn->link,
			&(struct frame){ .type = channel, .kind = FRAME_DATA, .stream = s->id, .body = v });
}

size_t stream_unconsumed(const struct stream *s)
{
	return s->window < FRAME_WINDOW ? FRAME_WINDOW - s->window : 0;
}

void stream_reply(struct stream *s, const struct pb_msg *m, const void *msg)
{
	(void)link_send_msg(&s->conn->link, s->type, FRAME_REPLY, 0, s->id, 0, m, msg);
}

void stream_finish(struct stream *s, const struct pb_msg *m, const void *msg)
{
	(void)link_send_msg(&s->conn->link, s->type, FRAME_REPLY, FRAME_LAST, s->id, 0, m, msg);
	stream_close(s);
}

void stream_fail(struct stream *s, const struct err *e)
{
	(void)link_fail(&s->conn->link, s->type, s->id, e);
	stream_close(s);
}

void stream_consumed(struct stream *s, size_t n)
{
	s->owed += (uint32_t)n;
	if (s->owed < CREDIT_STEP || s->ended || !s->conn)
		return;
	char body[4];
	for (int i = 0; i < 4; i++)
		body[i] = (char)(s->owed >> 8 * i);
	s->credit += s->owed;
	s->owed = 0;
	(void)link_send(&s->conn->link, &(struct frame){ .type = s->type,
							 .kind = FRAME_WINDOW_ADD,
							 .stream = s->id,
							 .body = { body, sizeof(body) } });
}

static void run_step(struct loop_task *task)
{
	struct stream *s = CONTAINER(task, struct stream, task);
	s->ops->on_step(s);
}

void stream_again(struct stream *s)
{
	if (list_empty(&s->task.link))
		loop_defer(s->init->loop, &s->task, run_step);
}

static int on_data(struct stream *s, uint16_t channel, struct view v)
{
	if (s->ended || v.n > s->credit)
		return -EBADMSG; /* past its END or its credit: no honest caller */
	s->credit -= (uint32_t)v.n;
	s->channel = channel;
	if (s->ops->on_data)
		s->ops->on_data(s, v);
	else
		stream_consumed(s, v.n);
	return 0;
}

static int on_window(struct stream *s, struct view body)
{
	uint32_t add = 0;
	for (size_t i = 0; i < 4; i++)
		add |= (uint32_t)(uint8_t)body.p[i] << 8 * i;
	if (add > INT32_MAX - s->window)
		return -EBADMSG;
	s->window += add;
	if (s->ops->on_ready)
		s->ops->on_ready(s);
	return 0;
}

int stream_on_frame(struct stream *s, const struct frame *f)
{
	switch ((enum frame_kind)f->kind) {
	case FRAME_DATA:
		return on_data(s, f->type, f->body);
	case FRAME_WINDOW_ADD:
		return on_window(s, f->body);
	case FRAME_END:
		if (s->ended)
			return -EBADMSG;
		s->ended = true;
		if (s->ops->on_end)
			s->ops->on_end(s);
		return 0;
	case FRAME_CANCEL:
		s->ops->on_cancel(s, false);
		return 0;
	case FRAME_CALL:
	case FRAME_REPLY:
	case FRAME_FAIL:
	case FRAME_EVENT:
		break;
	}
	return -EBADMSG;
}
