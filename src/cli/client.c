/*
 * The client behind client.h. The socket is non-blocking underneath so that
 * every wait is a poll that also looks at cancel_fd. While a body is being sent
 * the answer may already come (a refusal, usually): then sending stops, the
 * answer is read, and the connection is not used again.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client.h"
#include "clock.h"
#include "fd.h"
#include "tls.h"

#include "poison.h"

#define CONNECT_MS        5000
#define IO_MS             60000 /* without a byte moved */
#define PIECE             (64u << 10)
#define IN_MAX            (128u << 10) /* a head or a piece */
#define INFORMATIONAL_MAX 8            /* answers 1xx before the real one */

void client_init(struct client *c, const struct url *url, const char *key)
{
	*c = (struct client){ .url = *url, .key = key, .fd = -1, .cancel_fd = -1 };
	buf_init(&c->in, IN_MAX);
}

void client_close(struct client *c)
{
	fd_close(c->fd);
	c->fd = -1;
	/* It ends with the socket. In a child of ours it is not our own to wait for. */
	if (c->relay > 0)
		while (waitpid(c->relay, NULL, 0) < 0 && errno == EINTR)
			;
	c->relay = 0;
	buf_clear(&c->in);
	c->shown = 0;
	c->body = (struct response_body){ .done = true };
}

void client_done(struct client *c)
{
	if (!c)
		return;
	client_close(c);
	buf_done(&c->in);
}

/* Waits for `events` on the connection: those that came, or -1. */
static int await(struct client *c, short events, uint64_t timeout_ms, struct err *e)
{
	uint64_t deadline = clock_mono_ms() + timeout_ms;

	for (;;) {
		struct pollfd fds[] = { { .fd = c->fd, .events = events },
					{ .fd = c->cancel_fd, .events = POLLIN } };
		uint64_t now = clock_mono_ms();
		int ms = -1;

		if (timeout_ms) {
			if (now >= deadline)
				return err_set(e, ERR_TIMEOUT, "no answer from %s in %" PRIu64 " s",
					       c->url.authority, timeout_ms / 1000);
			ms = (int)MIN(deadline - now, 1000000u);
		}
		if (c->wake_at_ms) {
			uint64_t left = c->wake_at_ms > now ? c->wake_at_ms - now : 0;

			ms = ms < 0 ? (int)MIN(left, 1000000u) : (int)MIN(left, (uint64_t)ms);
		}
		if (poll(fds, ELEMS(fds), ms) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(e, ERR_INTERNAL, errno, "poll");
		}
		if (fds[1].revents && !c->on_wake)
			return err_set(e, ERR_CANCELLED, "interrupted");
		if (fds[1].revents || (c->wake_at_ms && clock_mono_ms() >= c->wake_at_ms)) {
			if (c->on_wake(c->wake_arg, e) < 0)
				return -1;
			continue;
		}
		if (fds[0].revents)
			return fds[0].revents;
	}
}

/* ---- connecting ---- */

