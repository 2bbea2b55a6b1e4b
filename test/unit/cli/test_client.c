/*
 * The client against a server that follows a script: a thread that accepts
 * connections on loopback, reads until it has seen what it waits for, and
 * writes what it is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "client.h"
#include "fd.h"

#include "poison.h"

struct step {
	const char *until; /* read until this was seen ("" reads nothing) */
	const char *answer;
	bool close; /* afterwards; the next step accepts anew */
};

struct server {
	int listener;
	const struct step *steps;
	size_t n_steps;
	struct buf seen;
	size_t accepted;
	pthread_t thread;
	struct url url;
};

static bool has_seen(const struct buf *b, size_t from, const char *text)
{
	return memmem(b->p + from, b->n - from, text, strlen(text)) != NULL;
}

static void read_until(struct server *s, int fd, const char *text)
{
	size_t from = s->seen.n;

	while (!has_seen(&s->seen, from, text)) {
		char *p = buf_reserve(&s->seen, 4096);
		ssize_t n = p ? read(fd, p, 4096) : -1;

		if (n <= 0)
			return;
		buf_commit(&s->seen, (size_t)n);
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd = -1;

	buf_puts(&s->seen, ""); /* so that there is an address */
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct step *step = &s->steps[i];

		if (fd < 0) {
			fd = accept(s->listener, NULL, NULL);
			s->accepted++;
		}
		read_until(s, fd, step->until);
		(void)!send(fd, step->answer, strlen(step->answer), MSG_NOSIGNAL);
		if (step->close) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void start(struct server *s, const struct step *steps, size_t n)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	char text[64];
	struct err e = { 0 };

	*s = (struct server){ .steps = steps, .n_steps = n, .seen = BUF_INIT(64u << 20) };
	assert_non_null(buf_reserve(&s->seen, 4096));
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
	snprintf(text, sizeof(text), "http://127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(url_parse(view_of(text), &s->url, &e), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
	pthread_join(s->thread, NULL);
	close(s->listener);
	buf_done(&s->seen);
}

static int get(struct client *c, struct response *r, struct buf *out, struct err *e)
{
	struct client_request rq = { .method = "GET", .path = VIEW("/x"), .timeout_ms = 10000 };

	buf_clear(out);
	if (client_send(c, &rq, r, e) < 0)
		return -1;
	return client_read_all(c, out, e);
}

static int file_of(const void *p, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(fd_write_all(fd, p, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void test_keep_alive(void **state)
{
	static const struct step steps[] = {
		{ "\r\n\r\n", HELLO, false },
		{ "\r\n\r\n",
		  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n3\r\nabc\r\n",
		  false },
		{ "", "2\r\nde\r\n0\r\n\r\n", true },
		{ "\r\n\r\n", HELLO, true },
	};
	struct buf out = BUF_INIT(1024);
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };

	start(&s, steps, ELEMS(steps));
	client_init(&c, &s.url, "secret");
	assert_int_equal(get(&c, &r, &out, &e), 0);
	assert_true(view_is(buf_view(&out), "hello"));
	assert_int_equal(get(&c, &r, &out, &e), 0);
	assert_true(view_is(buf_view(&out), "abcde"));
	/* The server closes now; when that is seen before sending, a new connection is made. */
	assert_int_equal(poll(&(struct pollfd){ .fd = c.fd, .events = POLLIN }, 1, 10000), 1);
	assert_int_equal(get(&c, &r, &out, &e), 0);
	assert_true(view_is(buf_view(&out), "hello"));
	client_done(&c);
	pthread_join(s.thread, NULL);
	assert_int_equal(s.accepted, 2);
	assert_true(has_seen(&s.seen, 0, "GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
	assert_true(has_seen(&s.seen, 0, "\r\nAuthorization: Bearer secret\r\n"));
	close(s.listener);
	buf_done(&s.seen);
	buf_done(&out);
}

static int end_of_body(void *ctx, struct err *e)
{
	return *(bool *)ctx ? 0 : err_set(e, ERR_INVALID, "the source failed");
}

static void test_upload_chunked(void **state)
{
	static const struct step steps[] = {
		{ "\r\n0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", true },
		{ "never", "", true },
	};
	bool whole = true;
	int fd = file_of("0123456789abcdef", 16);
	struct client_request rq = { .method = "PUT",
				     .path = VIEW("/f"),
				     .streamed = true,
				     .body_fd = fd,
				     .body_size = -1,
				     .at_end = end_of_body,
				     .ctx = &whole,
				     .timeout_ms = 10000 };
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };

	start(&s, steps, ELEMS(steps));
	client_init(&c, &s.url, NULL);
	assert_int_equal(client_send(&c, &rq, &r, &e), 0);
	assert_int_equal(r.status, 204);
	/* A source that fails at its end must not look like a whole body. */
	whole = false;
	client_close(&c);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(client_send(&c, &rq, &r, &e), -1);
	assert_string_equal(e.msg, "the source failed");
	client_done(&c);
	pthread_join(s.thread, NULL);
	assert_true(has_seen(&s.seen, 0,
			     "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"));
	assert_int_equal(memcmp(s.seen.p + s.seen.n - 5, "def\r\n", 5), 0);
	close(s.listener);
	buf_done(&s.seen);
	close(fd);
}

static void test_upload_sized(void **state)
{
	static const struct step steps[] = {
		{ "efgh", "HTTP/1.1 204 No Content\r\n\r\n", false },
		{ "never", "", true },
	};
	int fd = file_of("abcdefgh", 8);
	struct client_request rq = { .method = "PUT",
				     .path = VIEW("/f"),
				     .streamed = true,
				     .body_fd = fd,
				     .body_size = 8,
				     .timeout_ms = 10000 };
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };

	start(&s, steps, ELEMS(steps));
	client_init(&c, &s.url, NULL);
	assert_int_equal(client_send(&c, &rq, &r, &e), 0);
	/* now the file is at its end: shorter than promised */
	assert_int_equal(client_send(&c, &rq, &r, &e), -1);
	assert_non_null(strstr(e.msg, "became shorter"));
	client_done(&c);
	pthread_join(s.thread, NULL);
	assert_true(has_seen(&s.seen, 0, "Content-Length: 8\r\n\r\nabcdefgh"));
	close(s.listener);
	buf_done(&s.seen);
	close(fd);
}

/* A refusal that comes while the body is still being sent must be seen. */
static void test_early_refusal(void **state)
{
	static const struct step steps[] = {
		{ "\r\n\r\n", "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", false },
		{ "never", "", true },
	};
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct client_request rq = { .method = "PUT",
				     .path = VIEW("/f"),
				     .streamed = true,
				     .body_fd = fd,
				     .body_size = -1,
				     .timeout_ms = 10000 };
	struct buf out = BUF_INIT(1024);
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };

	start(&s, steps, ELEMS(steps));
	client_init(&c, &s.url, NULL);
	assert_int_equal(client_send(&c, &rq, &r, &e), 0);
	assert_int_equal(r.status, 413);
	assert_int_equal(client_read_all(&c, &out, &e), 0);
	assert_true(view_is(buf_view(&out), "big"));
	assert_false(c.keep);
	client_done(&c);
	stop(&s);
	buf_done(&out);
	close(fd);
}

static void test_broken_answers(void **state)
{
	static const struct step cases[] = {
		{ "\r\n\r\n", "", true },
		{ "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le", true },
		{ "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", true },
		{ "\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", true },
		{ "\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true },
		{ "\r\n\r\n", "HTTP/1.1 101 Switching\r\n\r\n", true },
		{ "\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", true },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct buf out = BUF_INIT(1024);
		struct server s;
		struct client c;
		struct response r;
		struct err e = { 0 };

		start(&s, &cases[i], 1);
		client_init(&c, &s.url, NULL);
		assert_int_equal(get(&c, &r, &out, &e), -1);
		assert_int_not_equal(e.code, ERR_OK);
		assert_int_equal(c.fd, -1);
		client_done(&c);
		stop(&s);
		buf_done(&out);
	}
}

static void test_cancel_and_timeout(void **state)
{
	static const struct step steps[] = { { "never", "", true }, { "never", "", true } };
	struct client_request rq = { .method = "GET", .path = VIEW("/x"), .timeout_ms = 50 };
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	start(&s, steps, ELEMS(steps));
	client_init(&c, &s.url, NULL);
	assert_int_equal(client_send(&c, &rq, &r, &e), -1);
	assert_int_equal(e.code, ERR_TIMEOUT);
	assert_int_equal(c.fd, -1);
	rq.timeout_ms = 0;
	c.cancel_fd = pipes[0];
	assert_int_equal(write(pipes[1], "x", 1), 1);
	e = (struct err){ 0 };
	assert_int_equal(client_send(&c, &rq, &r, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	client_done(&c);
	stop(&s);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_nobody_there(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct server s;
	struct client c;
	struct response r;
	struct err e = { 0 };

	start(&s, NULL, 0);
	client_init(&c, &s.url, NULL);
	stop(&s); /* the port is free again */
	assert_int_equal(get(&c, &r, &out, &e), -1);
	assert_int_equal(e.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(e.msg, "is `paddock serve` running?"));
	client_done(&c);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keep_alive),     cmocka_unit_test(test_upload_chunked),
		cmocka_unit_test(test_upload_sized),   cmocka_unit_test(test_early_refusal),
		cmocka_unit_test(test_broken_answers), cmocka_unit_test(test_cancel_and_timeout),
		cmocka_unit_test(test_nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
