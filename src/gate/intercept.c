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
#include <openssl/x509v3.h>
#undef ERR_STATE

#include "clock.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define PIECE       16384
#define LEAVES      256
#define LEAF_MS     (12ull * 60 * 60 * 1000)
#define SYSTEM_CAS  "/etc/ssl/certs/ca-certificates.crt"

/* Certificates that were made, by host. Public things: whichever box asked first. */
struct leaf {
	char host[256];
	X509 *cert, *authority;
	uint64_t made_ms;
};

struct intercept_gate {
	SSL_CTX *inside, *outside; /* to boxes, to servers */
	EVP_PKEY *key;             /* of every certificate; new with every start */
	uint8_t *public_key;
	int public_n;
	struct leaf leaves[LEAVES];
	unsigned next;
};

/* ---- setting up ---- */

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in, unsigned n, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl;
	(void)arg;
	return SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_n, ours, sizeof(ours) - 1, in, n) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);

	if (!c)
		return NULL;
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT | SSL_OP_NO_TICKET |
				       SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) == 1)
		return c;
	SSL_CTX_free(c);
	return NULL;
}

int intercept_setup(struct gate *g, const char *ca, struct err *e)
{
	struct intercept_gate *i = calloc(1, sizeof(*i));

	list_init(&g->vault_waits);
	if (!i)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "interception");
	g->intercept = i;
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	i->inside = new_ctx(TLS_server_method());
	i->outside = new_ctx(TLS_client_method());
	i->key = EVP_EC_gen("P-256");
	i->public_n = i->key ? i2d_PUBKEY(i->key, &i->public_key) : 0;
	if (!i->inside || !i->outside || i->public_n <= 0)
		return err_set(e, ERR_INTERNAL, "TLS cannot be set up");
	SSL_CTX_set_alpn_select_cb(i->inside, choose_alpn, NULL);
	SSL_CTX_set_verify(i->outside, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_file(i->outside, SYSTEM_CAS) != 1)
		log_warn("no authorities in %s: servers that are intercepted cannot be checked by them", SYSTEM_CAS);
	if (*ca && SSL_CTX_load_verify_file(i->outside, ca) != 1)
		return err_set(e, ERR_INVALID, "gate.ca_file: no certificates in %.100s", ca);
	ERR_clear_error();
	return 0;
}

static struct leaf *find_leaf(struct intercept_gate *i, const char *host)
{
	for (unsigned k = 0; k < LEAVES; k++)
		if (i->leaves[k].cert && strcmp(i->leaves[k].host, host) == 0 && clock_mono_ms() - i->leaves[k].made_ms < LEAF_MS)
			return &i->leaves[k];
	return NULL;
}

static struct leaf *keep_leaf(struct intercept_gate *i, const char *host, struct view cert, struct view authority)
{
	const unsigned char *c = (const unsigned char *)cert.p, *a = (const unsigned char *)authority.p;
	struct leaf *l = &i->leaves[i->next];

	X509_free(l->cert);
	X509_free(l->authority);
	*l = (struct leaf){ .cert = d2i_X509(NULL, &c, (long)cert.n), .authority = d2i_X509(NULL, &a, (long)authority.n),
			    .made_ms = clock_mono_ms() };
	snprintf(l->host, sizeof(l->host), "%s", host);
	if (l->cert && l->authority) {
		i->next = (i->next + 1) % LEAVES;
		return l;
	}
	X509_free(l->cert);
	X509_free(l->authority);
	*l = (struct leaf){ 0 };
	return NULL;
}

/* ---- TLS on memory ---- */

static SSL *new_ssl(SSL_CTX *ctx)
{
	SSL *s = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!s || !in || !out) {
		SSL_free(s);
		BIO_free(in);
		BIO_free(out);
		return NULL;
	}
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(s, in, out);
	return s;
}

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

	if ((ic->client.ssl && drain(ic->client.ssl, &f->to_client) < 0) || (ic->server.ssl && drain(ic->server.ssl, &f->to_server) < 0)) {
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
	SSL_free(ic->client.ssl);
	SSL_free(ic->server.ssl);
	buf_done(&ic->in);
	buf_done(&ic->answer);
	buf_done(&ic->collect);
	buf_done(&ic->head_text);
	mask_done(&ic->mask);
	for (unsigned i = 0; i < ic->n_values; i++)
		buf_done(&ic->values[i].value);
	free(ic->headers);
	free(ic);
	f->intercept = NULL;
}

