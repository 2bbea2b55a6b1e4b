/*
 * The intercepted connection: see intercept.h. TLS runs on bytes in memory; the sockets
 * and their back-pressure are the flow's, as for every other connection.
 */
#include "intercept_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "target.h"
#include "wire_gen.h"
#include "poison.h"

#define PIECE 16384

/* ---- setting up ---- */

struct intercepts *intercept_setup(struct loop *loop, const char *ca, struct err *e)
{
	struct intercepts *all = calloc(1, sizeof(*all));
	struct err none = { 0 };

	if (!all) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "interception");
		return NULL;
	}
	all->loop = loop;
	all->inside = tls_mint_new(e);
	all->outside = all->inside ? tls_client_new(e) : NULL;
	if (all->outside && tls_client_trust_system(all->outside, &none) < 0)
		log_warn("%s: servers that are intercepted cannot be checked by the system's", none.msg);
	bool trusts = all->outside && (!*ca || tls_client_trust(all->outside, ca, &none) == 0);
	if (all->outside && !trusts)
		err_set(e, ERR_INVALID, "gate.ca_file: no certificates in %.100s", ca);
	if (!trusts) {
		tls_mint_free(all->inside);
		tls_client_free(all->outside);
		free(all);
		return NULL;
	}
	return all;
}

/* ---- TLS on memory ---- */

static bool flush(struct conn *c)
{
	struct intercept *ic = c->intercept;

	if ((ic->client.conn && tls_conn_drain(ic->client.conn, &c->to_client) < 0) ||
	    (ic->server.conn && tls_conn_drain(ic->server.conn, &c->to_server) < 0)) {
		conn_end(c, true);
		return false;
	}
	return c->ops->flush(c);
}

static bool put(struct conn *c, struct intercept_tls *t, struct view data)
{
	while (data.n) {
		size_t n = MIN(data.n, (size_t)PIECE);
		if (!t->ready || tls_conn_send(t->conn, data.p, n) != (ssize_t)n) {
			conn_end(c, true);
			return false;
		}
		data = view_skip(data, n);
	}
	return flush(c);
}

bool intercept_to_client(struct conn *c, struct view data)
{
	return put(c, &c->intercept->client, data);
}

bool intercept_to_server(struct conn *c, struct view data)
{
	return put(c, &c->intercept->server, data);
}

/* ---- life ---- */

void intercept_free(struct conn *c)
{
	struct intercept *ic = c->intercept;

	if (!ic)
		return;
	intercept_h2_free(ic->h2);
	tls_conn_free(ic->client.conn);
	tls_conn_free(ic->server.conn);
	buf_done(&ic->in);
	buf_done(&ic->answer);
	buf_done(&ic->collect);
	buf_done(&ic->head_text);
	mask_done(&ic->mask);
	inject_done(&ic->inject);
	free(ic->headers);
	free(ic);
	c->intercept = NULL;
}

/* The server is offered what the client offers, as far as we speak it. */
static bool start_server(struct conn *c)
{
	struct intercept *ic = c->intercept;
	bool h2 = ic->offers & TLS_OFFER_H2, h1 = !h2 || ic->offers & TLS_OFFER_H1;

	ic->server.conn = tls_client_conn(ic->all->outside, -1, view_of(c->name));
	if (!ic->server.conn || tls_client_offer(ic->server.conn, h2, h1) < 0)
		return false;
	(void)!tls_conn_handshake(ic->server.conn);
	return true;
}

/* What both can speak; the server's choice, where there is one, has been made by now. */
static enum tls_offer choose(void *arg)
{
	const struct intercept *ic = arg;
	bool h2 = ic->offers & TLS_OFFER_H2, h1 = ic->offers & TLS_OFFER_H1;

	if (h2 && (ic->h2 || !h1)) /* with nobody to speak to, HTTP/2 says so */
		return TLS_OFFER_H2;
	return h1 ? TLS_OFFER_H1 : 0;
}

/* A client that offers HTTP/2 waits here for the server's word. */
static bool on_hello(void *arg, unsigned offers)
{
	struct intercept *ic = arg;

	if (!ic->offers)
		ic->offers = offers;
	return !(ic->offers & TLS_OFFER_H2) || ic->server.ready || ic->server.failed;
}

static const struct tls_mint_ops inside_ops = { .on_hello = on_hello, .choose = choose };

/* Its certificate is there. */
static void begin(struct conn *c)
{
	struct intercept *ic = c->intercept;
	struct buf first = c->look;

	ic->client.conn = tls_mint_conn(ic->all->inside, c->name, &inside_ops, ic);
	if (!ic->client.conn) {
		conn_end(c, true);
		return;
	}
	c->look = BUF_INIT(first.max);
	intercept_client(c, buf_view(&first));
	buf_done(&first);
	conn_wants(c);
}

static void refuse_leaf(struct conn *c)
{
	c->ops->refuse(c, c->opened ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_UNREACHABLE);
}

