/*
 * TLS with ALPN: HTTP/1.1 and HTTP/2 over it, versions, a handshake that stalls,
 * back-pressure, how connections end, and certificates that are none.
 */
#include <signal.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define ERR_STATE openssl_err_state
#include <openssl/ssl.h>
#undef ERR_STATE

#include "fd.h"
#include "http_h2_client.h"
#include "http_rig.h"
#include "tls.h"
#include "poison.h"

static struct http_rig rig;
static char dir[] = "/tmp/http_tls_test.XXXXXX", cert[64], key[64];
static SSL_CTX *ctx;

static int make_cert(void **state)
{
	char command[512];
	assert_non_null(mkdtemp(dir));
	snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
	snprintf(key, sizeof(key), "%s/key.pem", dir);
	snprintf(command, sizeof(command),
		 "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
		 "-subj /CN=test -keyout %s -out %s 2>/dev/null",
		 key, cert);
	assert_int_equal(system(command), 0);
	ctx = SSL_CTX_new(TLS_client_method());
	assert_non_null(ctx);
	assert_int_equal(SSL_CTX_load_verify_locations(ctx, cert, NULL), 1);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return 0;
}

static int drop_cert(void **state)
{
	SSL_CTX_free(ctx);
	(void)unlink(cert);
	(void)unlink(key);
	(void)rmdir(dir);
	return 0;
}

static int start(void **state)
{
	http_rig_start(&rig, NULL, cert, key);
	return 0;
}

static int start_quick(void **state)
{
	http_rig_start(&rig, &(struct http_limits){ .head_ms = 150 }, cert, key);
	return 0;
}

static int stop(void **state)
{
	http_rig_stop(&rig);
	return 0;
}

/* `alpn` as on the wire, e.g. "\2h2". NULL when the handshake fails. */
static SSL *connect_tls(const char *alpn, int max_version)
{
	int fd = http_rig_connect(&rig);
	SSL *ssl = SSL_new(ctx);
	assert_non_null(ssl);
	SSL_set_fd(ssl, fd);
	SSL_set_max_proto_version(ssl, max_version);
	if (alpn)
		SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
	if (SSL_connect(ssl) == 1)
		return ssl;
	SSL_free(ssl);
	fd_close(fd);
	return NULL;
}

static void end_tls(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);
	SSL_free(ssl);
	fd_close(fd);
}

/* Reads until close_notify; anything else fails. */
static void read_all(SSL *ssl, struct buf *out)
{
	int n;
	while ((n = SSL_read(ssl, buf_reserve(out, 16384), 16384)) > 0)
		buf_commit(out, (size_t)n);
	assert_int_equal(SSL_get_error(ssl, n), SSL_ERROR_ZERO_RETURN);
	buf_putc(out, 0);
}

static void ask(SSL *ssl, const char *text)
{
	assert_int_equal(SSL_write(ssl, text, (int)strlen(text)), strlen(text));
}

static void test_http1(void **state)
{
	static const char *const alpn[] = { "\x08http/1.1", NULL };
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	for (size_t i = 0; i < 4; i++) {
		struct buf out = BUF_INIT(1 << 20);
		SSL *ssl = connect_tls(alpn[i / 2], versions[i % 2]);
		assert_non_null(ssl);
		ask(ssl, "GET /later?i=7 HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nHost: "
			 "a\r\nConnection: close\r\n\r\n");
		read_all(ssl, &out);
		assert_non_null(strstr(out.p, "\r\n\r\n7HTTP/1.1 200 OK\r\n"));
		assert_memory_equal(out.p + out.n - 3, "ok", 3);
		buf_done(&out);
		end_tls(ssl);
	}
}