/* 0, -errno of this address, or -ECANCELED with e set: stop trying. */
static int connect_one(struct client *c, const struct addrinfo *ai, struct err *e)
{
	int error = 0;
	socklen_t len = sizeof(error);

	c->fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
	if (c->fd < 0)
		return -errno;
	if (connect(c->fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return 0;
	if (errno == EINPROGRESS) {
		if (await(c, POLLOUT, CONNECT_MS, e) < 0) {
			client_close(c);
			return -ECANCELED;
		}
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
			error = errno;
		if (error == 0)
			return 0;
	} else {
		error = errno;
	}
	client_close(c);
	return -error;
}

static int client_connect(struct client *c, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int one = 1, r, last = -EADDRNOTAVAIL;

	r = getaddrinfo(c->url.host, c->url.port, &hints, &list);
	if (r != 0)
		return err_set(e, ERR_UNAVAILABLE, "%s: %s", c->url.host, gai_strerror(r));
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		last = connect_one(c, ai, e);
		if (last == 0 || last == -ECANCELED)
			break;
	}
	freeaddrinfo(list);
	if (last == -ECANCELED)
		return -1;
	if (last == -ECONNREFUSED)
		return err_set(e, ERR_UNAVAILABLE,
			       "no daemon answers at http%s://%s (is `paddock serve` running?)",
			       c->url.tls ? "s" : "", c->url.authority);
	if (last < 0)
		return err_sys(e, ERR_UNAVAILABLE, last, "cannot connect to http%s://%s",
			       c->url.tls ? "s" : "", c->url.authority);
	/* A command may run silently for days: let the kernel notice a dead peer. */
	(void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (!c->url.tls)
		return 0;
	r = c->fd;
	c->fd = -1;
	return tls_connect(r, c->url.host, c->ca, &c->fd, &c->relay, e);
}

static void moved(const struct client *c, size_t n)
{
	if (c->on_moved)
		c->on_moved(c->moved_arg, n);
}

/* An idle connection that has something to say was closed by the server. */
static bool is_stale(const struct client *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* ---- sending ---- */

/* 1: sent; 0: the server has answered already (or is gone), do not go on; -1. */
static int send_bytes(struct client *c, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		int got = await(c, POLLOUT | POLLIN, IO_MS, e);
		ssize_t sent;

		if (got < 0)
			return -1;
		if (got & (POLLIN | POLLERR | POLLHUP))
			return 0;
		sent = send(c->fd, p, n, MSG_NOSIGNAL);
		if (sent < 0) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			if (errno == EPIPE || errno == ECONNRESET)
				return 0;
			return err_sys(e, ERR_UNAVAILABLE, errno, "cannot send to %s", c->url.authority);
		}
		p += sent;
		n -= (size_t)sent;
	}
	return 1;
}

static ssize_t read_some(int fd, char *p, size_t n)
{
	ssize_t got;

	do
		got = read(fd, p, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int send_sized(struct client *c, int fd, uint64_t size, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(PIECE);
	char *p = buf_reserve(&b, PIECE);

	if (!p)
		return err_set(e, ERR_INTERNAL, "out of memory");
	while (size > 0) {
		ssize_t n = read_some(fd, p, size < PIECE ? (size_t)size : PIECE);
		int r;

		if (n < 0)
			return err_sys(e, ERR_INTERNAL, (int)n, "cannot read what is to be sent");
		if (n == 0)
			return err_set(e, ERR_INTERNAL, "the file became shorter while it was sent");
		r = send_bytes(c, p, (size_t)n, e);
		if (r <= 0)
			return r;
		size -= (uint64_t)n;
		moved(c, (size_t)n);
	}
	return 1;
}

static int send_chunked(struct client *c, const struct client_request *rq, struct err *e)
{
	enum { HEAD = 16, TAIL = 2 };
	_cleanup_(buf_done) struct buf b = BUF_INIT(HEAD + PIECE + TAIL);
	char *p = buf_reserve(&b, HEAD + PIECE + TAIL);

	if (!p)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (;;) {
		ssize_t n = read_some(rq->body_fd, p + HEAD, PIECE);
		char size[HEAD + 1];
		int len, r;

		if (n < 0)
			return err_sys(e, ERR_INTERNAL, (int)n, "cannot read what is to be sent");
		if (n == 0 && rq->at_end && rq->at_end(rq->ctx, e) < 0)
			return -1;
		if (n == 0)
			return send_bytes(c, "0\r\n\r\n", 5, e);
		/* The size goes right before the data, so that a chunk is one write. */
		len = snprintf(size, sizeof(size), "%zx\r\n", (size_t)n);
		memcpy(p + HEAD - len, size, (size_t)len);
		memcpy(p + HEAD + n, "\r\n", TAIL);
		r = send_bytes(c, p + HEAD - len, (size_t)len + (size_t)n + TAIL, e);
		if (r <= 0)
			return r;
		moved(c, (size_t)n);
	}
}

static int send_request(struct client *c, const struct client_request *rq, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(SIZE_MAX / 2);
	int r;

	buf_printf(&b, "%s %.*s HTTP/1.1\r\nHost: %s\r\nUser-Agent: paddock/" PADDOCK_VERSION "\r\n",
		   rq->method, VIEW_ARG(rq->path), c->url.authority);
	if (c->key)
		buf_printf(&b, "Authorization: Bearer %s\r\n", c->key);
	if (rq->accept)
		buf_printf(&b, "Accept: %s\r\n", rq->accept);
	buf_add(&b, rq->headers);
	if (rq->upgrade_key)
		buf_printf(&b,
			   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
			   "Sec-WebSocket-Key: %s\r\n",
			   rq->upgrade_key);
	if (rq->content_type)
		buf_printf(&b, "Content-Type: %s\r\n", rq->content_type);
	if (rq->streamed && rq->body_size < 0)
		buf_puts(&b, "Transfer-Encoding: chunked\r\n");
	else if (rq->streamed)
		buf_printf(&b, "Content-Length: %" PRId64 "\r\n", rq->body_size);
	else if (rq->body.p)
		buf_printf(&b, "Content-Length: %zu\r\n", rq->body.n);
	buf_puts(&b, "\r\n");
	if (!rq->streamed)
		buf_add(&b, rq->body);
	if (b.bad)
		return err_set(e, ERR_INTERNAL, "out of memory");
	r = send_bytes(c, buf_view(&b).p, buf_len(&b), e);
	if (r <= 0 || !rq->streamed)
		return r;
	if (rq->body_size < 0)
		return send_chunked(c, rq, e);
	return send_sized(c, rq->body_fd, (uint64_t)rq->body_size, e);
}

/* ---- receiving ---- */

/* Reads what there is: 1, 0 at the end of the connection, -1. */
static int receive(struct client *c, uint64_t timeout_ms, struct err *e)
{
	for (;;) {
		char *p = buf_reserve(&c->in, MIN(PIECE, buf_room(&c->in)));
		ssize_t n;

		if (!p || buf_room(&c->in) == 0)
			return err_set(e, ERR_INTERNAL, "the server's answer does not fit");
		if (await(c, POLLIN, timeout_ms, e) < 0)
			return -1;
		n = recv(c->fd, p, MIN(PIECE, buf_room(&c->in)), 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && errno != ECONNRESET)
			return err_sys(e, ERR_UNAVAILABLE, errno, "cannot read from %s", c->url.authority);
		if (n > 0)
			buf_commit(&c->in, (size_t)n);
		return n > 0;
	}
}

/* The head of the next answer, informational ones included. */
static int receive_head(struct client *c, const struct client_request *rq, struct response *ret,
			struct err *e)
{
	for (;;) {
		size_t used;
		int r = response_head(buf_view(&c->in), strcmp(rq->method, "HEAD") == 0, ret, &used, e);

		if (r < 0)
			return -1;
		if (r > 0) {
			buf_consume(&c->in, used);
			return 0;
		}
		r = receive(c, rq->timeout_ms, e);
		if (r < 0)
			return -1;
		if (r == 0)
			return err_set(e, ERR_UNAVAILABLE, "%s closed the connection without an answer",
				       c->url.authority);
	}
}

static int exchange(struct client *c, const struct client_request *rq, struct response *ret, struct err *e)
{
	int sent = send_request(c, rq, e);

	if (sent < 0)
		return -1;
	for (int i = 0; i < INFORMATIONAL_MAX; i++) {
		if (receive_head(c, rq, ret, e) < 0)
			return -1;
		if (ret->status == 101 && rq->upgrade_key) {
			c->keep = false;
			c->body = (struct response_body){ .done = true };
			return 0;
		}
		if (ret->status == 101)
			break;
		if (ret->status < 200)
			continue;
		c->keep = sent > 0 && ret->keep_alive;
		response_body_init(&c->body, ret);
		return 0;
	}
	return err_set(e, ERR_INTERNAL, "unexpected answer %d from %s", ret->status, c->url.authority);
}

int client_send(struct client *c, const struct client_request *rq, struct response *ret, struct err *e)
{
	if (c->fd >= 0 && (!c->keep || !c->body.done || buf_len(&c->in) > 0 || is_stale(c)))
		client_close(c);
	if (c->fd < 0 && client_connect(c, e) < 0)
		return -1;
	if (exchange(c, rq, ret, e) < 0) {
		client_close(c);
		return -1;
	}
	return 0;
}

int client_push(struct client *c, struct view data, struct err *e)
{
	while (data.n) {
		ssize_t n;

		if (await(c, POLLOUT, IO_MS, e) < 0)
			return -1;
		n = send(c->fd, data.p, data.n, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(e, ERR_UNAVAILABLE, errno, "cannot send to %s", c->url.authority);
		data = view_skip(data, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

int client_pull(struct client *c, struct err *e)
{
	return receive(c, IO_MS, e);
}

int client_read(struct client *c, struct view *ret, struct err *e)
{
	buf_consume(&c->in, c->shown);
	c->shown = 0;
	while (!c->body.done) {
		struct view data;
		ssize_t n = response_body_next(&c->body, buf_view(&c->in), &data);
		int r;

		if (n < 0) {
			client_close(c);
			return err_set(e, ERR_INTERNAL, "the server's answer is not HTTP/1.1: bad chunk");
		}
		if (data.n > 0) {
			*ret = data;
			moved(c, data.n);
			c->shown = (size_t)n; /* dropping it now might move it */
			return 1;
		}
		buf_consume(&c->in, (size_t)n);
		if (c->body.done)
			break;
		r = receive(c, IO_MS, e);
		if (r == 0 && response_body_eof(&c->body) < 0)
			r = err_set(e, ERR_UNAVAILABLE,
				    "%s closed the connection in the middle of its answer", c->url.authority);
		if (r < 0) {
			client_close(c);
			return -1;
		}
	}
	return 0;
}

int client_read_all(struct client *c, struct buf *out, struct err *e)
{
	struct view data;
	int r;

	while ((r = client_read(c, &data, e)) > 0)
		if (buf_add(out, data) < 0)
			return err_set(e, ERR_TOO_LARGE, "the server's answer is too large");
	return r;
}

int client_read_to_fd(struct client *c, int fd, struct err *e)
{
	struct view data;
	int r;

	while ((r = client_read(c, &data, e)) > 0) {
		r = fd_write_all(fd, data.p, data.n);
		if (r < 0)
			return err_sys(e, ERR_INTERNAL, r, "cannot write");
	}
	return r;
}
