/*
 * Connections out, to a peer on loopback: ready, refused before anything is dialled,
 * nobody there, and a peer that does not speak TLS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "outgoing.h"
#include "poison.h"

struct rig {
	struct loop *loop;
	struct names *names;
	struct loop_io listener, peer;
	uint16_t port;
	struct outgoing out;
	bool refuse;
	/* what happened */
	unsigned ready, failed;
	int error;
	char why[128], got[16];
};

static struct rig *rig_of(struct outgoing *o)
{
	return CONTAINER(o, struct rig, out);
}

static const char *refuses(struct outgoing *o, const struct sockaddr *to)
{
	assert_int_equal(to->sa_family, AF_INET);
	assert_int_equal(ntohs(((const struct sockaddr_in *)to)->sin_port), rig_of(o)->port);
	return rig_of(o)->refuse ? "not there" : NULL;
}

static void on_ready(struct outgoing *o)
{
	rig_of(o)->ready++;
	assert_int_equal(outgoing_send(o, VIEW("ping")), 4);
	assert_int_equal(outgoing_recv(o, rig_of(o)->got, 16), -EAGAIN);
	assert_int_equal(outgoing_want(o, true, false), 0);
}

static void on_event(struct outgoing *o, uint32_t events)
{
	assert_int_equal(outgoing_recv(o, rig_of(o)->got, 16), 4);
	loop_stop(o->loop, 0);
}

static void on_fail(struct outgoing *o, int error, const char *why)
{
	struct rig *r = rig_of(o);

	r->failed++;
	r->error = error;
	if (why)
		assert_int_equal(view_to_str(view_of(why), r->why, sizeof(r->why)), 0);
	outgoing_stop(o);
	loop_stop(r->loop, 0);
}

static const struct outgoing_ops ops = {
	.refuses = refuses, .on_ready = on_ready, .on_event = on_event, .on_fail = on_fail
};

/* It sends back what comes, whoever speaks. */
static void on_peer(struct loop_io *io, uint32_t events)
{
	char m[2048];
	ssize_t n = recv(io->fd, m, sizeof(m), 0);

	if (n > 0)
		assert_int_equal(send(io->fd, m, (size_t)n, MSG_NOSIGNAL), n);
	else
		loop_io_close(io);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	struct rig *r = CONTAINER(io, struct rig, listener);

	assert_int_equal(loop_io_start(r->loop, &r->peer, accept(io->fd, NULL, NULL), EPOLLIN, on_peer), 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	struct err e = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(r);
	r->loop = loop_new(&e);
	r->names = names_new(r->loop, &(struct names_setup){ .hosts = true }, &e);
	assert_non_null(r->names);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(loop_io_start(r->loop, &r->listener, fd, EPOLLIN, on_accept), 0);
	r->port = ntohs(in.sin_port);
	r->peer.fd = -1;
	r->out = OUTGOING_NONE;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	outgoing_done(&r->out);
	outgoing_done(&r->out); /* twice is once */
	loop_io_close(&r->peer);
	loop_io_close(&r->listener);
	names_free(r->names);
	loop_free(r->loop);
	free(r);
	return 0;
}

static void go(struct rig *r, const char *host, struct tls_client *tls)
{
	outgoing_start(&r->out, r->loop, r->names, &(struct outgoing_host){ view_of(host), r->port, tls },
		       &ops);
	if (!r->failed)
		assert_int_equal(loop_run(r->loop), 0);
}

static void test_ready(void **state)
{
	struct rig *r = *state;

	go(r, "127.0.0.1", NULL);
	assert_int_equal(r->ready, 1);
	assert_int_equal(r->failed, 0);
	assert_memory_equal(r->got, "ping", 4);
	assert_int_equal(outgoing_error(&r->out), 0);
}

static void test_refused_before_it_is_dialled(void **state)
{
	struct rig *r = *state;

	r->refuse = true;
	go(r, "127.0.0.1", NULL);
	assert_int_equal(r->failed, 1);
	assert_string_equal(r->why, "not there");
	assert_int_equal(r->out.io.fd, -1);
}

static void test_nobody_there(void **state)
{
	struct rig *r = *state;

	loop_io_close(&r->listener);
	go(r, "127.0.0.1", NULL);
	assert_int_equal(r->failed, 1);
	assert_int_equal(r->error, ECONNREFUSED);
	assert_string_equal(r->why, "");
}

static void test_no_name(void **state)
{
	struct rig *r = *state;
	char name[300];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = 0;
	go(r, name, NULL);
	assert_int_equal(r->failed, 1);
	assert_string_equal(r->why, "the name is not known");
}

static void test_no_tls(void **state)
{
	struct rig *r = *state;
	struct err e = { 0 };
	struct tls_client *tls = tls_client_new(&e);

	assert_non_null(tls);
	go(r, "127.0.0.1", tls); /* its own hello comes back */
	assert_int_equal(r->ready, 0);
	assert_int_equal(r->failed, 1);
	assert_memory_equal(r->why, "TLS: ", 5);
	outgoing_done(&r->out);
	tls_client_free(tls);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ready),        TEST(test_refused_before_it_is_dialled),
		TEST(test_nobody_there), TEST(test_no_name),
		TEST(test_no_tls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
