/*
 * One connection to a provider: name, address, connection, TLS, the key, the head; then
 * a socket pair, one end of which the api gets, and bytes between the two until either
 * side is done. Neither side is read further than the other one takes.
 *
 * The key is asked for when the provider has proven who it is. It is known as long as the
 * stream lives, because what comes back may quote it, and there it is overwritten. Without a ticket there is
 * no key (a node of a chain), and the stream begins with the connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "ai.h"
#include "fd.h"
#include "mask.h"
#include "wire_gen.h"
#include "poison.h"

#define HEAD_MAX  (128u * 1024)
#define PIECE     (64u * 1024)
#define TICKET    64
#define KEY_LEAST 8 /* a shorter one is no secret, and may be part of any head */
#define KEY_MAX   8192

enum phase { PHASE_REACH, PHASE_KEY, PHASE_HEAD, PHASE_OPEN };

struct dial {
	struct ai *ai;
	uint32_t stream;
	enum phase phase;
	struct key_wait key;
	struct outgoing out; /* the provider */
	struct loop_io in;   /* the api */
	struct loop_timer timer;
	struct loop_task freeing;
	struct mask mask;         /* the key */
	struct buf to_out, to_in; /* read from one side, not yet taken by the other */
	bool over;
	bool out_eof, in_eof;
	size_t n_ticket;
	char ticket[TICKET];
};

static void run_free(struct loop_task *t)
{
	struct dial *d = CONTAINER(t, struct dial, freeing);
	buf_done(&d->to_out);
	buf_done(&d->to_in);
	outgoing_done(&d->out);
	free(d);
}

static void end(struct dial *d)
{
	if (d->over)
		return;
	d->over = true;
	loop_timer_stop(&d->timer);
	key_forget(&d->key);
	mask_done(&d->mask);
	outgoing_stop(&d->out);
	loop_io_close(&d->in);
	d->ai->n--;
	loop_defer(d->ai->loop, &d->freeing, run_free);
}

/* Before the stream is handed over; afterwards its end says everything. */
static void give_up(struct dial *d, enum err_code code, const char *why)
{
	struct err e = { 0 };

	if (!d->over && d->phase != PHASE_OPEN) {
		err_set(&e, code, "%s", why);
		(void)!link_fail(&d->ai->api, WIRE_TYPE_AI_DIAL, d->stream, &e);
	}
	end(d);
}

static void on_time(struct loop_timer *t)
{
	give_up(CONTAINER(t, struct dial, timer), ERR_TIMEOUT, "the provider cannot be reached in time");
}

/* ---- the provider's side ---- */

static void fail_out(struct dial *d, ssize_t error)
{
	give_up(d, ERR_UNAVAILABLE, outgoing_why(&d->out, error));
}

/* False: it is over. */
static bool flush_out(struct dial *d)
{
	while (buf_len(&d->to_out)) {
		ssize_t n = outgoing_send(&d->out, buf_view(&d->to_out));
		if (n == -EAGAIN)
			return true;
		if (n <= 0) {
			fail_out(d, n ? n : -EPIPE);
			return false;
		}
		buf_consume(&d->to_out, (size_t)n);
	}
	return true;
}

static bool flush_in(struct dial *d)
{
	while (buf_len(&d->to_in)) {
		struct view v = buf_view(&d->to_in);
		ssize_t n = send(d->in.fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n < 0) { /* the api has closed it: nobody wants the rest */
			end(d);
			return false;
		}
		buf_consume(&d->to_in, (size_t)n);
	}
	if (d->out_eof)
		end(d);
	return !d->over;
}

/* Without the key, however it is cut. What may be the beginning of it waits for the next bytes, or for the
 * end. */
static bool take_in(struct dial *d, struct view piece)
{
	int r = piece.n ? mask_put_chunked(&d->mask, piece, &d->to_in) : mask_end(&d->mask, &d->to_in);

	if (r < 0)
		fail_out(d, r);
	return r >= 0;
}

static bool read_out(struct dial *d)
{
	char piece[PIECE];

	while (buf_len(&d->to_in) == 0 && !d->out_eof) {
		ssize_t n = outgoing_recv(&d->out, piece, sizeof(piece));
		if (n == -EAGAIN)
			return true;
		if (n < 0 && n != -EPROTO && n != -ECONNRESET) {
			fail_out(d, n);
			return false;
		}
		/* An end without a word is for the api to judge, which knows how long the answer is. */
		d->out_eof = n <= 0;
		bool taken = take_in(d, (struct view){ piece, n > 0 ? (size_t)n : 0 });
		explicit_bzero(piece, n > 0 ? (size_t)n : 0);
		if (!taken || !flush_in(d))
			return false;
	}
	return true;
}

