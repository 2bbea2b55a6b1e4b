/*
 * A server that is whichever host it is asked to be, with certificates that somebody
 * else makes for its one key: see tls.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "tls_impl.h"
#include "poison.h"

#define LEAVES  256
#define LEAF_MS (12ull * 60 * 60 * 1000)

/* Public things: whoever asked first. */
struct leaf {
	char host[256];
	X509 *cert, *authority;
	uint64_t made_ms;
};

struct tls_mint {
	SSL_CTX *ctx;
	EVP_PKEY *key; /* of every certificate; new with every start */
	uint8_t *public_key;
	int public_n;
	struct leaf leaves[LEAVES];
	unsigned next;
};

/* ---- which protocol ---- */

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
		       unsigned n, void *arg)
{
	const struct tls_conn *c = SSL_get_app_data(ssl);
	enum tls_offer chosen = c->ops->choose(c->arg);
	const char *ours = chosen == TLS_OFFER_H2 ? "\x02h2" : chosen == TLS_OFFER_H1 ? "\x08http/1.1" : NULL;

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
	unsigned offers = TLS_OFFER_ASKED;

	for (rest = view_skip(rest, 2); rest.n;) {
		struct view name = view_head(view_skip(rest, 1), (uint8_t)rest.p[0]);
		offers |= view_is(name, "h2")         ? TLS_OFFER_H2
			  : view_is(name, "http/1.1") ? TLS_OFFER_H1
						      : TLS_OFFER_OTHER;
		rest = view_skip(rest, 1 + (size_t)(uint8_t)rest.p[0]);
	}
	return offers;
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	const struct tls_conn *c = SSL_get_app_data(ssl);
	const unsigned char *p;
	unsigned offers = TLS_OFFER_ASKED; /* for nothing: HTTP/1.1 */
	size_t n;

	(void)alert;
	(void)arg;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n) == 1)
		offers = read_offers(p, n);
	return c->ops->on_hello(c->arg, offers) ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

/* ---- life ---- */

struct tls_mint *tls_mint_new(struct err *e)
{
	struct tls_mint *m = calloc(1, sizeof(*m));

	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if (m) {
		m->ctx = tls_ctx_new(TLS_server_method(), SSL_OP_NO_TICKET);
		m->key = EVP_EC_gen("P-256");
		m->public_n = m->key ? i2d_PUBKEY(m->key, &m->public_key) : 0;
	}
	if (!m || !m->ctx || m->public_n <= 0) {
		err_set(e, ERR_INTERNAL, "TLS cannot be set up");
		tls_mint_free(m);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(m->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(m->ctx, choose_alpn, NULL);
	SSL_CTX_set_client_hello_cb(m->ctx, on_hello, NULL);
	return m;
}

static void drop(struct leaf *l)
{
	X509_free(l->cert);
	X509_free(l->authority);
	*l = (struct leaf){ 0 };
}

void tls_mint_free(struct tls_mint *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < LEAVES; i++)
		drop(&m->leaves[i]);
	SSL_CTX_free(m->ctx);
	EVP_PKEY_free(m->key);
	OPENSSL_free(m->public_key);
	free(m);
}

/* ---- certificates ---- */

static const struct leaf *find(const struct tls_mint *m, const char *host)
{
	for (unsigned k = 0; k < LEAVES; k++)
		if (m->leaves[k].cert && strcmp(m->leaves[k].host, host) == 0 &&
		    clock_mono_ms() - m->leaves[k].made_ms < LEAF_MS)
			return &m->leaves[k];
	return NULL;
}

bool tls_mint_knows(const struct tls_mint *m, const char *host)
{
	return find(m, host);
}

struct view tls_mint_key(const struct tls_mint *m)
{
	return (struct view){ (const char *)m->public_key, (size_t)m->public_n };
}

bool tls_mint_keep(struct tls_mint *m, const char *host, struct view cert, struct view authority)
{
	const unsigned char *c = (const unsigned char *)cert.p, *a = (const unsigned char *)authority.p;
	struct leaf *l = &m->leaves[m->next];

	drop(l);
	l->cert = d2i_X509(NULL, &c, (long)cert.n);
	l->authority = d2i_X509(NULL, &a, (long)authority.n);
	l->made_ms = clock_mono_ms();
	snprintf(l->host, sizeof(l->host), "%s", host);
	ERR_clear_error();
	if (l->cert && l->authority) {
		m->next = (m->next + 1) % LEAVES;
		return true;
	}
	drop(l);
	return false;
}

struct tls_conn *tls_mint_conn(struct tls_mint *m, const char *host, const struct tls_mint_ops *ops,
			       void *arg)
{
	const struct leaf *l = find(m, host);
	struct tls_conn *c = l ? tls_conn_make(m->ctx, NULL, -1) : NULL;

	if (!c || SSL_set_app_data(c->ssl, c) != 1 || SSL_use_certificate(c->ssl, l->cert) != 1 ||
	    SSL_use_PrivateKey(c->ssl, m->key) != 1 || SSL_add1_chain_cert(c->ssl, l->authority) != 1) {
		tls_conn_free(c);
		ERR_clear_error();
		return NULL;
	}
	c->ops = ops;
	c->arg = arg;
	SSL_set_accept_state(c->ssl);
	return c;
}
