/*
 * HTTP/1.1 over real sockets: keep-alive, pipelining, bodies both ways,
 * back-pressure, early answers, broken answers, connections that end badly.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fd.h"
#include "http_rig.h"
#include "poison.h"

#define HOST "Host: test\r\n"

static struct http_rig rig;
static struct buf head = BUF_INIT(1 << 20), body = BUF_INIT(16 << 20);

static int setup(void **state)
{
	http_rig_start(&rig, NULL, NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	http_rig_stop(&rig);
	buf_done(&head);
	buf_done(&body);
	return 0;
}

static void test_keep_alive(void **state)
{
	int fd = http_rig_connect(&rig);
	for (int i = 0; i < 3; i++) {
		http_rig_send(fd, "GET /health HTTP/1.1\r\nX-Request-Id: mine-1\r\n" HOST "\r\n");
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		assert_string_equal(body.p, "ok");
		assert_non_null(strstr(head.p, "\r\nserver: paddock\r\n"));
		assert_non_null(strstr(head.p, "\r\nx-request-id: mine-1\r\n"));
		assert_non_null(strstr(head.p, "\r\nx-extra: yes\r\n"));
		assert_non_null(strstr(head.p, " GMT\r\n"));
		assert_null(strstr(head.p, "connection:"));
	}
	http_rig_send(fd, "GET /health HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n");
	buf_clear(&body);
	assert_true(http_rig_read_all(fd, &body));
	buf_putc(&body, 0);
	assert_non_null(strstr(body.p, "\r\nconnection: close\r\n"));
	fd_close(fd);
}

/* How many of the answers to a hundred requests in one write were there at the first look. */
static unsigned early_answers(void)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
	static char first[1 << 17];
	unsigned early = 0;
	int fd = http_rig_connect(&rig);
	for (int i = 0; i < 100; i++)
		buf_printf(&out, "GET /n?i=%d HTTP/1.1\r\n" HOST "\r\n", i);
	http_rig_send_bytes(fd, out.p, out.n);
	ssize_t n = recv(fd, first, sizeof(first), MSG_PEEK);
	assert_true(n > 0);
	for (int i = 0; i < 100; i++) {
		char want[16];
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		snprintf(want, sizeof(want), "%d", i);
		assert_string_equal(body.p, want);
		n -= (ssize_t)(strlen(head.p) + strlen(want));
		early += n >= 0;
	}
	fd_close(fd);
	return early;
}

/* They are answered in order, and by one write as long as the connection's turn lasts: a slow server's, or
 * one that is interrupted, ends before it has answered all of them. */
static void test_pipelining(void **state)
{
	unsigned most = 0;

	for (int i = 0; most < 100 && i < 10; i++) {
		unsigned early = early_answers();
		most = early > most ? early : most;
	}
#ifdef __SANITIZE_ADDRESS__
	assert_true(most > 1);
#else
	assert_int_equal(most, 100);
#endif
}