static bool read_in(struct dial *d)
{
	char piece[PIECE];

	while (buf_len(&d->to_out) == 0 && !d->in_eof) {
		ssize_t n = recv(d->in.fd, piece, sizeof(piece), 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		bool taken = n > 0 && buf_append(&d->to_out, piece, (size_t)n) >= 0;
		explicit_bzero(piece, n > 0 ? (size_t)n : 0);
		if (!taken) { /* the api closes when it wants no more */
			end(d);
			return false;
		}
		if (!flush_out(d))
			return false;
	}
	return true;
}

/* ---- what is awaited ---- */

static void wants(struct dial *d)
{
	bool writes = buf_len(&d->to_out), reads = !buf_len(&d->to_in);
	uint32_t in = (writes ? 0 : (uint32_t)EPOLLIN) | (reads ? 0 : (uint32_t)EPOLLOUT);

	/* A connection may wait for long: it holds nothing meanwhile. */
	if (!writes)
		buf_done(&d->to_out);
	if (reads)
		buf_done(&d->to_in);
	if (outgoing_want(&d->out, reads, writes) < 0 || (d->in.fd >= 0 && loop_io_want(&d->in, in) < 0))
		end(d);
}

/* Either side may free the other to go on, and TLS may have read more than it gave: all of it, each time. */
static void pump(struct dial *d)
{
	if (flush_out(d) && flush_in(d) && read_in(d) && read_out(d))
		wants(d);
}

static void on_in(struct loop_io *io, uint32_t events)
{
	struct dial *d = CONTAINER(io, struct dial, in);
	/* A hang-up comes though nothing is awaited: the api has gone. */
	if ((events & (EPOLLHUP | EPOLLERR)) && !(events & (EPOLLIN | EPOLLOUT)))
		end(d);
	else
		pump(d);
}

/* ---- before the api has its end ---- */

/* Only the end of the connection, or room to write. */
static void await(struct dial *d, bool writes)
{
	if (outgoing_want(&d->out, false, writes) < 0)
		give_up(d, ERR_UNAVAILABLE, "no memory");
}

/* The head is out: the api gets its end. */
static bool open_stream(struct dial *d)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    loop_io_start(d->ai->loop, &d->in, pair[0], EPOLLIN, on_in) < 0) {
		give_up(d, ERR_UNAVAILABLE, "no more connections");
		return false;
	}
	loop_timer_stop(&d->timer);
	d->phase = PHASE_OPEN;
	buf_done(&d->to_out); /* wiped; bodies need not be */
	d->to_out.secret = false;
	if (link_send_msg_fd(&d->ai->api, WIRE_TYPE_AI_DIAL, FRAME_REPLY, FRAME_LAST | FRAME_FD, d->stream,
			     &wire_ai_dialled_msg, &(struct wire_ai_dialled){ 0 }, pair[1]) >= 0)
		return true;
	end(d);
	return false;
}

static void send_head(struct dial *d)
{
	if (!flush_out(d))
		return;
	if (buf_len(&d->to_out))
		await(d, true);
	else if (open_stream(d))
		pump(d);
}

/* The value of one header. */
static bool is_plain(struct view key)
{
	for (size_t i = 0; i < key.n; i++)
		if ((unsigned char)key.p[i] <= ' ' || (unsigned char)key.p[i] >= 0x7f)
			return false;
	return key.n > 0 && key.n <= KEY_MAX;
}

static void on_key(struct key_wait *w, struct view value, const struct err *e)
{
	struct dial *d = CONTAINER(w, struct dial, key);

	if (e) {
		give_up(d, e->code, e->msg);
		return;
	}
	buf_add(&d->to_out, value);
	if (!is_plain(value) || (value.n >= KEY_LEAST && mask_add(&d->mask, value) < 0) ||
	    buf_puts(&d->to_out, "\r\n\r\n") < 0) {
		give_up(d, ERR_UNAVAILABLE, "the provider's key cannot be used");
		return;
	}
	d->phase = PHASE_HEAD;
	send_head(d);
}

/* The provider has proven who it is. */
static void on_ready(struct outgoing *o)
{
	struct dial *d = CONTAINER(o, struct dial, out);

	if (!d->n_ticket) { /* nothing is secret here, and the api writes the head itself */
		if (open_stream(d))
			pump(d);
		return;
	}
	d->phase = PHASE_KEY;
	await(d, false);
	if (!d->over &&
	    key_ask(d->ai, &d->key, (struct view){ d->ticket, d->n_ticket }, view_of(o->host)) < 0)
		give_up(d, ERR_UNAVAILABLE, "the vault cannot be reached");
}