bool intercept_able(const struct intercepts *all, const char *host)
{
	return all->vault.open || tls_mint_knows(all->inside, host);
}

void intercept_leaf(struct conn *c, struct view leaf, struct view authority, const struct err *e)
{
	if (e || !tls_mint_keep(c->intercept->all->inside, c->name, leaf, authority)) {
		refuse_leaf(c); /* without it there is nothing to say it with */
		return;
	}
	begin(c);
}

void intercept_start(struct intercepts *all, struct conn *c)
{
	struct intercept *ic = calloc(1, sizeof(*ic));

	if (!ic) {
		conn_end(c, true);
		return;
	}
	ic->conn = c;
	ic->all = all;
	list_init(&ic->waits);
	ic->in = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->answer = (struct buf){ .max = 4 * INTERCEPT_PLAIN, .secret = true };
	ic->head_text = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->collect = (struct buf){ .max = INJECT_BODY, .secret = true };
	c->to_server.secret = c->to_client.secret = true;
	c->to_server.max = INJECT_OUT + INTERCEPT_PLAIN; /* a request that was collected goes as one */
	mask_init(&ic->mask);
	c->intercept = ic;
	conn_timer(c, CONN_CONNECT_MS);
	if (tls_mint_knows(all->inside, c->name))
		begin(c);
	else if (intercept_vault_leaf(ic, tls_mint_key(all->inside)) < 0)
		refuse_leaf(c);
	else
		conn_wants(c);
}

/* ---- bytes ---- */

/* 1: done; 0: goes on; -1: failed. */
static int shake(struct intercept_tls *t)
{
	if (t->ready)
		return 1;
	int r = tls_conn_handshake(t->conn);
	t->ready = r == 0;
	t->failed = r < 0 && r != -EAGAIN;
	return t->ready ? 1 : t->failed ? -1 : 0;
}

static bool feed(struct conn *c, struct intercept_tls *t, struct view data)
{
	if (tls_conn_feed(t->conn, data) < 0) {
		conn_end(c, true);
		return false;
	}
	return true;
}

static void run(struct intercept *ic)
{
	if (ic->h2)
		intercept_h2_run(ic);
	else
		intercept_http_client(ic);
}

static void ended(struct intercept *ic)
{
	if (ic->h2)
		intercept_h2_ended(ic);
	else
		intercept_http_ended(ic);
}