static void test_http1_bodies(void **state)
{
	enum { TOTAL = 3 << 20 };
	struct buf out = BUF_INIT(16 << 20);
	SSL *ssl = connect_tls(NULL, TLS1_3_VERSION);
	char *blob = malloc(TOTAL), *p = blob;
	assert_non_null(ssl);
	for (int i = 0; i < TOTAL; i++)
		blob[i] = (char)(i * 31 >> 8);
	ask(ssl, "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3145728\r\n\r\n");
	/* Both ways at once: the echo would block a client that only writes. */
	assert_int_equal(fd_nonblock(SSL_get_fd(ssl), true), 0);
	SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	while (p < blob + TOTAL) {
		int w = SSL_write(ssl, p, (int)(blob + TOTAL - p));
		p += w > 0 ? w : 0;
		int r = SSL_read(ssl, buf_reserve(&out, 16384), 16384);
		buf_commit(&out, r > 0 ? (size_t)r : 0);
		if (w <= 0 && r <= 0)
			assert_int_equal(
				poll(&(struct pollfd){ SSL_get_fd(ssl), POLLIN | POLLOUT, 0 }, 1, 10000), 1);
	}
	assert_int_equal(fd_nonblock(SSL_get_fd(ssl), false), 0);
	read_all(ssl, &out);
	const char *body = memmem(out.p, out.n, "\r\n\r\n", 4);
	assert_non_null(body);
	assert_int_equal(out.p + out.n - 1 - (body + 4), TOTAL);
	assert_memory_equal(body + 4, blob, TOTAL);
	free(blob);
	buf_done(&out);
	end_tls(ssl);
}

static void test_http2(void **state)
{
	SSL *ssl = connect_tls("\x02h2\x08http/1.1", TLS1_3_VERSION);
	assert_non_null(ssl);
	const unsigned char *name;
	unsigned n;
	SSL_get0_alpn_selected(ssl, &name, &n);
	assert_int_equal(n, 2);
	assert_memory_equal(name, "h2", 2);
	struct h2_client *c = malloc(sizeof(*c));
	h2_client_open(c, SSL_get_fd(ssl), ssl, false);
	struct h2_client_stream *a = h2_client_request(c, "GET", "/big?n=2000000", VIEW_NONE, NULL, 0);
	struct h2_client_stream *b = h2_client_request(c, "GET", "/later?i=9", VIEW_NONE, NULL, 0);
	h2_client_until(c, &a->closed);
	h2_client_until(c, &b->closed);
	assert_int_equal(buf_len(&a->body), 2000000);
	assert_memory_equal(buf_view(&b->body).p, "9", 1);
	h2_client_close(c);
	free(c);
}

static void test_refused_handshakes(void **state)
{
	assert_null(connect_tls("\x03xyz", TLS1_3_VERSION)); /* no protocol in common */
	SSL_CTX_set_security_level(ctx, 0);                  /* else the client would not offer it */
	assert_null(connect_tls(NULL, TLS1_1_VERSION));
	/* Not TLS at all. */
	struct buf out = BUF_INIT(65536);
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	(void)http_rig_read_all(fd, &out);
	assert_null(buf_len(&out) ? memmem(out.p, out.n, "HTTP/1.1 200", 12) : NULL);
	buf_done(&out);
	fd_close(fd);
	SSL *ssl = connect_tls(NULL, TLS1_3_VERSION); /* the server is well */
	assert_non_null(ssl);
	end_tls(ssl);
}

static void test_stalled_handshake(void **state)
{
	struct buf out = BUF_INIT(65536);
	int fd = http_rig_connect(&rig);
	http_rig_send_bytes(fd, "\x16\x03\x01", 3);
	(void)http_rig_read_all(fd, &out); /* fails the test if it does not end */
	buf_done(&out);
	fd_close(fd);
}

/* Gone without close_notify in the middle of a body. */
static void test_abrupt_close(void **state)
{
	SSL *ssl = connect_tls(NULL, TLS1_3_VERSION);
	assert_non_null(ssl);
	ask(ssl, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome");
	http_rig_wait(&rig.counts.live, 1);
	end_tls(ssl);
	http_rig_wait(&rig.counts.aborts, 1);
}

static void test_bad_files(void **state)
{
	struct err e = { 0 };
	assert_null(tls_server_new("/nonexistent.pem", key, &e));
	assert_int_equal(e.code, ERR_INVALID);
	assert_non_null(strstr(e.msg, "/nonexistent.pem"));
	e = (struct err){ 0 };
	assert_null(tls_server_new(cert, cert, &e));
	assert_int_equal(e.code, ERR_INVALID);
}

int main(void)
{
	/* The client here is OpenSSL with its own write: a server that hangs up must not end the test. */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(test_http1),
		TEST(test_http1_bodies),
		TEST(test_http2),
		TEST(test_refused_handshakes),
		cmocka_unit_test_setup_teardown(test_stalled_handshake, start_quick, stop),
		TEST(test_abrupt_close),
		cmocka_unit_test(test_bad_files),
	};
	return cmocka_run_group_tests(tests, make_cert, drop_cert);
}
