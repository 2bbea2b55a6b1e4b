/*
 * Bytes between the two sides. What need not be looked at and comes in large pieces is
 * spliced through one pipe, the rest goes through one buffer; all connections share them. Only what the other
 * side does not take at once is kept with the connection, and nothing more is read until that is gone. So an
 * idle connection holds no buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow_impl.h"
#include "wire_gen.h"
#include "poison.h"

/* Read at once where there are few connections: what a side that does not read can make us keep. */
#define PIECE     (128u * 1024)
#define PIECE_MIN (16u * 1024)
/* What all connections together can make us keep, about. */
#define KEPT (64u * 1024 * 1024)
/* Read at once: from this size on splices are worth it; on less they cost more than they save. */
#define BULK      PIECE_MIN
#define TURNS     8 /* full pieces before others have their turn */
#define DNS_BYTES 2 /* length of a message over TCP */

static size_t piece(const struct flows *g)
{
	return MAX(PIECE_MIN, MIN(PIECE, KEPT / MAX(g->n, 1u)));
}

/* 0: all of it went, or waits in `keep`; -1: the flow has ended. */
static int put(struct flow *f, int fd, struct buf *keep, struct view data)
{
	if (buf_len(keep) == 0) {
		ssize_t n = send(fd, data.p, data.n, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN) {
			flow_end(f, true);
			return -1;
		}
		data = view_skip(data, n > 0 ? (size_t)n : 0);
	}
	if (data.n && buf_add(keep, data) < 0) {
		flow_end(f, true);
		return -1;
	}
	return 0;
}

static bool flush_one(struct flow *f, int fd, struct buf *keep)
{
	while (fd >= 0 && buf_len(keep)) {
		struct view v = buf_view(keep);
		ssize_t n = send(fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			flow_end(f, true);
			return false;
		}
		buf_consume(keep, (size_t)n);
		f->conn.taken += fd == f->client_fd ? (size_t)n : 0;
	}
	if (buf_len(keep) == 0)
		buf_done(keep);
	return true;
}

/* An end goes through when everything before it has. */
static void relay_check_end(struct flow *f)
{
	if (!flow_is_open(f))
		return;
	if (f->mode == FLOW_INTERCEPT) {
		intercept_flushed(&f->conn);
		return;
	}
	/* Both have ended, and one of them knows of it: the other learns it by the close. */
	if (f->conn.client_eof && f->client_shut && f->mode == FLOW_OPAQUE &&
	    buf_len(&f->conn.to_server) == 0 && buf_len(&f->conn.look) == 0) {
		flow_end(f, false);
		return;
	}
	if (f->conn.client_eof && !f->server_shut && buf_len(&f->conn.to_server) == 0 &&
	    buf_len(&f->conn.look) == 0) {
		f->server_shut = true;
		(void)shutdown(f->server_fd, SHUT_WR);
	}
	if (f->server_eof && !f->client_shut && buf_len(&f->conn.to_client) == 0) {
		f->client_shut = true;
		if (f->last_words)
			proxy_http_error(f, f->last_status, f->last_words);
		(void)shutdown(f->client_fd, SHUT_WR);
	}
	/* In HTTP an answer that has ended, ends the connection; nobody reads what else is asked. */
	if (f->client_shut && (f->server_shut || f->mode != FLOW_OPAQUE))
		flow_end(f, false);
}

bool relay_flush(struct flow *f)
{
	int server = flow_is_open(f) ? f->server_fd : -1;

	if (!flush_one(f, f->client_fd, &f->conn.to_client) || !flush_one(f, server, &f->conn.to_server))
		return false;
	relay_check_end(f);
	return f->state != FLOW_OVER;
}

static bool over_limit(struct flow *f)
{
	const struct policy *p = f->box->policy;

	if (!p || !p->max_bytes || f->doomed || box_used(f->box) <= p->max_bytes)
		return false;
	flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
	return true;
}

