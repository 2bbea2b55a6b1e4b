/*
 * TLS to receivers of webhooks and to providers of models: see secure.h.
 */
#include "secure.h"

#include <errno.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#undef ERR_STATE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "poison.h"

struct secure_ctx {
	SSL_CTX *ctx;
};

struct secure {
	SSL *ssl;
	char why[128];
};

static void free_ctx(struct secure_ctx *c)
{
	SSL_CTX_free(c->ctx);
	free(c);
}

struct secure_ctx *secure_load(const char *ca_file, struct err *e)
{
	struct secure_ctx *c = calloc(1, sizeof(*c));

	if (!c || !(c->ctx = SSL_CTX_new(TLS_client_method())) ||
	    SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION) != 1) {
		err_set(e, ERR_INTERNAL, "TLS cannot be set up");
		if (c)
			free_ctx(c);
		return NULL;
	}
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
	/* A provider may quote the key. */
	SSL_CTX_set_options(c->ctx, SSL_OP_CLEANSE_PLAINTEXT | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					 SSL_MODE_RELEASE_BUFFERS);
	/* The file and not the directory: files cannot be opened later. */
	const char *file = ca_file[0] ? ca_file : X509_get_default_cert_file();
	int r = SSL_CTX_load_verify_file(c->ctx, file);
	if (r != 1 && !ca_file[0])
		r = SSL_CTX_load_verify_file(c->ctx, "/etc/ssl/certs/ca-certificates.crt");
	ERR_clear_error();
	if (r == 1)
		return c;
	err_set(e, ERR_INVALID, "there are no certificate authorities in %.100s", file);
	free_ctx(c);
	return NULL;
}

struct secure *secure_new(struct secure_ctx *ctx, int fd, struct view host)
{
	struct secure *s = calloc(1, sizeof(*s));
	char name[256];

	if (!s || view_to_str(host, name, sizeof(name)) < 0 || !(s->ssl = SSL_new(ctx->ctx)) ||
	    SSL_set_fd(s->ssl, fd) != 1) {
		secure_free(s);
		return NULL;
	}
	SSL_set_connect_state(s->ssl);
	SSL_set_hostflags(s->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* An address is compared with the certificate's addresses, and is no server name. */
	int r = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), name);
	if (r != 1)
		r = SSL_set1_host(s->ssl, name) == 1 && SSL_set_tlsext_host_name(s->ssl, name) == 1;
	ERR_clear_error();
	if (r != 1) {
		secure_free(s);
		return NULL;
	}
	return s;
}

void secure_free(struct secure *s)
{
	if (!s)
		return;
	SSL_free(s->ssl);
	free(s);
}

static ssize_t failed(struct secure *s)
{
	long verdict = SSL_get_verify_result(s->ssl);
	unsigned long n = ERR_peek_last_error();
	const char *reason = n ? ERR_reason_error_string(n) : NULL;

	if (verdict != X509_V_OK)
		snprintf(s->why, sizeof(s->why), "the certificate is refused: %s",
			 X509_verify_cert_error_string(verdict));
	else
		snprintf(s->why, sizeof(s->why), "TLS: %s", reason ? reason : "failed");
	ERR_clear_error();
	return -EPROTO;
}

static ssize_t result(struct secure *s, int r, uint32_t *ret_want)
{
	int sys = errno;

	if (r > 0)
		return r;
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		*ret_want = EPOLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*ret_want = EPOLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		return sys ? -sys : 0;
	default:
		return failed(s);
	}
}

ssize_t secure_connect(struct secure *s, uint32_t *ret_want)
{
	errno = 0;
	return result(s, SSL_do_handshake(s->ssl), ret_want);
}

ssize_t secure_send(struct secure *s, struct view v, uint32_t *ret_want)
{
	errno = 0;
	return result(s, SSL_write(s->ssl, v.p, (int)MIN(v.n, (size_t)INT_MAX)), ret_want);
}

ssize_t secure_recv(struct secure *s, char *p, size_t n, uint32_t *ret_want)
{
	errno = 0;
	return result(s, SSL_read(s->ssl, p, (int)MIN(n, (size_t)INT_MAX)), ret_want);
}

const char *secure_why(const struct secure *s)
{
	return s->why;
}
