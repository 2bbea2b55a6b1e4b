/*
 * TLS of intercepted connections: the contexts of both sides, certificates that were
 * made, and which version of HTTP is offered and chosen. See intercept.h.
 */
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
#include "intercept.h"
#include "log.h"
#include "poison.h"

#define LEAVES     256
#define LEAF_MS    (12ull * 60 * 60 * 1000)
#define SYSTEM_CAS "/etc/ssl/certs/ca-certificates.crt"

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

/* What both can speak; the server's choice, where there is one, has been made by now. */
static const char *choose(const struct intercept *ic)
{
	bool h2 = ic->offers & OFFER_H2, h1 = ic->offers & OFFER_H1;

	if (h2 && (ic->h2 || !h1)) /* with nobody to speak to, HTTP/2 says so */
		return "\x02h2";
	return h1 ? "\x08http/1.1" : NULL;
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
		       unsigned n, void *arg)
{
	const struct flow *f = SSL_get_app_data(ssl);
	const char *ours = choose(f->intercept);

	(void)arg;
	return ours && SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_n,
					     (const unsigned char *)ours, (unsigned)strlen(ours), in,
					     n) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static unsigned read_offers(const unsigned char *p, size_t n)
{
	struct view rest = { (const char *)p, n };
	unsigned offers = OFFER_ASKED;

	for (rest = view_skip(rest, 2); rest.n;) {
		struct view name = view_head(view_skip(rest, 1), (uint8_t)rest.p[0]);
		offers |= view_is(name, "h2") ? OFFER_H2 : view_is(name, "http/1.1") ? OFFER_H1 : OFFER_OTHER;
		rest = view_skip(rest, 1 + (size_t)(uint8_t)rest.p[0]);
	}
	return offers;
}

/* A client that offers HTTP/2 waits here for the server's word. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
	const struct flow *f = SSL_get_app_data(ssl);
	struct intercept *ic = f->intercept;
	const unsigned char *p;
	size_t n;

	(void)alert;
	(void)arg;
	if (!ic->offers &&
	    SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n) == 1)
		ic->offers = read_offers(p, n);
	if (!ic->offers)
		ic->offers = OFFER_ASKED; /* for nothing: HTTP/1.1 */
	return !(ic->offers & OFFER_H2) || ic->server.ready || ic->server.failed ? SSL_CLIENT_HELLO_SUCCESS
										 : SSL_CLIENT_HELLO_RETRY;
}

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);

	if (!c)
		return NULL;
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT |
				       SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
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
	SSL_CTX_set_client_hello_cb(i->inside, on_hello, NULL);
	SSL_CTX_set_verify(i->outside, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_file(i->outside, SYSTEM_CAS) != 1)
		log_warn("no authorities in %s: servers that are intercepted cannot be checked by them",
			 SYSTEM_CAS);
	if (*ca && SSL_CTX_load_verify_file(i->outside, ca) != 1)
		return err_set(e, ERR_INVALID, "gate.ca_file: no certificates in %.100s", ca);
	ERR_clear_error();
	return 0;
}

/* ---- certificates ---- */

static const struct leaf *find_leaf(const struct intercept_gate *i, const char *host)
{
	for (unsigned k = 0; k < LEAVES; k++)
		if (i->leaves[k].cert && strcmp(i->leaves[k].host, host) == 0 &&
		    clock_mono_ms() - i->leaves[k].made_ms < LEAF_MS)
			return &i->leaves[k];
	return NULL;
}

bool intercept_tls_known(const struct gate *g, const char *host)
{
	return find_leaf(g->intercept, host);
}

struct view intercept_tls_key(const struct gate *g)
{
	return (struct view){ (const char *)g->intercept->public_key, (size_t)g->intercept->public_n };
}

bool intercept_tls_keep(struct gate *g, const char *host, struct view cert, struct view authority)
{
	const unsigned char *c = (const unsigned char *)cert.p, *a = (const unsigned char *)authority.p;
	struct intercept_gate *i = g->intercept;
	struct leaf *l = &i->leaves[i->next];

	X509_free(l->cert);
	X509_free(l->authority);
	*l = (struct leaf){ .cert = d2i_X509(NULL, &c, (long)cert.n),
			    .authority = d2i_X509(NULL, &a, (long)authority.n),
			    .made_ms = clock_mono_ms() };
	snprintf(l->host, sizeof(l->host), "%s", host);
	if (l->cert && l->authority) {
		i->next = (i->next + 1) % LEAVES;
		return true;
	}
	X509_free(l->cert);
	X509_free(l->authority);
	*l = (struct leaf){ 0 };
	return false;
}

/* ---- its ends ---- */

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

SSL *intercept_tls_inside(struct flow *f)
{
	struct intercept_gate *i = f->box->gate->intercept;
	const struct leaf *l = find_leaf(i, f->name);
	SSL *s = l ? new_ssl(i->inside) : NULL;

	if (!s || SSL_set_app_data(s, f) != 1 || SSL_use_certificate(s, l->cert) != 1 ||
	    SSL_use_PrivateKey(s, i->key) != 1 || SSL_add1_chain_cert(s, l->authority) != 1) {
		SSL_free(s);
		return NULL;
	}
	SSL_set_accept_state(s);
	return s;
}

/* The server is offered what the client offers, as far as we speak it. */
SSL *intercept_tls_outside(struct flow *f)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	bool h2 = f->intercept->offers & OFFER_H2, h1 = !h2 || f->intercept->offers & OFFER_H1;
	SSL *s = new_ssl(f->box->gate->intercept->outside);

	if (!s || SSL_set_tlsext_host_name(s, f->name) != 1 || SSL_set1_host(s, f->name) != 1 ||
	    SSL_set_alpn_protos(s, h2 ? both : both + 3, (h2 ? 3 : 0) + (h1 ? 9 : 0)) != 0) {
		SSL_free(s);
		return NULL;
	}
	SSL_set_hostflags(s, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	SSL_set_connect_state(s);
	return s;
}

bool intercept_tls_is_h2(const SSL *ssl)
{
	const unsigned char *p;
	unsigned n;

	SSL_get0_alpn_selected(ssl, &p, &n);
	return view_is((struct view){ (const char *)p, n }, "h2");
}