static bool start_server(struct flow *f)
{
	struct intercept *ic = f->intercept;
	static const unsigned char alpn[] = "\x08http/1.1";

	ic->server.ssl = new_ssl(f->box->gate->intercept->outside);
	if (!ic->server.ssl || SSL_set_tlsext_host_name(ic->server.ssl, f->name) != 1 || SSL_set1_host(ic->server.ssl, f->name) != 1 ||
	    SSL_set_alpn_protos(ic->server.ssl, alpn, sizeof(alpn) - 1) != 0)
		return false;
	SSL_set_hostflags(ic->server.ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_connect_state(ic->server.ssl);
	(void)SSL_do_handshake(ic->server.ssl);
	ERR_clear_error();
	return true;
}

static bool start_client(struct flow *f, const struct leaf *l)
{
	struct intercept *ic = f->intercept;
	struct intercept_gate *i = f->box->gate->intercept;

	ic->client.ssl = new_ssl(i->inside);
	if (!ic->client.ssl || SSL_use_certificate(ic->client.ssl, l->cert) != 1 || SSL_use_PrivateKey(ic->client.ssl, i->key) != 1 ||
	    SSL_add1_chain_cert(ic->client.ssl, l->authority) != 1)
		return false;
	SSL_set_accept_state(ic->client.ssl);
	return true;
}

static void begin(struct flow *f, const struct leaf *l)
{
	struct buf first = f->look;

	if (!start_client(f, l) || !start_server(f)) {
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

void intercept_leaf(struct flow *f, struct view leaf, struct view authority, const struct err *e)
{
	struct leaf *l = e ? NULL : keep_leaf(f->box->gate->intercept, f->name, leaf, authority);

	if (!l) { /* without its certificate there is nothing to say it with */
		flow_refuse(f, no_leaf(f), NULL);
		return;
	}
	begin(f, l);
}

bool intercept_able(const struct flow *f)
{
	return link_open(&f->box->gate->vault) || find_leaf(f->box->gate->intercept, f->name);
}

void intercept_start(struct flow *f)
{
	struct intercept_gate *i = f->box->gate->intercept;
	struct intercept *ic = calloc(1, sizeof(*ic));

	if (!ic) {
		flow_end(f, true);
		return;
	}
	ic->flow = f;
	ic->in = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->answer = (struct buf){ .max = 4 * INTERCEPT_PLAIN, .secret = true };
	ic->head_text = (struct buf){ .max = 2 * INTERCEPT_PLAIN, .secret = true };
	ic->collect = (struct buf){ .max = INTERCEPT_BODY, .secret = true };
	f->to_server.secret = f->to_client.secret = true;
	mask_init(&ic->mask);
	f->intercept = ic;
	f->mode = MODE_INTERCEPT;
	f->hold = false;
	flow_timer(f, GATE_CONNECT_MS);
	struct leaf *l = find_leaf(i, f->name);
	if (l) {
		begin(f, l);
		return;
	}
	if (intercept_vault_leaf(f, (struct view){ (const char *)i->public_key, (size_t)i->public_n }) < 0) {
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
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -EAGAIN : why == SSL_ERROR_ZERO_RETURN ? 0 : -EPROTO;
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
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
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
	while (r > 0 && (n = take(&ic->client, piece, sizeof(piece))) > 0)
		(void)buf_append(&ic->in, piece, (size_t)n);
	explicit_bzero(piece, sizeof(piece));
	if (!flush(f))
		return;
	if (r < 0 || ic->in.bad || (n < 0 && n != -EAGAIN)) {
		flow_end(f, false);
		return;
	}
	if (n == 0)
		f->client_eof = true;
	intercept_http_client(ic);
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
		intercept_http_client(ic); /* whoever waits is told */
		return;
	}
	if (r > 0 && !was) {
		intercept_http_client(ic);
		if (f->state == FLOW_OVER)
			return;
	}
	while (r > 0 && (n = take(&ic->server, piece, sizeof(piece))) > 0) {
		intercept_http_server(ic, (struct view){ piece, (size_t)n });
		if (f->state == FLOW_OVER)
			break;
	}
	explicit_bzero(piece, sizeof(piece));
	if (f->state == FLOW_OVER)
		return;
	if (n == 0)
		intercept_http_ended(ic);
	else if (n < 0 && n != -EAGAIN)
		flow_end(f, true);
}

/* Without a close_notify: enough where the answer said how long it is, or was to end so. */
void intercept_server_ended(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (!ic->server.ready)
		ic->server.failed = true;
	if (ic->server.failed)
		intercept_http_client(ic);
	else
		intercept_http_ended(ic);
}

bool intercept_late(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (ic->server.ready || ic->server.failed || ic->closing)
		return false;
	if (!ic->server.ssl) { /* not even the vault has answered */
		flow_refuse(f, no_leaf(f), NULL);
		return true;
	}
	ic->server.failed = true;
	ic->trouble = "the handshake took too long";
	flow_timer(f, GATE_IDLE_MS);
	intercept_http_client(ic);
	if (f->state != FLOW_OVER && !ic->closing) /* nobody has asked for anything yet */
		intercept_close(f);
	return true;
}

bool intercept_reads(const struct flow *f)
{
	const struct intercept *ic = f->intercept;
	return !ic->closing && buf_len(&ic->in) < INTERCEPT_PLAIN;
}

void intercept_flushed(struct flow *f)
{
	struct intercept *ic = f->intercept;

	if (ic->closing && buf_len(&f->to_client) == 0)
		flow_end(f, false);
	else if (f->client_eof && (ic->step == IC_HEAD || ic->step == IC_SWITCHED))
		flow_end(f, false);
	else if (f->client_eof && ic->step == IC_BODY && buf_len(&ic->in) == 0)
		flow_end(f, true); /* the rest of its request will not come */
}

void intercept_close(struct flow *f)
{
	struct intercept *ic = f->intercept;

	ic->closing = true;
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
			 "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\nconnection: close\r\n\r\n%s\n", status,
			 status == 403   ? "Forbidden"
			 : status == 400 ? "Bad Request"
			 : status == 502 ? "Bad Gateway"
					 : "Service Unavailable",
			 strlen(text) + 1, text);

	if (f->intercept->in_answer) { /* it has begun: only a cut tells the truth */
		flow_end(f, true);
		return;
	}
	if (!f->intercept->client.ready || intercept_to_client(f, (struct view){ answer, (size_t)n }))
		intercept_close(f);
}
