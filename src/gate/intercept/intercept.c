/*
 * The intercepted connection: see intercept.h. TLS runs on bytes in memory; the sockets
 * and their back-pressure are relay.c's, as for every other connection.
 */
#include "intercept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/err.h>
#include <openssl/ssl.h>
#undef ERR_STATE

#include "wire_gen.h"
#include "poison.h"

#define PIECE 16384

/* ---- TLS on memory ---- */

/* What TLS wants to send, to the buffer of its socket. */
static int drain(SSL *s, struct buf *to)
{
	char *p;
	BIO *out = SSL_get_wbio(s);
	long n = BIO_get_mem_data(out, &p);

	if (n > 0) {
		(void)buf_append(to, p, (size_t)n);
		(void)BIO_reset(out);
	}
	return to->bad;
}

static bool flush(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if ((ic->client.ssl && drain(ic->client.ssl, &f->to_client) < 0) ||
	    (ic->server.ssl && drain(ic->server.ssl, &f->to_server) < 0)) {
		flow_end(f, true);
		return false;
	}
	return relay_flush(f);
}

static bool put(struct flow *f, struct intercept_tls *t, struct view data)
{
	while (data.n) {
		size_t n = MIN(data.n, (size_t)PIECE);
		if (!t->ready || SSL_write(t->ssl, data.p, (int)n) != (int)n) {
			ERR_clear_error();
			flow_end(f, true);
			return false;
		}
		data = view_skip(data, n);
	}
	return flush(f);
}

bool intercept_to_client(struct flow *f, struct view data)
{
	return put(f, &f->intercept->client, data);
}

bool intercept_to_server(struct flow *f, struct view data)
{
	return put(f, &f->intercept->server, data);
}

/* ---- life ---- */

void intercept_free(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (!ic)
		return;
	intercept_h2_free(ic->h2);
	SSL_free(ic->client.ssl);
	SSL_free(ic->server.ssl);
	buf_done(&ic->in);
	buf_done(&ic->answer);
	buf_done(&ic->collect);
	buf_done(&ic->head_text);
	mask_done(&ic->mask);
	inject_done(&ic->inject);
	free(ic->headers);
	free(ic);
	f->intercept = NULL;
}

static bool start_server(struct flow *f)
{
	struct intercept *ic = f->intercept;

	ic->server.ssl = intercept_tls_outside(f);
	if (!ic->server.ssl)
		return false;
	(void)SSL_do_handshake(ic->server.ssl);
	ERR_clear_error();
	return true;
}

/* Its certificate is there. */
static void begin(struct flow *f)
{
	struct buf first = f->look;

	f->intercept->client.ssl = intercept_tls_inside(f);
	if (!f->intercept->client.ssl) {
		flow_end(f, true);
		return;
	}
	f->look = BUF_INIT(first.max);
	intercept_client(f, buf_view(&first));
	buf_done(&first);
	if (f->state != FLOW_OVER)
		flow_wants(f);
}

static int no_leaf(const struct flow *f)
{
	return f->opened ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_UNREACHABLE;
}

bool intercept_able(const struct flow *f)
{
	return f->box->gate->vault.open || intercept_tls_known(f->box->gate, f->name);
}

void intercept_leaf(struct flow *f, struct view leaf, struct view authority, const struct err *e)
{
	if (e || !intercept_tls_keep(f->box->gate, f->name, leaf, authority)) {
		flow_refuse(f, no_leaf(f), NULL); /* without it there is nothing to say it with */
		return;
	}
	begin(f);
}

void intercept_start(struct flow *f)
{
	struct gate *g = f->box->gate;
	struct intercept *ic = calloc(1, sizeof(*ic));

	if (!ic) {
		flow_end(f, true);
		return;
	}
	ic->flow = f;
	list_init(&ic->waits);
	ic->in = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->answer = (struct buf){ .max = 4 * INTERCEPT_PLAIN, .secret = true };
	ic->head_text = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->collect = (struct buf){ .max = INJECT_BODY, .secret = true };
	f->to_server.secret = f->to_client.secret = true;
	f->to_server.max = INJECT_OUT + INTERCEPT_PLAIN; /* a request that was collected goes as one */
	mask_init(&ic->mask);
	f->intercept = ic;
	f->mode = MODE_INTERCEPT;
	f->hold = false;
	flow_timer(f, GATE_CONNECT_MS);
	if (intercept_tls_known(g, f->name)) {
		begin(f);
		return;
	}
	if (intercept_vault_leaf(f, intercept_tls_key(g)) < 0) {
		flow_refuse(f, no_leaf(f), NULL);
		return;
	}
	flow_wants(f);
}

