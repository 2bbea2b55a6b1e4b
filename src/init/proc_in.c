/*
 * See proc_in.h.
 */
#include "proc_in.h"

#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "proc.h"
#include "stream.h"
#include "poison.h"

#define INPUT_WAITING (1024u * 1024) /* of Input calls, for one queue */
#define CHUNK_MIN     4096           /* many small pieces of one stream share a chunk */

struct input;

struct chunk {
	struct list node;
	struct stream *from; /* gets credit as bytes are taken; NULL: gone, or an Input call */
	struct input *call;  /* is answered when all of it is taken; NULL: gone, or DATA */
	bool close;          /* the input ends after it */
	size_t n, at, cap;
	char data[];
};

/* An Input call that waits. */
struct input {
	struct stream stream;
	struct feed *feed;
	struct chunk *chunk;
};

static const char *feed_name(const struct feed *f)
{
	return f != &f->proc->feeds[PROC_STDIN] ? "control channel" : f->proc->pty ? "terminal" : "stdin";
}

/* ---- the queue -------------------------------------------------------- */

static int no_feed(const struct feed *f, struct err *e)
{
	if (f->proc->exited)
		return err_set(e, ERR_STATE, "process %d has ended", (int)f->proc->pid);
	return err_set(e, ERR_STATE, "the %s of process %d is closed", feed_name(f), (int)f->proc->pid);
}

/* Commands and code may hold secrets. */
static void free_chunk(const struct feed *f, struct chunk *c)
{
	if (f == &f->proc->feeds[PROC_CONTROL_IN])
		explicit_bzero(c->data, c->n);
	free(c);
}

/* Takes a chunk out of the queue; what it still held is nobody's. */
static void discard(struct feed *f, struct chunk *c)
{
	list_del(&c->node);
	f->waiting -= c->n - c->at;
	if (c->from)
		stream_consumed(c->from, c->n - c->at); /* the caller need not wait */
	struct input *call = c->call;
	if (call)
		call->chunk = NULL;
	free_chunk(f, c);
	if (call) {
		struct err e;
		no_feed(f, &e);
		stream_fail(&call->stream, &e);
	}
}

static void feed_close(struct feed *f)
{
	loop_io_stop(&f->io);
	fd_close(TAKE_FD(f->fd));
	while (!list_empty(&f->chunks))
		discard(f, CONTAINER(f->chunks.next, struct chunk, node));
}