/* Answers that come later, bodies in between, more than fits into one read. */
static void test_pipelining_mixed(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	int fd = http_rig_connect(&rig);
	for (int i = 0; i < 40; i++) {
		buf_printf(&out, "GET /later?i=a%d HTTP/1.1\r\n" HOST "\r\n", i);
		buf_printf(&out, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3000\r\n\r\n%03000d", i);
		buf_printf(&out,
			   "POST /n?i=c%d HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
			   "5\r\nhello\r\n0\r\n\r\n",
			   i);
	}
	http_rig_send_bytes(fd, out.p, out.n);
	for (int i = 0; i < 40; i++) {
		char want[3008];
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		snprintf(want, sizeof(want), "a%d", i);
		assert_string_equal(body.p, want);
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		snprintf(want, sizeof(want), "%03000d", i);
		assert_string_equal(body.p, want);
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		snprintf(want, sizeof(want), "c%d", i);
		assert_string_equal(body.p, want);
	}
	buf_done(&out);
	fd_close(fd);
}

static void test_head_method(void **state)
{
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "HEAD /health HTTP/1.1\r\n" HOST "\r\nHEAD /big?n=100000 HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, true), 200);
	assert_non_null(strstr(head.p, "\r\ncontent-length: 2\r\n"));
	assert_int_equal(http_rig_read_answer(fd, &head, &body, true), 200);
	assert_null(strstr(head.p, "content-length"));
	assert_int_equal(http_rig_ask(fd, "GET /health HTTP/1.1\r\n" HOST "\r\n", &body), 200);
	fd_close(fd);
}

static void test_expect(void **state)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	char got[sizeof(go_on)] = { 0 };
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "POST /later?i=x HTTP/1.1\r\n" HOST
			  "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	assert_int_equal(recv(fd, got, sizeof(go_on) - 1, MSG_WAITALL), sizeof(go_on) - 1);
	assert_string_equal(got, go_on);
	assert_int_equal(http_rig_ask(fd, "body", &body), 200);
	assert_string_equal(body.p, "x");
	/* Answered without the body: no 100, and the connection ends, as nobody knows what follows. */
	http_rig_send(fd,
		      "POST /health HTTP/1.1\r\n" HOST "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_non_null(strstr(head.p, "\r\nconnection: close\r\n"));
	assert_true(http_rig_read_all(fd, &body));
	fd_close(fd);
}

static void test_early_answer(void **state)
{
	char *blob = calloc(1, 1 << 20);
	int fd = http_rig_connect(&rig);
	/* A small rest is read and dropped. */
	http_rig_send(fd, "POST /health HTTP/1.1\r\n" HOST "Content-Length: 60000\r\n\r\n");
	http_rig_send_bytes(fd, blob, 60000);
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_null(strstr(head.p, "connection: close"));
	/* A large one ends the connection, but the client sees the answer. */
	http_rig_send(fd, "POST /health HTTP/1.1\r\n" HOST "Content-Length: 900000\r\n\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_non_null(strstr(head.p, "\r\nconnection: close\r\n"));
	http_rig_send_bytes(fd, blob, 500000); /* is still taken */
	fd_close(fd);
	free(blob);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *request, *code;
		int status;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "bad_request", 400 },
		{ "GET / HTTP/3.0\r\n" HOST "\r\n", "http_version_not_supported", 505 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", "not_supported", 501 },
		{ "POST / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n", "expectation_failed", 417 },
		{ "GET /nobody HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "internal", 500 },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		char id[24] = "", want[128];
		int fd = http_rig_connect(&rig);
		http_rig_send(fd, cases[i].request);
		assert_int_equal(http_rig_read_answer(fd, &head, &body, false), cases[i].status);
		assert_int_equal(view_to_str(view_head(view_of(strstr(head.p, "x-request-id: ") + 14), 20),
					     id, sizeof(id)),
				 0);
		snprintf(want, sizeof(want), "{\"error\":{\"code\":\"%s\",\"message\":\"", cases[i].code);
		assert_memory_equal(body.p, want, strlen(want));
		snprintf(want, sizeof(want), "\",\"request_id\":\"%s\"}}\n", id);
		assert_non_null(strstr(body.p, want));
		assert_non_null(strstr(head.p, "connection: close"));
		assert_true(http_rig_read_all(fd, &body));
		fd_close(fd);
	}
}

/* The dialect has the exchange when the body turns out to be malformed. */
static void test_bad_chunk(void **state)
{
	int before = rig.counts.aborts, fd = http_rig_connect(&rig);
	http_rig_send(fd,
		      "POST /hold HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n+1\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 400);
	http_rig_wait(&rig.counts.aborts, before + 1);
	fd_close(fd);
}

static void test_abrupt_close(void **state)
{
	int before = rig.counts.aborts, lasts = rig.counts.lasts;
	static const char *const requests[] = {
		"POST /hold HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nsome",
		"POST /hold HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhe",
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nsome",
	};
	for (size_t i = 0; i < ELEMS(requests); i++) {
		int fd = http_rig_connect(&rig);
		http_rig_send(fd, requests[i]);
		http_rig_wait(&rig.counts.live, 1);
		fd_close(fd);
		http_rig_wait(&rig.counts.aborts, before + 1 + (int)i);
		http_rig_wait(&rig.counts.live, 0);
	}
	assert_int_equal(rig.counts.lasts, lasts);
}

/* Sends a megabyte in chunks and reads it back slowly; nothing piles up in between. */
static void test_echo_chunked(void **state)
{
	enum { TOTAL = 1 << 20, PIECE = 1000 };
	struct buf out = BUF_INIT(4 << 20), in = BUF_INIT(4 << 20);
	int fd = http_rig_connect(&rig), one = 4096;
	long long base = rig.counts.body_bytes;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one));
	buf_puts(&out, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	for (int n = 0; n < TOTAL; n += PIECE) {
		int len = MIN(PIECE, TOTAL - n);
		buf_printf(&out, "%x\r\n", len);
		for (int i = 0; i < len; i++)
			buf_putc(&out, (char)((n + i) * 31 >> 8));
		buf_puts(&out, "\r\n");
	}
	buf_puts(&out, "0\r\n\r\n");
	/* First without reading at all: the server must stop taking. */
	ssize_t n;
	int idle = 0;
	while (idle < 3) {
		n = send(fd, out.p + out.head, buf_len(&out), MSG_NOSIGNAL | MSG_DONTWAIT);
		idle = n > 0 ? 0 : idle + 1;
		if (n > 0)
			buf_consume(&out, (size_t)n);
		else
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 50);
	}
	assert_true(buf_len(&out) > 0);
	assert_true(rig.counts.body_bytes - base < 800 * 1024);
	/* Then by and by. */
	while (buf_len(&in) < TOTAL || memcmp(in.p + in.n - 5, "0\r\n\r\n", 5) != 0) {
		n = buf_len(&out) ? send(fd, out.p + out.head, buf_len(&out), MSG_NOSIGNAL | MSG_DONTWAIT)
				  : 0;
		if (n > 0)
			buf_consume(&out, (size_t)n);
		char *p = buf_reserve(&in, 4096);
		n = recv(fd, p, 4096, 0);
		assert_true(n > 0);
		buf_commit(&in, (size_t)n);
	}
	struct buf all = BUF_INIT(4 << 20);
	const char *at = memmem(in.p, in.n, "\r\n\r\n", 4) + 4;
	while (*at != '0') {
		size_t len = 0;
		for (; *at != '\r'; at++)
			len = len * 16 + (size_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
		buf_append(&all, at + 2, len);
		at += len + 4;
	}
	assert_int_equal(buf_len(&all), TOTAL);
	for (int i = 0; i < TOTAL; i++)
		assert_int_equal(all.p[i], (char)(i * 31 >> 8));
	buf_done(&all);
	buf_done(&out);
	buf_done(&in);
	fd_close(fd);
	http_rig_wait(&rig.counts.live, 0);
}

/* An answer of 64 MiB to a client that does not read: the dialect is told to stop. */
static void test_slow_reader(void **state)
{
	int fd = http_rig_connect(&rig), aborts = rig.counts.aborts, blocked = rig.counts.blocked;
	long long base = rig.counts.written;
	http_rig_send(fd, "GET /big?n=67108864 HTTP/1.1\r\n" HOST "\r\n");
	http_rig_wait(&rig.counts.live, 1);
	while (rig.counts.blocked == blocked)
		poll(NULL, 0, 1);
	poll(NULL, 0, 50); /* time in which it could go wrong */
	assert_true(rig.counts.written - base < 1 << 20);
	fd_close(fd);
	http_rig_wait(&rig.counts.aborts, aborts + 1);
	/* And to one that does: all of it. */
	fd = http_rig_connect(&rig);
	http_rig_send(fd, "GET /big?n=10000000 HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_int_equal(buf_len(&body), 10000000);
	assert_int_equal(http_rig_ask(fd, "GET /health HTTP/1.1\r\n" HOST "\r\n", &body), 200);
	fd_close(fd);
}

/* Reads so slowly that bytes are written while the queue is between its two marks. */
static void test_told_of_room(void **state)
{
	int fd = http_rig_connect(&rig);
	struct buf all = BUF_INIT(4 << 20);
	http_rig_send(fd, "GET /trickle HTTP/1.1\r\n" HOST "\r\n");
	do {
		char *p = buf_reserve(&all, 8192);
		ssize_t n = recv(fd, p, 8192, 0);
		assert_true(n > 0 && buf_len(&all) < 3 << 20);
		buf_commit(&all, (size_t)n);
		poll(NULL, 0, 2);
	} while (!memmem(all.p, all.n, "\r\n0\r\n\r\n", 7));
	buf_done(&all);
	fd_close(fd);
}

/* A dialect that does not take the body: the client cannot send for ever. */
static void test_slow_taker(void **state)
{
	int fd = http_rig_connect(&rig), idle = 0;
	long long sent = 0;
	char *blob = calloc(1, 65536);
	http_rig_send(fd, "POST /full HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n");
	http_rig_wait(&rig.counts.live, 1);
	while (idle < 3) {
		ssize_t n = send(fd, blob, 65536, MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? n : 0;
		idle = n > 0 ? 0 : idle + 1;
		if (n <= 0)
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 50);
	}
	assert_true(sent < 1 << 20);
	fd_close(fd);
	free(blob);
	http_rig_wait(&rig.counts.live, 0);
}

static void test_half_close(void **state)
{
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "GET /later?i=1 HTTP/1.1\r\n" HOST "\r\nGET /later?i=2 HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_string_equal(body.p, "2");
	buf_clear(&body);
	assert_true(http_rig_read_all(fd, &body));
	assert_int_equal(buf_len(&body), 0);
	fd_close(fd);
}

static void test_http10(void **state)
{
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
	assert_non_null(strstr(head.p, "\r\nconnection: keep-alive\r\n"));
	http_rig_send(fd, "GET /big?n=100000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	buf_clear(&body);
	assert_true(http_rig_read_all(fd, &body));
	assert_true(buf_len(&body) > 100000);
	const char *end = memmem(body.p, body.n, "\r\n\r\n", 4);
	assert_int_equal(body.p + body.n - end, 100004);
	buf_putc(&body, 0);
	assert_null(strstr(body.p, "chunked"));
	fd_close(fd);
}

/* An answer that cannot be finished must not look finished. */
static void test_broken_answers(void **state)
{
	static const char *const requests[] = { "GET /break HTTP/1.1\r\n" HOST "\r\n",
						"GET /short HTTP/1.1\r\n" HOST "\r\n" };
	for (size_t i = 0; i < ELEMS(requests); i++) {
		int fd = http_rig_connect(&rig);
		http_rig_send(fd, requests[i]);
		buf_clear(&body);
		(void)http_rig_read_all(fd, &body);
		buf_putc(&body, 0);
		assert_null(strstr(body.p, "\r\n0\r\n"));
		fd_close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keep_alive),       cmocka_unit_test(test_pipelining),
		cmocka_unit_test(test_pipelining_mixed), cmocka_unit_test(test_head_method),
		cmocka_unit_test(test_expect),           cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_refusals),         cmocka_unit_test(test_bad_chunk),
		cmocka_unit_test(test_abrupt_close),     cmocka_unit_test(test_echo_chunked),
		cmocka_unit_test(test_slow_reader),      cmocka_unit_test(test_told_of_room),
		cmocka_unit_test(test_slow_taker),       cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_http10),           cmocka_unit_test(test_broken_answers),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