/* ---- bytes ---- */

/* Into the plaintext; -EAGAIN when there is no more. */
static ssize_t take(struct intercept_tls *t, char *p, size_t n)
{
	int r = SSL_read(t->ssl, p, (int)n);

	if (r > 0)
		return r;
	int why = SSL_get_error(t->ssl, r);
	ERR_clear_error();
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -EAGAIN
	       : why == SSL_ERROR_ZERO_RETURN                            ? 0
									 : -EPROTO;
}

/* 1: done; 0: goes on; -1: failed. */
static int shake(struct intercept_tls *t)
{
	if (t->ready)
		return 1;
	int r = SSL_do_handshake(t->ssl), why = SSL_get_error(t->ssl, r);
	ERR_clear_error();
	if (r == 1) {
		t->ready = true;
		return 1;
	}
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ||
	    why == SSL_ERROR_WANT_CLIENT_HELLO_CB)
		return 0;
	t->failed = true;
	return -1;
}

static bool feed(struct flow *f, struct intercept_tls *t, struct view data)
{
	if (data.n && BIO_write(SSL_get_rbio(t->ssl), data.p, (int)data.n) != (int)data.n) {
		flow_end(f, true);
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

void intercept_client(struct flow *f, struct view data)
{
	struct intercept *ic = f->intercept;
	char piece[PIECE];
	ssize_t n = -EAGAIN;

	if (!ic->client.ssl) { /* its certificate is awaited */
		if (buf_add(&f->look, data) < 0)
			flow_end(f, true);
		return;
	}
	if (!feed(f, &ic->client, data))
		return;
	int r = shake(&ic->client);
	if (r >= 0 && ic->offers && !ic->server.ssl && !start_server(f))
		r = -1;
	if (r > 0 && !ic->h2 && intercept_tls_is_h2(ic->client.ssl) && !intercept_h2_start(ic))
		r = -1;
	while (r > 0 && (n = take(&ic->client, piece, sizeof(piece))) > 0) {
		if (ic->h2)
			intercept_h2_client(ic, (struct view){ piece, (size_t)n });
		else
			(void)buf_append(&ic->in, piece, (size_t)n);
		if (f->state == FLOW_OVER)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	if (f->state == FLOW_OVER || !flush(f))
		return;
	if (r < 0 || ic->in.bad || (n < 0 && n != -EAGAIN)) {
		flow_end(f, false);
		return;
	}
	if (n == 0)
		f->client_eof = true;
	run(ic);
}

/* The server's handshake is over, well or not: who waits for it goes on. */
static bool server_shaken(struct flow *f)
{
	struct intercept *ic = f->intercept;

	/* Its first bytes may come before the client's handshake is through. */
	if (ic->server.ready && intercept_tls_is_h2(ic->server.ssl) && !intercept_h2_start(ic)) {
		flow_end(f, true);
		return false;
	}
	intercept_client(f, VIEW(""));
	return f->state != FLOW_OVER;
}

void intercept_server(struct flow *f, struct view data)
{
	struct intercept *ic = f->intercept;
	char piece[PIECE];
	ssize_t n = -EAGAIN;

	if (!ic->server.ssl || ic->server.failed || !feed(f, &ic->server, data))
		return;
	bool was = ic->server.ready;
	int r = shake(&ic->server);
	if (!flush(f))
		return;
	if (r < 0) {
		long why = SSL_get_verify_result(ic->server.ssl);
		ic->trouble = why != X509_V_OK ? X509_verify_cert_error_string(why) : "the handshake failed";
	}
	if ((r < 0 || (r > 0 && !was)) && !server_shaken(f))
		return;
	while (r > 0 && (n = take(&ic->server, piece, sizeof(piece))) > 0) {
		if (ic->h2)
			intercept_h2_server(ic, (struct view){ piece, (size_t)n });
		else
			intercept_http_server(ic, (struct view){ piece, (size_t)n });
		if (f->state == FLOW_OVER)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	if (f->state == FLOW_OVER)
		return;
	if (n == 0)
		ended(ic);
	else if (n < 0 && n != -EAGAIN)
		flow_end(f, true);
	else if (ic->h2)
		intercept_h2_run(ic);
}

/* Without a close_notify: enough where the answer said how long it is, or was to end so. */
void intercept_server_ended(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (!ic->server.ready && !ic->server.failed) {
		ic->server.failed = true;
		(void)server_shaken(f);
	} else if (ic->server.failed) {
		run(ic);
	} else {
		ended(ic);
	}
}

bool intercept_late(struct flow *f)
{
	struct intercept *ic = f->intercept;
	bool asks = !ic->client.ready; /* it waits in its handshake: it is told when it asks */

	if (ic->ending) {
		if (ic->away || f->taken == ic->taken)
			flow_end(f, true);
		else
			flow_timer(f, GATE_LINGER_MS);
		ic->taken = f->taken;
		return true;
	}
	if (ic->server.ready || ic->server.failed || ic->closing)
		return false;
	if (!ic->server.ssl) { /* not even the vault has answered */
		flow_refuse(f, no_leaf(f), NULL);
		return true;
	}
	ic->server.failed = true;
	ic->trouble = "the handshake took too long";
	flow_timer(f, GATE_IDLE_MS);
	if (server_shaken(f) && !asks && !ic->closing) /* nobody has asked for anything yet */
		intercept_close(f);
	if (f->state != FLOW_OVER)
		flow_wants(f);
	return true;
}

bool intercept_reads(const struct flow *f)
{
	const struct intercept *ic = f->intercept;

	/* Who does not take what it asked for may not ask for more. */
	return !ic->closing &&
	       (ic->h2 ? buf_len(&f->to_client) < INTERCEPT_PLAIN : buf_len(&ic->in) < INTERCEPT_PLAIN);
}

void intercept_flushed(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (ic->closing && buf_len(&f->to_client) == 0)
		flow_end(f, false);
	else if (f->client_eof && (ic->h2 || ic->step == IC_HEAD || ic->step == IC_SWITCHED))
		flow_end(f, false);
	else if (f->client_eof && ic->step == IC_BODY && buf_len(&ic->in) == 0)
		flow_end(f, true); /* the rest of its request will not come */
	else if (ic->h2)
		intercept_h2_run(ic);
}

void intercept_ending(struct flow *f, bool away)
{
	struct intercept *ic = f->intercept;

	if (ic->away || (ic->ending && !away))
		return;
	ic->ending = true;
	ic->away = away;
	ic->taken = f->taken;
	flow_timer(f, away ? GATE_AWAY_MS : GATE_LINGER_MS);
}

void intercept_close(struct flow *f)
{
	struct intercept *ic = f->intercept;

	ic->closing = true;
	intercept_ending(f, false);
	if (ic->client.ready) {
		(void)SSL_shutdown(ic->client.ssl);
		ERR_clear_error();
	}
	(void)!flush(f);
}

void intercept_fail(struct flow *f, int status, const char *text)
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

	if (f->intercept->in_answer) { /* it has begun: only a cut tells the truth */
		flow_end(f, true);
		return;
	}
	intercept_ending(f, true);
	if (!f->intercept->client.ready || intercept_to_client(f, (struct view){ answer, (size_t)n }))
		intercept_close(f);
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

const char *intercept_judge(struct flow *f, struct view method, struct view path, struct view host,
			    struct inject *j)
{
	const struct policy_rule *rule = NULL;
	enum policy_answer answer = POLICY_DENY;
	struct proxy_target t = { 0 };
	struct policy_facts facts;

	if (!host.n || proxy_target(host, &t) < 0 || !view_is(view_of(t.name), f->name) ||
	    (t.port && t.port != f->port)) {
		flow_say(f, false, WIRE_GATE_REASON_MISMATCH, NULL, method, path);
		return "paddock: Host does not fit the connection";
	}
	flow_facts(f, &facts, &f->addr, POLICY_HTTP);
	facts.method = method;
	facts.path = path;
	if (f->box->policy)
		answer = policy_decide(f->box->policy, &facts, &rule);
	if (answer != POLICY_ALLOW) {
		flow_say(f, false,
			 answer == POLICY_DENY_RULE ? WIRE_GATE_REASON_RULE : WIRE_GATE_REASON_NO_RULE, rule,
			 method, path);
		return "paddock: the policy of this sandbox does not allow it";
	}
	flow_say(f, true, WIRE_GATE_REASON_RULE, rule, method, path);
	/* A copy: the policy may be another one before the vault has answered. */
	inject_init(j, rule->inject, rule->n_inject);
	return NULL;
}
