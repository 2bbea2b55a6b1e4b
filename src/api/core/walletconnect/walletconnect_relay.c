/*
 * The line to the relay: a WebSocket that paddock-ai has dialled, with the certificate checked where there is
 * TLS. It exists while there is a pairing, a session or something to say. When it breaks it is made again,
 * later each time, all topics are subscribed to at once, and what the relay has not confirmed is sent again
 * as the same bytes: whoever gets a message twice sees that it is the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "config.h"
#include "core_base.h"
#include "fd.h"
#include "http1_response.h"
#include "log.h"
#include "rnd.h"
#include "text.h"
#include "walletconnect_impl.h"
#include "poison.h"

#define SHAKE_MS    15000
#define PULSE_MS    20000
#define SILENCE_MS  50000
#define BACKOFF_MS  400
#define BACKOFF_MAX 60000
#define PATIENCE_MS 15000 /* of whoever waits for a publication, */
#define FAILURES    4     /* and how many lines that broke it outlasts */
#define HEAD_MAX    (16u * 1024)
#define HEADERS     64
#define MESSAGE_MAX (1024u * 1024)
#define OUT_MAX     (4u * 1024 * 1024)
#define PIECE       (16u * 1024)
#define POSTS_MAX   256

struct wc_post {
	struct list link;
	struct core *core;
	struct loop_timer timer; /* with `done`: patience; without: the message's life */
	char id[WC_ID];
	struct buf text;
	void (*done)(void *arg, const struct err *e);
	void *arg;
};

static void dial(struct core *c);

static struct wc_line *line_of(struct core *c)
{
	return &c->walletconnect->line;
}

/* ---- publications ---- */

static void free_post(struct wc_post *p)
{
	list_del(&p->link);
	loop_timer_stop(&p->timer);
	buf_done(&p->text);
	free(p);
}

static void end_post(struct wc_post *p, const struct err *e)
{
	void (*done)(void *, const struct err *) = p->done;
	void *arg = p->arg;
	struct core *c = p->core;

	free_post(p);
	if (done)
		done(arg, e);
	walletconnect_relay_check(c);
}

static void on_post_time(struct loop_timer *t)
{
	struct wc_post *p = CONTAINER(t, struct wc_post, timer);
	const struct wc_line *l = line_of(p->core);
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the WalletConnect relay does not answer%s%s", l->why[0] ? ": " : "",
		l->why);
	end_post(p, &e);
}

static struct wc_post *find_post(struct core *c, struct view id)
{
	LIST_EACH (it, &line_of(c)->waiting) {
		struct wc_post *p = CONTAINER(it, struct wc_post, link);
		if (view_is(id, p->id))
			return p;
	}
	return NULL;
}

/* ---- bytes out ---- */

static void fail_line(struct core *c, const char *why);

static void flush(struct core *c)
{
	struct wc_line *l = line_of(c);

	while (buf_len(&l->out)) {
		struct view v = buf_view(&l->out);
		ssize_t sent = send(l->io.fd, v.p, v.n, MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (sent < 0) {
			fail_line(c, "the connection was closed");
			return;
		}
		buf_consume(&l->out, (size_t)sent);
	}
	if (loop_io_want(&l->io, EPOLLIN | (buf_len(&l->out) ? EPOLLOUT : 0)) < 0)
		fail_line(c, "no memory");
}

static void say(struct core *c, enum websocket_op op, struct view text)
{
	struct wc_line *l = line_of(c);

	if (l->state != WC_LINE_OPEN)
		return;
	if (websocket_put(&l->out, WEBSOCKET_CLIENT, op, text) < 0)
		fail_line(c, "too much waits to be sent");
	else
		flush(c);
}

int walletconnect_relay_publish(struct core *c, const struct wc_message *m,
				void (*done)(void *arg, const struct err *e), void *arg, struct err *e)
{
	struct wc_post *p = calloc(1, sizeof(*p));
	_cleanup_(buf_done) struct buf envelope = BUF_INIT(2 * WC_MESSAGE_MAX);
	unsigned n = 0;

	LIST_EACH (it, &line_of(c)->waiting)
		n++;
	if (!p || n >= POSTS_MAX || wc_crypto_seal(m->key, m->text, &envelope) < 0) {
		free(p);
		return err_set(e, ERR_UNAVAILABLE, "too much waits for the WalletConnect relay");
	}
	*p = (struct wc_post){ .core = c, .text = BUF_INIT(MESSAGE_MAX), .done = done, .arg = arg };
	wc_relay_new_id(clock_wall_ms(), p->id);
	const struct wc_publish w = { m->topic, buf_view(&envelope), m->tag, m->ttl_s, m->prompt };
	list_init(&p->link);
	if (wc_relay_put_publish(&p->text, p->id, &w) < 0) {
		free_post(p);
		return err_set(e, ERR_TOO_LARGE, "the message to the wallet is too large");
	}
	list_append(&line_of(c)->waiting, &p->link);
	loop_timer_start(c->loop, &p->timer, done ? PATIENCE_MS : (uint64_t)m->ttl_s * 1000, on_post_time);
	say(c, WEBSOCKET_TEXT, buf_view(&p->text));
	walletconnect_relay_check(c);
	return 0;
}

void walletconnect_relay_forget(struct core *c, void *arg)
{
	LIST_EACH (it, &line_of(c)->waiting) {
		struct wc_post *p = CONTAINER(it, struct wc_post, link);
		if (p->arg == arg)
			p->done = NULL;
	}
}

static void subscribe(struct core *c, const struct view *topics, size_t n)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX);
	char id[WC_ID];

	wc_relay_new_id(clock_wall_ms(), id);
	if (n && wc_relay_put_subscribe(&text, id, topics, n) == 0)
		say(c, WEBSOCKET_TEXT, buf_view(&text));
}

