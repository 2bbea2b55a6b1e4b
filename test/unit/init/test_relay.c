/*
 * Connections of the box as streams: opened, refused, ended by halves, held back,
 * broken; and listening for others.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fd.h"
#include "kept.h"
#include "poison.h"

/* The box of the tests shares our loopback: the servers are here. */
static int serve(bool v6, uint16_t *ret_port)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *a = v6 ? (void *)&a6 : (void *)&a4;
	socklen_t n = v6 ? sizeof(a6) : sizeof(a4);
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, a, n), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, a, &n), 0);
	*ret_port = ntohs(v6 ? a6.sin6_port : a4.sin_port);
	return fd;
}

/* A port on which nobody listens, nor will: other tests run beside this one and get theirs from the kernel,
 * which gives none below 32768. */
static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint16_t port = (uint16_t)(20000 + getpid() % 10000);
	int r;
	do {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		a.sin_port = htons(++port);
		r = bind(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
	} while (r < 0);
	return port;
}

static uint32_t call_connect(uint16_t port)
{
	return client_call(&client, WIRE_TYPE_CONNECT, 0, &wire_connect_msg,
			   &(struct wire_connect){ .port = port });
}

static void expect(uint32_t id, uint8_t kind, bool last)
{
	struct frame f;
	do
		assert_true(client_next(&client, &f));
	while (f.kind == FRAME_WINDOW_ADD);
	assert_int_equal(f.stream, id);
	assert_int_equal(f.kind, kind);
	assert_int_equal((f.flags & FRAME_LAST) != 0, last);
}

static void send_data(uint32_t id, struct view v)
{
	client_send(&client, (struct frame){ .kind = FRAME_DATA, .stream = id, .body = v });
}

static void send_end(uint32_t id)
{
	client_send(&client, (struct frame){ .kind = FRAME_END, .type = WIRE_TYPE_CONNECT, .stream = id });
}

static uint32_t open_pair(int server, uint16_t port, int *ret_fd)
{
	uint32_t id = call_connect(port);
	expect(id, FRAME_REPLY, false);
	*ret_fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_fd >= 0);
	return id;
}

static void test_both_ways(void **state)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint16_t port;
		int server = serve(v6, &port), fd;
		uint32_t id = open_pair(server, port, &fd);
		char text[8];
		struct frame f;

		send_data(id, VIEW("ping"));
		assert_int_equal(fd_read_all(fd, text, 4), 0);
		assert_memory_equal(text, "ping", 4);
		assert_int_equal(fd_write_all(fd, "pong", 4), 0);
		assert_true(client_next(&client, &f));
		assert_true(f.kind == FRAME_DATA && view_is(f.body, "pong"));
		/* Each half on its own. */
		send_end(id);
		assert_int_equal(read(fd, text, 1), 0);
		assert_int_equal(fd_write_all(fd, "more", 4), 0);
		assert_true(client_next(&client, &f));
		assert_true(f.kind == FRAME_DATA && view_is(f.body, "more"));
		close(fd);
		expect(id, FRAME_REPLY, false);
		expect(id, FRAME_REPLY, true);
		close(server);
	}
}

static void test_other_half_first(void **state)
{
	uint16_t port;
	int server = serve(false, &port), fd;
	uint32_t id = open_pair(server, port, &fd);
	char text[4];

	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect(id, FRAME_REPLY, false);
	send_data(id, VIEW("late"));
	assert_int_equal(fd_read_all(fd, text, 4), 0);
	send_end(id);
	expect(id, FRAME_REPLY, true);
	close(fd);
	close(server);
}

static void test_refused(void **state)
{
	uint16_t port = free_port();
	struct answer a;

	client_finish(&client, call_connect(port), &a);
	assert_true(a.failed && a.error.code == ERR_NOT_FOUND);
	answer_done(&a);
	client_finish(&client, call_connect(0), &a);
	assert_true(a.failed && a.error.code == ERR_INVALID);
	answer_done(&a);
}

/* Without credit no more than a window comes, however much there is. */
static void test_no_more_than_the_window(void **state)
{
	uint16_t port;
	int server = serve(false, &port), fd;
	uint32_t id = open_pair(server, port, &fd);
	static char big[2u << 20];
	size_t got = 0;
	struct frame f;
	pid_t child = fork();

	if (child == 0) {
		(void)!fd_write_all(fd, big, sizeof(big));
		_exit(0);
	}
	close(fd);
	while (got < FRAME_WINDOW) {
		assert_true(client_next(&client, &f));
		assert_int_equal(f.kind, FRAME_DATA);
		got += f.body.n;
	}
	assert_int_equal(got, FRAME_WINDOW);
	while (got < sizeof(big)) {
		client_credit(&client, id, 65536);
		for (size_t n = 0; n < 65536; n += f.body.n) {
			assert_true(client_next(&client, &f));
			assert_int_equal(f.kind, FRAME_DATA);
			got += f.body.n;
			if (got == sizeof(big))
				break;
		}
	}
	client_credit(&client, id, 1); /* the end is seen when there is room to read */
	expect(id, FRAME_REPLY, false);
	kept_cancel(&client, id);
	close(server);
}

