/*
 * Connections to nodes: see chains.h.
 */
#include "chains.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "core_base.h"
#include "fd.h"
#include "http1.h"
#include "http1_response.h"
#include "poison.h"

#define CALL_MS  20000 /* for all nodes together */
#define ONE_MS   6000  /* for a node, while there is another one */
#define IDLE_MS  30000
#define IDLE_MAX 64
#define HEADERS  64
#define HEAD_MAX (32u * 1024)
#define PIECE    (64u * 1024)
#define KEY_MIN  16 /* letters in a row of a URL that look like a key */

struct chain_conn {
	struct core *core;
	struct chain_call *call; /* NULL: it is idle */
	struct list link;
	char place[272]; /* "host:port", with TLS or without */
	struct loop_io io;
	struct loop_timer timer;
	struct loop_task freeing;
	struct buf out, head, body;
	size_t held; /* of the body, as far as it is counted */
	struct http1_response response;
	struct http_header headers[HEADERS];
	struct http1_body unpack;
	enum http1_framing framing;
	bool answered; /* the head is there */
	bool said;     /* anything was heard */
	bool over;
};

static void try_next(struct chain_call *k, const struct err *why);
static void begin(struct chain_call *k, bool fresh);
static void on_call_time(struct loop_timer *t);
static void drop_conn(struct chain_call *k);
static void fail_call(struct chain_call *k, const struct err *e);

/* ---- turns ---- */

static bool same_place(const struct chain_call *k, const struct config_url *u)
{
	const struct config_url *own = &k->urls[k->at];

	return own->port == u->port && own->tls == u->tls && view_eq(own->host, u->host);
}

static bool is_waiting(const struct chains *all, const struct config_url *u)
{
	LIST_EACH (it, &all->waiting)
		if (same_place(CONTAINER(it, struct chain_call, link), u))
			return true;
	return false;
}

static bool has_room(const struct chains *all, const struct config_url *u)
{
	unsigned n = 0;

	LIST_EACH (it, &all->active)
		n += same_place(CONTAINER(it, struct chain_call, link), u);
	return n < CHAINS_CONNS;
}

/* The first one whose turn it is. */
static struct chain_call *next_waiting(const struct chains *all)
{
	const struct config_url *full = NULL;

	LIST_EACH (it, &all->waiting) {
		struct chain_call *k = CONTAINER(it, struct chain_call, link);
		if (full && same_place(k, full))
			continue;
		if (has_room(all, &k->urls[k->at]))
			return k;
		full = &k->urls[k->at];
	}
	return NULL;
}

/* Each may end others, or begin new ones. */
static void run_wake(struct loop_task *t)
{
	struct core *c = CONTAINER(t, struct chains, wake)->core;
	struct chain_call *k;

	c->chains->waking = false;
	while ((k = next_waiting(c->chains))) {
		list_del(&k->link);
		begin(k, false);
	}
}

/* It waits no more, and has no connection any more. */
static void leave(struct chain_call *k)
{
	struct chains *all = k->core->chains;

	list_del(&k->link);
	if (list_empty(&all->waiting) || all->waking)
		return;
	all->waking = true;
	loop_defer(k->core->loop, &all->wake, run_wake);
}

/* ---- what unfinished answers hold ---- */

static void count(struct chain_conn *n, size_t bytes)
{
	n->call->holder->held += bytes - n->held;
	n->core->chains->held += bytes - n->held;
	n->held = bytes;
}

/* The oldest one with something to give, of whoever holds most. */
static struct chain_call *greatest(const struct chains *all)
{
	struct chain_call *most = NULL;

	LIST_EACH (it, &all->active) {
		struct chain_call *k = CONTAINER(it, struct chain_call, link);
		if (k->conn && k->conn->held && (!most || k->holder->held > most->holder->held))
			most = k;
	}
	return most;
}

static void give_up(struct chain_call *k, const char *why)
{
	struct err e = { 0 };

	drop_conn(k);
	err_set(&e, ERR_QUOTA, "%s", why);
	fail_call(k, &e);
}