void walletconnect_relay_subscribe(struct core *c, struct view topic)
{
	subscribe(c, &topic, 1);
	walletconnect_relay_check(c);
}

void walletconnect_relay_ack(struct core *c, const char *id)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(256);

	if (wc_relay_put_ack(&text, view_of(id)) == 0)
		say(c, WEBSOCKET_TEXT, buf_view(&text));
}

/* ---- the line's end ---- */

static void close_line(struct core *c)
{
	struct wc_line *l = line_of(c);

	if (l->state == WC_LINE_DIALLING)
		carrier_cancel(&l->dial);
	loop_timer_stop(&l->timer);
	loop_timer_stop(&l->pulse);
	loop_io_close(&l->io);
	buf_done(&l->in);
	buf_done(&l->out);
	l->state = WC_LINE_OFF;
}

static void on_again(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct walletconnect, line.timer)->core;

	line_of(c)->state = WC_LINE_OFF;
	walletconnect_relay_check(c);
}

static void fail_line(struct core *c, const char *why)
{
	struct wc_line *l = line_of(c);
	uint64_t wait = MIN((uint64_t)BACKOFF_MS << MIN(l->failures, 10u), (uint64_t)BACKOFF_MAX);
	uint16_t jitter;

	close_line(c);
	rnd_bytes(&jitter, sizeof(jitter));
	if (l->failures++ == 0 || strcmp(l->why, why) != 0)
		log_warn("WalletConnect's relay: %s", why);
	(void)!view_to_str(view_head(view_of(why), sizeof(l->why) - 1), l->why, sizeof(l->why));
	l->state = WC_LINE_WAITING;
	loop_timer_start(c->loop, &l->timer, wait + jitter % (wait / 4 + 1), on_again);
	LIST_EACH (it, &l->waiting) {
		struct wc_post *p = CONTAINER(it, struct wc_post, link);
		if (p->done && l->failures >= FAILURES)
			on_post_time(&p->timer);
	}
}

/* ---- an open line ---- */

static void on_pulse(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct walletconnect, line.pulse)->core;
	struct wc_line *l = line_of(c);

	if (loop_now(c->loop) - l->heard_ms > SILENCE_MS) {
		fail_line(c, "it is silent");
		return;
	}
	loop_timer_start(c->loop, &l->pulse, PULSE_MS, on_pulse);
	say(c, WEBSOCKET_PING, VIEW(""));
}

static void opened(struct core *c)
{
	struct wc_line *l = line_of(c);
	struct view topics[2 * WCROOM_SESSIONS];
	size_t n = 0;

	l->state = WC_LINE_OPEN;
	l->why[0] = 0;
	loop_timer_stop(&l->timer);
	loop_timer_start(c->loop, &l->pulse, PULSE_MS, on_pulse);
	websocket_init(&l->ws, WEBSOCKET_CLIENT, MESSAGE_MAX);
	LIST_EACH (it, &c->walletconnect->sessions) {
		struct wc_session *s = CONTAINER(it, struct wc_session, link);
		if (n + 2 > ELEMS(topics) || s->stage == WC_OVER)
			continue;
		if (s->stage != WC_OPEN)
			topics[n++] = view_of(s->pairing.topic);
		if (s->topic[0])
			topics[n++] = view_of(s->topic);
	}
	subscribe(c, topics, n);
	LIST_EACH (it, &l->waiting)
		say(c, WEBSOCKET_TEXT, buf_view(&CONTAINER(it, struct wc_post, link)->text));
	if (l->state == WC_LINE_OPEN)
		walletconnect_ask_go(c);
}

