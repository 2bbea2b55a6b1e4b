/*
 * TLS on a non-blocking socket. The socket's reads and writes go through a BIO of
 * our own, because OpenSSL's would raise SIGPIPE.
 */
#include "tls.h"

#include <errno.h>
#include <limits.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#undef ERR_STATE
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "poison.h"

struct tls_server {
	SSL_CTX *ctx;
	SSL_CTX *wild; /* of tls_server_add, or NULL */
	char *domain;
	BIO_METHOD *bio;
};

struct tls_conn {
	SSL *ssl;
	int fd;
	int sys;           /* errno of the last socket call */
	uint32_t recv_for; /* events that a recv, a send is waiting for */
	uint32_t send_for;
	bool ready, failed, notified;
};

/* ---- the BIO ---- */

static int bio_result(BIO *b, struct tls_conn *c, ssize_t r, int retry)
{
	c->sys = r < 0 ? errno : 0;
	BIO_clear_retry_flags(b);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_flags(b, retry | BIO_FLAGS_SHOULD_RETRY);
	return (int)r;
}

static int bio_read(BIO *b, char *p, int n)
{
	struct tls_conn *c = BIO_get_data(b);
	return bio_result(b, c, recv(c->fd, p, (size_t)n, 0), BIO_FLAGS_READ);
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct tls_conn *c = BIO_get_data(b);
	return bio_result(b, c, send(c->fd, p, (size_t)n, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	return cmd == BIO_CTRL_FLUSH;
}

/* ---- the server ---- */

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

static BIO_METHOD *make_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "paddock socket");
	if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
	    BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

static int configure(SSL_CTX *ctx, const char *cert, const char *key, struct err *e)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT |
					 SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_use_certificate_chain_file(ctx, cert) != 1) {
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
	s->ctx = SSL_CTX_new(TLS_server_method());
	s->bio = make_bio();
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
	s->wild = SSL_CTX_new(TLS_server_method());
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

/* ---- connections ---- */

struct tls_conn *tls_conn_new(struct tls_server *s, int fd)
{
	struct tls_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->fd = fd;
	c->recv_for = EPOLLIN;
	c->send_for = EPOLLOUT;
	c->ssl = SSL_new(s->ctx);
	BIO *b = c->ssl ? BIO_new(s->bio) : NULL;
	if (!b) {
		tls_conn_free(c);
		ERR_clear_error();
		return NULL;
	}
	BIO_set_data(b, c);
	BIO_set_init(b, 1);
	SSL_set_bio(c->ssl, b, b);
	SSL_set_accept_state(c->ssl);
	return c;
}

void tls_conn_free(struct tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	free(c);
}

/* What a failed call means. `wait` is told which event to wait for. */
static int outcome(struct tls_conn *c, int r, uint32_t *wait)
{
	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		*wait = EPOLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*wait = EPOLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		c->failed = true;
		return c->sys ? -c->sys : -ECONNRESET;
	default:
		c->failed = true;
		return -EPROTO;
	}
}

int tls_conn_handshake(struct tls_conn *c)
{
	ERR_clear_error();
	int r = SSL_accept(c->ssl);
	if (r == 1) {
		c->ready = true;
		c->recv_for = EPOLLIN;
		return 0;
	}
	int rc = outcome(c, r, &c->recv_for);
	return rc ? rc : -ECONNRESET;
}

bool tls_conn_is_h2(const struct tls_conn *c)
{
	const unsigned char *name;
	unsigned n;
	SSL_get0_alpn_selected(c->ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0;
}

ssize_t tls_conn_recv(struct tls_conn *c, void *p, size_t n)
{
	ERR_clear_error();
	c->recv_for = EPOLLIN;
	int r = SSL_read(c->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
	return r > 0 ? r : outcome(c, r, &c->recv_for);
}

ssize_t tls_conn_send(struct tls_conn *c, const void *p, size_t n)
{
	ERR_clear_error();
	c->send_for = EPOLLOUT;
	int r = SSL_write(c->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
	if (r > 0)
		return r;
	r = outcome(c, r, &c->send_for);
	return r ? r : -EPIPE;
}

bool tls_conn_pending(const struct tls_conn *c)
{
	return SSL_has_pending(c->ssl);
}

uint32_t tls_conn_events(const struct tls_conn *c, bool read, bool write)
{
	return (read ? c->recv_for : 0) | (write ? c->send_for : 0);
}

int tls_conn_notify(struct tls_conn *c)
{
	/* Not after a fatal error, says OpenSSL; and one side's notice is enough for us. */
	if (!c->ready || c->failed || c->notified)
		return 0;
	ERR_clear_error();
	int r = SSL_shutdown(c->ssl);
	bool later = r < 0 && SSL_get_error(c->ssl, r) == SSL_ERROR_WANT_WRITE;
	ERR_clear_error();
	c->notified = !later;
	return later ? -EAGAIN : 0;
}
