/*
 * One delivery: name, address, judgement, connection (with TLS for https), request, the
 * answer's first line.
 * The address that was judged is the one that is dialled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "hook.h"
#include "num.h"
#include "wire_gen.h"
#include "poison.h"

#define REQUEST_MAX (256u * 1024)
#define LINE_MAX    1024

struct post {
	struct hook *hook;
	uint32_t stream;
	struct outgoing out;
	struct loop_timer timer;
	struct loop_task freeing;
	struct buf request, in;
	bool over;
};

static void run_free(struct loop_task *t)
{
	struct post *p = CONTAINER(t, struct post, freeing);
	buf_done(&p->request);
	buf_done(&p->in);
	outgoing_done(&p->out);
	free(p);
}

static void finish(struct post *p, unsigned status, const char *error)
{
	struct hook *h = p->hook;
	struct wire_hook_posted msg = { .status = status, .error = view_of(error) };

	if (p->over)
		return;
	p->over = true;
	loop_timer_stop(&p->timer);
	outgoing_stop(&p->out);
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

static void fail_io(struct post *p, ssize_t error, const char *what)
{
	if (p->out.tls && tls_conn_why(p->out.tls)[0])
		finish(p, 0, tls_conn_why(p->out.tls));
	else
		fail_sys(p, (int)-error, what);
}

static void await(struct post *p, bool read)
{
	int r = outgoing_want(&p->out, read, !read);

	if (r < 0)
		fail_sys(p, -r, read ? "receiving" : "sending");
}

static void receive(struct post *p)
{
	char piece[LINE_MAX];
	struct view rest = VIEW_NONE, line = VIEW_NONE;
	bool full = false;
	ssize_t n = 1;

	/* Until the first line is there, or as much as one may have. */
	while (n > 0 && !full && !rest.p) {
		n = outgoing_recv(&p->out, piece, sizeof(piece));
		if (n == -EAGAIN) {
			await(p, true);
			return;
		}
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
	while (buf_len(&p->request)) {
		ssize_t n = outgoing_send(&p->out, buf_view(&p->request));
		if (n == -EAGAIN) {
			await(p, false);
			return;
		}
		if (n <= 0) {
			fail_io(p, n ? n : -EPIPE, "sending");
			return;
		}
		buf_consume(&p->request, (size_t)n);
	}
	receive(p); /* what TLS has read already does not wake us */
}

static void on_event(struct outgoing *o, uint32_t events)
{
	struct post *p = CONTAINER(o, struct post, out);
	int error = outgoing_error(o);

	(void)events;
	if (error)
		fail_sys(p, error, "connecting");
	else if (buf_len(&p->request))
		transmit(p);
	else
		receive(p);
}

static void on_ready(struct outgoing *o)
{
	transmit(CONTAINER(o, struct post, out));
}

static void on_fail(struct outgoing *o, int error, const char *why)
{
	struct post *p = CONTAINER(o, struct post, out);

	if (why)
		finish(p, 0, why);
	else
		fail_sys(p, error, "connecting");
}

static const char *refuses(struct outgoing *o, const struct sockaddr *to)
{
	const struct post *p = CONTAINER(o, struct post, out);
	struct addr a;

	return !addr_from_sockaddr(to, &a) || addr_refused(&a, p->hook->refuse)
		       ? "webhooks to this address are refused"
		       : NULL;
}

static const struct outgoing_ops ops = {
	.refuses = refuses, .on_ready = on_ready, .on_event = on_event, .on_fail = on_fail
};

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
	buf_printf(&p->request,
		   "POST %.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: paddock\r\nContent-Type: "
		   "application/json\r\n"
		   "Content-Length: %zu\r\nPaddock-Signature: %.*s\r\nPaddock-Event: %.*s\r\n"
		   "Paddock-Delivery: %.*s\r\nConnection: close\r\n\r\n",
		   VIEW_ARG(m->target), VIEW_ARG(m->authority), m->body.n, VIEW_ARG(m->signature),
		   VIEW_ARG(m->event), VIEW_ARG(m->delivery));
	buf_add(&p->request, m->body);
	return p->request.bad;
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
				    .out = OUTGOING_NONE,
				    .request = BUF_INIT(REQUEST_MAX),
				    .in = BUF_INIT(LINE_MAX) };
		r = m.host.n < sizeof(p->out.host) ? write_request(p, &m) : -ENAMETOOLONG;
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
			buf_done(&p->request);
		free(p);
	} else {
		h->n++;
		loop_timer_start(h->loop, &p->timer, HOOK_REQUEST_MS, on_time);
		outgoing_start(&p->out, h->loop, h->names,
			       &(struct outgoing_host){ m.host, (uint16_t)m.port, m.tls ? h->tls : NULL },
			       &ops);
	}
	arena_done(&a);
}