/* False: the connection is in use by nobody any more. */
static bool hold(struct chain_conn *n)
{
	struct chains *all = n->core->chains;
	const size_t len = buf_len(&n->body);

	count(n, len > CHAINS_FREE ? len - CHAINS_FREE : 0);
	if (n->call->holder->held > CHAINS_HELD_ONE) {
		give_up(n->call, "limit exceeded: too much is being answered to this agent at once, "
				 "ask for less or one after the other");
		return false;
	}
	/* Whoever hears of it may end others of its requests. */
	while (!n->over && all->held > CHAINS_HELD_ALL)
		give_up(greatest(all), "limit exceeded: nodes are answering too much at once, ask again");
	return !n->over;
}

/* ---- connections ---- */

static void run_free(struct loop_task *t)
{
	struct chain_conn *n = CONTAINER(t, struct chain_conn, freeing);

	buf_done(&n->out);
	buf_done(&n->head);
	buf_done(&n->body);
	free(n);
}

static void close_conn(struct chain_conn *n)
{
	if (n->over)
		return;
	n->over = true;
	if (n->call) {
		count(n, 0);
	} else {
		list_del(&n->link);
		n->core->chains->n_idle--;
	}
	loop_timer_stop(&n->timer);
	loop_io_close(&n->io);
	loop_defer(n->core->loop, &n->freeing, run_free);
}

static void on_idle_time(struct loop_timer *t)
{
	close_conn(CONTAINER(t, struct chain_conn, timer));
}

/* "localhost:8545" with a mark for TLS. */
static void place_of(const struct config_url *u, char ret[272])
{
	struct buf b = BUF_INIT(271);

	buf_printf(&b, "%c%.*s:%u", u->tls ? 's' : 'p', VIEW_ARG(view_head(u->host, 253)), u->port);
	(void)!view_to_str(buf_view(&b), ret, 272);
	buf_done(&b);
}

static void keep_conn(struct chain_conn *n)
{
	struct chains *all = n->core->chains;

	n->call = NULL;
	list_append(&all->idle, &n->link);
	if (++all->n_idle > IDLE_MAX)
		close_conn(CONTAINER(all->idle.next, struct chain_conn, link));
	if (!n->over)
		loop_timer_start(n->core->loop, &n->timer, IDLE_MS, on_idle_time);
}

/* ---- the answer ---- */

static void fail_call(struct chain_call *k, const struct err *e)
{
	loop_timer_stop(&k->timer);
	leave(k);
	k->done(k, NULL, 0, e);
}

static void broken(struct chain_conn *n)
{
	struct chain_call *k = n->call;
	bool again = k && k->reused && !n->said;
	struct err e = { 0 };

	close_conn(n);
	if (!k)
		return;
	k->conn = NULL;
	err_set(&e, ERR_UNAVAILABLE, "the node closed the connection");
	if (again) /* it was closed while nobody used it */
		begin(k, true);
	else
		try_next(k, &e);
}

/* A URL may have the key of its owner in it, and nodes quote URLs in their errors. */
static void hide_keys(char *p, size_t n, struct view target)
{
	for (size_t i = 0; i < target.n;) {
		size_t len = 0;
		while (i + len < target.n && !strchr("/?&=", target.p[i + len]))
			len++;
		if (len >= KEY_MIN)
			for (char *at = p; (at = memmem(at, n - (size_t)(at - p), target.p + i, len));
			     at += len)
				memset(at, '*', len);
		i += len + 1;
	}
}

static bool says_close(const struct http1_response *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, "connection") &&
		    view_eq_nocase(r->headers[i].value, VIEW("close")))
			return true;
	return r->version < 11;
}

static void finish(struct chain_conn *n, bool reusable)
{
	struct chain_call *k = n->call;
	int status = n->response.status;
	struct buf body = n->body;
	struct err e = { 0 };

	n->body = BUF_INIT(CHAINS_ANSWER_MAX);
	count(n, 0);
	k->conn = NULL;
	k->status = status;
	if (reusable && !says_close(&n->response) && buf_len(&n->out) == 0) {
		keep_conn(n);
	} else {
		close_conn(n);
	}
	if ((status >= 300 && status < 400) || status == 429 || status >= 500 || buf_len(&body) == 0) {
		err_set(&e, ERR_UNAVAILABLE, "the node answers with status %d", status);
		buf_done(&body);
		try_next(k, &e);
		return;
	}
	loop_timer_stop(&k->timer);
	leave(k);
	char *p = body.p + body.head;
	hide_keys(p, buf_len(&body), k->urls[k->at].target);
	k->done(k, p, buf_len(&body), NULL);
	buf_done(&body);
}

