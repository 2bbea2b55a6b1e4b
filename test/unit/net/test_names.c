/*
 * Names to addresses, asked of a name server that the test plays: what is right, what a
 * stranger may send in between, what does not fit, and what is not asked at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dns.h"
#include "fd.h"
#include "names.h"
#include "poison.h"

struct rig {
	struct loop *loop;
	struct names *names;
	struct loop_io udp, tcp;
	struct names_setup setup;
	unsigned asked, by_stream; /* questions that came */
	bool silent, guesses, short_answers;
	unsigned rcode;
	char last[256];
	/* the answer */
	struct names_waiter waiter;
	unsigned done;
	bool none;
	struct names_answer answer;
};

static size_t reply(struct rig *r, struct view m, bool stream, char *out, size_t size)
{
	static const struct dns_address four = { { 192, 0, 2, 7 } },
					six = { { 0x20, 1, 0xd, 0xb8, [15] = 7 } };
	struct buf b = BUF_INIT(DNS_MESSAGE);
	struct dns_query q;

	assert_int_equal(dns_query_parse(m, &q), 0);
	memcpy(r->last, q.name, sizeof(r->last));
	size_t n = r->rcode || (r->short_answers && !stream) ? 0 : 1;
	assert_int_equal(dns_answer(&b, m, &q, r->rcode, q.type == DNS_A ? &four : &six, n, 60), 0);
	assert_true(b.n <= size);
	memcpy(out, b.p, b.n);
	if (r->short_answers && !stream)
		out[2] |= 2; /* TC */
	n = b.n;
	buf_done(&b);
	return n;
}

static void on_udp(struct loop_io *io, uint32_t events)
{
	struct rig *r = CONTAINER(io, struct rig, udp);
	char m[2048], out[2048];
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(io->fd, m, sizeof(m), 0, (struct sockaddr *)&from, &len);

	assert_true(n > 0);
	r->asked++;
	if (r->silent)
		return;
	size_t size = reply(r, (struct view){ m, (size_t)n }, false, out, sizeof(out));
	if (r->guesses) { /* another id, and another address */
		char guess[2048];
		memcpy(guess, out, size);
		guess[0] ^= 1;
		guess[size - 1] ^= 1;
		assert_int_equal(sendto(io->fd, guess, size, 0, (struct sockaddr *)&from, len), size);
	}
	assert_int_equal(sendto(io->fd, out, size, 0, (struct sockaddr *)&from, len), size);
}

struct stream {
	struct loop_io io;
	struct rig *rig;
};

static void on_stream(struct loop_io *io, uint32_t events)
{
	struct stream *s = CONTAINER(io, struct stream, io);
	char m[2048], out[2048];
	ssize_t n = recv(io->fd, m, sizeof(m), 0); /* it is sent as one piece */

	assert_true(n > 2 && n - 2 == (m[0] << 8 | (uint8_t)m[1]));
	s->rig->by_stream++;
	size_t size = reply(s->rig, (struct view){ m + 2, (size_t)n - 2 }, true, out + 2, sizeof(out) - 2);
	out[0] = (char)(size >> 8);
	out[1] = (char)size;
	assert_int_equal(send(io->fd, out, 1, 0), 1); /* in two, though */
	assert_int_equal(send(io->fd, out + 1, size + 1, 0), size + 1);
	loop_io_close(io);
	free(s);
}

static void on_tcp(struct loop_io *io, uint32_t events)
{
	struct rig *r = CONTAINER(io, struct rig, tcp);
	struct stream *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->rig = r;
	int fd = accept(io->fd, NULL, NULL);
	assert_int_equal(loop_io_start(r->loop, &s->io, fd, EPOLLIN, on_stream), 0);
}

static int make_socket(struct rig *r, int type)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (r->setup.server_len)
		memcpy(&in, &r->setup.server, sizeof(in));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	r->setup.server_len = sizeof(in);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&r->setup.server, &r->setup.server_len), 0);
	return fd;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct err e = { 0 };

	assert_non_null(r);
	r->loop = loop_new(&e);
	assert_non_null(r->loop);
	/* The stream first: a port that is free for datagrams is often one that a connection still has. */
	int tcp = make_socket(r, SOCK_STREAM), udp = make_socket(r, SOCK_DGRAM);
	assert_int_equal(listen(tcp, 4), 0);
	assert_int_equal(loop_io_start(r->loop, &r->udp, udp, EPOLLIN, on_udp), 0);
	assert_int_equal(loop_io_start(r->loop, &r->tcp, tcp, EPOLLIN, on_tcp), 0);
	r->setup.hosts = true;
	r->names = names_new(r->loop, &r->setup, &e);
	assert_non_null(r->names);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	names_forget(&r->waiter);
	names_free(r->names);
	loop_io_close(&r->udp);
	loop_io_close(&r->tcp);
	loop_free(r->loop);
	free(r);
	return 0;
}