static void on_event(struct outgoing *o, uint32_t events)
{
	struct dial *d = CONTAINER(o, struct dial, out);
	int error = 0;

	if (d->phase == PHASE_OPEN)
		pump(d);
	else if ((error = outgoing_error(o)))
		give_up(d, ERR_UNAVAILABLE, strerror(error));
	else if (d->phase == PHASE_HEAD)
		send_head(d);
	else if (events & (EPOLLHUP | EPOLLERR))
		give_up(d, ERR_UNAVAILABLE, "the provider closed the connection");
}

static void on_fail(struct outgoing *o, int error, const char *why)
{
	give_up(CONTAINER(o, struct dial, out), ERR_UNAVAILABLE, why ? why : strerror(error));
}

/*
 * Without a ticket it goes to a node of a chain, and an agent decides when. The configuration names the node,
 * but whoever has its name decides what it means: link-local addresses, where clouds have their metadata
 * services, are never dialled, and this machine only where the configuration says so itself.
 */
static const char *refuses(struct outgoing *o, const struct sockaddr *to)
{
	const struct dial *d = CONTAINER(o, struct dial, out);
	struct view host = view_of(o->host);
	struct addr a, said;

	if (d->n_ticket)
		return NULL;
	if (!addr_from_sockaddr(to, &a) || addr_refused(&a, VIEW("link-local")))
		return "nodes at this address are refused";
	if (!view_is(host, "localhost") && addr_parse(host, &said) < 0 &&
	    own_is(&d->ai->own, &a, loop_now(d->ai->loop)))
		return "the node's name leads to this machine";
	return NULL;
}

static const struct outgoing_ops ops = {
	.refuses = refuses, .on_ready = on_ready, .on_event = on_event, .on_fail = on_fail
};

/* ---- the beginning ---- */

/* The head up to the key's place. */
static int take(struct dial *d, const struct wire_ai_dial *m)
{
	if (m->host.n >= sizeof(d->out.host) || m->ticket.n > sizeof(d->ticket) ||
	    !m->ticket.n != !m->header.n)
		return -EINVAL;
	if (!m->ticket.n)
		return m->head.n ? -EINVAL : 0;
	memcpy(d->ticket, m->ticket.p, m->ticket.n);
	d->n_ticket = m->ticket.n;
	buf_add(&d->to_out, m->head);
	buf_add(&d->to_out, m->header);
	buf_puts(&d->to_out, ": ");
	int r = buf_add(&d->to_out, m->prefix);
	if (r < 0)
		buf_done(&d->to_out);
	return r;
}

void dial_start(struct ai *h, const struct frame *f)
{
	struct arena a = ARENA_INIT(HEAD_MAX + 4096);
	struct wire_ai_dial m;
	struct dial *d = calloc(1, sizeof(*d));
	struct err e = { 0 };
	int r = d && h->n < AI_AT_ONCE ? pb_decode(&wire_ai_dial_msg, f->body, 0, &a, &m) : -EAGAIN;

	if (r >= 0 && m.tls && !h->tls)
		r = -ENOKEY;
	if (r >= 0) {
		*d = (struct dial){ .ai = h,
				    .stream = f->stream,
				    .out = OUTGOING_NONE,
				    .in = { .fd = -1 },
				    .key = { .done = on_key },
				    .to_out = { .max = 2 * HEAD_MAX, .secret = true },
				    .to_in = { .max = 4 * PIECE, .secret = true } };
		mask_init(&d->mask);
		r = take(d, &m);
	}
	if (r < 0) {
		if (r == -ENOKEY)
			err_set(&e, ERR_UNAVAILABLE, "there are no certificate authorities (ai.ca_file)");
		else
			err_sys(&e, r == -EAGAIN ? ERR_UNAVAILABLE : ERR_INVALID, r, "the call");
		(void)!link_fail(&h->api, f->type, f->stream, &e);
		free(d);
	} else {
		h->n++;
		loop_timer_start(h->loop, &d->timer, AI_CONNECT_MS, on_time);
		outgoing_start(&d->out, h->loop, h->names,
			       &(struct outgoing_host){ m.host, (uint16_t)m.port, m.tls ? h->tls : NULL },
			       &ops);
	}
	arena_done(&a);
}