/* False: the connection is in use by nobody any more. */
static bool take_body(struct chain_conn *n, struct view data)
{
	struct view piece;
	int r;

	if (n->framing == HTTP1_TO_END) {
		if (buf_add(&n->body, data) >= 0)
			return hold(n);
		broken(n);
		return false;
	}
	while ((r = http1_body_next(&n->unpack, &data, &piece)) == HTTP1_DATA)
		if (buf_add(&n->body, piece) < 0) {
			r = -1;
			break;
		}
	if (r == HTTP1_MORE)
		return hold(n);
	if (r == HTTP1_END)
		finish(n, data.n == 0);
	else
		broken(n);
	return false;
}

static bool take_head(struct chain_conn *n, struct view data)
{
	if (buf_add(&n->head, data) < 0) {
		broken(n);
		return false;
	}
	char *p = n->head.p + n->head.head;
	http1_response_init(&n->response, n->headers, HEADERS, HEAD_MAX);
	int r = http1_response_parse(&n->response, p, buf_len(&n->head));
	if (r == 0)
		return true;
	if (r < 0 || n->response.status < 200) {
		broken(n);
		return false;
	}
	n->answered = true;
	n->framing = http1_response_framing(&n->response, false);
	if (n->framing == HTTP1_EMPTY) {
		finish(n, true);
		return false;
	}
	http1_body_init(&n->unpack, n->framing == HTTP1_CHUNKED  ? -1
				    : n->framing == HTTP1_LENGTH ? n->response.content_length
								 : 0);
	return take_body(n, view_skip(buf_view(&n->head), (size_t)r));
}

/* ---- bytes ---- */