void intercept_client(struct conn *c, struct view data)
{
	struct intercept *ic = c->intercept;
	char piece[PIECE];
	ssize_t n = -EAGAIN;

	if (!ic->client.conn) { /* its certificate is awaited */
		if (buf_add(&c->look, data) < 0)
			conn_end(c, true);
		return;
	}
	if (!feed(c, &ic->client, data))
		return;
	int r = shake(&ic->client);
	if (r >= 0 && ic->offers && !ic->server.conn && !start_server(c))
		r = -1;
	if (r > 0 && !ic->h2 && tls_conn_is_h2(ic->client.conn) && !intercept_h2_start(ic))
		r = -1;
	while (r > 0 && (n = tls_conn_recv(ic->client.conn, piece, sizeof(piece))) > 0) {
		if (ic->h2)
			intercept_h2_client(ic, (struct view){ piece, (size_t)n });
		else
			(void)buf_append(&ic->in, piece, (size_t)n);
		if (c->over)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	if (c->over || !flush(c))
		return;
	if (r < 0 || ic->in.bad || (n < 0 && n != -EAGAIN)) {
		conn_end(c, false);
		return;
	}
	if (n == 0)
		c->client_eof = true;
	run(ic);
}

/* The server's handshake is over, well or not: who waits for it goes on. */
static bool server_shaken(struct conn *c)
{
	struct intercept *ic = c->intercept;

	/* Its first bytes may come before the client's handshake is through. */
	if (ic->server.ready && tls_conn_is_h2(ic->server.conn) && !intercept_h2_start(ic)) {
		conn_end(c, true);
		return false;
	}
	intercept_client(c, VIEW(""));
	return !c->over;
}

void intercept_server(struct conn *c, struct view data)
{
	struct intercept *ic = c->intercept;
	char piece[PIECE];
	ssize_t n = -EAGAIN;

	if (!ic->server.conn || ic->server.failed || !feed(c, &ic->server, data))
		return;
	bool was = ic->server.ready;
	int r = shake(&ic->server);
	if (!flush(c))
		return;
	if (r < 0) {
		const char *distrust = tls_conn_distrust(ic->server.conn);
		ic->trouble = distrust ? distrust : "the handshake failed";
	}
	if ((r < 0 || (r > 0 && !was)) && !server_shaken(c))
		return;
	while (r > 0 && (n = tls_conn_recv(ic->server.conn, piece, sizeof(piece))) > 0) {
		if (ic->h2)
			intercept_h2_server(ic, (struct view){ piece, (size_t)n });
		else
			intercept_http_server(ic, (struct view){ piece, (size_t)n });
		if (c->over)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	if (c->over)
		return;
	if (n == 0)
		ended(ic);
	else if (n < 0 && n != -EAGAIN)
		conn_end(c, true);
	else if (ic->h2)
		intercept_h2_run(ic);
}

/* Without a close_notify: enough where the answer said how long it is, or was to end so. */
void intercept_server_ended(struct conn *c)
{
	struct intercept *ic = c->intercept;

	if (!ic->server.ready && !ic->server.failed) {
		ic->server.failed = true;
		(void)server_shaken(c);
	} else if (ic->server.failed) {
		run(ic);
	} else {
		ended(ic);
	}
}

bool intercept_late(struct conn *c)
{
	struct intercept *ic = c->intercept;
	bool asks = !ic->client.ready; /* it waits in its handshake: it is told when it asks */

	if (ic->ending) {
		if (ic->away || c->taken == ic->taken)
			conn_end(c, true);
		else
			conn_timer(c, INTERCEPT_LINGER_MS);
		ic->taken = c->taken;
		return true;
	}
	if (ic->server.ready || ic->server.failed || ic->closing)
		return false;
	if (!ic->server.conn) { /* not even the vault has answered */
		refuse_leaf(c);
		return true;
	}
	ic->server.failed = true;
	ic->trouble = "the handshake took too long";
	conn_timer(c, CONN_IDLE_MS);
	if (server_shaken(c) && !asks && !ic->closing) /* nobody has asked for anything yet */
		intercept_close(c);
	conn_wants(c);
	return true;
}

bool intercept_reads(const struct conn *c)
{
	const struct intercept *ic = c->intercept;

	/* Who does not take what it asked for may not ask for more. */
	return !ic->closing &&
	       (ic->h2 ? buf_len(&c->to_client) < INTERCEPT_PLAIN : buf_len(&ic->in) < INTERCEPT_PLAIN);
}

void intercept_flushed(struct conn *c)
{
	struct intercept *ic = c->intercept;

	if (ic->closing && buf_len(&c->to_client) == 0)
		conn_end(c, false);
	else if (c->client_eof && (ic->h2 || ic->step == IC_HEAD || ic->step == IC_SWITCHED))
		conn_end(c, false);
	else if (c->client_eof && ic->step == IC_BODY && buf_len(&ic->in) == 0)
		conn_end(c, true); /* the rest of its request will not come */
	else if (ic->h2)
		intercept_h2_run(ic);
}

void intercept_ending(struct conn *c, bool away)
{
	struct intercept *ic = c->intercept;

	if (ic->away || (ic->ending && !away))
		return;
	ic->ending = true;
	ic->away = away;
	ic->taken = c->taken;
	conn_timer(c, away ? INTERCEPT_AWAY_MS : INTERCEPT_LINGER_MS);
}

void intercept_close(struct conn *c)
{
	struct intercept *ic = c->intercept;

	ic->closing = true;
	intercept_ending(c, false);
	if (ic->client.ready)
		(void)!tls_conn_notify(ic->client.conn);
	(void)!flush(c);
}

void intercept_fail(struct conn *c, int status, const char *text)
{
	char answer[512];
	int n = snprintf(answer, sizeof(answer),
			 "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\nconnection: "
			 "close\r\n\r\n%s\n",
			 status,
			 status == 403   ? "Forbidden"
			 : status == 400 ? "Bad Request"
			 : status == 502 ? "Bad Gateway"
					 : "Service Unavailable",
			 strlen(text) + 1, text);

	if (c->intercept->in_answer) { /* it has begun: only a cut tells the truth */
		conn_end(c, true);
		return;
	}
	intercept_ending(c, true);
	if (!c->intercept->client.ready || intercept_to_client(c, (struct view){ answer, (size_t)n }))
		intercept_close(c);
}

void intercept_trouble(const struct intercept *ic, char *text, size_t size)
{
	if (ic->server.failed)
		snprintf(text, size, "paddock: no TLS with the server: %.160s",
			 ic->trouble ? ic->trouble : "it has closed the connection");
	else
		snprintf(text, size, "paddock: the server does not speak HTTP/2");
}

/* ---- judging ---- */

const char *intercept_judge(struct conn *c, struct view method, struct view path, struct view host,
			    struct inject *j)
{
	const struct policy_rule *rule = NULL;
	struct target t = { 0 };

	if (!host.n || target_parse(host, &t) < 0 || !view_is(view_of(t.name), c->name) ||
	    (t.port && t.port != c->port)) {
		conn_deny(c, WIRE_GATE_REASON_MISMATCH, method, path);
		return "paddock: Host does not fit the connection";
	}
	if (!c->ops->judge(c, method, path, &rule))
		return "paddock: the policy of this sandbox does not allow it";
	/* A copy: the policy may be another one before the vault has answered. */
	inject_init(j, rule->inject, rule->n_inject);
	return NULL;
}