/* A peer that does not read: what was sent waits, and its credit does not come back. */
static void test_other_end_does_not_read(void **state)
{
	uint16_t port;
	int server = serve(false, &port), fd, small = 4096;
	static char big[64 * 1024], text[64 * 1024];
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	uint32_t id = open_pair(server, port, &fd);
	size_t sent = 0, credit = FRAME_WINDOW, got = 0;
	struct frame f;

	/* Everything that there is credit for, until none comes: the socket's own room is finite. */
	while (sent < 16u << 20) {
		struct timeval tv = { .tv_usec = 300000 };
		if (credit >= sizeof(big)) {
			send_data(id, (struct view){ big, sizeof(big) });
			credit -= sizeof(big);
			sent += sizeof(big);
			continue;
		}
		fd_set set;
		FD_ZERO(&set);
		FD_SET(client.fd, &set);
		if (select(client.fd + 1, &set, NULL, NULL, &tv) == 0)
			break;
		assert_true(client_next(&client, &f));
		assert_int_equal(f.kind, FRAME_WINDOW_ADD);
		const uint8_t *b = (const uint8_t *)f.body.p;
		credit += b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	}
	assert_true(sent < 16u << 20);
	/* When it reads all of it arrives. */
	send_end(id);
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0;)
		got += (size_t)n;
	assert_int_equal(got, sent);
	close(fd);
	expect(id, FRAME_REPLY, false);
	expect(id, FRAME_REPLY, true);
	close(server);
}

static void test_reset(void **state)
{
	uint16_t port;
	int server = serve(false, &port), fd;
	uint32_t id = open_pair(server, port, &fd);
	struct answer a;

	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger)), 0);
	close(fd);
	client_finish(&client, id, &a);
	assert_true(a.failed && a.error.code == ERR_UNAVAILABLE);
	answer_done(&a);
	close(server);
}

static void test_cancel_closes(void **state)
{
	uint16_t port;
	int server = serve(false, &port), fd;
	uint32_t id = open_pair(server, port, &fd);
	char c;

	kept_cancel(&client, id);
	assert_int_equal(read(fd, &c, 1), 0);
	close(fd);
	close(server);
}

static int dial(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (void *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void test_listen(void **state)
{
	uint16_t port = free_port();
	struct answer a;
	struct frame f;
	char text[4];

	struct wire_listen listen = { .port = port };
	struct wire_accept accept = { .port = port };
	client_finish(&client, client_call(&client, WIRE_TYPE_ACCEPT, 0, &wire_accept_msg, &accept), &a);
	assert_true(a.failed && a.error.code == ERR_NOT_FOUND);
	answer_done(&a);
	uint32_t listener = client_call(&client, WIRE_TYPE_LISTEN, 0, &wire_listen_msg, &listen);
	expect(listener, FRAME_REPLY, false);
	client_finish(&client, client_call(&client, WIRE_TYPE_LISTEN, 0, &wire_listen_msg, &listen), &a);
	assert_true(a.failed && a.error.code == ERR_CONFLICT);
	answer_done(&a);

	/* One waits for a connection; another connection waits for a call. */
	uint32_t one = client_call(&client, WIRE_TYPE_ACCEPT, 0, &wire_accept_msg, &accept);
	int fd = dial(port), fd2 = dial(port);
	assert_true(fd >= 0 && fd2 >= 0);
	expect(one, FRAME_REPLY, false);
	assert_int_equal(fd_write_all(fd, "from", 4), 0);
	assert_true(client_next(&client, &f));
	assert_true(f.stream == one && f.kind == FRAME_DATA && view_is(f.body, "from"));
	uint32_t two = client_call(&client, WIRE_TYPE_ACCEPT, 0, &wire_accept_msg, &accept);
	expect(two, FRAME_REPLY, false);
	send_data(two, VIEW("back"));
	assert_int_equal(fd_read_all(fd2, text, 4), 0);

	/* With the listener goes what waits for it; what is open stays. */
	uint32_t three = client_call(&client, WIRE_TYPE_ACCEPT, 0, &wire_accept_msg, &accept);
	client_send(&client,
		    (struct frame){ .kind = FRAME_CANCEL, .type = WIRE_TYPE_LISTEN, .stream = listener });
	for (int i = 0; i < 2; i++) {
		assert_true(client_next(&client, &f));
		assert_int_equal(f.kind, FRAME_FAIL);
		assert_true(f.stream == three || f.stream == listener);
	}
	assert_int_equal(dial(port), -1);
	assert_int_equal(fd_write_all(fd, "last", 4), 0);
	assert_true(client_next(&client, &f));
	assert_true(f.stream == one && view_is(f.body, "last"));
	close(fd);
	close(fd2);
	kept_cancel(&client, one);
	kept_cancel(&client, two);
}

static void test_list(void **state)
{
	uint16_t port;
	int server = serve(false, &port);
	struct answer a;
	struct arena arena = ARENA_INIT(1 << 20);
	struct wire_listeners_reply reply;
	bool found = false;

	client_finish(&client,
		      client_call(&client, WIRE_TYPE_LISTENERS, 0, &wire_listeners_msg,
				  &(struct wire_listeners){ 0 }),
		      &a);
	assert_false(a.failed);
	answer_decode(&a, &a.last, &wire_listeners_reply_msg, &arena, &reply);
	for (size_t i = 0; i < reply.listeners.n; i++)
		found |= reply.listeners.items[i].port == port &&
			 view_is(reply.listeners.items[i].address, "127.0.0.1");
	assert_true(found);
	arena_done(&arena);
	answer_done(&a);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(test_both_ways),
		KEPT_TEST(test_other_half_first),
		KEPT_TEST(test_refused),
		KEPT_TEST(test_no_more_than_the_window),
		KEPT_TEST(test_other_end_does_not_read),
		KEPT_TEST(test_reset),
		KEPT_TEST(test_cancel_closes),
		KEPT_TEST(test_listen),
		KEPT_TEST(test_list),
	};
	return cmocka_run_group_tests_name("init_relay", tests, kept_start_box, kept_stop_box);
}