static void flush(struct chain_conn *n)
{
	while (buf_len(&n->out)) {
		struct view v = buf_view(&n->out);
		ssize_t sent = send(n->io.fd, v.p, v.n, MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (sent < 0) {
			buf_clear(&n->out); /* its end is heard when it is read */
			break;
		}
		buf_consume(&n->out, (size_t)sent);
	}
	if (loop_io_want(&n->io, EPOLLIN | (buf_len(&n->out) ? EPOLLOUT : 0)) < 0)
		broken(n);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct chain_conn *n = CONTAINER(io, struct chain_conn, io);
	char piece[PIECE];

	if (events & EPOLLOUT)
		flush(n);
	if (n->over || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	ssize_t got = recv(n->io.fd, piece, sizeof(piece), 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!n->call) { /* nobody has asked anything */
		close_conn(n);
		return;
	}
	if (got <= 0) {
		if (n->answered && n->framing == HTTP1_TO_END)
			finish(n, false);
		else
			broken(n);
		return;
	}
	n->said = true;
	struct view data = { piece, (size_t)got };
	(void)(n->answered ? take_body(n, data) : take_head(n, data));
}

static void send_request(struct chain_conn *n, struct chain_call *k)
{
	const struct config_url *u = &k->urls[k->at];

	n->call = k;
	k->conn = n;
	n->answered = n->said = false;
	buf_clear(&n->head);
	buf_clear(&n->body);
	buf_printf(&n->out,
		   "POST %.*s HTTP/1.1\r\nhost: %.*s\r\ncontent-type: application/json\r\naccept: "
		   "application/json\r\nuser-agent: paddock\r\ncontent-length: %zu\r\n\r\n",
		   VIEW_ARG(u->target), VIEW_ARG(u->authority), k->body.n);
	if (buf_add(&n->out, k->body) < 0)
		broken(n);
	else
		flush(n);
}

/* ---- a call ---- */

static void on_dialled(struct carrier_dial *d, int fd, const struct err *e)
{
	struct chain_call *k = CONTAINER(d, struct chain_call, dial);
	struct chain_conn *n = fd >= 0 ? calloc(1, sizeof(*n)) : NULL;
	struct err failed = { 0 };

	k->dialling = false;
	if (!n) {
		if (e)
			failed = *e;
		else
			err_sys(&failed, ERR_INTERNAL, ENOMEM, "a connection");
		fd_close(fd);
		try_next(k, &failed);
		return;
	}
	*n = (struct chain_conn){ .core = k->core,
				  .out = BUF_INIT(CHAINS_ANSWER_MAX),
				  .head = BUF_INIT(HEAD_MAX + PIECE),
				  .body = BUF_INIT(CHAINS_ANSWER_MAX) };
	list_init(&n->link);
	place_of(&k->urls[k->at], n->place);
	int r = loop_io_start(k->core->loop, &n->io, fd, EPOLLIN, on_io);
	if (r < 0) {
		fd_close(fd);
		free(n);
		err_sys(&failed, ERR_INTERNAL, r, "a connection");
		try_next(k, &failed);
		return;
	}
	send_request(n, k);
}

static struct chain_conn *find_idle(struct core *c, const struct config_url *u)
{
	char place[272];

	place_of(u, place);
	LIST_EACH (it, &c->chains->idle) {
		struct chain_conn *n = CONTAINER(it, struct chain_conn, link);
		if (strcmp(n->place, place) != 0)
			continue;
		list_del(&n->link);
		c->chains->n_idle--;
		loop_timer_stop(&n->timer);
		return n;
	}
	return NULL;
}

static void begin(struct chain_call *k, bool fresh)
{
	const struct config_url *u = &k->urls[k->at];
	struct chains *all = k->core->chains;
	struct err e = { 0 };

	list_del(&k->link);
	if (!has_room(all, u)) {
		list_append(&all->waiting, &k->link);
		return;
	}
	list_append(&all->active, &k->link);
	struct chain_conn *n = fresh ? NULL : find_idle(k->core, u);
	k->reused = n != NULL;
	if (n) {
		send_request(n, k);
		return;
	}
	/* What a manifest calls this machine, as Docker does. */
	struct view host = view_is(u->host, "host.docker.internal") ? VIEW("127.0.0.1") : u->host;
	k->dial.done = on_dialled;
	if (carrier_start(k->core, &k->dial,
			  &(struct carrier_target){ .host = host, .port = u->port, .tls = u->tls }, &e) < 0)
		try_next(k, &e);
	else
		k->dialling = true;
}

/* A node that hangs leaves some time to those behind it. */
static void give_time(struct chain_call *k)
{
	const uint64_t now = clock_mono_ms(), left = k->until_ms > now ? k->until_ms - now : 0;

	loop_timer_start(k->core->loop, &k->timer, k->at + 1 < k->n ? MIN(left / 2, (uint64_t)ONE_MS) : left,
			 on_call_time);
}

static void try_next(struct chain_call *k, const struct err *why)
{
	struct err e = *why;

	leave(k);
	if (++k->at < k->n && !k->core->stopping) {
		give_time(k);
		begin(k, false);
	} else {
		fail_call(k, &e);
	}
}

/* What comes still belongs to this request, so nobody else may have the connection. */
static void drop_conn(struct chain_call *k)
{
	struct chain_conn *n = TAKE_PTR(k->conn);

	if (k->dialling)
		carrier_cancel(&k->dial);
	k->dialling = false;
	if (!n || n->over)
		return;
	count(n, 0);
	n->over = true;
	loop_timer_stop(&n->timer);
	loop_io_close(&n->io);
	loop_defer(n->core->loop, &n->freeing, run_free);
}

static void on_call_time(struct loop_timer *t)
{
	struct chain_call *k = CONTAINER(t, struct chain_call, timer);
	struct err e = { 0 };

	drop_conn(k);
	err_set(&e, ERR_TIMEOUT, "the node does not answer in time");
	try_next(k, &e);
}

void chains_post(struct core *c, struct chain_call *k)
{
	k->core = c;
	k->at = 0;
	k->conn = NULL;
	k->until_ms = clock_mono_ms() + CALL_MS;
	list_init(&k->link);
	give_time(k);
	if (is_waiting(c->chains, &k->urls[0]))
		list_append(&c->chains->waiting, &k->link);
	else
		begin(k, false);
}

void chains_cancel(struct chain_call *k)
{
	if (!k->core)
		return;
	loop_timer_stop(&k->timer);
	leave(k);
	drop_conn(k);
}

/* ---- life ---- */

void chains_init(struct core *c)
{
	list_init(&c->chains->nodes);
	list_init(&c->chains->idle);
	list_init(&c->chains->waiting);
	list_init(&c->chains->active);
}

void chains_stop(struct core *c)
{
	LIST_EACH (it, &c->chains->idle)
		close_conn(CONTAINER(it, struct chain_conn, link));
}
