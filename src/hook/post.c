/*
 * One delivery: name, address, judgement, connection (with TLS for https), request, the
 * answer's first line.
 * The address that was judged is the one that is dialled.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fd.h"
#include "hook.h"
#include "netaddr.h"
#include "num.h"
#include "secure.h"
#include "wire_gen.h"
#include "poison.h"

#define REQUEST_MAX (256u * 1024)
#define LINE_MAX    1024

struct post {
	struct hook *hook;
	uint32_t stream;
	uint16_t port;
	struct name_query name;
	struct loop_io io;
	struct loop_timer timer;
	struct loop_task freeing;
	struct buf out, in;
	bool tls, over;
	struct secure *secure; /* over io, where tls is set */
	char host[256];
};

static void run_free(struct loop_task *t)
{
	struct post *p = CONTAINER(t, struct post, freeing);
	buf_done(&p->out);
	buf_done(&p->in);
	secure_free(p->secure);
	free(p);
}

static void finish(struct post *p, unsigned status, const char *error)
{
	struct hook *h = p->hook;
	struct wire_hook_posted msg = { .status = status, .error = view_of(error) };
	int fd = p->io.fd;

	if (p->over)
		return;
	p->over = true;
	loop_timer_stop(&p->timer);
	name_stop(&p->name);
	if (fd >= 0) {
		loop_io_stop(&p->io);
		fd_close(fd);
	}
	h->n--;
	(void)!link_send_msg(&h->api, WIRE_TYPE_HOOK_POST, FRAME_REPLY, FRAME_LAST, p->stream, 0,
			     &wire_hook_posted_msg, &msg);
	loop_defer(h->loop, &p->freeing, run_free);
}

static void fail_sys(struct post *p, int error, const char *what)
{
	char text[96];
	snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
	finish(p, 0, text);
}

static void on_time(struct loop_timer *t)
{
	finish(CONTAINER(t, struct post, timer), 0, "no answer in time");
}

/* "HTTP/1.1 200 OK": the three digits, or 0. */
static unsigned read_status(struct view line)
{
	uint32_t status;

	if (line.n < 12 || !view_starts(line, "HTTP/1.") || line.p[8] != ' ' ||
	    num_u32(view_head(view_skip(line, 9), 3), &status) < 0 || status < 100)
		return 0;
	return status;
}

/* Bytes sent or got, or -errno; of -EAGAIN it waits for what is needed. */
static ssize_t wait_for(struct post *p, ssize_t n, uint32_t want)
{
	int r = n == -EAGAIN ? loop_io_want(&p->io, want) : 0;
	return r < 0 ? r : n;
}

static ssize_t put(struct post *p, struct view v)
{
	uint32_t want = EPOLLOUT;
	ssize_t n = p->tls ? secure_send(p->secure, v, &want) : send(p->io.fd, v.p, v.n, MSG_NOSIGNAL);

	if (!p->tls && n < 0)
		n = errno == EINTR ? -EAGAIN : -errno;
	return wait_for(p, n, want);
}

static ssize_t get(struct post *p, char *piece, size_t size)
{
	uint32_t want = EPOLLIN;
	ssize_t n = p->tls ? secure_recv(p->secure, piece, size, &want) : recv(p->io.fd, piece, size, 0);

	if (!p->tls && n < 0)
		n = errno == EINTR ? -EAGAIN : -errno;
	return wait_for(p, n, want);
}

static void fail_io(struct post *p, ssize_t error, const char *what)
{
	if (error == -EPROTO && p->secure && secure_why(p->secure)[0])
		finish(p, 0, secure_why(p->secure));
	else
		fail_sys(p, (int)-error, what);
}

static void receive(struct post *p)
{
	char piece[LINE_MAX];
	struct view rest = VIEW_NONE, line = VIEW_NONE;
	bool full = false;
	ssize_t n = 1;

	/* Until the first line is there, or as much as one may have. */
	while (n > 0 && !full && !rest.p) {
		n = get(p, piece, sizeof(piece));
		if (n == -EAGAIN)
			return;
		if (n < 0) {
			fail_io(p, n, "receiving");
			return;
		}
		full = n > 0 && buf_append(&p->in, piece, (size_t)n) < 0;
		line = view_split(buf_view(&p->in), '\n', &rest);
	}
	unsigned status = rest.p ? read_status(line) : 0;
	finish(p, status,
	       status   ? ""
	       : n == 0 ? "the connection was closed without an answer"
			: "not an answer of HTTP");
}