static void take_result(struct core *c, const struct wc_relay_in *in)
{
	struct wc_post *p = find_post(c, in->id);
	struct err e = { 0 };

	line_of(c)->failures = 0; /* it knows us */
	if (in->kind == WC_RELAY_ERROR) {
		err_set(&e, ERR_UNAVAILABLE, "the WalletConnect relay refuses: %.*s",
			VIEW_ARG(view_head(in->text, 120)));
		log_warn("%s", e.msg);
	}
	if (p)
		end_post(p, e.code ? &e : NULL);
}

static void take_message(struct core *c, struct view text)
{
	struct arena a = ARENA_INIT(4 * MESSAGE_MAX);
	struct wc_relay_in in;
	struct err e = { 0 };

	if (wc_relay_read(&a, text, &in, &e) < 0) {
		fail_line(c, "it says what cannot be read");
	} else if (in.kind == WC_RELAY_RESULT || in.kind == WC_RELAY_ERROR) {
		take_result(c, &in);
	} else if (in.kind == WC_RELAY_MESSAGE) {
		struct wc_session *s = walletconnect_by_topic(c, in.topic);
		char id[WC_ID];
		if (s)
			walletconnect_peer_take(c, s, &in);
		else if (view_to_str(in.id, id, sizeof(id)) == 0)
			walletconnect_relay_ack(c, id);
	}
	arena_done(&a);
}

static void take_piece(struct core *c, const struct websocket_piece *p)
{
	struct wc_line *l = line_of(c);
	char why[sizeof(l->why)];

	if (p->kind == WEBSOCKET_PING) {
		say(c, WEBSOCKET_PONG, p->data);
	} else if (p->kind == WEBSOCKET_CLOSE) {
		struct buf b = BUF_INIT(sizeof(why) - 1);
		buf_printf(&b, "it closed the connection (%u) ", p->code);
		text_quote(&b, p->data, 80);
		(void)!view_to_str(buf_view(&b), why, sizeof(why));
		buf_done(&b);
		fail_line(c, why);
	} else if (p->kind == WEBSOCKET_TEXT) {
		if (buf_add(&l->in, p->data) < 0) {
			fail_line(c, "no memory");
		} else if (p->last) {
			struct buf message = l->in; /* what it says may end the line */
			l->in = BUF_INIT(MESSAGE_MAX);
			take_message(c, buf_view(&message));
			buf_done(&message);
		}
	}
}

static void take_bytes(struct core *c, struct view data)
{
	struct wc_line *l = line_of(c);
	struct websocket_piece piece;
	int r = 0;

	while (l->state == WC_LINE_OPEN && (r = websocket_next(&l->ws, &data, &piece)) == 1)
		take_piece(c, &piece);
	if (r < 0 && l->state == WC_LINE_OPEN)
		fail_line(c, "it breaks the rules of WebSocket");
}

/* ---- the handshake ---- */

static bool agrees(const struct wc_line *l, const struct http1_response *r)
{
	bool upgrade = false, accept = false;

	for (size_t i = 0; i < r->n_headers; i++) {
		upgrade |= view_is(r->headers[i].name, "upgrade") &&
			   view_eq_nocase(r->headers[i].value, VIEW("websocket"));
		accept |= view_is(r->headers[i].name, "sec-websocket-accept") &&
			  view_is(r->headers[i].value, l->accept);
	}
	return r->status == 101 && upgrade && accept;
}

