/*
 * See forward.h. Nothing here waits for one direction alone: each has a queue with
 * a maximum, past which its source is not read, so that two ends that fill each
 * other's queues never stop one another.
 */
#include "forward.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fd.h"
#include "websocket.h"

#include "poison.h"

#define QUEUE_HIGH  (256u << 10)
#define QUEUE_MAX   (QUEUE_HIGH + (1u << 20))
#define PIECE       (32u << 10)
#define MESSAGE_MAX (1u << 20)

struct forward {
	int local, remote;
	struct websocket ws;
	struct buf to_local, to_remote;
	bool local_ended;  /* our program sends no more */
	bool remote_ended; /* the box sends no more */
	bool shut;         /* our program was told so */
	bool closed;       /* the tunnel is over */
};

static int out_of_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory");
}

/* ---- from the tunnel ---- */

static int on_piece(struct forward *f, const struct websocket_piece *p, struct err *e)
{
	int r = 0;

	switch (p->kind) {
	case WEBSOCKET_BINARY:
		r = buf_add(&f->to_local, p->data);
		break;
	case WEBSOCKET_TEXT: /* "end", the only one */
		f->remote_ended |= p->last;
		break;
	case WEBSOCKET_PING:
		r = websocket_put(&f->to_remote, WEBSOCKET_CLIENT, WEBSOCKET_PONG, p->data);
		break;
	case WEBSOCKET_CLOSE:
		f->closed = true;
		if (p->code != WEBSOCKET_NORMAL)
			return err_set(e, ERR_UNAVAILABLE, "%.*s", (int)MIN(p->data.n, 150u), p->data.p);
		break;
	case WEBSOCKET_PONG:
	case WEBSOCKET_MORE:
		break;
	}
	return r < 0 ? out_of_memory(e) : 0;
}

static int take_pieces(struct forward *f, struct view in, struct err *e)
{
	struct websocket_piece p;
	int r;

	while ((r = websocket_next(&f->ws, &in, &p)) > 0)
		if (on_piece(f, &p, e) < 0)
			return -1;
	return r < 0 ? err_set(e, ERR_INTERNAL, "the daemon's answer is no WebSocket: %s", f->ws.why) : 0;
}

static int read_remote(struct forward *f, struct err *e)
{
	char piece[PIECE];
	ssize_t n = recv(f->remote, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return err_set(e, ERR_UNAVAILABLE, "the connection to the daemon is lost");
	return take_pieces(f, (struct view){ piece, (size_t)n }, e);
}

/* ---- from our program ---- */

static int read_local(struct forward *f, struct err *e)
{
	char piece[PIECE];
	ssize_t n = recv(f->local, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(e, ERR_CANCELLED, errno, "the local connection");
	f->local_ended = n == 0;
	int r = n ? websocket_put(&f->to_remote, WEBSOCKET_CLIENT, WEBSOCKET_BINARY,
				  (struct view){ piece, (size_t)n })
		  : websocket_put(&f->to_remote, WEBSOCKET_CLIENT, WEBSOCKET_TEXT, VIEW("end"));
	return r < 0 ? out_of_memory(e) : 0;
}

/* ---- to either ---- */

static int drain(int fd, struct buf *b, struct err *e)
{
	while (buf_len(b)) {
		ssize_t n = send(fd, buf_view(b).p, buf_len(b), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return err_sys(e, ERR_CANCELLED, errno, "cannot send");
		buf_consume(b, (size_t)n);
	}
	return 0;
}

static int step(struct forward *f, struct err *e)
{
	bool read_l = !f->local_ended && buf_len(&f->to_remote) < QUEUE_HIGH,
	     read_r = !f->closed && buf_len(&f->to_local) < QUEUE_HIGH;
	struct pollfd fds[] = {
		{ .fd = f->local,
		  .events = (short)((read_l ? POLLIN : 0) | (buf_len(&f->to_local) ? POLLOUT : 0)) },
		{ .fd = f->remote,
		  .events = (short)((read_r ? POLLIN : 0) |
				    (buf_len(&f->to_remote) && !f->closed ? POLLOUT : 0)) },
	};

	/* An end that has hung up would be told again at once while nothing is wanted of it. */
	for (size_t i = 0; i < ELEMS(fds); i++)
		if (!fds[i].events)
			fds[i].fd = -1;
	if (poll(fds, ELEMS(fds), -1) < 0)
		return errno == EINTR ? 0 : err_sys(e, ERR_INTERNAL, errno, "poll");
	if (fds[0].revents && read_l && read_local(f, e) < 0)
		return -1;
	if (fds[1].revents && read_r && read_remote(f, e) < 0)
		return -1;
	if (drain(f->local, &f->to_local, e) < 0 || (!f->closed && drain(f->remote, &f->to_remote, e) < 0))
		return -1;
	if (f->remote_ended && !f->shut && buf_len(&f->to_local) == 0) {
		(void)shutdown(f->local, SHUT_WR);
		f->shut = true;
	}
	return 0;
}

int forward_carry(struct session *s, const char *box, unsigned port, int fd, struct err *e)
{
	_cleanup_(closep) int local = fd;
	_cleanup_(buf_done) struct buf path = BUF_INIT(4096);
	struct forward f = { .local = local,
			     .to_local = BUF_INIT(QUEUE_MAX),
			     .to_remote = BUF_INIT(QUEUE_MAX) };
	int r;

	buf_puts(&path, "/v1/sandboxes/");
	if (session_segment(&path, box, e) < 0)
		return -1;
	buf_printf(&path, "/tunnel/%u", port);
	if (session_upgrade(s, buf_view(&path), e) < 0)
		return -1;
	f.remote = s->client.fd;
	websocket_init(&f.ws, WEBSOCKET_CLIENT, MESSAGE_MAX);
	r = take_pieces(&f, buf_view(&s->client.in), e); /* what came with the head of the answer */
	while (r >= 0 && !(f.closed && buf_len(&f.to_local) == 0))
		r = step(&f, e);
	buf_done(&f.to_local);
	buf_done(&f.to_remote);
	client_close(&s->client);
	return r;
}