static void transmit(struct post *p)
{
	while (buf_len(&p->out)) {
		ssize_t n = put(p, buf_view(&p->out));
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			fail_io(p, n ? n : -EPIPE, "sending");
			return;
		}
		buf_consume(&p->out, (size_t)n);
	}
	receive(p); /* what TLS has read already does not wake us */
}

static void on_socket(struct loop_io *io, uint32_t events)
{
	struct post *p = CONTAINER(io, struct post, io);
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error) {
		fail_sys(p, error, "connecting");
		return;
	}
	if (buf_len(&p->out))
		transmit(p);
	else
		receive(p);
}

static void on_name(struct name_query *q, const char *error)
{
	struct post *p = CONTAINER(q, struct post, name);
	struct sockaddr_storage to = q->found;

	if (error) {
		finish(p, 0, error);
		return;
	}
	if (to.ss_family == AF_INET)
		((struct sockaddr_in *)&to)->sin_port = htons(p->port);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons(p->port);
	if (netaddr_refused((struct sockaddr *)&to, p->hook->refuse)) {
		finish(p, 0, "webhooks to this address are refused");
		return;
	}
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	if (fd >= 0)
		(void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, q->found_len) < 0 && errno != EINPROGRESS)) {
		int sys = errno;
		fd_close(fd);
		fail_sys(p, sys, "connecting");
		return;
	}
	int r = 0;
	if (p->tls) {
		p->secure = secure_new(p->hook->tls, fd, view_of(p->host));
		r = p->secure ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = loop_io_start(p->hook->loop, &p->io, fd, EPOLLOUT, on_socket);
	if (r < 0) {
		p->io.fd = -1;
		fd_close(fd);
		fail_sys(p, -r, "connecting");
	}
}

/* The api has checked the parts of the URL; what would break out of a line is looked for again. */
static bool one_line(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] <= ' ' || v.p[i] == 0x7f)
			return false;
	return v.n > 0;
}

static int write_request(struct post *p, const struct wire_hook_post *m)
{
	const struct view lines[] = { m->host, m->authority, m->target, m->signature, m->event, m->delivery };

	for (size_t i = 0; i < ELEMS(lines); i++)
		if (!one_line(lines[i]))
			return -EINVAL;
	buf_printf(&p->out,
		   "POST %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: paddock\r\nContent-Type: "
		   "application/json\r\n"
		   "Content-Length: %zu\r\nPaddock-Signature: %.*s\r\nPaddock-Event: %.*s\r\n"
		   "Paddock-Delivery: %.*s\r\nConnection: close\r\n\r\n",
		   VIEW_ARG(m->target), VIEW_ARG(m->authority), m->body.n, VIEW_ARG(m->signature),
		   VIEW_ARG(m->event), VIEW_ARG(m->delivery));
	buf_add(&p->out, m->body);
	return p->out.bad;
}

void post_start(struct hook *h, const struct frame *f)
{
	struct arena a = ARENA_INIT(REQUEST_MAX);
	struct wire_hook_post m;
	struct post *p = calloc(1, sizeof(*p));
	struct err e = { 0 };
	int r = p && h->n < HOOK_AT_ONCE ? pb_decode(&wire_hook_post_msg, f->body, 0, &a, &m) : -EAGAIN;

	if (r >= 0 && m.tls && !h->tls)
		r = -ENOKEY;
	if (r >= 0) {
		*p = (struct post){ .hook = h,
				    .stream = f->stream,
				    .port = (uint16_t)m.port,
				    .tls = m.tls,
				    .io = { .fd = -1 },
				    .name = { .io = { .fd = -1 } },
				    .out = BUF_INIT(REQUEST_MAX),
				    .in = BUF_INIT(LINE_MAX) };
		r = view_to_str(m.host, p->host, sizeof(p->host));
		if (r >= 0)
			r = write_request(p, &m);
	}
	if (r == -ENOKEY) {
		/* Not this call's mistake: it is tried again like any other delivery. */
		struct wire_hook_posted msg = {
			.error = VIEW("there are no certificate authorities (webhooks.ca_file)")
		};
		(void)!link_send_msg(&h->api, f->type, FRAME_REPLY, FRAME_LAST, f->stream, 0,
				     &wire_hook_posted_msg, &msg);
		free(p);
	} else if (r < 0) {
		err_sys(&e, r == -EAGAIN ? ERR_UNAVAILABLE : ERR_INVALID, r, "the delivery");
		(void)!link_fail(&h->api, f->type, f->stream, &e);
		if (p)
			buf_done(&p->out);
		free(p);
	} else {
		h->n++;
		loop_timer_start(h->loop, &p->timer, HOOK_REQUEST_MS, on_time);
		name_start(&p->name, &h->names, m.host, on_name);
	}
	arena_done(&a);
}