/* How many bytes were taken; -errno when the program wants no more (EPIPE). */
static ssize_t write_some(struct feed *f, struct view v)
{
	size_t done = 0;
	while (done < v.n) {
		ssize_t n = write(f->fd, v.p + done, v.n - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static void on_writable(struct loop_io *io, uint32_t events);

static void watch(struct feed *f)
{
	if (f->io.fd < 0 && loop_io_start(f->proc->init->loop, &f->io, f->fd, EPOLLOUT, on_writable) < 0)
		feed_close(f);
}

/* All of it has been taken. Whether the queue is still open. */
static bool complete(struct feed *f, struct chunk *c)
{
	struct input *call = c->call;
	bool close = c->close;
	list_del(&c->node);
	free_chunk(f, c);
	if (close)
		feed_close(f);
	if (call) {
		call->chunk = NULL;
		stream_finish(&call->stream, &wire_input_reply_msg, &(struct wire_input_reply){ 0 });
	}
	return !close;
}

/* Writes what is taken and watches while something is left. */
static void flush(struct feed *f)
{
	while (!list_empty(&f->chunks)) {
		struct chunk *c = CONTAINER(f->chunks.next, struct chunk, node);
		ssize_t n = write_some(f, (struct view){ c->data + c->at, c->n - c->at });
		if (n < 0) {
			feed_close(f);
			return;
		}
		c->at += (size_t)n;
		f->waiting -= (size_t)n;
		if (c->from)
			stream_consumed(c->from, (size_t)n);
		if (c->at < c->n) {
			watch(f);
			return;
		}
		if (!complete(f, c))
			return;
	}
	loop_io_stop(&f->io);
}

static void on_writable(struct loop_io *io, uint32_t events)
{
	(void)events;
	flush(CONTAINER(io, struct feed, io));
}

static struct chunk *append(struct feed *f, struct view v, size_t cap)
{
	struct chunk *c = malloc(sizeof(*c) + cap);
	if (!c)
		return NULL;
	*c = (struct chunk){ .n = v.n, .cap = cap };
	if (v.n)
		memcpy(c->data, v.p, v.n);
	list_append(&f->chunks, &c->node);
	f->waiting += v.n;
	return c;
}

/* ---- streams ---------------------------------------------------------- */

static bool add_to_last(struct feed *f, struct stream *from, struct view v)
{
	struct chunk *c = CONTAINER(f->chunks.prev, struct chunk, node);
	if (list_empty(&f->chunks) || c->from != from || c->cap - c->n < v.n)
		return false;
	memcpy(c->data + c->n, v.p, v.n);
	c->n += v.n;
	f->waiting += v.n;
	return true;
}

void proc_in_data(struct proc *p, struct stream *from, struct view v)
{
	struct feed *f = from->channel == 0   ? &p->feeds[PROC_STDIN]
			 : from->channel == 3 ? &p->feeds[PROC_CONTROL_IN]
					      : NULL;
	ssize_t n = !f || f->fd < 0 ? (ssize_t)v.n : list_empty(&f->chunks) ? write_some(f, v) : 0;
	if (n < 0) {
		feed_close(f);
		n = (ssize_t)v.n;
	}
	stream_consumed(from, (size_t)n);
	v = view_skip(v, (size_t)n);
	if (v.n == 0 || add_to_last(f, from, v))
		return;
	struct chunk *c = append(f, v, MAX(v.n, CHUNK_MIN));
	if (!c) {
		stream_consumed(from, v.n);
		feed_close(f);
		return;
	}
	c->from = from;
	watch(f);
}

void proc_in_end(struct proc *p)
{
	struct feed *f = &p->feeds[PROC_STDIN];
	if (f->fd < 0 || p->pty)
		return;
	struct chunk *c = list_empty(&f->chunks) ? NULL : append(f, VIEW_NONE, 0);
	if (c)
		c->close = true;
	else
		feed_close(f);
}

void proc_in_forget(struct proc *p, struct stream *from)
{
	for (unsigned i = 0; i < PROC_FEEDS; i++)
		LIST_EACH (it, &p->feeds[i].chunks) {
			struct chunk *c = CONTAINER(it, struct chunk, node);
			if (c->from == from)
				c->from = NULL;
		}
}

void proc_in_init(struct proc *p)
{
	for (unsigned i = 0; i < PROC_FEEDS; i++) {
		p->feeds[i] = (struct feed){ .proc = p, .io.fd = -1, .fd = -1 };
		list_init(&p->feeds[i].chunks);
	}
}

void proc_in_close(struct proc *p)
{
	for (unsigned i = 0; i < PROC_FEEDS; i++)
		feed_close(&p->feeds[i]);
}

/* ---- Input ------------------------------------------------------------ */

static struct input *input_of(struct stream *s)
{
	return CONTAINER(s, struct input, stream);
}

/* A caller that is lost may have been answered for all it knows: its bytes stay. */
static void on_cancel(struct stream *s, bool lost)
{
	struct input *in = input_of(s);
	struct chunk *c = in->chunk;
	struct err e;
	if (lost)
		return;
	if (c) {
		/* An empty one is left, which is taken in its turn. */
		in->feed->waiting -= c->n - c->at;
		c->n = c->at;
		c->close = false;
	}
	err_set(&e, ERR_CANCELLED, "cancelled");
	stream_fail(s, &e);
}

static void on_stop(struct stream *s)
{
	struct input *in = input_of(s);
	if (in->chunk)
		in->chunk->call = NULL;
	in->chunk = NULL;
}

static void on_free(struct stream *s)
{
	free(input_of(s));
}

static const struct stream_ops input_ops = {
	.on_cancel = on_cancel,
	.stop = on_stop,
	.free = on_free,
};

static int enqueue(struct feed *f, const struct conn_call *call, struct view rest, bool close, struct err *e)
{
	if (f->waiting + rest.n > INPUT_WAITING)
		return err_set(e, ERR_UNAVAILABLE, "too much input waits for process %d", (int)f->proc->pid);
	struct input *in = calloc(1, sizeof(*in));
	struct chunk *c = in ? append(f, rest, rest.n) : NULL;
	if (!c) {
		free(in);
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	}
	c->close = close;
	c->call = in;
	in->chunk = c;
	in->feed = f;
	stream_open(&in->stream, call, &input_ops);
	watch(f);
	return 0;
}

int proc_input(const struct conn_call *call, struct err *e)
{
	const struct wire_input *msg = call->msg;
	struct proc *p = proc_find(call->conn->init, msg->process, e);
	if (!p)
		return -1;
	if (msg->channel != 0 && msg->channel != 3)
		return err_set(e, ERR_INVALID, "there is no input channel %u", msg->channel);
	if (msg->data.n > FRAME_DATA_MAX)
		return err_set(e, ERR_TOO_LARGE, "one input has at most %u bytes", FRAME_DATA_MAX);
	struct feed *f = &p->feeds[msg->channel == 0 ? PROC_STDIN : PROC_CONTROL_IN];
	if (msg->close && p->pty && msg->channel == 0)
		return err_set(e, ERR_INVALID, "a terminal cannot be closed: send it Ctrl-D");
	if (f->fd < 0)
		return no_feed(f, e);
	bool first = list_empty(&f->chunks);
	ssize_t n = first ? write_some(f, msg->data) : 0;
	if (n < 0) {
		feed_close(f);
		return no_feed(f, e);
	}
	if (!first || (size_t)n < msg->data.n)
		return enqueue(f, call, view_skip(msg->data, (size_t)n), msg->close, e);
	if (msg->close)
		feed_close(f);
	conn_reply(call, &wire_input_reply_msg, &(struct wire_input_reply){ 0 });
	return 0;
}
