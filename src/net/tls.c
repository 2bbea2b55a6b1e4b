/*
 * One end of TLS: see tls.h. On a socket, reads and writes go through a BIO of our
 * own, because OpenSSL's would raise SIGPIPE.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tls_impl.h"
#include "poison.h"

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

BIO_METHOD *tls_ctx_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "paddock socket");
	if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
	    BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- what connections share ---- */

SSL_CTX *tls_ctx_new(const SSL_METHOD *method, uint64_t more_options)
{
	SSL_CTX *c = SSL_CTX_new(method);

	if (!c)
		return NULL;
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT |
				       more_options);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
	if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) == 1)
		return c;
	SSL_CTX_free(c);
	return NULL;
}

/* ---- connections ---- */

static bool put_on_socket(struct tls_conn *c, BIO_METHOD *method)
{
	BIO *b = BIO_new(method);

	if (!b)
		return false;
	BIO_set_data(b, c);
	BIO_set_init(b, 1);
	SSL_set_bio(c->ssl, b, b);
	return true;
}

static bool put_on_memory(struct tls_conn *c)
{
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	if (!in || !out) {
		BIO_free(in);
		BIO_free(out);
		return false;
	}
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(c->ssl, in, out);
	return true;
}

struct tls_conn *tls_conn_make(SSL_CTX *ctx, BIO_METHOD *method, int fd)
{
	struct tls_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->recv_for = EPOLLIN;
	c->send_for = EPOLLOUT;
	c->ssl = SSL_new(ctx);
	if (c->ssl && (method ? put_on_socket(c, method) : put_on_memory(c)))
		return c;
	tls_conn_free(c);
	ERR_clear_error();
	return NULL;
}

void tls_conn_free(struct tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	free(c);
}

const char *tls_conn_distrust(const struct tls_conn *c)
{
	long verdict = SSL_get_verify_result(c->ssl);

	return verdict == X509_V_OK ? NULL : X509_verify_cert_error_string(verdict);
}

const char *tls_conn_why(const struct tls_conn *c)
{
	return c->why;
}

static void say_why(struct tls_conn *c)
{
	const char *distrust = tls_conn_distrust(c);
	unsigned long n = ERR_peek_last_error();
	const char *reason = n ? ERR_reason_error_string(n) : NULL;

	if (distrust)
		snprintf(c->why, sizeof(c->why), "the certificate is refused: %s", distrust);
	else
		snprintf(c->why, sizeof(c->why), "TLS: %s", reason ? reason : "failed");
}

/* What a failed call means. `wait` is told which event to wait for. */
static int outcome(struct tls_conn *c, int r, uint32_t *wait)
{
	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_CLIENT_HELLO_CB: /* the program's turn: tls_mint_ops */
		*wait = EPOLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*wait = EPOLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		c->failed = true;
		if (c->sys)
			return -c->sys;
		snprintf(c->why, sizeof(c->why), "TLS: unexpected eof while reading");
		return -ECONNRESET;
	default:
		c->failed = true;
		say_why(c);
		return -EPROTO;
	}
}

int tls_conn_handshake(struct tls_conn *c)
{
	ERR_clear_error();
	int r = SSL_do_handshake(c->ssl);
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

/* ---- in memory ---- */

int tls_conn_feed(struct tls_conn *c, struct view data)
{
	return data.n && BIO_write(SSL_get_rbio(c->ssl), data.p, (int)data.n) != (int)data.n ? -ENOMEM : 0;
}

int tls_conn_drain(struct tls_conn *c, struct buf *to)
{
	BIO *out = SSL_get_wbio(c->ssl);
	char *p;
	long n = BIO_get_mem_data(out, &p);

	if (n > 0) {
		(void)buf_append(to, p, (size_t)n);
		(void)BIO_reset(out);
	}
	return to->bad;
}
