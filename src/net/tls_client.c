/*
 * A client, which believes authorities from files: see tls.h.
 */
#include <stdlib.h>

#include "tls_impl.h"
#include "poison.h"

#define DEBIAN_CAS "/etc/ssl/certs/ca-certificates.crt"

struct tls_client {
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	struct tls_trust *trust;
};

struct tls_client *tls_client_new(struct err *e)
{
	struct tls_client *c = calloc(1, sizeof(*c));

	if (c) {
		c->ctx = tls_ctx_new(TLS_client_method(), SSL_OP_NO_TICKET);
		c->bio = tls_ctx_bio();
		c->trust = c->ctx ? tls_trust_new(c->ctx) : NULL;
	}
	if (!c || !c->bio || !c->trust) {
		err_set(e, ERR_INTERNAL, "TLS cannot be set up");
		tls_client_free(c);
		return NULL;
	}
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
	return c;
}

void tls_client_free(struct tls_client *c)
{
	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	tls_trust_free(c->trust);
	BIO_meth_free(c->bio);
	free(c);
}

int tls_client_trust(struct tls_client *c, const char *file, struct err *e)
{
	return tls_trust_file(c->trust, file)
		       ? 0
		       : err_set(e, ERR_INVALID, "there are no certificate authorities in %.100s", file);
}

int tls_client_trust_system(struct tls_client *c, struct err *e)
{
	struct err other = { 0 };

	/* The file and not the directory: files cannot be opened later. */
	if (tls_client_trust(c, X509_get_default_cert_file(), e) == 0)
		return 0;
	return tls_client_trust(c, DEBIAN_CAS, &other);
}

struct tls_client *tls_client_load(const char *ca_file, struct err *e)
{
	struct tls_client *c = tls_client_new(e);

	if (c && (ca_file[0] ? tls_client_trust(c, ca_file, e) : tls_client_trust_system(c, e)) == 0)
		return c;
	tls_client_free(c);
	return NULL;
}

struct tls_conn *tls_client_conn(struct tls_client *t, int fd, struct view host)
{
	struct tls_conn *c = tls_conn_make(t->ctx, fd < 0 ? NULL : t->bio, fd);
	char name[256];

	if (!c || view_to_str(host, name, sizeof(name)) < 0) {
		tls_conn_free(c);
		return NULL;
	}
	SSL_set_connect_state(c->ssl);
	SSL_set_hostflags(c->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* An address is compared with the certificate's addresses, and is no server name. */
	int r = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), name);
	if (r != 1)
		r = SSL_set1_host(c->ssl, name) == 1 && SSL_set_tlsext_host_name(c->ssl, name) == 1;
	ERR_clear_error();
	if (r == 1)
		return c;
	tls_conn_free(c);
	return NULL;
}

int tls_client_offer(struct tls_conn *c, bool h2, bool h1)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";

	return SSL_set_alpn_protos(c->ssl, h2 ? both : both + 3, (h2 ? 3u : 0u) + (h1 ? 9u : 0u)) ? -ENOMEM
												  : 0;
}