static void take_head(struct core *c, struct view data)
{
	struct wc_line *l = line_of(c);
	struct http_header headers[HEADERS];
	struct http1_response r;
	char why[64] = "it does not speak WebSocket";

	if (buf_add(&l->in, data) < 0) {
		fail_line(c, why);
		return;
	}
	http1_response_init(&r, headers, HEADERS, HEAD_MAX);
	int n = http1_response_parse(&r, l->in.p + l->in.head, buf_len(&l->in));
	if (n == 0)
		return;
	if (n < 0 || !agrees(l, &r)) {
		if (n > 0 && r.status != 101)
			snprintf(why, sizeof(why), "it answers with status %d%s", r.status,
				 r.status == 401 || r.status == 403 ? " (is project_id right?)" : "");
		fail_line(c, why);
		return;
	}
	struct buf rest = l->in;
	l->in = BUF_INIT(MESSAGE_MAX);
	opened(c);
	take_bytes(c, view_skip(buf_view(&rest), (size_t)n));
	buf_done(&rest);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct core *c = CONTAINER(io, struct walletconnect, line.io)->core;
	struct wc_line *l = line_of(c);
	char piece[PIECE];

	if (events & EPOLLOUT)
		flush(c);
	if (l->io.fd < 0 || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	ssize_t n = recv(l->io.fd, piece, sizeof(piece), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail_line(c, "the connection was closed");
		return;
	}
	l->heard_ms = loop_now(c->loop);
	if (l->state == WC_LINE_SHAKING)
		take_head(c, (struct view){ piece, (size_t)n });
	else
		take_bytes(c, (struct view){ piece, (size_t)n });
}

/* The token is in the URL, as the relay wants it. */
static int put_head(struct core *c)
{
	const struct config_url *u = &c->config->agents.walletconnect.at;
	struct wc_line *l = line_of(c);
	int64_t now = clock_wall_ms() / 1000;
	_cleanup_(buf_done) struct buf key = BUF_INIT(64);
	uint8_t random[32];
	char subject[2 * sizeof(random) + 1];

	rnd_bytes(random, sizeof(random));
	text_hex(random, sizeof(random), subject);
	rnd_bytes(random, 16);
	text_base64(&key, (struct view){ (const char *)random, 16 });
	if (websocket_accept(buf_view(&key), l->accept) < 0)
		return -EINVAL;
	buf_printf(&l->out, "GET %.*s%cauth=", VIEW_ARG(u->target),
		   u->target.n && memchr(u->target.p, '?', u->target.n) ? '&' : '?');
	int r = wc_identity_token(c->walletconnect->seed,
				  &(struct wc_token){ .audience = c->config->agents.walletconnect.relay,
						      .subject = view_of(subject),
						      .issued_s = now,
						      .expires_s = now + WC_TOKEN_LIFE_S },
				  &l->out);
	buf_printf(&l->out,
		   "&projectId=%.*s&ua=wc-2%%2Fpaddock-" PADDOCK_VERSION
		   " HTTP/1.1\r\nHost: %.*s\r\nUpgrade: "
		   "websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
		   "%.*s\r\nUser-Agent: paddock\r\n\r\n",
		   VIEW_ARG(c->config->agents.walletconnect.project_id), VIEW_ARG(u->authority),
		   VIEW_ARG(buf_view(&key)));
	return r < 0 ? r : l->out.bad;
}

static void on_shake_time(struct loop_timer *t)
{
	fail_line(CONTAINER(t, struct walletconnect, line.timer)->core, "it does not answer");
}

static void on_dialled(struct carrier_dial *d, int fd, const struct err *e)
{
	struct core *c = CONTAINER(d, struct walletconnect, line.dial)->core;
	struct wc_line *l = line_of(c);

	l->state = WC_LINE_OFF;
	if (fd < 0) {
		fail_line(c, e ? e->msg : "it cannot be reached");
		return;
	}
	l->in = BUF_INIT(HEAD_MAX + PIECE);
	l->out = BUF_INIT(OUT_MAX);
	if (loop_io_start(c->loop, &l->io, fd, EPOLLIN, on_io) < 0) {
		fd_close(fd);
		fail_line(c, "no memory");
		return;
	}
	l->state = WC_LINE_SHAKING;
	l->heard_ms = loop_now(c->loop);
	loop_timer_start(c->loop, &l->timer, SHAKE_MS, on_shake_time);
	if (put_head(c) < 0)
		fail_line(c, "no memory");
	else
		flush(c);
}

static void dial(struct core *c)
{
	const struct config_url *u = &c->config->agents.walletconnect.at;
	struct wc_line *l = line_of(c);
	struct err e = { 0 };

	l->dial = (struct carrier_dial){ .done = on_dialled };
	l->state = WC_LINE_DIALLING;
	if (carrier_start(c, &l->dial,
			  &(struct carrier_target){ .host = u->host, .port = u->port, .tls = u->tls },
			  &e) < 0) {
		l->state = WC_LINE_OFF;
		fail_line(c, e.msg);
	}
}

/* ---- whether it is needed ---- */

static void check(struct loop_task *t)
{
	struct core *c = CONTAINER(t, struct walletconnect, line.checking)->core;
	struct wc_line *l = line_of(c);
	bool needed = !list_empty(&l->waiting);

	l->check_due = false;
	LIST_EACH (it, &c->walletconnect->sessions)
		needed |= CONTAINER(it, struct wc_session, link)->stage != WC_OVER;
	needed &= c->walletconnect->has_seed && !c->stopping;
	if (needed && l->state == WC_LINE_OFF)
		dial(c);
	else if (!needed && l->state != WC_LINE_OFF)
		close_line(c);
}

void walletconnect_relay_check(struct core *c)
{
	struct wc_line *l = line_of(c);

	if (l->check_due || c->stopping)
		return;
	l->check_due = true;
	loop_defer(c->loop, &l->checking, check);
}

void walletconnect_relay_init(struct core *c)
{
	struct wc_line *l = line_of(c);

	list_init(&l->waiting);
	list_init(&l->checking.link);
	l->io.fd = -1;
}

void walletconnect_relay_stop(struct core *c)
{
	struct wc_line *l = line_of(c);

	close_line(c);
	loop_cancel(c->loop, &l->checking);
	LIST_EACH (it, &l->waiting)
		free_post(CONTAINER(it, struct wc_post, link));
}