/* > 0: bytes in the shared buffer; 0: nothing now, or the end (which is noted); -1: ended. */
static ssize_t get(struct flow *f, int fd, bool *eof)
{
	struct flows *g = f->box->all;
	size_t want = box_allowance(f->box, piece(g));

	if (want == 0) {
		f->throttled = true;
		return 0;
	}
	if (f->mode != FLOW_OPAQUE && fd == f->client_fd)
		want = MIN(want, FLOW_LOOK_MOST);
	ssize_t n = recv(fd, g->scratch, want, 0);
	if (n == 0) {
		*eof = true;
		return 0;
	}
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		flow_end(f, true);
		return -1;
	}
	box_count(f->box, eof == &f->conn.client_eof, (size_t)n);
	f->active_ms = flow_is_open(f) ? loop_now(g->loop) : f->active_ms;
	return over_limit(f) ? -1 : n;
}

/* Empties the pipe; what was in it is kept for a connection that lives. */
static bool empty_pipe(struct flow *f, struct buf *keep, size_t left, bool lost)
{
	struct flows *g = f->box->all;

	while (left) {
		ssize_t n = read(g->pipe[0], g->scratch, MIN(left, sizeof(g->scratch)));
		if (n <= 0)
			abort(); /* another connection would get these bytes */
		if (!lost)
			(void)buf_append(keep, g->scratch, (size_t)n);
		left -= (size_t)n;
	}
	return !lost && !keep->bad;
}

