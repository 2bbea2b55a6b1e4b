/*
 * A server with certificates of its own, from files: see tls.h.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tls_impl.h"
#include "poison.h"

struct tls_server {
	SSL_CTX *ctx;
	SSL_CTX *wild; /* of tls_server_add, or NULL */
	char *domain;
	BIO_METHOD *bio;
};

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
		       unsigned in_n, void *arg)
{
	static const unsigned char ours[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_n, ours, sizeof(ours) - 1, in, in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static void set_error(struct err *e, const char *what, const char *file)
{
	char reason[96] = "unknown reason";
	unsigned long n = ERR_peek_last_error();
	if (n)
		ERR_error_string_n(n, reason, sizeof(reason));
	err_set(e, ERR_INVALID, "TLS %s %.60s: %s", what, file, reason);
	ERR_clear_error();
}

static int configure(SSL_CTX *ctx, const char *cert, const char *key, struct err *e)
{
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1) {
		set_error(e, "certificate", cert);
		return -1;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1) {
		set_error(e, "key", key);
		return -1;
	}
	return 0;
}

struct tls_server *tls_server_new(const char *cert_pem_file, const char *key_pem_file, struct err *e)
{
	struct tls_server *s = calloc(1, sizeof(*s));
	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "TLS");
		return NULL;
	}
	s->ctx = tls_ctx_new(TLS_server_method(), SSL_OP_CIPHER_SERVER_PREFERENCE);
	s->bio = tls_ctx_bio();
	if (!s->ctx || !s->bio) {
		err_set(e, ERR_INTERNAL, "TLS cannot be set up");
		tls_server_free(s);
		return NULL;
	}
	if (configure(s->ctx, cert_pem_file, key_pem_file, e) < 0) {
		tls_server_free(s);
		return NULL;
	}
	return s;
}

/* Called during the handshake with the name that the client asks for. */
static int choose_certificate(SSL *ssl, int *alert, void *arg)
{
	struct tls_server *s = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
		   *dot = name ? strchr(name, '.') : NULL;

	if (dot && strcasecmp(dot + 1, s->domain) == 0)
		SSL_set_SSL_CTX(ssl, s->wild);
	return SSL_TLSEXT_ERR_OK;
}

int tls_server_add(struct tls_server *s, const char *domain, const char *cert_pem_file,
		   const char *key_pem_file, struct err *e)
{
	s->wild = tls_ctx_new(TLS_server_method(), SSL_OP_CIPHER_SERVER_PREFERENCE);
	s->domain = strdup(domain);
	if (!s->wild || !s->domain)
		return err_set(e, ERR_INTERNAL, "TLS cannot be set up");
	if (configure(s->wild, cert_pem_file, key_pem_file, e) < 0)
		return -1;
	SSL_CTX_set_tlsext_servername_callback(s->ctx, choose_certificate);
	SSL_CTX_set_tlsext_servername_arg(s->ctx, s);
	return 0;
}

void tls_server_free(struct tls_server *s)
{
	if (!s)
		return;
	SSL_CTX_free(s->wild);
	free(s->domain);
	SSL_CTX_free(s->ctx);
	BIO_meth_free(s->bio);
	free(s);
}

struct tls_conn *tls_server_conn(struct tls_server *s, int fd)
{
	struct tls_conn *c = tls_conn_make(s->ctx, s->bio, fd);

	if (c)
		SSL_set_accept_state(c->ssl);
	return c;
}
