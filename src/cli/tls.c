/*
 * See tls.h. The child is a session of its own: a Ctrl-C at the terminal is for the
 * command, which may still have something to say to the daemon. It ends when the
 * command's end of the socket is closed, however that came about.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#undef ERR_STATE
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "tls.h"

#include "poison.h"

#define HANDSHAKE_MS 15000
#define PIECE        (32u << 10)

/* ---- the handshake ---- */

static int complain(struct err *e, SSL *ssl, const char *host)
{
	long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	char reason[96] = "the connection was closed";
	unsigned long n = ERR_peek_last_error();

	if (verified != X509_V_OK)
		return err_set(e, ERR_UNAVAILABLE,
			       "the certificate of %.80s is not trusted: %s (--ca FILE names its authority)",
			       host, X509_verify_cert_error_string(verified));
	if (n)
		ERR_error_string_n(n, reason, sizeof(reason));
	ERR_clear_error();
	return err_set(e, ERR_UNAVAILABLE, "no TLS with %.80s: %s", host, reason);
}

static SSL_CTX *make_context(const char *ca, struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
		err_set(e, ERR_INTERNAL, "TLS cannot be set up");
	} else if (ca ? SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1
		      : SSL_CTX_set_default_verify_paths(ctx) != 1) {
		err_set(e, ERR_INVALID, "%.120s holds no certificates in PEM", ca ? ca : "the system");
	} else {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		return ctx;
	}
	SSL_CTX_free(ctx);
	return NULL;
}

static int set_name(SSL *ssl, const char *host)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set_tlsext_host_name(ssl, host) == 1 ? SSL_set1_host(ssl, host) : 0;
}

static short wanted(SSL *ssl, int r)
{
	int what = SSL_get_error(ssl, r);

	return what == SSL_ERROR_WANT_READ ? POLLIN : what == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
}

static int shake_hands(SSL *ssl, const char *host, struct err *e)
{
	uint64_t until = clock_mono_ms() + HANDSHAKE_MS;

	for (;;) {
		int r = SSL_connect(ssl);
		struct pollfd p = { .fd = SSL_get_fd(ssl), .events = r == 1 ? 0 : wanted(ssl, r) };
		uint64_t now = clock_mono_ms();

		if (r == 1)
			return 0;
		if (!p.events)
			return complain(e, ssl, host);
		if (now >= until)
			return err_set(e, ERR_TIMEOUT, "no TLS handshake with %.80s in %d s", host,
				       HANDSHAKE_MS / 1000);
		if (poll(&p, 1, (int)(until - now)) < 0 && errno != EINTR)
			return err_sys(e, ERR_INTERNAL, errno, "poll");
	}
}

/* ---- the child ---- */

/* Nothing of the command's may be kept open by it: neither another connection's socket, whose end would not
 * be seen, nor the command's output, whose reader would wait. */
static void close_others(int a, int b)
{
	unsigned low = (unsigned)MIN(a, b), high = (unsigned)MAX(a, b);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; null >= 0 && i < 3; i++)
		(void)dup2(null, i);
	if (low > 3)
		(void)close_range(3, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low + 1, high - 1, 0);
	(void)close_range(high + 1, ~0U, 0);
}

struct pipe_end {
	char data[PIECE];
	size_t at, n;
};

struct relay {
	SSL *ssl;
	int net, local;
	struct pipe_end up, down;    /* to the server; to the command */
	bool local_ended, net_ended; /* nothing more comes from there */
	short net_events;            /* what TLS waits for besides */
};

/* Each returns false at the end of all. */
static bool pump_up(struct relay *r)
{
	if (r->up.n == 0 && !r->local_ended) {
		ssize_t n = recv(r->local, r->up.data, sizeof(r->up.data), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			r->local_ended = true;
		r->up.at = 0;
		r->up.n = n > 0 ? (size_t)n : 0;
	}
	while (r->up.n > 0) {
		int n = SSL_write(r->ssl, r->up.data + r->up.at, (int)r->up.n);

		if (n <= 0) {
			r->net_events |= wanted(r->ssl, n);
			return wanted(r->ssl, n) != 0;
		}
		r->up.at += (size_t)n;
		r->up.n -= (size_t)n;
	}
	return !r->local_ended;
}

static bool pump_down(struct relay *r)
{
	for (;;) {
		if (r->down.n == 0) {
			int n = SSL_read(r->ssl, r->down.data, sizeof(r->down.data));

			if (n <= 0) {
				r->net_ended = wanted(r->ssl, n) == 0;
				r->net_events |= wanted(r->ssl, n);
				return !r->net_ended;
			}
			r->down.at = 0;
			r->down.n = (size_t)n;
		}
		while (r->down.n > 0) {
			ssize_t n = send(r->local, r->down.data + r->down.at, r->down.n,
					 MSG_DONTWAIT | MSG_NOSIGNAL);

			if (n < 0 && (errno == EAGAIN || errno == EINTR))
				return true;
			if (n < 0)
				return false;
			r->down.at += (size_t)n;
			r->down.n -= (size_t)n;
		}
	}
}

_noreturn_ static void carry(SSL *ssl, int net, int local)
{
	static struct relay r;

	r = (struct relay){ .ssl = ssl, .net = net, .local = local };
	for (;;) {
		r.net_events = 0;
		if (!pump_up(&r) || !pump_down(&r))
			break;
		struct pollfd fds[] = {
			{ .fd = net, .events = (short)(r.net_events | (r.down.n ? 0 : POLLIN)) },
			{ .fd = local, .events = (short)((r.up.n ? 0 : POLLIN) | (r.down.n ? POLLOUT : 0)) },
		};
		if (poll(fds, ELEMS(fds), -1) < 0 && errno != EINTR)
			break;
	}
	(void)SSL_shutdown(ssl);
	_exit(0);
}

int tls_connect(int fd, const char *host, const char *ca, int *ret_fd, pid_t *ret_child, struct err *e)
{
	_cleanup_(closep) int net = fd, ours = -EBADF, theirs = -EBADF;
	SSL_CTX *ctx = make_context(ca, e);
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;
	int pair[2], r = -1;
	pid_t child;

	if (ctx && (!ssl || SSL_set_fd(ssl, net) != 1 || set_name(ssl, host) != 1))
		complain(e, NULL, host);
	else if (ssl && shake_hands(ssl, host, e) == 0)
		r = 0;
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		r = err_sys(e, ERR_INTERNAL, errno, "socketpair");
	if (r == 0) {
		ours = pair[0];
		theirs = pair[1];
		child = fork();
		if (child == 0) {
			(void)setsid();
			close_others(net, theirs);
			carry(ssl, net, theirs);
		}
		if (child < 0)
			r = err_sys(e, ERR_INTERNAL, errno, "fork");
		else
			*ret_child = child;
	}
	SSL_free(ssl); /* without a word to the server: the child speaks now */
	SSL_CTX_free(ctx);
	if (r == 0)
		*ret_fd = TAKE_FD(ours);
	return r;
}