/* Both at once, for what need not be looked at: as get and put. */
static ssize_t move(struct flow *f, int from, int to, struct buf *keep, bool *eof)
{
	struct flows *g = f->box->all;
	size_t want = box_allowance(f->box, piece(g));
	ssize_t m = 0;

	if (want == 0) {
		f->throttled = true;
		return 0;
	}
	ssize_t n = splice(from, NULL, g->pipe[1], NULL, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	*eof = *eof || n == 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	for (ssize_t left = n; left > 0; left -= m) {
		m = splice(g->pipe[0], NULL, to, NULL, (size_t)left, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (m > 0)
			continue;
		if (empty_pipe(f, keep, (size_t)left, m == 0 || errno != EAGAIN))
			break;
		n = -1;
		break;
	}
	if (n < 0) {
		flow_end(f, true);
		return -1;
	}
	box_count(f->box, eof == &f->conn.client_eof, (size_t)n);
	f->active_ms = loop_now(g->loop);
	return over_limit(f) ? -1 : n;
}

/* ---- DNS over TCP ---- */

static void on_answer(struct server_query *q, struct view message)
{
	struct flow *f = server_arg(q);
	char length[DNS_BYTES] = { (char)(message.n >> 8), (char)message.n };

	if (buf_append(&f->conn.to_client, length, sizeof(length)) == 0)
		(void)buf_add(&f->conn.to_client, message);
	if (f->conn.to_client.bad)
		flow_end(f, true);
	else if (relay_flush(f))
		flow_wants(f);
}

static void dns_messages(struct flow *f)
{
	for (;;) {
		struct view v = buf_view(&f->conn.look);
		size_t n = v.n >= DNS_BYTES ? (size_t)(uint8_t)v.p[0] << 8 | (uint8_t)v.p[1] : 0;
		if (v.n < DNS_BYTES || v.n < DNS_BYTES + n)
			break;
		bool understood =
			server_start(&f->box->dns, view_head(view_skip(v, DNS_BYTES), n), on_answer, f);
		if (f->state == FLOW_OVER)
			return;
		if (!understood) {
			flow_end(f, true);
			return;
		}
		buf_consume(&f->conn.look, DNS_BYTES + n);
	}
	flow_timer(f, FLOW_HEAD_MS);
	if (f->conn.client_eof)
		flow_end(f, false);
}

void relay_on_dns(struct flow *f, const struct flow_what *w)
{
	if (buf_add(&f->conn.look, w->data) < 0)
		flow_end(f, true);
	else
		dns_messages(f);
}

/* ---- the two directions ---- */

void relay_on_bytes(struct flow *f, const struct flow_what *w)
{
	(void)!put(f, f->server_fd, &f->conn.to_server, w->data);
}

void relay_on_bytes_back(struct flow *f, const struct flow_what *w)
{
	(void)!put(f, f->client_fd, &f->conn.to_client, w->data);
}

/* On the proxy port also the AI gateway answers, which is the api's: a connection whose first request is
 * for it goes there as it is, with all its bytes still in the socket. PEEK_MORE: they are too few to say. */
static enum peek look_for_caller(struct flow *f)
{
	char first[16];

	if (f->state != FLOW_PROXY || f->greeted || buf_len(&f->conn.look))
		return PEEK_OTHER;
	ssize_t n = recv(f->client_fd, first, sizeof(first), MSG_PEEK);
	enum peek what = n > 0 ? peek_caller((struct view){ first, (size_t)n }) : PEEK_OTHER;
	if (what == PEEK_MORE && (size_t)n == f->peeked)
		what = PEEK_OTHER; /* woken, and it is no more: its end has come */
	/* What was peeked stays there: wake up when there is more of it. */
	if (what == PEEK_MORE || f->peeked)
		(void)setsockopt(f->client_fd, SOL_SOCKET, SO_RCVLOWAT,
				 &(int){ what == PEEK_MORE ? (int)n + 1 : 1 }, sizeof(int));
	f->peeked = what == PEEK_MORE ? (size_t)n : 0;
	return what;
}

void relay_pass_on(struct flow *f)
{
	struct gate_box *b = f->box;

	if (!b->all->ops->can_pass(b)) {
		proxy_http_error(f, 503, "Paddock cannot be reached at the moment");
		flow_part(f);
		return;
	}
	int fd = TAKE_FD(f->client_fd);
	flow_end(f, false);
	b->all->ops->pass(b, fd);
}

void relay_client(struct flow *f)
{
	struct flows *g = f->box->all;

	enum peek caller = look_for_caller(f);
	if (caller == PEEK_HTTP)
		relay_pass_on(f);
	if (caller == PEEK_HTTP || caller == PEEK_MORE)
		return;
	for (int i = 0; i < TURNS; i++) {
		bool plain = f->mode == FLOW_OPAQUE && flow_is_open(f) && f->client_bulk &&
			     buf_len(&f->conn.to_server) == 0;
		ssize_t n =
			plain ? move(f, f->client_fd, f->server_fd, &f->conn.to_server, &f->conn.client_eof)
			      : get(f, f->client_fd, &f->conn.client_eof);
		if (n < 0)
			return;
		f->client_bulk |= n >= (ssize_t)BULK;
		if (n > 0 && !plain)
			states_event(f, EVENT_BYTES,
				     &(struct flow_what){ .data = { g->scratch, (size_t)n } });
		else if (f->conn.client_eof)
			states_event(f, EVENT_END, &(struct flow_what){ 0 });
		if (f->state == FLOW_OVER)
			return;
		if (n < (ssize_t)piece(g) || buf_len(&f->conn.to_server) || f->mode != FLOW_OPAQUE)
			break;
	}
	relay_check_end(f);
}

void relay_server(struct flow *f)
{
	struct flows *g = f->box->all;

	for (int i = 0; i < TURNS; i++) {
		bool plain = f->mode == FLOW_OPAQUE && f->server_bulk && buf_len(&f->conn.to_client) == 0;
		ssize_t n = plain ? move(f, f->server_fd, f->client_fd, &f->conn.to_client, &f->server_eof)
				  : get(f, f->server_fd, &f->server_eof);
		if (n < 0)
			return;
		f->server_bulk |= n >= (ssize_t)BULK;
		if (n > 0 && !plain)
			states_event(f, EVENT_BYTES_BACK,
				     &(struct flow_what){ .data = { g->scratch, (size_t)n } });
		else if (f->server_eof)
			states_event(f, EVENT_END_BACK, &(struct flow_what){ 0 });
		if (f->state == FLOW_OVER)
			return;
		if (n < (ssize_t)piece(g) || buf_len(&f->conn.to_client))
			break;
	}
	relay_check_end(f);
}