static void on_done(struct names_waiter *w, const struct names_answer *a)
{
	struct rig *r = CONTAINER(w, struct rig, waiter);

	r->done++;
	r->none = !a;
	if (a)
		r->answer = *a;
	loop_stop(r->loop, 0);
}

static void ask(struct rig *r, const char *name)
{
	unsigned before = r->done;

	r->answer = (struct names_answer){ 0 };
	names_ask(r->names, view_of(name), &r->waiter, on_done);
	if (r->done == before)
		assert_int_equal(loop_run(r->loop), 0);
	assert_int_equal(r->done, before + 1);
}

static void assert_both(const struct rig *r)
{
	char text[ADDR_TEXT];

	assert_false(r->none);
	assert_int_equal(r->answer.n, 2); /* IPv4 first */
	assert_string_equal(addr_text(&r->answer.addrs[0], text), "192.0.2.7");
	assert_string_equal(addr_text(&r->answer.addrs[1], text), "2001:db8::7");
}

static void test_asks_once(void **state)
{
	struct rig *r = *state;

	assert_false(names_cached(r->names, VIEW("a.example")));
	ask(r, "a.example");
	assert_both(r);
	assert_int_equal(r->asked, 2); /* A and AAAA */
	assert_true(names_cached(r->names, VIEW("a.example")));
	ask(r, "a.example");
	assert_both(r);
	ask(r, "a.example."); /* the same, from the root */
	assert_both(r);
	assert_int_equal(r->asked, 2);
	assert_string_equal(r->last, "a.example");
}

static void test_guesses(void **state)
{
	struct rig *r = *state;

	r->guesses = true;
	ask(r, "a.example");
	assert_both(r);
}

static void test_by_stream(void **state)
{
	struct rig *r = *state;

	r->short_answers = true;
	ask(r, "a.example");
	assert_both(r);
	assert_int_equal(r->by_stream, 2);
}

static void test_no_such_name(void **state)
{
	struct rig *r = *state;

	r->rcode = DNS_NXDOMAIN;
	ask(r, "a.example");
	assert_false(r->none);
	assert_false(r->answer.known);
	assert_int_equal(r->answer.n, 0);
	r->rcode = DNS_SERVFAIL;
	ask(r, "b.example");
	assert_true(r->none);
}

/* What is no name is not asked for, and not waited for either. */
static void test_no_question(void **state)
{
	struct rig *r = *state;
	uint64_t before = loop_now(r->loop);

	ask(r, "a..b");
	assert_true(r->none);
	assert_int_equal(r->asked, 0);
	assert_true(loop_now(r->loop) - before < 1000);
}

static void test_what_is_known_here(void **state)
{
	struct rig *r = *state;
	char text[ADDR_TEXT];

	ask(r, "127.0.0.9");
	assert_string_equal(addr_text(&r->answer.addrs[0], text), "127.0.0.9");
	ask(r, "fd00::9");
	assert_string_equal(addr_text(&r->answer.addrs[0], text), "fd00::9");
	ask(r, "LocalHost"); /* of /etc/hosts */
	assert_true(addr_text(&r->answer.addrs[0], text)[0]);
	assert_int_equal(r->asked, 0);
}

/* Without /etc/hosts, as in the gate, an address is a name like any other: the caller knows better. */
static void test_without_hosts(void **state)
{
	struct rig *r = *state;
	struct err e = { 0 };

	names_free(r->names);
	r->setup.hosts = false;
	r->names = names_new(r->loop, &r->setup, &e);
	assert_non_null(r->names);
	ask(r, "localhost");
	assert_both(r);
	assert_int_equal(r->asked, 2);
}

static void test_forgotten(void **state)
{
	struct rig *r = *state;
	struct names_waiter gone = { 0 };

	names_ask(r->names, VIEW("a.example"), &gone, on_done);
	names_forget(&gone);
	ask(r, "a.example"); /* joins the question that is under way */
	assert_both(r);
	assert_int_equal(r->asked, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_asks_once),     TEST(test_guesses),     TEST(test_by_stream),
		TEST(test_no_such_name),  TEST(test_no_question), TEST(test_what_is_known_here),
		TEST(test_without_hosts), TEST(test_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
